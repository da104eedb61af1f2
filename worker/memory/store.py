"""A worker's tiles: one tile an array, readable when it is complete.

A key is `(owner, number)`: the owner is a client, or one job of a client, and all that an owner has is
dropped at once when it goes. A read of a tile that is not there yet parks until it is. With a pool that has
a budget, the tiles that were used least recently go to anonymous files, and come back when they are read.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Key
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.arrays.sparse import csr_array, is_csr
from spartan_ng.errors import MemoryBudgetError, WorkerLost
from spartan_ng.events import record
from spartan_ng.memory import budget_bytes
from spartan_ng.scratch import nameless, no_room, on_disk, put
from spartan_ng.sources import SourceTile
from spartan_ng.system.files import read_at
from spartan_ng.system.mapping import Mapping
from spartan_ng.worker.memory.pool import SHARED_BYTES, BufferPool
from spartan_ng.worker.memory.recycle import Recycler

Region = tuple[Any, ...]
"""`(start, stop, step)` an axis, in the tile's own coordinates, step > 0; or, for one axis, an array of
ascending indices; or, of a dense tile's only axis, an array with one such range a row, put together."""


Place = Callable[[], "np.ndarray[Any, Any] | None"]
"""Makes an array in the file that a tile is for; None where it has no place for it as it is."""


class _Held(Struct):
    """A tile in memory (`tile`) or on disk (`spilled`)."""

    tile: Any
    left: int | None
    """Releases still to come before it is dropped; None: it stays until dropped."""
    reserved_bytes: int
    """Bytes counted in the pool for memory that is not the pool's own."""
    spilled: _Spilled | None = None
    lent: bool = False
    """Whether its memory stays in use wherever it goes."""


