"""The sorted parts of one line, wherever they lie: exact cuts at global ranks, and elements read from them.

Samples of all parts bracket the element of a rank, the brackets are read (of an element so frequent that the
samples show it, the ends of its runs alone), and equal elements are taken from the parts in order, so that
the sort is stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spartan_ng.ops.line_sorts import run_step, sample_step
from spartan_ng.plan.plan import MergeParts, Plan
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.stages.picking import Asked

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run

Range = tuple[Any, Any]
"""For each part a start, and for each a stop."""


def part_places(plan: Plan, stage: MergeParts) -> list[tuple[int, int, int]]:
    """Of every sorted part whose tile it lies in, where in the tile, and how many elements it has: tiles, or
    the runs that they are sorted in."""
    (n,) = plan.slots[stage.values].shape
    found = []
    for p in range(stage.grid.parts[0]):
        lo, hi = stage.grid.cut(0, n, p)
        length = stage.length or max(hi - lo, 1)
        found += [(p, at, min(length, hi - lo - at)) for at in range(0, max(hi - lo, 1), length)]
    return found


def samples_of(plan: Plan, stage: MergeParts) -> list[tuple[int, Region]]:
    """Of every sorted part whose tile it lies in, and the region of its samples."""
    step = run_step if stage.length else sample_step
    return [(p, ((at, at + n, step(n)),)) for p, at, n in part_places(plan, stage)]


class Parts:
    """The sorted parts of one line, read piece by piece from where they lie."""

    def __init__(self, ex: Executor, run: Run, stage: MergeParts) -> None:
        self._ex, self._run, self._stage = ex, run, stage
        places = part_places(run.plan, stage)
        self._tiles = [p for p, _, _ in places]
        self._starts = [at for _, at, _ in places]
        self.sizes = np.array([n for _, _, n in places])
        step = run_step if stage.length else sample_step
        self._steps = np.array([step(n) for _, _, n in places])
        self._samples: Samples | None = None

    def read(self, slot: int, ranges: Sequence[Range]) -> list[list[Any]]:
        """Of every sorted part elements from a start to a stop, for each of the ranges; all at once."""
        reads = [
            self._region(p, int(a), int(b), 1)
            for starts, stops in ranges
            for p, (a, b) in enumerate(zip(starts, stops, strict=True))
        ]
        found = iter(self._ex.fetch_all(self._run, slot, reads))
        return [[next(found) for _ in self.sizes] for _ in ranges]

    def at(self, asked: Sequence[Asked]) -> list[Any]:
        """The elements at positions in sorted parts, all at once."""
        reads = [self._region(p, r.start, r.stop, r.step) for p, r in asked]
        return list(self._ex.fetch_all(self._run, self._stage.values, reads))

    def _region(self, part: int, start: int, stop: int, step: int) -> tuple[int, Region]:
        """Who has positions of a part, and where in the tile."""
        at = self._starts[part]
        return self._rank(self._tiles[part]), ((at + start, at + stop, step),)

    def _rank(self, tile: int) -> int:
        grid = self._stage.grid
        return self._ex.rank if grid.duplicate else grid.rank((tile,))

    def cuts(self, ranks: Sequence[int]) -> list[Any]:
        """For each global rank, how many elements of each part come before it."""
        total = self.sizes.sum()
        found = {r: self.sizes if r >= total else 0 * self.sizes for r in ranks}
        inner = [r for r in found if 0 < r < total]
        if self._stage.length:
            return [self._cut([r])[0] if r in inner else found[r] for r in ranks]
        found.update(zip(inner, self._cut(inner), strict=True))
        return [found[r] for r in ranks]

    def _cut(self, ranks: Sequence[int]) -> list[Any]:
        """As `cuts`, for ranks inside the line whose brackets are in memory together."""
        if not ranks:
            return []
        samples = self._sampled()
        values = [samples.common(r) for r in ranks]
        asked = [
            [samples.bracket(r)] if v is None else samples.edges(v)
            for r, v in zip(ranks, values, strict=True)
        ]
        windows = iter(self.read(self._stage.values, [window for ranges in asked for window in ranges]))
        found = []
        for rank, value, ranges in zip(ranks, values, asked, strict=True):
            seen = [next(windows) for _ in ranges]
            lows = [low for low, _ in ranges]
            if value is None:
                value = np.sort(np.concatenate(seen[0]), kind="stable")[rank - lows[0].sum()]
                lows, seen = 2 * lows, 2 * seen
            before = lows[0] + [np.searchsorted(w, value, "left") for w in seen[0]]
            upto = lows[1] + [np.searchsorted(w, value, "right") for w in seen[1]]
            found.append(_taken(before, upto - before, rank))
        return found

    def _sampled(self) -> Samples:
        if self._samples is None:
            every = samples_of(self._run.plan, self._stage)
            reads = [(self._rank(p), region) for p, region in every]
            samples = self._ex.fetch_all(self._run, self._stage.values, reads)
            self._samples = Samples([np.array(s) for s in samples], self.sizes, self._steps)
        return self._samples


class Samples:
    """What every how-many-th element of sorted parts says of how many elements come before a value.

    All samples together are sorted once; how many elements are at least, and at most, before each of their
    values is then a running sum.
    """

    def __init__(self, samples: list[Any], sizes: Any, steps: Any) -> None:
        self._samples, self._sizes, self._steps = samples, sizes, steps
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

    def edges(self, value: Any) -> list[Range]:
        """In each part where elements equal to `value` begin, and where they end."""
        return [self._reach(value, "left"), self._reach(value, "right")]

    def bracket(self, rank: int) -> Range:
        """Of each part a range of positions that holds its elements equal to the one of `rank`."""
        reach = np.searchsorted(self._most_before, rank, "right") - 1
        beyond = np.searchsorted(self._least_before, rank, "right")
        low = self._reach(self._values[reach], "left")[0] if reach >= 0 else 0 * self._sizes
        high = self._sizes
        if beyond < len(self._values):
            high = self._reach(self._values[beyond], "left")[1]
        return low, high

    def _reach(self, value: Any, side: Literal["left", "right"]) -> Range:
        """The least and the most elements of each part before a value."""
        below = np.array([np.searchsorted(s, value, side) for s in self._samples])
        least = np.where(below > 0, (below - 1) * self._steps + 1, 0)
        return least, np.minimum(below * self._steps, self._sizes)


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
