"""From a box of a stage's domain to pieces of tiles: who holds what a task reads.

All in the index arithmetic of `[start, stop)` with steps, or of picked positions; nothing here touches data. A worker derives its
own reads from the plan and its rank, and, by the same arithmetic, how often its peers will read from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from spartan_ng.arrays import Box
from spartan_ng.kernels.formats import dense, is_sparse
from spartan_ng.plan.plan import WHOLE, Read, Slot
from spartan_ng.worker.store import Picks, Region

Along = tuple[int, int, int] | Picks
Slices = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """A region of one worker's tile (in the tile's coordinates) and its place in the operand."""

    rank: int
    region: Region
    place: Slices


@dataclass(frozen=True, slots=True)
class Operand:
    """All that a task reads of one array: pieces that fill a buffer of `shape`, and how to turn it."""

    slot: int
    shape: tuple[int, ...]
    pieces: tuple[Piece, ...]
    flips: tuple[bool, ...]
    order: tuple[int, ...]
    shown: tuple[int, ...] | None = None
    """The shape to broadcast to, where a view stretches axes and the stage wants them at full length."""

    def present(self, array: Any) -> Any:
        """The gathered region as the stage wants it: flipped, dropped, permuted, new and stretched axes."""
        array = self._turned(array)
        return array if self.shown is None else np.broadcast_to(array, self.shown)

    def _turned(self, array: Any) -> Any:
        if not any(self.flips) and self.order == tuple(range(len(self.shape))):
            return array
        if is_sparse(array) and self.order not in ((0, 1), (1, 0)):
            array = dense(array)  # an axis is new, or seen at one index
        if is_sparse(array):
            if any(self.flips):
                array = array[tuple(slice(None, None, -1 if f else 1) for f in self.flips)]
            return array if self.order == (0, 1) else array.T
        kept = [o for o in self.order if o >= 0]
        array = array[
            tuple(
                0 if axis not in kept else slice(None, None, -1 if flip else None)
                for axis, flip in enumerate(self.flips)
            )
        ]
        rest = sorted(kept)
        array = array.transpose([rest.index(o) for o in kept])
        return array[tuple(None if o < 0 else slice(None) for o in self.order)]


def resolve(
    read: Read,
    box: Box,
    slot: Slot,
    rank: int,
    stretch: bool = True,
    picks: tuple[int, Picks] | None = None,
) -> Operand:
    """What the task at `box` of the domain, running on `rank`, needs for `read`.

    Without `stretch`, broadcast axes keep length 1 (blocks stretch them, not tiles). With `picks`, a dimension
    and ascending positions, the operand has these of the dimension, in the place of its part of the box.
    """
    if picks is not None:
        box = tuple((0, len(picks[1])) if d == picks[0] else b for d, b in enumerate(box))
    region: list[Along] = []
    flips = []
    for axis in read.axes:
        lo, hi = box[axis.label] if axis.label != WHOLE else (0, axis.size)
        first, last = axis.start + axis.step * lo, axis.start + axis.step * (hi - 1)
        if picks is not None and axis.label == picks[0]:
            at = axis.start + axis.step * picks[1]
            region.append(at if axis.step > 0 else at[::-1])
        elif hi <= lo:
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
    return Operand(
        read.slot,
        region_shape(tuple(region)),
        pieces(slot, tuple(region), rank),
        tuple(flips),
        read.order,
        shown,
    )


def region_shape(region: Region) -> tuple[int, ...]:
    """The shape of what a region selects."""
    return tuple(len(r) if isinstance(r, np.ndarray) else len(range(*r)) for r in region)


def identity(slot: int, box: Box, of: Slot, rank: int) -> Operand:
    """The plain box of an array."""
    region = tuple((lo, hi, 1) for lo, hi in box)
    ndim = len(box)
    return Operand(slot, region_shape(region), pieces(of, region, rank), (False,) * ndim, tuple(range(ndim)))


def pieces(slot: Slot, region: Region, rank: int) -> tuple[Piece, ...]:
    """The parts of the global `region` that lie in each tile; a duplicate is read on the spot."""
    if slot.tiling.duplicate:
        return (Piece(rank, region, tuple(slice(0, n) for n in region_shape(region))),)
    within = tuple(_hull(along) for along in region)
    out = []
    for owner, tile in slot.tiling.tiles(slot.shape, within):
        parts = [_inside(along, lo, hi) for along, (lo, hi) in zip(region, tile, strict=True)]
        if all(place.stop > place.start for _, place in parts):
            out.append(Piece(owner, tuple(local for local, _ in parts), tuple(place for _, place in parts)))
    return tuple(out)


def _hull(along: Along) -> tuple[int, int]:
    """Where the positions of an axis begin and end."""
    if isinstance(along, np.ndarray):
        return (int(along[0]), int(along[-1]) + 1) if along.size else (0, 0)
    return along[:2]


def _inside(along: Along, lo: int, hi: int) -> tuple[Along, slice]:
    """The positions that lie in `[lo, hi)`, counted from `lo`, and which ones of all these are."""
    if isinstance(along, np.ndarray):
        a, b = (int(k) for k in np.searchsorted(along, (lo, hi)))
        at = along[a:b] - lo
        return (int(at[0]), int(at[-1]) + 1, 1) if b > a and at[-1] - at[0] == b - a - 1 else at, slice(a, b)
    start, stop, step = along
    a, b = max(0, -(-(lo - start) // step)), -(-(min(hi, stop) - start) // step)
    return (start + a * step - lo, start + (b - 1) * step + 1 - lo, step), slice(a, b)


def gathered(
    parts: list[tuple[Piece, Any]],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    allocate: Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]] = np.empty,
) -> Any:
    """The pieces' data put together in a buffer of `allocate`'s; one piece is taken as it is."""
    if len(parts) == 1:
        return parts[0][1]
    if parts and sparse.issparse(parts[0][1]):
        parts = sorted(parts, key=lambda p: p[0].place[0].start)
        return sparse.vstack([data for _, data in parts], format="csr")
    out = allocate(shape, dtype)
    for piece, data in parts:
        out[piece.place] = dense(data)
    return out
