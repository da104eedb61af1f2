"""Where the results of one pass go: tiles that blocks fill, and states that are put together by their boxes.

Fusion plans (SystemML), section 2.2: the template MAgg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spartan_ng.arrays import Box, box_shape
from spartan_ng.kernels.body import labelled_box
from spartan_ng.kernels.formats import dense
from spartan_ng.ops.folds import State
from spartan_ng.plan.plan import Write
from spartan_ng.worker.program import Task

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run

States = list[dict[Box, State]]
"""For each result the states that a run has made, by their boxes; empty for plain results."""


class Places:
    """Where the results of a pass lie: the tile of each, and the part of a tile that belongs to a block."""

    def __init__(self, ex: Executor, run: Run, writes: tuple[Write, ...], tile: Box, own: Any = None) -> None:
        """`own` is an array to put the first plain result into, instead of a new one."""
        self.writes = writes
        self.slots = [run.plan.slots[w.slots[0]] for w in writes]
        self.own = [self.box(k, tile) for k in range(len(self.writes))]
        self.plain = [k for k, w in enumerate(self.writes) if w.reducer is None]
        self.tiles: list[Any] = [None] * len(self.writes)
        for k in self.plain:
            self.tiles[k] = (
                own if own is not None else ex.store.allocate(box_shape(self.own[k]), self.slots[k].dtype)
            )
            own = None

    def box(self, k: int, block: Box) -> Box:
        """The box of result `k` that a block of the domain makes."""
        write = self.writes[k]
        return labelled_box(write.labels, self.slots[k].shape[len(write.partial) :], block)

    def targets(self, block: Box) -> list[Any]:
        """For each plain result the part of its tile that the block fills; None for the others."""
        out: list[Any] = [None] * len(self.writes)
        for k in self.plain:
            out[k] = self.tiles[k][(*within(self.box(k, block), self.own[k]), ...)]
        return out


def merged(task: Task, k: int, every: list[States]) -> dict[Box, State]:
    """The states of all runs, in order."""
    reducer = task.reducers[k]
    assert reducer is not None, "only reduced results have states"
    found: dict[Box, list[State]] = {}
    for states in every:
        for box, state in states[k].items():
            found.setdefault(box, []).append(state)
    return {box: reducer.combine_all(states) for box, states in found.items()}


def add_state(task: Task, k: int, known: dict[Box, State], box: Box, state: State) -> None:
    """One more state of result `k`, combined with what there is of its box."""
    reducer = task.reducers[k]
    assert reducer is not None, "only reduced results have states"
    known[box] = state if box not in known else reducer.combine(known[box], state)


def finish(ex: Executor, run: Run, task: Task, k: int, states: dict[Box, State], places: Places) -> None:
    """Put a reduced result's tile, or the tiles of its partial states."""
    write, reducer = places.writes[k], task.reducers[k]
    assert reducer is not None, "only reduced results are finished"
    lead = (1,) * len(write.partial)
    slots = [run.plan.slots[s] for s in write.slots]
    outs = [ex.store.allocate((*lead, *box_shape(places.own[k])), s.dtype) for s in slots]
    for box, state in states.items():
        values = state if write.partial else (reducer.finalize(state),)
        place = within(box, places.own[k])
        for out, value in zip(outs, values, strict=True):
            out[(0,) * len(lead) + place] = dense(value)
    for slot, out in zip(write.slots, outs, strict=True):
        ex.put(run, slot, out)


def within(box: Box, outer: Box) -> tuple[slice, ...]:
    """A box as slices of the array that covers `outer`."""
    return tuple(slice(a - lo, b - lo) for (a, b), (lo, _) in zip(box, outer, strict=True))
