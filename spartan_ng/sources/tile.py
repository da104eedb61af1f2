"""The tile of an array that a source reads: where a worker would have elements it has the source.

Every worker has such a tile of the whole array, as of a duplicate, and reads what it needs itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Box
from spartan_ng.memory import band_bytes
from spartan_ng.sources.reading import read_in_turn
from spartan_ng.sources.source import Source

_GAP = 64
"""Rows that are asked for one by one are read together where no more than so many others lie between them."""


class SourceTile(Struct, frozen=True):
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


class Unread(Struct, frozen=True):
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
        """Read the region into an array of its shape, no more than a few chunks at a time beside it."""
        if 0 in self.shape:
            return
        for region, place in self._pieces():
            box, chosen = _covering(region)
            np.copyto(out[place], read_in_turn(self.source, box)[chosen])

    def _pieces(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """The region in parts that are read together (a band, or one chunk's rows), and their places: cut
        where the first axis or, where rows are asked for one by one, theirs is long, or has gaps; and along
        the others, where what is read for that is more still: a row of chunks that are columns is all of the
        array."""
        if not self.region:
            yield self.region, (...,)
            return
        first = next((i for i, r in enumerate(self.region) if not isinstance(r, tuple)), 0)
        others = [i for i, r in enumerate(self.region) if i != first and isinstance(r, tuple)]
        yield from self._cut(self.region, [first, *others])

    def _together_bytes(self) -> int:
        return min(band_bytes(), self.source.most_together or band_bytes())

    def _cut(
        self, region: tuple[Any, ...], axes: list[int]
    ) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """The same of a region, along some axes, one after the other."""
        at, *others = axes
        own = region[at]
        line = prod(_covered(r) for i, r in enumerate(region) if i != at) * self.dtype.itemsize
        chunk, together = self.source.chunks[at], self._together_bytes()
        most = max(together // max(line, 1) // chunk, 1) * chunk
        for lo, hi in pairwise(_bounds(own, most)):
            if isinstance(own, tuple):
                start, _, step = own
                part: Any = (start + step * lo, start + step * (hi - 1) + 1, step)
            else:
                part = own[lo:hi]
            cut = (*region[:at], part, *region[at + 1 :])
            here = [slice(None)] * len(region)
            here[at] = slice(lo, hi)
            if not others or line * _covered(part) <= together:
                yield cut, tuple(here)
                continue
            for deeper, place in self._cut(cut, others):
                yield deeper, (*place[:at], slice(lo, hi), *place[at + 1 :])


def _bounds(own: Any, most: int) -> list[int]:
    """Where what is read of an axis is cut: at multiples of `most`, and where rows lie far apart."""
    if isinstance(own, tuple):
        start, stop, step = own
        n = len(range(*own))
        cuts = range(start // most + 1, (stop - 1) // most + 1)
        return sorted({0, n, *(min(-(-(m * most - start) // step), n) for m in cuts)})
    apart = (np.diff(np.asarray(own) // most) > 0) | (np.diff(own) > _GAP)
    return [0, *(np.flatnonzero(apart) + 1).tolist(), len(own)]


def _covered(r: Any) -> int:
    """The length of an axis from the first to the last index that is read."""
    first, last = (r[0], r[1] - 1) if isinstance(r, tuple) else (int(r[0]), int(r[-1]))
    return int(last - first + 1)


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
