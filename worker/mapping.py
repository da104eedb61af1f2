"""Shared memory in this process's addresses; the standard library's `mmap` keeps a descriptor for each."""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_FAILED = ctypes.c_void_p(-1).value


class Mapping:
    """The first `size` bytes of the open file `descriptor`; it lives as long as an array on it."""

    __slots__ = ("__weakref__", "_address", "_writable")

    def __init__(self, descriptor: int, size: int, writable: bool = True) -> None:
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        address = _libc.mmap(None, size, access, mmap.MAP_SHARED, descriptor, 0)
        if address == _FAILED:
            number = ctypes.get_errno()
            raise OSError(number, f"{size:,} bytes cannot be mapped: {os.strerror(number)}")
        self._address, self._writable = address, writable
        weakref.finalize(self, _libc.munmap, address, size).atexit = False

    def array(self, nbytes: int) -> np.ndarray[Any, Any]:
        """The first `nbytes` bytes, as an array whose views all hold on to it."""
        return np.asarray(_Part(self, self._address, nbytes, self._writable))


class _Part:
    """What an array looks at, in NumPy's words."""

    __slots__ = ("__array_interface__", "_mapping")

    def __init__(self, mapping: Mapping, address: int, nbytes: int, writable: bool) -> None:
        self._mapping = mapping
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writable),
            "shape": (nbytes,),
            "typestr": "|u1",
        }
