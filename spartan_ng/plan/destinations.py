"""Arrays of a plan that go to a file as they are: where memory has no room for a tile, it may lie there at
once, in place of a file without a name that is copied then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import VALUE, Read, Row, Slot
from spartan_ng.plan.stages import Fused, MergeParts
from spartan_ng.sinks.sink import Sink

_FILL = (MergeParts,)
"""Stages that put nothing in a tile but its elements (`worker.stages.results.tile`)."""


def destinations(plan: Plan) -> dict[int, Sink]:
    """By slot the sink that one stage gives all its elements to, where nobody else reads them, and that stage
    keeps nothing that it could put in their place."""
    readers = Counter(slot for stage in plan.stages for slot in set(stage.read_slots()))
    made = {slot for stage in plan.stages if isinstance(stage, _FILL) for slot in stage.written_slots()}
    made -= {*plan.inputs, *plan.outputs}
    return {
        read.slot: sink
        for read, sink in _sunk(plan)
        if read.slot in made and readers[read.slot] == 1 and _is_all(read, plan.slots[read.slot])
    }


def _sunk(plan: Plan) -> Iterator[tuple[Read, Sink]]:
    """What stages that store nothing else read for a sink."""
    for stage in plan.stages:
        if not isinstance(stage, Fused) or any(w.reducer is None for w in stage.writes):
            continue
        for row in stage.rows:
            sink = sink_of(row)
            if sink is not None and row.args[0] < len(stage.reads):
                read = stage.reads[row.args[0]]
                if read.slot != VALUE and read.labels == row.labels == tuple(range(len(stage.domain))):
                    yield read, sink


def sink_of(row: Row) -> Sink | None:
    """What a row gives its blocks to."""
    sink = row.fn.function if isinstance(row.fn, UserFunction) else None
    return sink if isinstance(sink, Sink) else None


def _is_all(read: Read, slot: Slot) -> bool:
    """Whether a read shows all of an array as it is."""
    whole = all((a.start, a.step, a.size) == (0, 1, n) for a, n in zip(read.axes, slot.shape, strict=True))
    is_plain = read.shape == slot.shape and read.order == tuple(range(len(slot.shape)))
    return whole and is_plain and slot.format == "dense" and not slot.tiling.duplicate
