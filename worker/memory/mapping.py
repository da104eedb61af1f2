"""Shared memory in this process's addresses; the standard library's `mmap` keeps a descriptor for each."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np

from spartan_ng.errors import OutOfResources

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_FAILED = ctypes.c_void_p(-1).value
_NORESERVE = 0x4000
"""mmap: no swap is set aside, so that there may be more addresses than memory."""


class Mapping:
    """The first `size` bytes of the open file `descriptor`; it lives as long as an array on it."""

    __slots__ = ("__weakref__", "_address", "_writable", "of_file")

    def __init__(self, descriptor: int, size: int, writable: bool = True, of_file: bool = False) -> None:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        address = _libc.mmap(None, size, access, mmap.MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, f"{size:,} bytes cannot be mapped: {os.strerror(number)}")
        self._address, self._writable = address, writable
        self.of_file = of_file
        """Whether it is a file on a disk, and not in memory."""
        weakref.finalize(self, _libc.munmap, address, size).atexit = False

    def array(self, nbytes: int) -> np.ndarray[Any, Any]:
        """The first `nbytes` bytes, as an array whose views all hold on to it."""
        return np.asarray(_Part(self, self._address, nbytes, self._writable, self.of_file))


class _Part:
    """What an array looks at, in NumPy's words."""

    __slots__ = ("__array_interface__", "_mapping", "of_file")

    def __init__(
        self, mapping: Mapping | Reservation, address: int, nbytes: int, writable: bool, of_file: bool = False
    ) -> None:
        self._mapping = mapping
        self.of_file = of_file
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": (nbytes,),
            "typestr": "|u1",
        }


class Reservation:
    """Addresses for `size` bytes, which take memory where they have been written to, until that is let go."""

    __slots__ = ("__weakref__", "_address", "_size")

    def __init__(self, size: int, large_pages: bool) -> None:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        address = _libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OutOfResources(number, f"no addresses for {size:,} bytes: {os.strerror(number)}")
        if large_pages:
            _libc.madvise(address, size, mmap.MADV_HUGEPAGE)
        self._address, self._size = address, size
        weakref.finalize(self, _libc.munmap, address, size).atexit = False

    def array(self) -> np.ndarray[Any, Any]:
        """All bytes, as an array whose views all hold on to them."""
        return np.asarray(_Part(self, self._address, self._size, True))

    def let_go(self, start: int, stop: int) -> None:
        """Give the memory of the pages that lie in `[start, stop)` back; they read as zeros then."""
        lo, hi = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
        if stop >= self._size:
            hi = -(-self._size // mmap.PAGESIZE) * mmap.PAGESIZE
        if hi > lo:
            _libc.madvise(self._address + lo, hi - lo, mmap.MADV_DONTNEED)
