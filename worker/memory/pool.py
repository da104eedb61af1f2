"""A pool of tile buffers within a memory budget: fresh pages cost more than arithmetic, so reuse them.

Large buffers are shared-memory segments (memfd): peers on the same host map them through /proc, and the
kernel frees them with the last process that has them, however it ends. A buffer goes back to the pool when
the last array that looks at it dies, so that frames on their way out and readers' leases keep it alive.
Free segments keep the pages that were in use at once, for the next run of a loop; beyond that, or when
nothing asks for them for a while, they give their pages back, but keep their address, so peers' mappings
stay valid.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from itertools import count
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.errors import MemoryBudgetError, OutOfResources
from spartan_ng.memory import BLOCK_BYTES
from spartan_ng.system.machine import machine_bytes
from spartan_ng.system.mapping import Mapping
from spartan_ng.system.segments import create, give_back_pages

SHARED_BYTES = 64 * 1024
"""Buffers of at least this size are segments; smaller ones travel in frames."""

_MAX_FREE_BYTES = 64 << 20
"""Pages that free segments of an idle worker keep: this or a fifth of what is used."""

_SHARE = 16
"""Those of a busy worker keep at most one part in so many of the machine's memory."""

_MAX_FREE_SEGMENTS = 128
"""Each has a descriptor, of which a process may have about a thousand."""

_BESIDE_SHARE = 4
"""Beside tiles there are the blocks that threads work on, and what comes and goes. Of little memory one part
in so many is for that, and tiles have the rest."""

# From anywhere on: a process that gets a dead one's number must not use its segments' numbers again.
_serial = count(int.from_bytes(os.urandom(6), "big"))


class SharedSegment:
    """One shared-memory file and its mapping."""

    __slots__ = ("descriptor", "map", "nbytes", "resident", "serial", "size")

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        self.map = Mapping(descriptor, size)
        self.serial = next(_serial)
        self.nbytes = 0
        """Bytes in use by the present tile."""
        self.resident = 0
        """Bytes that may have pages."""

    @classmethod
    def create(cls, size: int) -> SharedSegment:
        """A new segment, without pages yet; OutOfResources where the system has none to give."""
        descriptor = -1
        try:
            descriptor = create(size)
            return cls(descriptor, size)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise OutOfResources(
                f"no shared memory of {size:,} bytes for a tile: {error.strerror or error}"
            ) from error

    def give_back_pages(self) -> None:
        """Free the memory, but neither file nor mapping."""
        give_back_pages(self.descriptor, self.size)
        self.resident = 0

    def close(self) -> None:
        """Close the file; the mapping goes with its last array."""
        self.give_back_pages()
        os.close(self.descriptor)


