"""The tile of an array that a source reads: where a worker would have elements it has the source.

Every worker has such a tile of the whole array, as of a duplicate, and reads what it needs itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.sources.source import Source, read_box

_GAP = 64
"""Rows that are asked for one by one are read together where no more than so many others lie between them."""


@dataclass(frozen=True, slots=True)
class SourceTile:
    """All of an array, unread."""

    source: Source

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.source.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's dtype."""
        return self.source.dtype

    def region(self, region: tuple[Any, ...]) -> Unread:
        """A part of it, `(start, stop, step)` or ascending indices an axis, still unread."""
        return Unread(self.source, region)


@dataclass(frozen=True, slots=True)
class Unread:
    """A region of a source."""

    source: Source
    region: tuple[Any, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The region's shape."""
        return tuple(len(range(*r)) if isinstance(r, tuple) else len(r) for r in self.region)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's dtype."""
        return self.source.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the region once it is read."""
        return prod(self.shape) * self.dtype.itemsize

    def part(self, axis: int, lo: int, hi: int) -> Unread:
        """Of an axis with steps the indices `lo` to `hi` of the region."""
        start, _, step = self.region[axis]
        own = (start + step * lo, start + step * (hi - 1) + 1, step)
        return Unread(self.source, (*self.region[:axis], own, *self.region[axis + 1 :]))

    def into(self, out: np.ndarray[Any, Any]) -> None:
        """Read the region into an array of its shape."""
        if 0 in self.shape:
            return
        for region, place in _clustered(self.region):
            box, chosen = _covering(region)
            np.copyto(out[place], read_box(self.source, box)[chosen])


def _clustered(region: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """The region in parts that lie near together, where rows are asked for one by one; and their places."""
    at = next((i for i, r in enumerate(region) if not isinstance(r, tuple)), None)
    if at is None:
        yield region, (...,)
        return
    wanted = np.asarray(region[at])
    ends = [*(np.flatnonzero(np.diff(wanted) > _GAP) + 1).tolist(), len(wanted)]
    first = 0
    for end in ends:
        part = (*region[:at], wanted[first:end], *region[at + 1 :])
        yield part, (*[slice(None)] * at, slice(first, end), ...)
        first = end


def _covering(region: tuple[Any, ...]) -> tuple[Box, tuple[Any, ...]]:
    """The box around a region, and the region as an index of the box."""
    box: list[tuple[int, int]] = []
    chosen: list[Any] = []
    for r in region:
        if isinstance(r, tuple):
            start, stop, step = r
            last = range(start, stop, step)[-1]
            box.append((start, last + 1))
            chosen.append(slice(None, None, step))
        else:
            lo, hi = int(r[0]), int(r[-1])
            box.append((lo, hi + 1))
            chosen.append(r - lo)
    return tuple(box), (*chosen, ...)
