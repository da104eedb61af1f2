"""From a box of a stage's domain to pieces of tiles: who holds what a task reads.

All in the index arithmetic of `[start, stop)` with steps; nothing here touches data. A worker derives its
own reads from the plan and its rank, and, by the same arithmetic, how often its peers will read from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from spartan_ng.arrays import WHOLE, Box, box_of, box_slices, sparse
from spartan_ng.compressed import is_compressed
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.sources import SourceTile
from spartan_ng.worker.memory.store import Region

Slices = tuple[slice, ...]
_IN_ORDER = tuple(tuple(range(ndim)) for ndim in range(65))
"""The axes in order, for each number of axes that NumPy has."""


class Piece(Struct, frozen=True):
    """A region of one worker's tile (in the tile's coordinates) and its place in the operand."""

    rank: int
    region: Region
    place: Slices
    index: tuple[Any, ...] = ()
    """The region as an index of a dense tile, and an ellipsis, which keeps 0-d tiles arrays."""

    def __post_init__(self) -> None:
        slices = (slice(*r) if isinstance(r, tuple) else r for r in self.region)
        force_setattr(self, "index", (*slices, ...))


class PiecedOperand(Struct, frozen=True):
    """All that a task reads of one array: pieces that fill a buffer of `shape`, and how to turn it."""

    slot: int
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    flips: tuple[bool, ...]
    order: tuple[int, ...]
    shown: tuple[int, ...] | None = None
    """The shape to broadcast to, where a view stretches axes and the stage wants them at full length."""
    is_turned: bool = False
    """Whether anything is flipped, dropped, permuted or new; and how it is done to a dense array:"""
    turns: tuple[tuple[Any, ...], list[int], tuple[Any, ...]] = ((), [], ())
    """an index of its axes, the order of those that are left, an index that puts the new ones in."""

    def __post_init__(self) -> None:
        turned = True in self.flips or self.order != _IN_ORDER[len(self.shape)]
        kept = [o for o in self.order if o >= 0]
        rest = sorted(kept)
        lines = (
            0 if axis not in kept else slice(None, None, -1 if flip else None)
            for axis, flip in enumerate(self.flips)
        )
        new = (None if o < 0 else slice(None) for o in self.order)
        force_setattr(self, "is_turned", turned)
        force_setattr(self, "turns", ((*lines, ...), [rest.index(o) for o in kept], (*new, ...)))

    def present(self, array: Any) -> Any:
        """The gathered region as the stage wants it: flipped, dropped, permuted, new and stretched axes."""
        array = self._turned(array) if self.is_turned else array
        return array if self.shown is None else np.broadcast_to(dense(array), self.shown)

    def _turned(self, array: Any) -> Any:
        if is_sparse_block(array) and self.order not in ((0, 1), (1, 0)):
            array = dense(array)  # an axis is new, or seen at one index
        if is_sparse_block(array):
            if any(self.flips):
                array = array[tuple(slice(None, None, -1 if f else 1) for f in self.flips)]
                if sparse.is_sparse(array):  # a compressed one is dense now
                    array = array.copy().sorted_indices()  # SciPy's part may share memory that is read-only
            return array if self.order == (0, 1) else array.T
        lines, order, new = self.turns
        return array[lines].transpose(order)[
            new
        ]  # each with an ellipsis: an array also where no axis is left


def resolve(read: Read, box: Box, slot: Slot, rank: int, stretch: bool = True) -> PiecedOperand:
    """What the task at `box` of the domain, running on `rank`, needs for `read`.

    Without `stretch`, broadcast axes keep length 1 (blocks stretch them, not tiles).
    """
    region, flips = [], []
    for axis in read.axes:
        lo, hi = box[axis.label] if axis.label != WHOLE else (0, axis.size)
        first, last = axis.start + axis.step * lo, axis.start + axis.step * (hi - 1)
        if hi <= lo:
            region.append((0, 0, 1))
        elif axis.step > 0:
            region.append((first, last + 1, axis.step))
        else:
            region.append((last, first + 1, -axis.step))
        flips.append(axis.step < 0)
    shown = None
    if stretch and read.expand:
        shown = tuple(
            box[d][1] - box[d][0] if d != WHOLE else n for d, n in zip(read.labels, read.shape, strict=True)
        )
    return PiecedOperand(
        read.slot,
        region_shape(tuple(region)),
        pieces(slot, tuple(region), rank),
        tuple(flips),
        read.order,
        shown,
    )


def lookup(
    read: Read, box: Box, label: int, wanted: np.ndarray[Any, Any], slot: Slot, rank: int
) -> PiecedOperand:
    """As `resolve`, but along the dimension `label` only the indices `wanted`: ascending, the first and the
    last at the ends of `box`."""
    whole = resolve(read, box, slot, rank)
    at = next((i for i, a in enumerate(read.axes) if a.label == label), None)
    shown = whole.shown
    if shown is not None:
        pairs = zip(read.labels, shown, strict=True)
        shown = tuple(len(wanted) if d == label else n for d, n in pairs)
    if at is None:  # a view stretches the axis: all rows are the same
        return replace(whole, shown=shown)
    axis = read.axes[at]
    rows = axis.start + axis.step * (wanted if axis.step > 0 else wanted[::-1])
    found = (_looked_up(p, at, rows, int(rows[0]), abs(axis.step)) for p in whole.pieces)
    shape = (*whole.shape[:at], len(rows), *whole.shape[at + 1 :])
    return replace(whole, shape=shape, pieces=tuple(p for p in found if p is not None), shown=shown)


def _looked_up(piece: Piece, at: int, rows: np.ndarray[Any, Any], first: int, step: int) -> Piece | None:
    """The part of a piece, whose region begins at `first` along axis `at`, that holds some of `rows`."""
    begin, end = piece.place[at].start, piece.place[at].stop
    origin = first + begin * step - piece.region[at][0]
    a, b = np.searchsorted(rows, [first + begin * step, first + (end - 1) * step + 1])
    if a == b:
        return None
    local = rows[a:b] - origin
    straight = local[-1] - local[0] + 1 == b - a
    chosen = (int(local[0]), int(local[-1]) + 1, 1) if straight else local
    region = (*piece.region[:at], chosen, *piece.region[at + 1 :])
    place = (*piece.place[:at], slice(int(a), int(b)), *piece.place[at + 1 :])
    return Piece(piece.rank, region, place)


def region_shape(region: Region) -> tuple[int, ...]:
    """The shape of what a region selects."""
    return tuple(len(range(*r)) for r in region)


def identity(slot: int, box: Box, of: Slot, rank: int) -> PiecedOperand:
    """The plain box of an array."""
    region = tuple((lo, hi, 1) for lo, hi in box)
    ndim = len(box)
    return PiecedOperand(
        slot, region_shape(region), pieces(of, region, rank), (False,) * ndim, tuple(range(ndim))
    )


def pieces(slot: Slot, region: Region, rank: int) -> tuple[Piece, ...]:
    """The parts of the global `region` that lie in each tile; a duplicate is read on the spot."""
    if slot.tiling.duplicate:
        return (Piece(rank, region, box_slices(box_of(region_shape(region)))),)
    within = tuple((start, stop) for start, stop, _ in region)
    out = []
    for owner, tile in slot.tiling.tiles(slot.shape, within):
        local, place = [], []
        for (start, stop, step), (lo, hi) in zip(region, tile, strict=True):
            k0 = max(0, -(-(lo - start) // step))
            k1 = -(-(min(hi, stop) - start) // step)
            if k1 <= k0:
                break
            local.append((start + k0 * step - lo, start + (k1 - 1) * step + 1 - lo, step))
            place.append(slice(k0, k1))
        else:
            out.append(Piece(owner, tuple(local), tuple(place)))
    return tuple(out)


def gathered_pieces(
    parts: list[tuple[Piece, Any]],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]] = np.empty,
) -> Any:
    """The pieces' data put together in a buffer of `allocate`'s; one piece is taken as it is."""
    if len(parts) == 1:
        return parts[0][1]
    if parts and sparse.is_sparse(parts[0][1]):
        parts = sorted(parts, key=lambda p: p[0].place[0].start)
        return sparse.stacked([data] for _, data in parts)
    out = allocate(shape, dtype)
    for piece, data in parts:
        out[piece.place] = dense(data)
    return out


def data_bytes(data: Any) -> int:
    """Bytes of what a read brought."""
    if isinstance(data, list):
        return sum(d.nbytes for _, d in data)
    if isinstance(data, SourceTile):
        return 0
    if isinstance(data, np.ndarray) or is_compressed(data):
        return int(data.nbytes)
    return int(data.data.nbytes + data.indices.nbytes + data.indptr.nbytes)
