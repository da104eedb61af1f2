"""The arrays that an engine has, tile by tile: how they come there, and which it has lost.

An engine makes tiles again that its workers lose. What it has given up, because the processes that made it
ended too often, and what somebody has had it forget, the session computes again, from what the arrays were
made of (`recovery`), as on our own clusters.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.arrays import ArrayRef, Box, Tiling, box_shape, box_size, box_slices, is_empty
from spartan_ng.backends.engines.inlined import Inlined, InlinedValue
from spartan_ng.backends.engines.jobs import TilePlace, Tiles
from spartan_ng.backends.engines.protocol import Handle
from spartan_ng.backends.engines.steps import LITTLE_BYTES
from spartan_ng.backends.protocol import bring
from spartan_ng.errors import WorkerLost
from spartan_ng.sources import SourceTile
from spartan_ng.worker.memory.regions import Piece
from spartan_ng.worker.memory.store import read_region
from spartan_ng.worker.tasks import Made, Wanted, uploaded, wanted_elements

_TRAVELS_BYTES = 16 * 1024
"""Tiles of the program's arrays up to this size go inside the tasks that read them."""


class EngineHoldings:
    """The tiles of arrays on the engine behind `tasks`, for `owner`, which is those arrays' backend."""

    def __init__(self, tasks: Inlined, owner: object, when_empty: Callable[[], None]) -> None:
        self._tasks = tasks
        self._owner = owner
        self._when_empty = when_empty
        self._arrays: dict[int, Tiles] = {}
        """By the array's serial number."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._arrays)

    def __contains__(self, ref: ArrayRef) -> bool:
        """Whether an array's tiles are known."""
        return ref.serial in self._arrays

    def __getitem__(self, ref: ArrayRef) -> Tiles:
        """Where an array's tiles are; WorkerLost where there are none."""
        if ref not in self:
            raise WorkerLost(f"an array of shape {ref.shape} has no tiles on this engine")
        return self._arrays[ref.serial]

    def every(self) -> list[Tiles]:
        """The tiles of all arrays."""
        return list(self._arrays.values())

    def clear(self) -> None:
        """Let go of all."""
        self._arrays.clear()

    def upload(self, ref: ArrayRef, tiling: Tiling, ranks: int) -> None:
        """Give the engine a driver array's tiles as tasks that hold them, so that it can make them again."""
        tiles: Tiles = {}
        for rank in range(1 if tiling.duplicate else ranks):
            box = tiling.box_on(ref.shape, rank)
            if ref.value is None:
                tile = SourceTile(ref.source)
                tiles[rank] = TilePlace(self._upload(tile, rank), 0, alone=True)
            elif box is not None:
                value = ref.value[box_slices(box)]
                part = np.ascontiguousarray(value).reshape(value.shape) if ref.format == "dense" else value
                little = ref.format == "dense" and part.nbytes <= _TRAVELS_BYTES
                made = InlinedValue(Made({0: part})) if little else self._upload(part, rank)
                tiles[rank] = TilePlace(made, 0, alone=True)
        if any(not isinstance(tile.handle, InlinedValue) for tile in tiles.values()):
            self._tasks.begin()  # else two tiles may come to one worker, and none to another
        self.keep(ref, tiling, tiles, ranks)

    def has_come(self, ref: ArrayRef, tiling: Tiling, ranks: int) -> None:
        """What an engine has made, and the program has now, goes inside the tasks that read it where it is
        little: else the engine remembers each step of a loop that carries it."""
        if ref.value is not None and ref.value.nbytes <= _TRAVELS_BYTES:
            self.upload(ref, tiling, ranks)

    def _upload(self, tile: Any, rank: int) -> Handle:
        return self._tasks.submit("upload", uploaded, Made({0: tile}), rank=rank)

    def keep(self, ref: ArrayRef, tiling: Tiling, tiles: Tiles, ranks: int) -> None:
        """Keep an array's tiles as long as there is the array."""
        ref.tiling = tiling
        if tiling.duplicate:
            tiles = dict.fromkeys(range(ranks), tiles[0])
        self._arrays[ref.serial] = tiles
        self._own(ref)

    def _own(self, ref: ArrayRef) -> None:
        if ref.backend is self._owner:
            return
        this = weakref.ref(self)

        def release(serial: int) -> None:
            holdings = this()
            if holdings is not None:
                holdings._release(serial)

        ref.on_release(self._owner, release)

    def _release(self, serial: int) -> None:
        self._arrays.pop(serial, None)
        if not self._arrays:
            self._when_empty()

    # --- what is lost

    def is_forgotten(self, ref: ArrayRef) -> bool:
        """Whether somebody has had the engine forget a tile of an array, as far as is known here."""
        return not all(self._tasks.is_known(tile.handle) for tile in self[ref].values())

    def is_lost(self, ref: ArrayRef) -> bool:
        """Whether a tile of an array will never be there, whoever asks for it."""
        return ref in self and bool(self._lost(self[ref]))

    def _lost(self, tiles: Tiles) -> set[Handle]:
        return self._tasks.lost(list(dict.fromkeys(tile.handle for tile in tiles.values())))

    def tiles_of(self, ref: ArrayRef) -> dict[Box, ArrayRef | None]:
        """The tiles of a dense array, each as an array of its own, None for one that is lost; none at all
        where its ranks have no boxes of their own."""
        tiles, tiling = self._arrays.get(ref.serial), ref.tiling
        if not tiles or tiling is None or tiling.duplicate or ref.format != "dense":
            return {}
        lost = self._lost(tiles)
        found: dict[Box, ArrayRef | None] = {}
        for rank, tile in tiles.items():
            box = tiling.box_on(ref.shape, rank)
            if box is not None and not is_empty(box):
                found[box] = None if tile.handle in lost else self._alone(ref, tile, box)
        return found

    def _alone(self, ref: ArrayRef, tile: TilePlace, box: Box) -> ArrayRef:
        """A tile as an array."""
        found = ArrayRef(box_shape(box), ref.dtype)
        self.keep(found, Tiling.single(len(box)), {0: tile}, 1)
        return found

    def restore(self, ref: ArrayRef, by: ArrayRef) -> None:
        """Let an array that was lost have the tiles of an equal one, or where programs run elsewhere now, its
        value."""
        if by not in self and by.value is None and by.source is None:
            bring(by)
        ref.also = ()
        ref.value, ref.nnz, ref.tiling = by.value, by.nnz, by.tiling
        tiles = self._arrays.get(by.serial)
        if tiles is None:
            self._arrays.pop(ref.serial, None)
            ref.backend = ref.tiling = None
        else:
            self._arrays[ref.serial] = tiles


def comes_as_it_is(ref: ArrayRef, tile: TilePlace, piece: Piece) -> bool:
    """Whether a tile is fetched as an object: alone in it, and little or wanted whole."""
    if not tile.alone or ref.format != "dense" or ref.tiling is None:
        return False
    size = box_size(ref.tiling.box_on(ref.shape, piece.rank) or ())
    little = size * np.dtype(ref.dtype).itemsize <= LITTLE_BYTES
    return little or wanted_elements(Wanted(0, piece.rank, piece.region)) == size


def region_of(found: Any, tile: TilePlace, piece: Piece) -> Any:
    """What is wanted of what has come."""
    return read_region(found.tiles[tile.number], piece.region) if isinstance(found, Made) else found
