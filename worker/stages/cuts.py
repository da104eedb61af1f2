"""Where sorted parts of a line are cut so that as many elements lie before the cuts as a rank says.

Samples of all parts bracket the element of the rank, and samples of the brackets do again, until what is left
is read. Where a bracket is as wide as before, because one element fills it, that element's ends are searched
for in each part. Equal elements are taken from the parts in order, so that a sort is stable.

Frederickson and Johnson, "The complexity of selection and ranking in X + Y and matrices with sorted columns"
(Journal of Computer and System Sciences 24(2), 1982).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

import numpy as np

from spartan_ng.worker.stages.picking import Asked

Range = tuple[Any, Any]
"""For each part a start, and for each a stop."""
Search = Generator[list[Asked], Any, Any]
"""Yields positions in parts, is sent the elements there, and returns how many elements of each part it has
found to come before something."""
Side = Literal["left", "right"]
_SIDES: tuple[Side, Side] = ("left", "right")


class Samples:
    """What every how-many-th element of sorted parts says of how many elements come before a value.

    All samples together are sorted once; how many elements are at least, and at most, before each of their
    values is then a running sum.
    """

    def __init__(self, samples: Sequence[Any], sizes: Any, steps: Any) -> None:
        self.sizes, self.steps = sizes, steps
        self._samples = samples
        merged = np.concatenate(samples)
        order = np.argsort(merged, kind="stable")
        merged = merged[order]
        least = np.concatenate([_passed(len(s), step) for s, step in zip(samples, steps, strict=True)])
        most = np.concatenate([_spanned(n, step) for n, step in zip(sizes, steps, strict=True)])
        least, most = (np.append(0, np.cumsum(x[order])) for x in (least, most))
        self._values = np.unique(merged)
        left = np.searchsorted(merged, self._values, "left")
        right = np.searchsorted(merged, self._values, "right")
        self._least_before, self._most_before, self._least_upto = least[left], most[left], least[right]

    def common(self, rank: int) -> Any:
        """The element of `rank` where it is so frequent that the samples tell, else None."""
        first = np.searchsorted(self._least_upto, rank, "right")
        last = np.searchsorted(self._most_before, rank, "right")
        return self._values[first] if first < last else None

    def middle(self, rank: int) -> Any:
        """A sampled value near the element of `rank`."""
        return self._values[np.argmin(np.abs(self._least_before + self._most_before - 2 * rank))]

    def bracket(self, rank: int) -> Range:
        """Of each part a range of positions that holds its elements equal to the one of `rank`."""
        reach = np.searchsorted(self._most_before, rank, "right") - 1
        beyond = np.searchsorted(self._least_before, rank, "right")
        low = self.reach(self._values[reach], "left")[0] if reach >= 0 else 0 * self.sizes
        high = self.sizes
        if beyond < len(self._values):
            high = self.reach(self._values[beyond], "left")[1]
        return low, high

    def reach(self, value: Any, side: Side) -> Range:
        """The least and the most elements of each part before a value, or up to it."""
        below = np.array([np.searchsorted(s, value, side) for s in self._samples])
        least = np.where(below > 0, (below - 1) * self.steps + 1, 0)
        return least, np.minimum(below * self.steps, self.sizes)


def cut(rank: int, samples: Samples, few: int) -> Search:
    """How many elements of each part come before the element of `rank`.

    Windows of up to `few` elements of a part, on average, are read; larger ones are sampled.
    """
    low = 0 * samples.sizes
    n = len(low)
    while True:
        value = samples.common(rank - low.sum())
        if value is None:
            start, stop = (low + ends for ends in samples.bracket(rank - low.sum()))
            width = (stop - start).sum()
            if width <= few * n:
                windows = yield _asked(start, stop)
                value = np.sort(np.concatenate(windows), kind="stable")[rank - start.sum()]
                less, upto = (_before(windows, value, n * [side]) for side in _SIDES)
                return _taken(start + less, upto - less, rank)
            if 4 * width <= 3 * samples.sizes.sum():
                low, high = start, stop
            else:
                value = samples.middle(rank - low.sum())
        if value is not None:
            less, upto = yield from _ends(value, samples, low, few)
            if less.sum() <= rank < upto.sum():
                return _taken(less, upto - less, rank)
            low, high = (low, less) if rank < less.sum() else (upto, low + samples.sizes)
        steps = _steps(low, high)
        samples = Samples((yield _asked(low, high, steps)), high - low, steps)


def _ends(value: Any, samples: Samples, low: Any, few: int) -> Search:
    """How many elements of each part are less than a value, and how many up to it; `samples` are of windows
    that begin at `low`."""
    n = len(low)
    parts, sides = [*range(n), *range(n)], [side for side in _SIDES for _ in range(n)]
    ranges = [samples.reach(value, side) for side in _SIDES]
    first, last = (np.concatenate([low + ends for ends in both]) for both in zip(*ranges, strict=True))
    while (last - first).sum() > few * len(first):
        steps = _steps(first, last)
        before = _before((yield _asked(first, last, steps, parts)), value, sides)
        last = np.minimum(first + before * steps, last)
        first = np.where(before > 0, first + (before - 1) * steps + 1, first)
    ends = first + _before((yield _asked(first, last, 1, parts)), value, sides)
    return ends[:n], ends[n:]


def _asked(low: Any, high: Any, steps: Any = 1, parts: Sequence[int] | None = None) -> list[Asked]:
    """Positions from a start to a stop, of each part or of those named."""
    steps = np.broadcast_to(steps, low.shape)
    every = zip(low.tolist(), high.tolist(), steps.tolist(), strict=True)
    return [(p, range(*at)) for p, at in zip(parts or range(len(low)), every, strict=True)]


def _steps(low: Any, high: Any) -> Any:
    """At which windows are sampled: as many samples as elements between two."""
    return np.maximum(np.sqrt(high - low).astype(np.intp), 1)


def _before(windows: Sequence[Any], value: Any, sides: Sequence[Side]) -> Any:
    """How many elements of each window come before a value, or up to it."""
    return np.array([np.searchsorted(w, value, side) for w, side in zip(windows, sides, strict=True)])


def _passed(count: int, step: int) -> Any:
    """How many elements are before a value at least, for each of a part's samples that is less."""
    found = np.full(count, step)
    found[:1] = 1
    return found


def _spanned(size: int, step: int) -> Any:
    """How many elements are before it at most."""
    ends = np.arange(0, size, step)
    return np.minimum(ends + step, size) - ends


def _taken(before: Any, equal: Any, rank: int) -> Any:
    """How many elements of each part come before `rank`, where `equal` ones follow those `before`."""
    rest = rank - before.sum()
    return before + np.minimum(equal, np.maximum(rest - (np.cumsum(equal) - equal), 0))
