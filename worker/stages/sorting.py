"""Sort a line over the workers: sorted parts, exact cuts, one merge for each output tile.

Every output tile is a range of global ranks. Its two cuts are found exactly: samples of all sorted parts
bracket the element of a rank, the brackets are read (of an element so frequent that the samples show it,
the ends of its runs alone), and equal elements are taken from the parts in order, so that the sort is
stable. Only then do elements move, each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from spartan_ng.ops.line_sorts import sample_step
from spartan_ng.plan.plan import MergeParts, Plan, SortParts
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.scheduling.program import Task
from spartan_ng.worker.stages.picking import Asked, pick

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run

_FEW = 16
"""One in so many places is worth a selection, and more a sort."""


def run_sort_parts(ex: Executor, run: Run, stage: SortParts, task: Task) -> None:
    """Sort the own part; with indices, stably, and as positions in the whole array."""
    if task.box is None:
        return
    x = ex.load(run, task.operands[0])
    if stage.spans and len(x) == stage.read.shape[0]:
        ex.put(run, stage.values, _sorted_in(x, stage.spans))
        return
    if stage.indices is None:
        ex.put(run, stage.values, np.sort(x))
        return
    order = np.argsort(x, kind="stable")
    ex.put(run, stage.values, x[order])
    ex.put(run, stage.indices, order + task.box[0][0])


def run_merge_parts(ex: Executor, run: Run, stage: MergeParts, task: Task) -> None:
    """Pull the own range of ranks out of every sorted part and merge."""
    if task.box is None:
        return
    ((lo, hi),) = task.box
    parts = Parts(ex, run, stage)
    if stage.spans:
        found = [pick(parts.at, parts.sizes.tolist(), a, b) for a, b in stage.spans]
        ex.put(run, stage.slot, np.concatenate(found)[lo:hi])
        return
    first, last = parts.cuts([lo, hi])
    (values,) = parts.read(stage.values, [(first, last)])
    merged = np.concatenate(values)
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate((hi - lo,), slot.dtype)
    if stage.indices is None:
        merged.sort(kind="stable")
        out[...] = merged
    else:
        (places,) = parts.read(stage.indices, [(first, last)])
        np.take(np.concatenate(places), np.argsort(merged, kind="stable"), out=out)
    ex.put(run, stage.slot, out)


Range = tuple[Any, Any]
"""For each part a start, and for each a stop."""


def part_sizes(plan: Plan, stage: MergeParts) -> Any:
    """How many elements each sorted part has."""
    (n,) = plan.slots[stage.values].shape
    bounds = [stage.grid.cut(0, n, p) for p in range(stage.grid.parts[0])]
    return np.array([hi - lo for lo, hi in bounds])


def sample_regions(sizes: Any) -> list[Region]:
    """The samples of each part that every merge looks at first."""
    return [((0, int(n), sample_step(int(n))),) for n in sizes]


def _sorted_in(x: Any, spans: Sequence[tuple[int, int]]) -> Any:
    """A line that is sorted only as far as some places are the sort's; the others have its other elements."""
    if sum(b - a for a, b in spans) * _FEW > len(x):
        return np.sort(x)
    edges = {k for a, b in spans for k in (a, b) if k < len(x)}
    out = np.partition(x, sorted(edges))
    for a, b in spans:
        out[a:b].sort()
    return out


