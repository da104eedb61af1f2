"""Memory that is free, but still this process's: the allocator keeps it for more, which may never come.

glibc has up to eight heaps for each core, which threads share, and keeps what lies between blocks in use, and
the highest pages of each heap. ZeroMQ's threads take memory for frames as they arrive, jobs' threads for what
functions make. So what they had is given back when those have left whom it was for, and daemons have as many
heaps as there is work at a time. Where arrays may take little, heaps may keep little: those of threads that
unpack chunks would each have some for the next one.

Memory that a process has never had comes page by page, each of which the system fills with zeros as it is
first touched: of a short program's arrays that takes longer than its arithmetic does. NumPy asks for large
pages for arrays from 4 MB on; smaller ones lie in the heap, which has the first of them here, too.
"""

from __future__ import annotations

import mmap
import os

from spartan_ng.system import library
from spartan_ng.system.library import ADDRESS, INT, LONG, SIZE
from spartan_ng.system.mapping import LARGE_PAGE

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8
"""mallopt(3)."""
_TOP_PAD_BYTES = 128 << 10
"""What glibc takes from the system beyond what is asked for, if not told otherwise."""
_NUMPY_VARIABLE = "NUMPY_MADVISE_HUGEPAGE"
"""Environment variable by which NumPy is told to ask for no large pages."""
_LARGE_BYTES = 32 << 20
"""Blocks from this size on are the system's own; glibc comes to the same by itself once it has seen one."""
_FIRST_BYTES = 60 << 20
"""What the heap begins with; of twice `_LARGE_BYTES` all would be given back at once."""
_SMALL_BYTES = 128 << 10
"""glibc's own such size before it has seen any."""
_SHARE = 64
"""Of what arrays may take, blocks up to one part in so many come from a heap; it keeps two of these."""
_THREADS = 8
"""At work in one heap, which they hold for a hundredth of the time."""
_trim = library.function("malloc_trim", [SIZE])
_option = library.function("mallopt", [INT, INT])
_madvise = library.function("madvise", [ADDRESS, SIZE, INT])
_sbrk = library.function("sbrk", [LONG], ADDRESS, is_short=True)
_malloc = library.function("malloc", [SIZE], ADDRESS, is_short=True)
_free = library.function("free", [ADDRESS], None, is_short=True)
_MADV_FREE = 8
"""madvise(2): the system may take these pages where it is short of memory, until they are written to."""

_asked: int | None = None
"""Up to where large pages have been asked for; None where there are to be none."""


def give_back() -> None:
    """Return free memory to the system, where its allocator can."""
    if _trim is not None:
        _trim(0)


def offer(address: int, nbytes: int) -> None:
    """Let the system have this memory back where it is short of it, with what is in it, until it is written
    to; large pages as a whole, so that they stay such."""
    lo, hi = -(-address // LARGE_PAGE) * LARGE_PAGE, (address + nbytes) // LARGE_PAGE * LARGE_PAGE
    if _madvise is not None and lo < hi:
        _madvise(lo, hi - lo, _MADV_FREE)


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
    global _asked
    if _trim is not None and _option is not None:
        share = _LARGE_BYTES if memory_bytes is None else memory_bytes // _SHARE
        large = min(max(share, _SMALL_BYTES), _LARGE_BYTES)
        _option(_M_MMAP_THRESHOLD, large)
        _option(_M_TRIM_THRESHOLD, 2 * large)
        if memory_bytes is not None:
            _asked = None
            _option(_M_TOP_PAD, _TOP_PAD_BYTES)


def begin_in_large_pages() -> None:
    """Have the heap's next memory, of which nothing has been touched yet, come in large pages.

    It takes memory where it is used alone. Where NumPy is not to ask for large pages, nothing is asked for.
    """
    global _asked
    if _option is None or _madvise is None or _sbrk is None or _malloc is None or _free is None:
        return
    if os.environ.get(_NUMPY_VARIABLE) != "0":
        _asked = _sbrk(0)
        _option(_M_TOP_PAD, _FIRST_BYTES)
        nbytes = _TOP_PAD_BYTES
        while _sbrk(0) == _asked and nbytes < _LARGE_BYTES:  # little more than there is, which is soon used
            nbytes *= 2
            _free(_malloc(nbytes))
        _option(_M_TOP_PAD, _LARGE_BYTES)
        _ask(_sbrk(0))


def go_on_in_large_pages() -> None:
    """Have what the heap has taken from the system since the last time come in such pages, if it began so,
    and as much again ahead.

    The allocator writes to the end of what is asked for, where the system then fills a page with zeros:
    nothing is asked for where what there was has been enough.
    """
    if _asked is None or _sbrk is None or (end := _sbrk(0)) == _asked:
        return
    assert _malloc is not None, "asked by who has it"
    assert _free is not None, "asked by who has it"
    if end > _asked:
        # so much is there then; a little more would be given back at once
        _free(_malloc(_LARGE_BYTES // 8 * 7))
    _ask(_sbrk(0))


def _ask(end: int) -> None:
    """Ask for large pages from where that was done last."""
    global _asked
    assert _asked is not None, "asked where there are to be some"
    assert _madvise is not None, "asked by who has it"
    if end > _asked:
        begin = _asked // mmap.PAGESIZE * mmap.PAGESIZE
        _madvise(begin, end - begin, mmap.MADV_HUGEPAGE)
    _asked = end