class BufferPool:
    """Buffers for tiles within `budget_bytes` (None: no limit). Thread-safe."""

    def __init__(self, budget_bytes: int | None = None) -> None:
        self.budget_bytes = budget_bytes
        self.used_bytes = 0
        self.peak_bytes = 0
        """The most bytes that have been in use at one time."""
        self.free_bytes = 0
        self._busy_peak_bytes = 0
        """As `peak_bytes`, since the worker was idle last."""
        self._busy = False
        """Whether a segment was asked for since the last `rest`."""
        self._free: dict[int, list[SharedSegment]] = {}
        self._free_count = 0
        self._live: dict[int, SharedSegment] = {}
        self._returned: deque[tuple[int, SharedSegment]] = deque()
        self._lock = threading.Lock()

    def allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], reclaim: Callable[[int], bool]
    ) -> np.ndarray[Any, Any]:
        """An uninitialized array; `reclaim(bytes)` is asked for room, and says whether it made any.

        Raises MemoryBudgetError when there is no room left to make.
        """
        nbytes = prod(shape) * dtype.itemsize
        if nbytes < SHARED_BYTES or dtype.hasobject:
            return np.empty(shape, dtype)
        self.reserve(nbytes, reclaim)
        try:
            segment = self._take(nbytes)
            segment.map.in_large_pages(segment.resident, nbytes)
        except BaseException:
            self.unreserve(nbytes)
            raise
        return self._array(segment, nbytes).view(dtype).reshape(shape)

    def adopt(
        self, descriptor: int, size: int, nbytes: int, reclaim: Callable[[int], bool]
    ) -> np.ndarray[Any, Any]:
        """The bytes of a segment that another process made and hands over; MemoryBudgetError, and the
        descriptor stays the caller's, if there is no room."""
        self.reserve(nbytes, reclaim)
        return self._array(SharedSegment(descriptor, size), nbytes)

    def reserve(self, nbytes: int, reclaim: Callable[[int], bool]) -> None:
        """Count `nbytes` as used, making room first where the budget asks for it."""
        while True:
            with self._lock:
                self._collect()
                missing = 0 if self.budget_bytes is None else self.used_bytes + nbytes - self.budget_bytes
                if missing <= 0:
                    self.used_bytes += nbytes
                    self.peak_bytes = max(self.peak_bytes, self.used_bytes)
                    self._busy_peak_bytes = max(self._busy_peak_bytes, self.used_bytes)
                    if self.budget_bytes is not None:
                        # What free segments hold is taken from the same budget.
                        self._trim(self.budget_bytes - self.used_bytes)
                    return
                used = self.used_bytes
            if nbytes > (self.budget_bytes or 0) or not reclaim(missing):
                raise MemoryBudgetError(
                    f"a tile of {nbytes:,} bytes does not fit: {used:,} of the worker's budget of "
                    f"{self.budget_bytes:,} bytes are in use and cannot be spilled; give the workers more "
                    "memory (--memory), or use more workers"
                )

    def unreserve(self, nbytes: int) -> None:
        """Take back a `reserve` of memory that is not the pool's own."""
        with self._lock:
            self.used_bytes -= nbytes

    def locate(self, array: np.ndarray[Any, Any]) -> tuple[SharedSegment, int] | None:
        """The segment an array lies in and its offset there, or None."""
        # A view of a view has the first array as its base.
        root = array.base if isinstance(array.base, np.ndarray) else array
        start = address(root)
        segment = self._live.get(start)
        return None if segment is None else (segment, address(array) - start)

    def collect(self) -> None:
        """Take back the buffers whose last array has died."""
        with self._lock:
            self._collect()

    def rest(self) -> None:
        """Called now and then: as `collect`, and give back what nothing has asked for since the last call."""
        with self._lock:
            self._collect()
            if not self._busy:
                self._busy_peak_bytes = self.used_bytes
                self._trim(self._keep_bytes())
            self._busy = False

    def close_free(self) -> None:
        """Close all free segments, and the descriptors that they have."""
        with self._lock:
            self._collect()
            for segments in self._free.values():
                for segment in segments:
                    segment.close()
            self._free.clear()
            self._free_count = self.free_bytes = 0

    def _take(self, nbytes: int) -> SharedSegment:
        size = size_class(nbytes)
        with self._lock:
            self._busy = True
            free = self._free.get(size)
            segment = free.pop() if free else None
            if segment is not None:
                self._free_count -= 1
                self.free_bytes -= segment.resident
        return segment if segment is not None else SharedSegment.create(size)

    def _array(self, segment: SharedSegment, nbytes: int) -> np.ndarray[Any, Any]:
        root = segment.map.array(nbytes)
        segment.nbytes = nbytes
        segment.resident = max(segment.resident, nbytes)
        start = address(root)
        self._live[start] = segment
        # Finalizers run anywhere, also inside our own locked parts: they only append.
        weakref.finalize(root, self._returned.append, (start, segment)).atexit = False
        return root

    def _collect(self) -> None:
        while self._returned:
            start, segment = self._returned.popleft()
            del self._live[start]
            self.used_bytes -= segment.nbytes
            # What another process made has a size that nobody here will ask for.
            if size_class(segment.size) != segment.size or self._free_count >= _MAX_FREE_SEGMENTS:
                segment.close()
                continue
            self._free.setdefault(segment.size, []).append(segment)
            self._free_count += 1
            self.free_bytes += segment.resident
        self._trim(self._keep_bytes())

    def _keep_bytes(self) -> int:
        """How much free segments may hold: with what is used, no more than has been in use at once."""
        busy = min(self._busy_peak_bytes - self.used_bytes, machine_bytes() // _SHARE)
        keep = max(_MAX_FREE_BYTES, self.used_bytes // 5, busy)
        if self.budget_bytes is None:
            return keep
        return min(keep, self.budget_bytes - self.used_bytes, self.budget_bytes // 5)

    def _trim(self, keep_bytes: int) -> None:
        """Give back pages of free segments until they hold at most `keep_bytes`."""
        if self.free_bytes <= keep_bytes:
            return
        for segments in self._free.values():
            for segment in segments:
                if segment.resident and self.free_bytes > keep_bytes:
                    self.free_bytes -= segment.resident
                    segment.give_back_pages()


def tiles_bytes(memory_bytes: int, threads: int) -> int:
    """What tiles may take of a worker's memory."""
    return memory_bytes - min(threads * BLOCK_BYTES, memory_bytes // _BESIDE_SHARE)


def size_class(nbytes: int) -> int:
    """The least of 1, 1.25, 1.5, 1.75 times a power of two, in whole pages, that holds `nbytes`."""
    # Of a size between two classes at most a fifth of the segment lies idle.
    step = max(4096, 1 << max(0, (nbytes - 1).bit_length() - 3))
    return -(-nbytes // step) * step