class Parts:
    """The sorted parts of one line, read piece by piece from where they lie."""

    def __init__(self, ex: Executor, run: Run, stage: MergeParts) -> None:
        self._ex, self._run, self._stage = ex, run, stage
        self.sizes = part_sizes(run.plan, stage)
        self._steps = np.array([sample_step(int(n)) for n in self.sizes])
        self._samples: list[Any] = []

    def read(self, slot: int, ranges: Sequence[Range]) -> list[list[Any]]:
        """Of every sorted part elements from a start to a stop, for each of the ranges; all at once."""
        reads = [
            (self._rank(p), ((int(a), int(b), 1),))
            for starts, stops in ranges
            for p, (a, b) in enumerate(zip(starts, stops, strict=True))
        ]
        found = iter(self._ex.fetch_all(self._run, slot, reads))
        return [[next(found) for _ in self.sizes] for _ in ranges]

    def at(self, asked: Sequence[Asked]) -> list[Any]:
        """The elements at positions in sorted parts, all at once."""
        reads: list[tuple[int, Region]] = [(self._rank(p), ((r.start, r.stop, r.step),)) for p, r in asked]
        return list(self._ex.fetch_all(self._run, self._stage.values, reads))

    def _rank(self, part: int) -> int:
        grid = self._stage.grid
        return self._ex.rank if grid.duplicate else grid.rank((part,))

    def cuts(self, ranks: Sequence[int]) -> list[Any]:
        """For each global rank, how many elements of each part come before it."""
        total = self.sizes.sum()
        found = {r: self.sizes if r >= total else 0 * self.sizes for r in ranks}
        inner = [r for r in found if 0 < r < total]
        if inner and not self._samples:
            reads = [(self._rank(p), region) for p, region in enumerate(sample_regions(self.sizes))]
            self._samples = self._ex.fetch_all(self._run, self._stage.values, reads)
        values = [self._common(r) for r in inner]
        asked = [
            self._bracket(r) if v is None else self._edges(v) for r, v in zip(inner, values, strict=True)
        ]
        windows = iter(self.read(self._stage.values, [window for ranges in asked for window in ranges]))
        for rank, value, ranges in zip(inner, values, asked, strict=True):
            seen = [next(windows) for _ in ranges]
            lows = [low for low, _ in ranges]
            if value is None:
                value = np.sort(np.concatenate(seen[0]), kind="stable")[rank - lows[0].sum()]
                lows, seen = 2 * lows, 2 * seen
            before = lows[0] + [np.searchsorted(w, value, "left") for w in seen[0]]
            upto = lows[1] + [np.searchsorted(w, value, "right") for w in seen[1]]
            found[rank] = _taken(before, upto - before, rank)
        return [found[r] for r in ranks]

    def _common(self, rank: int) -> Any:
        """The element of `rank` where it is so frequent that the samples tell, else None."""
        values = np.unique(np.concatenate(self._samples))
        below = [np.searchsorted(s, values, "left") for s in self._samples]
        upto = [np.searchsorted(s, values, "right") for s in self._samples]
        most = self._reach(below)[1].sum(axis=0)
        least = self._reach(upto)[0].sum(axis=0)
        found = np.flatnonzero((most <= rank) & (least > rank))
        return values[found[0]] if found.size else None

    def _edges(self, value: Any) -> list[Range]:
        """In each part where elements equal to `value` begin, and where they end."""
        sides: tuple[Literal["left", "right"], ...] = ("left", "right")
        reach = [self._reach([np.searchsorted(s, [value], side) for s in self._samples]) for side in sides]
        return [(low[:, 0], high[:, 0]) for low, high in reach]

    def _reach(self, samples: list[Any]) -> tuple[Any, Any]:
        """The least and the most elements of each part before positions among its samples."""
        below = np.array(samples)
        least = np.where(below > 0, (below - 1) * self._steps[:, None] + 1, 0)
        return least, np.minimum(below * self._steps[:, None], self.sizes[:, None])

    def _bracket(self, rank: int) -> list[Range]:
        """Of each part a range of positions that holds its elements equal to the one of `rank`."""
        candidates = np.sort(np.concatenate(self._samples))
        least, most = self._reach([np.searchsorted(s, candidates, "left") for s in self._samples])
        reach = np.flatnonzero(most.sum(axis=0) <= rank)
        beyond = np.flatnonzero(least.sum(axis=0) > rank)
        low = least[:, reach[-1]] if reach.size else 0 * self.sizes
        high = most[:, beyond[0]] if beyond.size else self.sizes
        return [(low, high)]


def _taken(before: Any, equal: Any, rank: int) -> Any:
    """How many elements of each part come before `rank`, where `equal` ones follow those `before`."""
    rest = rank - before.sum()
    return before + np.minimum(equal, np.maximum(rest - (np.cumsum(equal) - equal), 0))
