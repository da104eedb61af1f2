"""Where the results of one pass go: tiles that blocks fill, and states that are put together by their boxes.

Fusion plans (SystemML), section 2.2: the template MAgg.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box, box_shape, box_size, slices_within
from spartan_ng.arrays.copying import address
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.kernels.counting import Counting
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.kernels.rows import labelled_box
from spartan_ng.kernels.sequences import Run as Blocks
from spartan_ng.memory import budget_bytes, copied_bytes, threads_at_work
from spartan_ng.ops.by_ufunc import State
from spartan_ng.plan.rows import Write
from spartan_ng.worker.scheduling.shares import Task

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

States = list[dict[Box, Any]]
"""For each result what a run knows of it (`Reducer.run_state`), by the box of the result; empty for plain
ones."""


KEPT_TOGETHER = 3
"""Numbers of a state that is not added to another as they come: of deviations, and of units."""
_TIGHT = 2
"""Threads that work on states at the same time take up to one part in so many of the memory."""


def is_crowded(states_bytes: int) -> bool:
    """Whether memory has no room for the states of all runs until the last of them has come."""
    return states_bytes > copied_bytes()


def is_tight(state_bytes: int, threads: int) -> bool:
    """Whether it has none for the states that threads work on: what each has come to and what it adds to
    that, and beside them what all have come to, and a state that is early.

    One thread works then, and adds what a block gives to what all have come to.
    """
    return 2 * (threads + 1) * state_bytes > budget_bytes() // _TIGHT


def tile(ex: Executor, run: Run, slot: int, box: Box) -> np.ndarray[Any, Any]:
    """An uninitialized tile, for who puts nothing in it but its elements; in the file that they go to, if
    memory has no room for it."""
    sink = run.program.destinations.get(slot)
    place = None if sink is None else partial(sink.tile, box)
    return ex.store.allocate(box_shape(box), run.plan.slots[slot].dtype, place)


def in_place(ex: Executor, run: Run, write: Write, reducer: Reducer, own: Box) -> Reducer:
    """What counts in the tile itself, where memory has no room for states as large; else the reducer."""
    slot = run.plan.slots[write.slots[0]]
    if not reducer.counts or not is_tight(box_size(own) * slot.dtype.itemsize, ex.threads):
        return reducer
    return Counting(reducer, ex.store.allocate(box_shape(own), slot.dtype))


def shares_inputs(ex: Executor, run: Run, tile: Any) -> bool:
    """Whether a tile is (part of) somebody's input."""
    given = [ex.store.get(run.keys[s]) for s in run.plan.inputs if ex.store.holds(run.keys[s])]
    return any(isinstance(g, np.ndarray) and np.may_share_memory(g, tile) for g in given)


def dying_tile(ex: Executor, run: Run, slot: int, operand: Any) -> Any | None:
    """The tile of a dying operand, to be written over, unless it is (part of) somebody's input."""
    if type(operand) is not np.ndarray or not (operand.flags.c_contiguous and operand.flags.writeable):
        return None
    if shares_inputs(ex, run, operand):
        return None
    ex.store.drop(run.keys[slot])  # a job that is stopped now leaves half of it overwritten
    return operand


def threads_for_lines(ex: Executor, task: Task) -> int | None:
    """How many threads memory has room for, where each works on lines that no block cuts; None for all."""
    limited = task.uncut_bytes and ex.store.pool is not None
    return min(threads_at_work(task.uncut_bytes), ex.threads) if limited else None


@contextmanager
def room_for_lines(ex: Executor, task: Task) -> Iterator[None]:
    """Have tiles leave room for what these threads work on; all that there is, where that takes more."""
    most = threads_for_lines(ex, task)
    with ExitStack() as stack:
        if most is not None:
            assert ex.store.pool is not None, "there is a limit"
            needed = min(most * task.uncut_bytes, ex.store.pool.budget_bytes or 0)
            with suppress(MemoryBudgetError):
                stack.enter_context(ex.store.room(needed))
        yield


def one_by_one(runs: Sequence[Blocks]) -> tuple[Blocks, ...]:
    """Each block as a run of its own, so that none has a state of several beside."""
    return tuple((block,) for blocks in runs for block in blocks)


class InTurn:
    """A state of all runs (or of `count`), to which each adds its own: in their order, whichever comes first.

    Runs over a source may be more than memory has room for states of.
    """

    def __init__(self, combine: Callable[[Any, Any], Any], total: Any = None, count: int = -1) -> None:
        self.total = total
        self._combine = combine
        self._count = count
        self._next = 0
        self._early: dict[int, State] = {}
        self._lock = threading.Lock()

    def add(self, turn: int, state: Any) -> bool:
        """The state of run number `turn`; it may be changed. Whether it was the last that was missing."""
        with self._lock:
            self._early[turn] = state
            while self._next in self._early:
                found = self._early.pop(self._next)
                self.total = found if self.total is None else self._combine(self.total, found)
                self._next += 1
            return self._next == self._count


