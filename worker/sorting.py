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
from spartan_ng.plan.plan import MergeParts, SortParts
from spartan_ng.worker.program import Task

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run


def run_sort_parts(ex: Executor, run: Run, stage: SortParts, task: Task) -> None:
    """Sort the own part; with indices, stably, and as positions in the whole array."""
    if task.box is None:
        return
    x = ex.load(run, task.operands[0])
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
    first, last = parts.cuts([lo, hi])
    values = [parts.read(stage.values, p, a, b) for p, (a, b) in enumerate(zip(first, last, strict=True))]
    merged = np.concatenate(values)
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate((hi - lo,), slot.dtype)
    if stage.indices is None:
        merged.sort(kind="stable")
        out[...] = merged
    else:
        places = [
            parts.read(stage.indices, p, a, b) for p, (a, b) in enumerate(zip(first, last, strict=True))
        ]
        np.take(np.concatenate(places), np.argsort(merged, kind="stable"), out=out)
    ex.put(run, stage.slot, out)


class Parts:
    """The sorted parts of one line, read piece by piece from where they lie."""

    def __init__(self, ex: Executor, run: Run, stage: MergeParts) -> None:
        self._ex, self._run, self._stage = ex, run, stage
        (n,) = run.plan.slots[stage.values].shape
        count = stage.grid.parts[0]
        bounds = [stage.grid.cut(0, n, p) for p in range(count)]
        self.sizes = np.array([hi - lo for lo, hi in bounds])
        self.steps = np.array([sample_step(int(n)) for n in self.sizes])
        self._samples: list[Any] = []

    def read(self, slot: int, part: int, start: int, stop: int, step: int = 1) -> Any:
        """Elements of one sorted part."""
        rank = self._ex.rank if self._stage.grid.duplicate else self._stage.grid.rank((part,))
        return self._ex.fetch(self._run, slot, rank, ((int(start), int(stop), int(step)),))

    def cuts(self, ranks: Sequence[int]) -> list[Any]:
        """For each global rank, how many elements of each part come before it."""
        inner = [r for r in ranks if 0 < r < self.sizes.sum()]
        if inner and not self._samples:
            self._samples = [
                self.read(self._stage.values, p, 0, n, s)
                for p, (n, s) in enumerate(zip(self.sizes, self.steps, strict=True))
            ]
        return [self.sizes if r >= self.sizes.sum() else self._cut(r) if r else 0 * self.sizes for r in ranks]

    def _cut(self, rank: int) -> Any:
        value = self._common(rank)
        if value is not None:
            before = self._ends(value, "left")
            return _taken(before, self._ends(value, "right") - before, rank)
        low, high = self._bracket(rank)
        windows = [
            self.read(self._stage.values, p, a, b) for p, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        inside = np.sort(np.concatenate(windows), kind="stable")
        value = inside[rank - low.sum()]
        before = low + [np.searchsorted(w, value, "left") for w in windows]
        equal = low + [np.searchsorted(w, value, "right") for w in windows] - before
        return _taken(before, equal, rank)

    def _common(self, rank: int) -> Any:
        """The element of `rank` where it is so frequent that the samples tell, else None."""
        values = np.unique(np.concatenate(self._samples))
        below = [np.searchsorted(s, values, "left") for s in self._samples]
        upto = [np.searchsorted(s, values, "right") for s in self._samples]
        most = self._reach(below)[1].sum(axis=0)
        least = self._reach(upto)[0].sum(axis=0)
        found = np.flatnonzero((most <= rank) & (least > rank))
        return values[found[0]] if found.size else None

    def _ends(self, value: Any, side: Literal["left", "right"]) -> Any:
        """In each part the first position on a side of all elements equal to `value`."""
        samples = [np.searchsorted(s, [value], side) for s in self._samples]
        low, high = (x[:, 0] for x in self._reach(samples))
        windows = [
            self.read(self._stage.values, p, a, b) if b > a else None
            for p, (a, b) in enumerate(zip(low, high, strict=True))
        ]
        return low + [0 if w is None else np.searchsorted(w, value, side) for w in windows]

    def _reach(self, samples: list[Any]) -> tuple[Any, Any]:
        """The least and the most elements of each part before positions among its samples."""
        below = np.array(samples)
        least = np.where(below > 0, (below - 1) * self.steps[:, None] + 1, 0)
        return least, np.minimum(below * self.steps[:, None], self.sizes[:, None])

    def _bracket(self, rank: int) -> tuple[Any, Any]:
        """For each part a range of positions that holds its elements equal to the one of `rank`."""
        candidates = np.sort(np.concatenate(self._samples))
        least, most = self._reach([np.searchsorted(s, candidates, "left") for s in self._samples])
        reach = np.flatnonzero(most.sum(axis=0) <= rank)
        beyond = np.flatnonzero(least.sum(axis=0) > rank)
        low = least[:, reach[-1]] if reach.size else 0 * self.sizes
        high = most[:, beyond[0]] if beyond.size else self.sizes
        return low, high


def _taken(before: Any, equal: Any, rank: int) -> Any:
    """How many elements of each part come before `rank`, where `equal` ones follow those `before`."""
    rest = rank - before.sum()
    return before + np.minimum(equal, np.maximum(rest - (np.cumsum(equal) - equal), 0))
