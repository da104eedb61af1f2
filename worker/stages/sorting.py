"""Sort a line over the workers: sorted parts, exact cuts, one merge for each output tile.

Every output tile is a range of global ranks, whose two cuts are found exactly (`sorted_parts`). Only then do
elements move, each once. A part that does not fit is sorted in runs, on disk; then each of its runs is a
part, and what others have of them comes some ranks at a time.

Knuth, "The Art of Computer Programming", volume 3, section 5.4: external sorting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import box_shape
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.costs.choices import PICKED_SHARE
from spartan_ng.kernels.line_sorts import argsorted, argsorted_line, sorted_line
from spartan_ng.kernels.merges import Range, merged_range, value_ranges
from spartan_ng.kernels.sorts import put_sorted, sort_in_place, sorted_lines
from spartan_ng.plan.stages import MergeParts, SortParts
from spartan_ng.scratch import put
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.filling import filling
from spartan_ng.worker.stages.picking import pick
from spartan_ng.worker.stages.results import tile
from spartan_ng.worker.stages.sorted_parts import Coming, SortedParts

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_sort_parts(ex: Executor, run: Run, stage: SortParts, task: Task) -> None:
    """Sort the own part; with indices, stably, and as positions in the whole array."""
    if task.box is None:
        return
    if stage.length:
        _sort_runs(ex, run, stage, task)
        return
    x = ex.load(run, task.operands[0])
    if stage.spans and len(x) == stage.domain[0]:
        ex.put(run, stage.values, _sorted_in(x, stage.spans))
        return

    def each(one: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        return ex.parallel(run, items, lambda: one, False)

    if stage.indices is None:
        ex.put(run, stage.values, sorted_line(x, ex.threads, each, ex.store.allocate))
        return
    values, order = argsorted_line(x, ex.threads, each, ex.store.allocate)
    ex.put(run, stage.values, values)
    order += task.box[0][0]
    ex.put(run, stage.indices, order)


def _sort_runs(ex: Executor, run: Run, stage: SortParts, task: Task) -> None:
    """Sort the own part run by run."""
    assert task.box is not None, "checked by the caller"
    filler = filling(ex, run, stage, task)
    shape, first = box_shape(task.box), task.box[0][0]
    values = ex.store.allocate(shape, run.plan.slots[stage.values].dtype)
    places = None
    if stage.indices is not None:
        places = ex.store.allocate(shape, run.plan.slots[stage.indices].dtype)

    def sorter() -> Callable[[int], None]:
        fill = filler()
        # What goes to disk is at work in memory before it is written there.
        length = min(stage.length, len(values))
        unsorted = np.empty(length, values.dtype)
        run_of_ours = np.empty(length, values.dtype) if is_mapped(values) else None

        def one(lo: int) -> None:
            hi = min(lo + stage.length, len(values))
            part = unsorted[: hi - lo]
            to = values[lo:hi] if run_of_ours is None else run_of_ours[: hi - lo]
            fill(part, lo, hi)
            if places is not None:
                to[...], order = argsorted(part)
                order += first + lo
                put(places[lo:hi], order)
            else:
                put_sorted(part, to)
            if run_of_ours is not None:
                put(values[lo:hi], to)

        return one

    ex.parallel(run, range(0, len(values), stage.length), sorter, False)
    ex.put(run, stage.values, values)
    if stage.indices is not None:
        ex.put(run, stage.indices, places)


def run_merge_parts(ex: Executor, run: Run, stage: MergeParts, task: Task) -> None:
    """Pull the own range of ranks out of every sorted part and merge."""
    if task.box is None:
        return
    ((lo, hi),) = task.box
    parts = SortedParts(ex, run, stage)
    if stage.spans:
        found = [pick(parts.at, parts.sizes.tolist(), a, b) for a, b in stage.spans]
        dtype = run.plan.slots[stage.slot].dtype  # which joined parts of the other byte order would lose
        ex.put(run, stage.slot, np.concatenate(found, dtype=dtype)[lo:hi])
        return
    if ex.world == 1 and len(parts.sizes) == 1:
        made = stage.values if stage.indices is None else stage.indices
        ex.put(run, stage.slot, ex.store.get(run.keys[made]))
        return
    out = tile(ex, run, stage.slot, task.box)
    slots = [stage.values] if stage.indices is None else [stage.values, stage.indices]

    def ask(ends: Sequence[Any]) -> list[Coming]:
        return [parts.between(slot, *ends) for slot in slots]

    def merge(at: int, values: list[Any], places: list[Any] | None = None) -> None:
        def one(own: Range) -> None:
            start = at + own.first
            for some in merged_range(values, own, places):
                put(out[start : start + len(some)], some)
                start += len(some)

        ranges = value_ranges(values, places or ())
        ex.parallel(run, ranges, lambda: one, len(ranges) == 1)

    # What peers have of a piece is under way while the one before is merged.
    ranks = [lo, hi] if parts.are_here else [*range(lo, hi, stage.length or max(hi - lo, 1)), hi]
    pieces = list(pairwise(parts.cuts(ranks)))
    coming = ask(pieces[0])
    for rank, following in zip(ranks, [*pieces[1:], None], strict=False):
        there, coming = coming, ask(following) if following else []
        merge(rank - lo, *(parts.take(one) for one in there))
    ex.put(run, stage.slot, out)


def _sorted_in(x: Any, spans: Sequence[tuple[int, int]]) -> Any:
    """A line that is sorted only as far as some places are the sort's; the others have its other elements."""
    if sum(b - a for a, b in spans) * PICKED_SHARE > len(x):
        return sorted_lines(x)
    edges = {k for a, b in spans for k in (a, b) if k < len(x)}
    out = np.partition(x, sorted(edges))
    for a, b in spans:
        sort_in_place(out[a:b])
    return out
