"""How many threads BLAS gets: in a daemon, and beside threads of our own.

NumPy and SciPy bring a library each. They are looked for once, with the first call that wants them held, and
once more when SciPy's is there: all of the process's mappings are read for it, which most first programs
never need.
"""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_SCIPYS = "scipy.linalg"
_VARIABLES = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"
"""What a library reads as it is loaded."""


def limit_blas(threads: int) -> None:
    """At most this many threads for each call of BLAS in this process, whenever its library is loaded."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads, user_api="blas")
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))


def load_scipys() -> None:
    """Load the library that SciPy brings, which takes a while: before `single_blas` around what calls it."""
    import scipy.linalg  # noqa: F401


def find_libraries() -> None:
    """Look for the libraries before `single_blas` asks for them."""
    _libraries(_SCIPYS in sys.modules)


def single_blas() -> AbstractContextManager[object]:
    """One thread for each call of BLAS, whoever makes it, as long as the context lasts."""
    return _libraries(_SCIPYS in sys.modules).limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@cache
def _libraries(scipys: bool) -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