class ResultPlaces:
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
            out[k] = self.tiles[k][(*slices_within(self.box(k, block), self.own[k]), ...)]
        return out


Totals = list[dict[Box, list[Any]]]
"""For each result what runs have come to, in order, by the box of the result: one state, where states may be
combined one after the other."""


def adding(task: Task, in_pairs: bool = False) -> Callable[[Totals, States], Totals]:
    """Adds what the next run knows of all results to what there is of them.

    The state of a product may be as large as what it was made of: there is no room for those of all runs.
    States that are not combined one after the other may be `in_pairs`.
    """
    runs: list[Counter[Box]] = [Counter() for _ in task.reducers]

    def add(totals: Totals, states: States) -> Totals:
        for reducer, total, found, counts in zip(task.reducers, totals, states, runs, strict=True):
            for box, state in found.items():
                known = total.setdefault(box, [])
                if known and reducer is not None and reducer.combines_in_turn:
                    known[-1] = reducer.combine(known[-1], state)
                    continue
                counts[box] += 1
                put_behind(known, state, reducer if in_pairs else None, counts[box])
        return totals

    return add


def put_behind(known: list[Any], state: Any, reducer: Reducer | None, number: int) -> None:
    """Put the state that is so many in all behind those before, in pairs with a reducer whose states are not
    those of units: of n there are log2(n) then."""
    known.append(state)
    while reducer is not None and not reducer.units and number % 2 == 0:
        after = known.pop()
        known[-1] = reducer.combine(known[-1], after)
        number //= 2


def add_state(task: Task, k: int, known: dict[Box, Any], box: Box, block: Box, state: State) -> None:
    """One more block's state of result `k`, added to what there is of its box."""
    reducer = task.reducers[k]
    assert reducer is not None, "only reduced results have states"
    if reducer.units:
        known.setdefault(box, []).append((block, state))
    else:
        known[box] = state if box not in known else reducer.combine(known[box], state)


class Finish:
    """A reduced result's tile, or the tiles of its partial states, which its boxes fill as they are known."""

    def __init__(
        self, ex: Executor, run: Run, task: Task, k: int, places: ResultPlaces, shared: Any = None
    ) -> None:
        """`shared` is a state of the whole tile, in memory of the store's."""
        reducer = task.reducers[k]
        assert reducer is not None, "only reduced results are finished"
        assert task.box is not None, "a task with results has a box"
        self._ex, self._run, self._reducer, self._box = ex, run, reducer, task.box
        self._write, self._own = places.writes[k], places.own[k]
        self._slots = [run.plan.slots[s] for s in self._write.slots]
        self._outs: list[Any] = []
        self._lock = threading.Lock()
        self._shared = shared

    def fill(self, box: Box, states: list[Any]) -> None:
        """Fill a box with what its states, in their order, come to."""
        values = self._reducer.values(states, self._box, self._write.partial)
        lead = np.shape(values[0])[: len(self._write.partial)]
        if isinstance(self._reducer, Counting) or self._is_tile(values):
            self._outs = [v.reshape((*lead, *box_shape(self._own))) for v in values]
            return
        with self._lock:  # runs fill boxes of their own as they come
            if not self._outs:
                shape = (*lead, *box_shape(self._own))
                self._outs = [self._ex.store.allocate(shape, s.dtype) for s in self._slots]
        place = slices_within(box, self._own)
        for out, value in zip(self._outs, values, strict=True):
            out[(slice(None),) * len(lead) + place] = value

    def _is_tile(self, values: list[Any]) -> bool:
        """Whether the shared state is what it comes to: no copy is made of it."""
        if self._shared is None or len(values) > 1:
            return False
        ((value,), (slot,)) = values, self._slots
        at_once = isinstance(value, np.ndarray) and value.flags.c_contiguous and value.dtype == slot.dtype
        return at_once and value.size == self._shared.size and address(value) == address(self._shared)

    def put(self, rest: dict[Box, list[Any]]) -> None:
        """Fill what is left, and put the tiles."""
        for box, states in rest.items():
            self.fill(box, states)
        for slot, out in zip(self._write.slots, self._outs, strict=True):
            self._ex.put(self._run, slot, out)


def finish(
    ex: Executor, run: Run, task: Task, k: int, runs: dict[Box, list[Any]], places: ResultPlaces
) -> None:
    """Put a reduced result's tile, or the tiles of its partial states."""
    Finish(ex, run, task, k, places).put(runs)
