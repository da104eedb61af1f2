"""BLAS on one thread for each of ours.

The libraries that NumPy and SciPy bring are looked for as this module is imported: all of the process's
mappings are read for it, which would be a good part of many a first run.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import scipy.linalg  # noqa: F401  # loads the library that SciPy brings
from threadpoolctl import ThreadpoolController

_libraries = ThreadpoolController()


def single_blas() -> AbstractContextManager[object]:
    """One thread for each call of BLAS, whoever makes it, as long as the context lasts."""
    return _libraries.limit(limits=1, user_api="blas")  # type: ignore[no-any-return]
