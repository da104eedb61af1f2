"""How long threads of BLAS hold a processor after they have worked.

OpenBLAS with threads of its own, as NumPy's and SciPy's wheels bring it, lets them ask for work for 2**28 of
the processor's cycles, a tenth of a second, after each call that was for several. Whoever else computes then
shares a processor with one that waits: threads of ours, a compiler, another process. A product by a thread
for each half of its rows took twice its time where NumPy had multiplied just before.

It reads that time from the environment as it is loaded. Where it has been loaded already, it is made to read
it again, and to begin its threads anew, as it does after a fork. That is no moment for other threads to call
it, so it is left as it is where Python has others.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from typing import Any

_VARIABLES = "OPENBLAS_THREAD_TIMEOUT", "GOTO_THREAD_TIMEOUT"
"""What OpenBLAS reads; who has set one of them has decided."""
_CYCLES = 22
"""The time's binary logarithm: a millisecond or two. A call that finds them asleep takes 20 to 40 us more, so
calls that follow each other closely should find them awake."""
_CALLERS = {"numpy": "numpy._core._multiarray_umath", "scipy.linalg": "scipy.linalg._fblas"}
"""Who brings a library with BLAS, and which of its modules calls it."""


def _spin_shortly() -> None:
    """Let threads of BLAS that have nothing to do sleep soon."""
    if sys.platform != "linux" or any(name in os.environ for name in _VARIABLES):
        return
    os.environ[_VARIABLES[0]] = str(_CYCLES)
    if threading.active_count() > 1:
        return
    for owner, caller in _CALLERS.items():
        if owner in sys.modules:
            _begin_anew(sys.modules.get(caller))


def _begin_anew(caller: Any) -> None:
    """Make the library that a compiled module calls read its environment, and begin its threads."""
    import ctypes  # later than the environment is set: NumPy, where it is not there yet, imports it itself

    with suppress(AttributeError, OSError):  # a module without a file, another library than OpenBLAS
        library = ctypes.CDLL(caller.__file__)  # finds what the libraries that it needs have, too
        read, end, begin = library.openblas_read_env, library.blas_thread_shutdown_, library.blas_thread_init
        read()
        end()
        begin()


_spin_shortly()
