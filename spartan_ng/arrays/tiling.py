"""How one array is cut over the workers: a grid of parts, or a full copy on each worker.

Axis `a` of size n is cut into `parts[a]` nearly equal parts; part p is `[p*n//parts, (p+1)*n//parts)`. Where
the data or the workers ask for it, the cuts of an axis are given instead, as `splits[a]`.
The tile at grid index `idx` lives on rank `first + sum(idx[a] * strides[a])`. The strides make views exact:
the transpose of a (2, 2) grid with strides (2, 1) has strides (1, 2), so that tile (i, j) of A.T lives
with tile (j, i) of A. No axis is cut into more parts than it has elements.

Spartan (ATC '15), section 2 (row, column, block) and 3.4 (duplicate).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays.extent import Box

WHOLE = -1
"""A label: this axis is not cut; every task sees all of it."""


def part_span(n: int, parts: int, index: int) -> tuple[int, int]:
    """The half-open interval of part `index` when `n` elements are cut into `parts`."""
    return index * n // parts, (index + 1) * n // parts


class Tiling(Struct, frozen=True):
    """A grid of `parts` for each axis with the rank `strides`, or a full copy on each worker."""

    parts: tuple[int, ...]
    strides: tuple[int, ...]
    duplicate: bool = False
    splits: tuple[tuple[int, ...], ...] = ()
    """For each axis where its parts begin, but for the first; empty for an axis that is cut evenly, and empty
    as a whole where all are."""
    first: int = 0
    """The rank of the first tile; copies are on all."""
    around: int = 0
    """How many ranks there are, where the last is followed by the first one; else 0."""

    @classmethod
    def grid(cls, *parts: int) -> Tiling:
        """A grid whose tiles are numbered over the ranks in row-major order."""
        strides, step = [], 1
        for p in reversed(parts):
            strides.append(step)
            step *= p
        return cls(tuple(parts), tuple(reversed(strides)))

    @classmethod
    def single(cls, ndim: int, rank: int = 0) -> Tiling:
        """The whole array as one tile on a rank."""
        return cls((1,) * ndim, (0,) * ndim, first=rank)

    @classmethod
    def copies(cls, ndim: int) -> Tiling:
        """A full copy on each worker."""
        return cls((1,) * ndim, (0,) * ndim, duplicate=True)

    @property
    def ntiles(self) -> int:
        """Number of tiles of the grid (1 for a duplicate: each copy is the same tile)."""
        n = 1
        for p in self.parts:
            n *= p
        return n

    def rank(self, index: tuple[int, ...]) -> int:
        """The rank that holds the tile at grid `index` (any rank for a duplicate)."""
        rank = self.first + sum(i * s for i, s in zip(index, self.strides, strict=True))
        return rank % self.around if self.around else rank

    @property
    def highest(self) -> int:
        """The last rank that has a tile (but copies are on all)."""
        if self.around:
            return max(self.rank(index) for index in product(*map(range, self.parts)))
        return self.rank(tuple(p - 1 for p in self.parts))

    def box(self, shape: tuple[int, ...], index: tuple[int, ...]) -> Box:
        """The extent of the tile at grid `index` in an array of `shape`."""
        return tuple(self.cut(axis, n, i) for axis, (n, i) in enumerate(zip(shape, index, strict=True)))

    def cut(self, axis: int, n: int, index: int) -> tuple[int, int]:
        """The interval of part `index` of an axis of size n."""
        if not self.splits or not self.splits[axis]:
            return part_span(n, self.parts[axis], index)
        points = (0, *self.splits[axis], n)
        return points[index], points[index + 1]

    def index_on(self, rank: int) -> tuple[int, ...] | None:
        """The grid index of the tile on `rank`, or None where it holds none."""
        if self.duplicate:
            return (0,) * len(self.parts)
        index = [0] * len(self.parts)
        rest = rank - self.first
        # Ranks beyond those that there were when it was shifted have no tile.
        if self.around and rank < self.around:
            rest %= self.around
        if rest < 0:
            return None
        # As digits of a number, from the largest stride on, also where a transpose has turned them.
        for axis in sorted(range(len(self.parts)), key=lambda a: -self.strides[a]):
            if self.parts[axis] > 1:
                index[axis] = min(rest // self.strides[axis], self.parts[axis] - 1)
                rest -= index[axis] * self.strides[axis]
        return tuple(index) if rest == 0 else None

    def box_on(self, shape: tuple[int, ...], rank: int) -> Box | None:
        """The extent of the tile on `rank`, or None where it holds none."""
        index = self.index_on(rank)
        return None if index is None else self.box(shape, index)

    def tiles(self, shape: tuple[int, ...], within: Box) -> Iterator[tuple[int, Box]]:
        """`(rank, extent)` of every tile that shares elements with the box `within`."""
        spans = []
        for axis, (n, p, (lo, hi)) in enumerate(zip(shape, self.parts, within, strict=True)):
            if hi <= lo:
                return
            if self.splits and self.splits[axis]:
                points = self.splits[axis]
                spans.append(range(bisect_right(points, lo), bisect_left(points, hi) + 1))
                continue
            # A guess that is right or one too low, as the bounds of parts are rounded down.
            first, last = (lo * p) // max(n, 1), ((hi - 1) * p) // max(n, 1)
            while first + 1 < p and part_span(n, p, first)[1] <= lo:
                first += 1
            while last + 1 < p and part_span(n, p, last)[1] < hi:
                last += 1
            spans.append(range(first, last + 1))
        for index in product(*spans):
            yield self.rank(index), self.box(shape, index)

    def transpose(self, axes: tuple[int, ...]) -> Tiling:
        """The tiling of the transposed array, tile for tile on the same ranks."""
        return Tiling(
            tuple(self.parts[a] for a in axes),
            tuple(self.strides[a] for a in axes),
            self.duplicate,
            tuple(self.splits[a] for a in axes) if self.splits else (),
            self.first,
            self.around,
        )

    def evenly(self) -> Tiling:
        """The same grid with even cuts."""
        return replace(self, splits=())

    def shifted(self, by: int, around: int) -> Tiling:
        """The same tiles so many ranks further, of those that there are."""
        return replace(self, first=(self.first + by) % around, around=around)

    def __str__(self) -> str:
        """`duplicate`, `single`, or the grid, as in `4x1`; `4x1 uneven` where its cuts are given."""
        if self.duplicate:
            return "duplicate"
        if self.ntiles == 1:
            return "single"
        return "x".join(map(str, self.parts)) + (" uneven" if any(self.splits) else "")
