"""Elements of given ranks out of sorted parts, without bringing the parts together.

A window of each part holds every element that may have one of the ranks. Samples of the windows bound how
many elements are less than, and up to, each sampled value; so they narrow the windows, until what is left is
read. An element so frequent that windows cannot be narrowed around it is searched for its ends in each part.

Frederickson and Johnson, "The complexity of selection and ranking in X + Y and matrices with sorted columns"
(Journal of Computer and System Sciences 24(2), 1982).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spartan_ng.ops.line_sorts import SHORT_END

Asked = tuple[int, range]
"""A sorted part, and positions in it."""
Read = Callable[[Sequence[Asked]], Sequence[Any]]
"""Gives the elements of all that is asked for, at once."""
_SAMPLES = 8
"""Samples of a window in a round: with more, fewer rounds read more in all."""
_SMALL = SHORT_END
"""Elements of a window, on average, that are read and not narrowed."""
_SPREAD = 2.5
"""Standard deviations around its expected place within which the first samples look for an element."""


def pick(read: Read, sizes: Sequence[int], lo: int, hi: int) -> Any:
    """The elements of ranks [lo, hi), in order."""
    n = sum(sizes)
    if n == max(sizes):  # a part that is the whole line need not be sorted elsewhere
        return read([(list(sizes).index(n), range(lo, hi))])[0]
    if hi <= _SMALL:
        return _merged(read, [(0, min(hi, m)) for m in sizes])[lo:hi]
    if n - lo <= _SMALL:
        return _merged(read, [(max(m - (n - lo), 0), m) for m in sizes])[lo - n :][: hi - lo]
    each = np.array(sizes)
    windows = _Windows(read, each, np.zeros_like(each), each)
    return windows.pick(lo, hi, windows.expected(lo, hi))


def _merged(read: Read, windows: Sequence[tuple[int, int]]) -> Any:
    """All elements of windows, sorted."""
    return np.sort(np.concatenate(read([(p, range(a, b)) for p, (a, b) in enumerate(windows)])))


class _Windows:
    """For each part the positions at which elements of the wanted ranks may stand."""

    def __init__(self, read: Read, sizes: Any, low: Any, high: Any) -> None:
        self._read, self._sizes, self._low, self._high = read, sizes, low, high

    def pick(self, lo: int, hi: int, positions: list[range]) -> Any:
        """The elements of ranks [lo, hi), looking first at these positions, or all over the windows."""
        while (left := int((self._high - self._low).sum())) > max(_SMALL * len(self._sizes), 2 * (hi - lo)):
            positions = positions or [self._spread(a, b) for a, b in zip(self._low, self._high, strict=True)]
            bounds = _Bounds(self._read, positions, self._low, self._high)
            positions = []
            value = bounds.frequent(lo, hi)
            if value is not None:
                return np.repeat(value, hi - lo)
            self._low, self._high = bounds.narrowed(lo, hi)
            if int((self._high - self._low).sum()) > 0.75 * left:
                found = self._around(bounds.halving(), lo, hi)
                if found is not None:
                    return found
        inside = _merged(self._read, list(zip(self._low.tolist(), self._high.tolist(), strict=True)))
        first = lo - int(self._low.sum())
        return inside[first : first + hi - lo]

    def expected(self, lo: int, hi: int) -> list[range]:
        """Positions around where elements are if every part is like the others."""
        share = (lo + hi) / 2 / self._sizes.sum()
        places = []
        for m in self._sizes.tolist():
            off = _SPREAD * (m * share * (1 - share)) ** 0.5 + hi - lo
            start, stop = max(int(share * m - off), 0), min(int(share * m + off) + 1, m)
            places.append(range(start, stop, max((stop - start) // 3, 1)))
        return places

    def _spread(self, a: int, b: int) -> range:
        """Positions all over a window."""
        return range(int(a), int(b), max(int(b - a) // _SAMPLES, 1))

    def _around(self, value: Any, lo: int, hi: int) -> Any:
        """Leave out all on the other side of a value, or where some of the ranks are its own, the elements of
        all ranks."""
        less, upto = self._search(value, "left"), self._search(value, "right")
        before, behind = int(less.sum()), int(upto.sum())
        if behind <= lo:
            self._low = np.maximum(self._low, upto)
            return None
        if before >= hi:
            self._high = np.minimum(self._high, less)
            return None
        parts = [np.repeat(value, min(behind, hi) - max(before, lo))]
        if lo < before:
            smaller = _Windows(self._read, self._sizes, self._low, np.minimum(self._high, less))
            parts.insert(0, smaller.pick(lo, before, []))
        if behind < hi:
            larger = _Windows(self._read, self._sizes, np.maximum(self._low, upto), self._high)
            parts.append(larger.pick(behind, hi, []))
        return np.concatenate(parts)

    def _search(self, value: Any, side: Any) -> Any:
        """How many elements of each part are less than (or up to) a value."""
        windows = [(0, m) for m in self._sizes.tolist()]
        while wide := [p for p, (a, b) in enumerate(windows) if b > a]:
            asked = [(p, self._spread(*windows[p])) for p in wide]
            for (p, at), found in zip(asked, self._read(asked), strict=True):
                k, (a, b) = int(np.searchsorted(found, value, side)), windows[p]
                windows[p] = (at[k - 1] + 1 if k else a), (at[k] if k < len(at) else b)
        return np.array([a for a, _ in windows])


class _Bounds:
    """What samples say of every sampled value: the least and the most elements of each part that are less
    than it, and up to it."""

    def __init__(self, read: Read, positions: Sequence[range], low: Any, high: Any) -> None:
        samples = read(list(enumerate(positions)))
        known = [s for s, a, b in zip(samples, low, high, strict=True) if b > a]
        self.values = np.unique(np.concatenate(known or samples), equal_nan=False)
        self.low, self.high = low, high
        self._less = self._of(samples, positions, "left")
        self._upto = self._of(samples, positions, "right")

    def _of(self, samples: Sequence[Any], positions: Sequence[range], side: Any) -> tuple[Any, Any]:
        least, most = [], []
        for s, at, low, high in zip(samples, positions, self.low, self.high, strict=True):
            place = np.array([*at, 0])[: len(at)]
            k = np.searchsorted(s, self.values, side)
            before = np.append(low, np.clip(place + 1, low, high))
            behind = np.append(np.clip(place, low, high), high)
            least.append(before[k])
            most.append(behind[k])
        return np.array(least), np.array(most)

    def frequent(self, lo: int, hi: int) -> Any:
        """The value that all ranks [lo, hi) have for sure, or None."""
        sure = (self._less[1].sum(0) <= lo) & (self._upto[0].sum(0) >= hi)
        return self.values[np.argmax(sure)] if sure.any() else None

    def narrowed(self, lo: int, hi: int) -> tuple[Any, Any]:
        """Windows without what stands before `lo`, or behind `hi`, for sure."""
        low, high = self.low, self.high
        for least, most in (self._less, self._upto):
            early, late = most.sum(0) <= lo, least.sum(0) >= hi
            if early.any():
                low = np.maximum(low, least[:, early].max(1))
            if late.any():
                high = np.minimum(high, most[:, late].min(1))
        return low, high

    def halving(self) -> Any:
        """The value that leaves out most of the windows for sure, on whichever of its sides the ranks are:
        three eighths at least with samples all over them, as the samples' own median would."""
        behind, before = self._upto[0].sum(0) - self.low.sum(), self.high.sum() - self._less[1].sum(0)
        return self.values[np.argmax(np.minimum(behind, before))]
