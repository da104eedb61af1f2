"""Memory that is free, but still this process's: the allocator keeps it for more, which may never come.

glibc keeps what lies between blocks in use, and a heap for each of some threads. ZeroMQ's threads take memory
for frames as they arrive; when those who sent them have left, it is given back.
"""

from __future__ import annotations

import ctypes

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> None:
    """Return free memory to the system, where its allocator can."""
    if _trim is not None:
        _trim(0)