class Store:
    """Tiles by key. Thread-safe; callbacks run on the thread that completes the tile."""

    def __init__(self, pool: BufferPool | None = None, recycler: Recycler | None = None) -> None:
        self.pool = pool
        self._recycler = recycler
        self.spilled_bytes = 0
        """Bytes written to disk since the start."""
        self._tiles: dict[Key, _Held] = {}
        self._parked: dict[Key, list[Callable[[], None]]] = {}
        # Who makes room, or drops several, holds it already.
        self._lock = threading.RLock()

    def allocate(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], place: Place | None = None
    ) -> np.ndarray[Any, Any]:
        """An uninitialized buffer for a tile; where memory has no room for it, in the file of `place`, or in
        one without a name."""
        if self.pool is None:
            if prod(shape) * dtype.itemsize <= budget_bytes():
                empty = np.empty if self._recycler is None else self._recycler.allocate
                return empty(shape, dtype)
        else:
            with suppress(MemoryBudgetError):
                return self.pool.allocate(shape, dtype, self._spill)
        found = None if place is None else place()
        if found is None:
            found = on_disk(shape, dtype)
            self.spilled_bytes += found.nbytes
        return found

    def adopt(
        self, descriptor: int, size: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any]:
        """A tile in a segment that another process hands over; on disk where there is no room for it."""
        assert self.pool is not None, "only workers of a cluster adopt segments"
        nbytes = prod(shape) * dtype.itemsize
        try:
            found = self.pool.adopt(descriptor, size, nbytes, self._spill)
        except MemoryBudgetError:
            try:
                found = self._set_down(Mapping(descriptor, size).array(nbytes))
            finally:
                os.close(descriptor)
        return found.view(dtype).reshape(shape)

    @contextmanager
    def room(self, nbytes: int) -> Iterator[None]:
        """Count memory that is taken outside of the pool for a while; MemoryBudgetError where it cannot
        fit."""
        if self.pool is None:
            yield
            return
        self.pool.reserve(nbytes, self._spill)
        try:
            yield
        finally:
            self.pool.unreserve(nbytes)

    @contextmanager
    def room_beside(self, nbytes: int) -> Iterator[None]:
        """The same of what goes on with less where there is no room."""
        with ExitStack() as stack:
            with suppress(MemoryBudgetError):
                stack.enter_context(self.room(nbytes))
            yield

    def put(self, key: Key, tile: Any, reads: int | None = None, lent: bool = False) -> None:
        """Complete a tile; reads that were parked for it go on.

        With `reads`, the tile is dropped after that many remote reads have been released and the local
        side has called `release`, too; else it stays until it is dropped. What is `lent` takes its memory
        whatever happens here: where the budget has no room for it, it is not counted, and it goes to no disk,
        where others do.
        """
        spilled = None
        try:
            reserved = 0 if self.pool is None else self._reserve(tile)
        except MemoryBudgetError:
            arrays = _arrays(tile)
            if not lent and (not arrays or any(a.dtype.hasobject for a in arrays)):
                raise
            reserved = 0
            if not lent and isinstance(tile, np.ndarray):
                tile = self._set_down(tile)
            elif not lent:  # a sparse one is no map
                tile, spilled = None, self._write(tile)
        held = _Held(tile, None if reads is None else reads + 1, reserved, spilled, lent)
        with self._lock:
            if key in self._tiles:
                self._forget(self._tiles.pop(key))
            self._tiles[key] = held
            waiting = self._parked.pop(key, ()) if self._parked else ()
        # Without the lock: callbacks send what they find.
        for callback in waiting:
            callback()

    def get(self, key: Key) -> Any:
        """The tile; KeyError if it is not complete."""
        if self.pool is None:
            return self._tiles[key].tile
        with self._lock:
            held = self._tiles.pop(key)
            self._tiles[key] = held  # now the last to be spilled
            spilled = held.spilled
            if spilled is None:
                return held.tile
        tile = spilled.load(self.allocate)
        with self._lock:
            if held.spilled is spilled:
                held.reserved_bytes = self._reserve(tile)  # it makes no room by what is still on disk
                held.tile, held.spilled = tile, None
            # Another reader may have brought it back before, and it may have gone to disk again since.
            return tile if held.tile is None else held.tile

    def holds(self, key: Key) -> bool:
        """Whether the tile is complete."""
        return key in self._tiles

    def is_spilled(self, key: Key) -> bool:
        """Whether a tile is on disk, so that `get` takes a while."""
        held = self._tiles.get(key)
        return held is not None and held.spilled is not None

    def when_ready(self, key: Key, callback: Callable[[], None]) -> None:
        """Call `callback` as soon as the tile is complete (at once if it is)."""
        with self._lock:
            if key not in self._tiles:
                self._parked.setdefault(key, []).append(callback)
                return
        callback()

    def release(self, key: Key) -> None:
        """One reader less; the last one of a tile with counted reads drops it."""
        with self._lock:
            held = self._tiles.get(key)
            if held is None or held.left is None:
                return
            held.left -= 1
            if held.left == 0:
                self._forget(self._tiles.pop(key))

    def pin(self, owner: str) -> list[Key]:
        """Have an owner's tiles stay until they are dropped, whoever has read them; their keys."""
        with self._lock:
            found = [key for key in self._tiles if key[0] == owner]
            for key in found:
                self._tiles[key].left = None
            return found

    def drop(self, key: Key) -> None:
        """Forget a tile, and the reads that are parked for it."""
        with self._lock:
            self._forget(self._tiles.pop(key, None))
            self._parked.pop(key, None)

    def drop_owner(self, owner: str) -> None:
        """Forget all tiles and parked reads of an owner, and of the owner's jobs (`owner/...`)."""
        jobs = owner + "/"
        with self._lock:
            for key in [k for k in self._tiles if k[0] == owner or k[0].startswith(jobs)]:
                held = self._tiles.pop(key)
                if held.reserved_bytes:
                    self._forget(held)
            if self._parked:
                for key in [k for k in self._parked if k[0] == owner or k[0].startswith(jobs)]:
                    del self._parked[key]

    def retain(self, owner: str, serials: Collection[int], last: int, last_job: int) -> None:
        """Forget all tiles of an owner up to `last` but these, and what jobs up to `last_job` have left."""
        kept = set(serials)

        def goes(key: Key) -> bool:
            name, _, job = key[0].partition("/")
            if name != owner:
                return False
            if job:
                return not job.isdecimal() or int(job) <= last_job
            return key[1] <= last and key[1] not in kept

        with self._lock:
            for held in (self._tiles, self._parked):
                for key in [k for k in held if goes(k)]:
                    self.drop(key)

    def complete(self) -> list[Key]:
        """The keys of all complete tiles."""
        with self._lock:
            return list(self._tiles)

    def _reserve(self, tile: Any) -> int:
        """Count a tile's memory that did not come from the pool; the bytes counted."""
        if self.pool is None:
            return 0
        foreign = sum(a.nbytes for a in _arrays(tile) if self.pool.locate(a) is None and not is_mapped(a))
        if foreign < SHARED_BYTES:
            return 0
        self.pool.reserve(foreign, self._spill)
        return foreign

    def _set_down(self, tile: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A tile on disk that somebody else has made, and the budget has no room for."""
        found = on_disk(tile.shape, tile.dtype)
        put(found, tile)
        self.spilled_bytes += found.nbytes
        return found

    def _write(self, tile: Any) -> _Spilled:
        """A tile on disk until it is asked for."""
        found = _Spilled.write(tile)
        self.spilled_bytes += sum(a.nbytes for a in _arrays(tile))
        return found

    def _forget(self, held: _Held | None) -> None:
        if held is None:
            return
        if held.reserved_bytes and self.pool is not None:
            self.pool.unreserve(held.reserved_bytes)

    def _spill(self, wanted_bytes: int) -> bool:
        """Write least recently used tiles to disk until `wanted_bytes` are free; whether any were."""
        freed = 0
        with record.span("spill"), self._lock:
            for held in list(self._tiles.values()):
                if freed >= wanted_bytes:
                    break
                if held.spilled is None and not held.lent and _spillable(held.tile):
                    freed += self._spill_one(held)
        if self.pool is not None:
            self.pool.collect()
        return freed > 0

    def _spill_one(self, held: _Held) -> int:
        size = sum(a.nbytes for a in _arrays(held.tile))
        held.spilled = self._write(held.tile)
        held.tile = None
        if held.reserved_bytes and self.pool is not None:
            self.pool.unreserve(held.reserved_bytes)
            held.reserved_bytes = 0
        return size


class _Spilled:
    """A tile in an anonymous temporary file, which the kernel removes however the process ends."""

    __slots__ = ("__weakref__", "_dense", "_descriptor", "_parts", "_shape")

    def __init__(self, descriptor: int, tile: Any) -> None:
        self._descriptor = descriptor
        # Closed with the last reader, who may still load it when the tile is dropped.
        weakref.finalize(self, os.close, descriptor).atexit = False
        self._dense = isinstance(tile, np.ndarray)
        self._shape = tile.shape
        self._parts = [(a.shape, a.dtype) for a in _arrays(tile)]

    @classmethod
    def write(cls, tile: Any) -> _Spilled:
        """Write a dense or CSR tile."""
        try:
            with nameless() as file:
                for array in _arrays(tile):
                    rest = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
                    while rest:
                        rest = rest[file.write(rest) :]
                return cls(os.dup(file.fileno()), tile)
        except OSError as error:
            raise no_room(sum(a.nbytes for a in _arrays(tile)), error) from error

    def load(self, allocate: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]) -> Any:
        """Read the tile back into fresh buffers."""
        arrays, offset = [], 0
        for shape, dtype in self._parts:
            array = allocate(shape, dtype)
            rest = array.reshape(-1).view(np.uint8).data
            while rest:
                count = read_at(self._descriptor, rest, offset)
                if count == 0:
                    raise OSError("a spilled tile's file is shorter than the tile")
                rest, offset = rest[count:], offset + count
            arrays.append(array)
        return arrays[0] if self._dense else csr_array(tuple(arrays), shape=self._shape)


def read_region(tile: Any, region: Region) -> Any:
    """A region of a tile: a view of an ndarray, a CSR part (the tile itself, where that is all of it), the
    updates that meet the box, or what is still to be read of a source."""
    if isinstance(tile, list):
        box = tuple((start, stop) for start, stop, _ in region)
        return [
            (at, data)
            for at, data in tile
            if all(lo < b and a < hi for (lo, hi), (a, b) in zip(at, box, strict=True))
        ]
    if isinstance(tile, SourceTile):
        return tile.region(region)
    if len(region) == 1 and is_ranges(region[0]):
        return np.concatenate([tile[a:b:step] for a, b, step in region[0].tolist()])
    slices: tuple[Any, ...] = tuple(slice(*r) if isinstance(r, tuple) else r for r in region)
    if isinstance(tile, np.ndarray):
        return tile[(*slices, ...)]  # the ellipsis keeps 0-d tiles arrays
    for axis, (chosen, n) in enumerate(zip(slices, tile.shape, strict=True)):
        if not (isinstance(chosen, slice) and chosen == slice(0, n, 1)):  # SciPy copies
            tile = tile[chosen] if axis == 0 else tile[:, chosen]
    return tile


def is_ranges(along: Any) -> bool:
    """Whether a region has several ranges along an axis."""
    return isinstance(along, np.ndarray) and along.ndim == 2


def selected_places(along: Any) -> int:
    """How many places a region has along an axis."""
    if is_ranges(along):
        return int(range_lengths(along).sum())
    return len(range(*along)) if isinstance(along, tuple) else len(along)


def range_lengths(ranges: np.ndarray[Any, Any]) -> Any:
    """How many places each of several ranges has."""
    start, stop, step = ranges.T
    return np.maximum(-(-(stop - start) // step), 0)


def _arrays(tile: Any) -> Sequence[np.ndarray[Any, Any]]:
    """The arrays that hold a tile's data; none for updates, which are short-lived."""
    if isinstance(tile, np.ndarray):
        return (tile,)
    return (tile.data, tile.indices, tile.indptr) if is_csr(tile) else ()


def _spillable(tile: Any) -> bool:
    """Whether writing a tile to disk frees memory: it is large, and only the store looks at it."""
    arrays = _arrays(tile)
    if any(map(is_mapped, arrays)):
        return False
    if sum(a.nbytes for a in arrays) < SHARED_BYTES or any(a.dtype.hasobject for a in arrays):
        return False
    del arrays
    return not isinstance(tile, np.ndarray) or _looks(tile) <= _ALONE


def _looks(tile: np.ndarray[Any, Any]) -> int:
    """References to a tile and to the buffer below it: every view of it, here or in a frame, adds one."""
    root = tile.base if isinstance(tile.base, np.ndarray) else tile
    return sys.getrefcount(tile) + (sys.getrefcount(root) if root is not tile else 0)


def _count_alone() -> int:
    """`_looks` of a tile that nothing but a store looks at, as this interpreter counts references."""
    held = _Held(np.empty(2, np.uint8)[:1], None, 0)
    return _looks_through(held)


def _looks_through(held: _Held) -> int:
    tile = held.tile
    return _looks(tile)


_ALONE = _count_alone()


def dropped(key: Key) -> WorkerLost:
    """What is raised where a tile is asked for that is no longer there."""
    return WorkerLost(f"array {key[1]} of {key[0]} has been dropped")
