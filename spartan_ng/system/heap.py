"""Memory that is free, but still this process's: the allocator keeps it for more, which may never come.

glibc has up to eight heaps for each core, which threads share, and keeps what lies between blocks in use, and
the highest pages of each heap. ZeroMQ's threads take memory for frames as they arrive, jobs' threads for what
functions make. So what they had is given back when those have left whom it was for, and daemons have as many
heaps as there is work at a time. Where arrays may take little, heaps may keep little: those of threads that
unpack chunks would each have some for the next one.
"""

from __future__ import annotations

from spartan_ng.system import library
from spartan_ng.system.library import INT, SIZE

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""mallopt(3)."""
_LARGE_BYTES = 32 << 20
"""Blocks from this size on are the system's own; glibc comes to the same by itself once it has seen one."""
_SMALL_BYTES = 128 << 10
"""glibc's own such size before it has seen any."""
_SHARE = 64
"""Of what arrays may take, blocks up to one part in so many come from a heap; it keeps two of these."""
_THREADS = 8
"""At work in one heap, which they hold for a hundredth of the time."""
_trim = library.function("malloc_trim", [SIZE])
_option = library.function("mallopt", [INT, INT])


def give_back() -> None:
    """Return free memory to the system, where its allocator can."""
    if _trim is not None:
        _trim(0)


def limit_heaps(threads: int = 1, memory_bytes: int | None = None) -> None:
    """Have all threads to come share few heaps, where the allocator has several; so many compute.

    What is free is kept as by `keep_freed`, until `give_back`.
    """
    if _trim is not None and _option is not None:
        _option(_M_ARENA_MAX, -(-threads // _THREADS))
        keep_freed(memory_bytes)


def keep_freed(memory_bytes: int | None = None) -> None:
    """Have blocks that are asked for again and again, as for pieces of frames and what a kernel works on,
    come from what is free, and not from the system each time; large ones only where arrays may take much."""
    if _trim is not None and _option is not None:
        share = _LARGE_BYTES if memory_bytes is None else memory_bytes // _SHARE
        large = min(max(share, _SMALL_BYTES), _LARGE_BYTES)
        _option(_M_MMAP_THRESHOLD, large)
        _option(_M_TRIM_THRESHOLD, 2 * large)
