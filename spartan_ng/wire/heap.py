"""Memory that is free, but still this process's: the allocator keeps it for more, which may never come.

glibc has up to eight heaps for each core, which threads share, and keeps what lies between blocks in use, and
the highest pages of each heap. ZeroMQ's threads take memory for frames as they arrive, jobs' threads for what
functions make. So what they had is given back when those have left whom it was for, and daemons have as many
heaps as there is work at a time.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""mallopt(3)."""
_libc = ctypes.CDLL(None)
_trim = getattr(_libc, "malloc_trim", None)
_option = getattr(_libc, "mallopt", None)


def give_back() -> None:
    """Return free memory to the system, where its allocator can."""
    if _trim is not None:
        _trim(0)


def limit_heaps(most: int) -> None:
    """Have all threads to come share so many heaps, where the allocator has several."""
    if _trim is not None and _option is not None:
        _option(_M_ARENA_MAX, most)
