"""Large buffers of an embedded worker, used again: a fresh page costs as much as scanning what it holds.

A buffer comes back when the last array that looks at it dies, and serves the next result of its size class.
What is kept and what is in use are together never more than what has been in use at once, so that nobody's
peak grows; and what is kept is bounded by a share of the machine's memory.
"""

from __future__ import annotations

import mmap
import threading
import weakref
from collections import deque
from collections.abc import Iterable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.memory import available_bytes
from spartan_ng.system.heap import offer
from spartan_ng.system.machine import machine_bytes
from spartan_ng.worker.memory.pool import size_class

LEAST_BYTES = 4 << 20
"""Buffers from this size on are kept; the allocator is as good for smaller ones."""
SHARE = 8
"""At most one part in so many of the machine's memory is kept."""


class Recycler:
    """Buffers by size class. Thread-safe."""

    def __init__(self, keep_bytes: int | None = None) -> None:
        self.keep_bytes = machine_bytes() // SHARE if keep_bytes is None else keep_bytes
        self.used_bytes = 0
        self.peak_bytes = 0
        self._free: deque[np.ndarray[Any, Any]] = deque()
        self._returned: deque[np.ndarray[Any, Any]] = deque()
        self._live: set[int] = set()
        self._lock = threading.Lock()
        self._self = weakref.ref(self)

    def owns(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether the array lies in one of these buffers."""
        root = array.base if isinstance(array.base, np.ndarray) else array
        return root.nbytes >= LEAST_BYTES and address(root) in self._live

    @property
    def free_bytes(self) -> int:
        """Bytes kept for results to come."""
        with self._lock:
            self._collect()
            return self._kept()

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        """An uninitialized array."""
        nbytes = prod(shape) * dtype.itemsize
        if nbytes < LEAST_BYTES or dtype.hasobject:
            return np.empty(shape, dtype)
        storage = self._take(size_class(nbytes))
        self._live.add(address(storage))
        root: np.ndarray[Any, Any] = np.frombuffer(storage.data, np.uint8, nbytes)
        # By a weak reference: a buffer in use keeps nobody.
        weakref.finalize(root, _come_back, self._self, storage).atexit = False
        return root.view(dtype).reshape(shape)

    def expect(self, sizes: Iterable[int]) -> None:
        """Have buffers for results of so many bytes ready, which count as if they had been in use; the system
        may have their memory back where it is short of it, until they are."""
        for size in (size_class(nbytes) for nbytes in sizes if nbytes >= LEAST_BYTES):
            if self.free_bytes + size > min(self.keep_bytes, available_bytes() // SHARE):
                break
            storage = np.empty(size, np.uint8)
            storage[:: mmap.PAGESIZE] = 0
            offer(address(storage), size)
            with self._lock:
                self._free.append(storage)
                self.peak_bytes = max(self.peak_bytes, self.used_bytes + self._kept())

    def _take(self, size: int) -> np.ndarray[Any, Any]:
        with self._lock:
            self._collect()
            self.used_bytes += size
            self.peak_bytes = max(self.peak_bytes, self.used_bytes)
            for i, storage in enumerate(self._free):
                if storage.nbytes == size:
                    del self._free[i]
                    return storage
            self._trim()
        return np.empty(size, np.uint8)

    def come_back(self, storage: np.ndarray[Any, Any]) -> None:
        """Take a buffer at which no array looks any more, and let go now of what is not to be kept: nobody
        may allocate for long.

        Finalizers run anywhere, also inside our own locked parts, which take it later then.
        """
        self._returned.append(storage)
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()

    def _collect(self) -> None:
        while self._returned:
            storage = self._returned.popleft()
            self.used_bytes -= storage.nbytes
            self._live.discard(address(storage))
            self._free.append(storage)
        self._trim()

    def _trim(self) -> None:
        """Let the buffers go that came back first."""
        keep = min(self.keep_bytes, self.peak_bytes - self.used_bytes)
        while self._free and self._kept() > keep:
            self._free.popleft()

    def _kept(self) -> int:
        return sum(s.nbytes for s in self._free)


def _come_back(to: weakref.ref[Recycler], storage: np.ndarray[Any, Any]) -> None:
    recycler = to()
    if recycler is not None:
        recycler.come_back(storage)
