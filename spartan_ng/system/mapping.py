"""Files and reserved addresses as arrays.

The standard library's `mmap` keeps a descriptor for each map, and cannot give addresses without memory: it
serves where the C library's functions are not to be had.
"""

from __future__ import annotations

import mmap
import os
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

from spartan_ng.errors import OutOfResources
from spartan_ng.system import faults, library
from spartan_ng.system.library import ADDRESS, INT, LONG, SIZE

_mmap = library.function("mmap", [ADDRESS, SIZE, INT, INT, INT, LONG], ADDRESS)
_munmap = library.function("munmap", [ADDRESS, SIZE])
_madvise = library.function("madvise", [ADDRESS, SIZE, INT])
_FAILED = ADDRESS(-1).value
_DESCRIBED = 1 << 24
"""Bytes from which on a file keeps its descriptor: writing by it is faster than through the map."""
_NO_ACCESS, _FIXED, _NORESERVE = 0, 0x10, 0x4000
"""mmap: addresses alone; exactly at this address; no swap is set aside, so that there may be more addresses
than memory."""
_COLLAPSE = 25
"""madvise: put this memory into large pages now, also that of files in memory, whatever the system does with
it by itself; from Linux 6.1 on."""
LARGE_PAGE = 1 << 21
"""Bytes of one on most processors."""
_WORTH_LARGE, _AT_ONCE = 1 << 23, 1 << 28
"""Bytes from which on it is asked for, as busy processors have it wait for a while, and those of a call."""


def spoiled() -> list[Any]:
    """Who watches over maps of which somebody has read what was no longer there."""
    return [m.watch for m in list(_guarded) if m.is_spoiled] if faults.any_spoiled() else []


class Mapping:
    """The first `size` bytes of the open file `descriptor`; it lives as long as an array on it."""

    __slots__ = ("__weakref__", "_address", "_map", "_pages", "_writable", "descriptor", "of_file", "watch")

    def __init__(
        self, descriptor: int, size: int, writable: bool = True, of_file: bool = False, watch: Any = None
    ) -> None:
        self._writable = writable
        self._pages = 0
        self.watch = watch
        """Who says whether the file is what it was: of one that others may write to."""
        self.of_file = of_file
        """Whether it is a file on a disk, and not in memory."""
        self.descriptor = -1
        """Of a large file on a disk that may be written to, where the process has one left for it."""
        if of_file and writable and size >= _DESCRIBED:
            with suppress(OSError):
                self.descriptor = os.dup(descriptor)
                weakref.finalize(self, os.close, self.descriptor).atexit = False
        self._map: Any = None
        if _mmap is None or _munmap is None:
            usual = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            self._map = mmap.mmap(descriptor, size, access=usual)
            self._address = _address(self._map)
            return
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        if of_file or size < LARGE_PAGE:
            address = _mmap(None, size, access, mmap.MAP_SHARED, descriptor, 0)
        else:
            address = _aligned(size, access, descriptor)
        if address == _FAILED:
            raise library.last_error(f"{size:,} bytes cannot be mapped: ")
        self._address = address
        weakref.finalize(self, _munmap, address, size).atexit = False
        if watch is not None:
            self._pages = faults.guard(address, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
            weakref.finalize(self, faults.release, self._pages).atexit = False  # called before the other one
            _guarded.add(self)

    @property
    def is_spoiled(self) -> bool:
        """Whether somebody has read of the file what was no longer there."""
        return self._pages != 0 and faults.is_spoiled(self._pages)

    def array(self, nbytes: int) -> np.ndarray[Any, Any]:
        """The first `nbytes` bytes, as an array whose views all hold on to it."""
        return np.asarray(_MappedPart(self, self._address, nbytes, self._writable, self.of_file))

    def in_large_pages(self, start: int, stop: int) -> None:
        """Have memory for `[start, stop)` now, which has none yet, in large pages as far as it fills them.

        Page by page, memory that processes share is slower to take by half and to read by two thirds, as the
        processor looks up five hundred times as many addresses; and most systems take it so. Where this one
        cannot, or has no such pages left, nothing changes.
        """
        lo, hi = -(-start // LARGE_PAGE) * LARGE_PAGE, stop // LARGE_PAGE * LARGE_PAGE
        if _madvise is None or self._map is not None or hi - lo < _WORTH_LARGE:
            return
        self.array(hi)[lo::LARGE_PAGE] = 0  # what is empty altogether is refused
        for at in range(lo, hi, _AT_ONCE):
            if _madvise(self._address + at, min(_AT_ONCE, hi - at), _COLLAPSE):
                return

    def place_of(self, address: int) -> int:
        """Where in the file an address of the map is."""
        return address - self._address


_guarded: weakref.WeakSet[Mapping] = weakref.WeakSet()
"""Of files that others may write to."""


class _MappedPart:
    """What an array looks at, in NumPy's words."""

    __slots__ = ("__array_interface__", "mapping", "of_file")

    def __init__(
        self, mapping: Mapping | Reservation, address: int, nbytes: int, writable: bool, of_file: bool = False
    ) -> None:
        self.mapping = mapping
        self.of_file = of_file
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": (nbytes,),
            "typestr": "|u1",
        }


class Reservation:
    """Addresses for `size` bytes, which take memory where they have been written to, until that is let go."""

    __slots__ = ("__weakref__", "_address", "_map", "_size")

    def __init__(self, size: int, large_pages: bool) -> None:
        self._size = size
        self._map: Any = None
        if _mmap is None or _munmap is None:
            self._map = mmap.mmap(-1, size)
            self._address = _address(self._map)
            return
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        address = _mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if address == _FAILED:
            error = library.last_error()
            raise OutOfResources(error.errno, f"no addresses for {size:,} bytes: {error.strerror}")
        if large_pages and _madvise is not None:
            _madvise(address, size, mmap.MADV_HUGEPAGE)
        self._address = address
        weakref.finalize(self, _munmap, address, size).atexit = False

    def array(self) -> np.ndarray[Any, Any]:
        """All bytes, as an array whose views all hold on to them."""
        return np.asarray(_MappedPart(self, self._address, self._size, True))

    def let_go(self, start: int, stop: int) -> None:
        """Give the memory of the pages that lie in `[start, stop)` back; they read as zeros then.

        Where the system takes none back, they are zeros all the same.
        """
        lo, hi = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
        if stop >= self._size:
            hi = -(-self._size // mmap.PAGESIZE) * mmap.PAGESIZE
        if hi <= lo:
            return
        if _madvise is None:
            self.array()[lo:hi] = 0
        else:
            _madvise(self._address + lo, hi - lo, mmap.MADV_DONTNEED)


def _aligned(size: int, access: int, descriptor: int) -> Any:
    """`mmap` of a shared file to an address where large pages may begin."""
    assert _mmap is not None, "asked by who has it"
    assert _munmap is not None, "asked by who has it"
    room = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE + LARGE_PAGE
    held = _mmap(None, room, _NO_ACCESS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE, -1, 0)
    if held == _FAILED:
        return held
    address = -(-held // LARGE_PAGE) * LARGE_PAGE
    found = _mmap(address, size, access, mmap.MAP_SHARED | _FIXED, descriptor, 0)
    if found == _FAILED:
        _munmap(held, room)
        return found
    if address > held:
        _munmap(held, address - held)
    _munmap(address + room - LARGE_PAGE, held + LARGE_PAGE - address)
    return found


def _address(held: mmap.mmap) -> int:
    return int(np.frombuffer(held, np.uint8).__array_interface__["data"][0])
