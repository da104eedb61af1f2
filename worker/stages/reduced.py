"""A reduced result's blocks: each run of them gives a state, and states come to a value in their order."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import Box, box_shape, box_size, slices_within
from spartan_ng.kernels.blocks import Patch
from spartan_ng.kernels.counting import Counting
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.kernels.rows import labelled_box
from spartan_ng.kernels.sequences import Run as Blocks
from spartan_ng.ops.line_states import Allocate
from spartan_ng.plan.rows import Write
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.scheduling.lending import lending
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.results import (
    KEPT_TOGETHER,
    InTurn,
    is_crowded,
    is_tight,
    one_by_one,
    put_behind,
)
from spartan_ng.worker.stages.windows import Bands

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_MANY_RUNS = 1 << 8
"""The states of more runs of blocks are not kept until the end."""
_LARGE_BYTES = 1 << 24
"""Nor are those of a larger result, whose value they would be beside it."""
_FEW_BYTES = 1 << 16
"""Memory has room for so much of states without being asked."""
Target = Callable[[Box], Any]
"""The part of the result's tile that belongs to a block."""


class PassRun(Struct, frozen=True):
    """How one run of a fused stage with one result works on its blocks: interpreted, or compiled."""

    patches: list[Patch]
    worker: Callable[[Any, Target], Callable[[Blocks], Any]]
    """`worker(out, target)` makes a thread's work on a run of blocks: it fills `out`, the result's tile, or
    gives the run's state."""
    small: bool
    blas: bool
    operands: list[Any] | None = None
    """Of an interpreted pass: what a worker that takes a task over would need a part of."""
    bands: Bands | None = None
    """Who reads what runs of blocks need."""
    fills: bool = False
    """Whether the blocks of a run fill one state, rather than that each makes one which is added."""
    most: int | None = None
    """Threads that there is memory for."""


def _own_state(number: int, state: Any) -> Any:
    """A state that came from another worker, in memory that combining may write to; states of units are only
    read."""
    if isinstance(state, list):
        return state
    return tuple(np.array(s) if isinstance(s, np.ndarray) else s for s in state)


def _no_target(block: Box) -> Any:
    raise AssertionError("a reduced stage gives states")


def reduced(
    ex: Executor, run: Run, stage: Fused, write: Write, task: Task, how: PassRun, reducer: Reducer
) -> list[Any]:
    """Every run of blocks gives a state; a patch's states combine in order.

    Where they may be too many, or too large together, they do as they come, and a patch's value goes to its
    place with the last of them.
    """
    runs = [r for patch in how.patches for r in patch.runs]
    tiles = _Reduced(ex, run, write, task, reducer, len(how.patches))
    counts = isinstance(reducer, Counting)
    large = tiles.size_bytes > _LARGE_BYTES and how.operands is None  # what is lent comes back at the end
    sizes = [0]
    if tiles.size_bytes * len(runs) > _FEW_BYTES:
        sizes = [tiles.state_bytes(patch) for patch in how.patches]
        large |= is_crowded(sum(n * len(patch.runs) for n, patch in zip(sizes, how.patches, strict=True)))
    in_turn = reducer.combines_in_turn
    if large or counts or (in_turn and (how.bands is not None or len(runs) > _MANY_RUNS)):
        tight = counts or (in_turn and len(runs) > 1 and is_tight(max(sizes), ex.threads))
        alone = (tight or reducer.finds is not None) and not how.fills
        each = [one_by_one(p.runs) if alone else p.runs for p in how.patches]
        totals = [_total(reducer, len(own)) for own in each]
        places = {r: (c, k) for c, own in enumerate(each) for k, r in enumerate(own)}

        def adding() -> Callable[[Blocks], None]:
            one = how.worker(None, _no_target)

            def add(blocks: Blocks) -> None:
                c, turn = places[blocks]
                if totals[c].add(turn, one(blocks)):
                    tiles.put(how.patches[c], [totals[c].total] if in_turn else totals[c].total)
                    totals[c].total = None

            return add

        ex.parallel(run, [*places], adding, how.small or tight, how.blas, bands=how.bands, most=how.most)
        return tiles.found
    lent = None if how.operands is None else lending(ex, run, stage, task, how.operands, runs, _own_state)
    work = lambda: how.worker(None, _no_target)  # noqa: E731
    found = iter(ex.parallel(run, runs, work, how.small, how.blas, lent, bands=how.bands, most=how.most))
    for patch in how.patches:
        tiles.put(patch, list(itertools.islice(found, len(patch.runs))))
    return tiles.found


def _total(reducer: Reducer, count: int) -> InTurn:
    """What so many runs come to: a state, or a few, where these are not combined one after the other."""
    if reducer.combines_in_turn:
        return InTurn(reducer.combine, None, count)
    numbers = itertools.count(1)

    def add(known: list[Any], state: Any) -> list[Any]:
        put_behind(known, state, reducer, next(numbers))
        return known

    return InTurn(add, [], count)


class _Reduced:
    """The arrays of a reduced result, which its patches fill."""

    def __init__(
        self, ex: Executor, run: Run, write: Write, task: Task, reducer: Reducer, patches: int
    ) -> None:
        self._ex, self._write, self._reducer = ex, write, reducer
        self._dtypes = [run.plan.slots[s].dtype for s in write.slots]
        self._shape = run.plan.slots[write.slots[0]].shape[len(write.partial) :]
        (self._own,) = task.owns
        self._is_made_there = patches == 1 and not reducer.combines_in_place
        self._in_place = patches == 1 and ex.store.pool is None  # the state's own memory can be the tile
        if not isinstance(reducer, Counting):  # whose memory is the tile
            self._is_made_there &= not self._in_place
        self._allocate: Allocate = ex.store.allocate if self._is_made_there else np.empty
        self._lock = threading.Lock()
        self.found: list[Any] = []
        itemsize = sum(d.itemsize for d in self._dtypes)
        self._state_itemsize = itemsize if reducer.combines_in_turn else KEPT_TOGETHER * max(itemsize, 8)
        self.size_bytes = box_size(self._own) * itemsize

    def state_bytes(self, patch: Patch) -> int:
        """What the state of a patch takes, or that of one of its blocks, where it is what they have found."""
        if self._reducer.finds is not None:
            return self._reducer.finds.state_bytes(max(box_size(b) for r in patch.runs for b in r))
        part = labelled_box(self._write.labels, self._shape, patch.box)
        return box_size(part) * self._state_itemsize

    def put(self, patch: Patch, states: list[Any]) -> None:
        """Put what the states of a patch come to in its place."""
        partial = self._write.partial
        values = self._reducer.values(states, patch.box, partial, self._allocate)
        lead = values[0].shape[: len(partial)] if partial else ()
        shape = (*lead, *box_shape(self._own))
        if self._in_place and not self._is_made_there:
            pairs = zip(values, self._dtypes, strict=True)
            self.found = [_owned(v, dtype).reshape(shape) for v, dtype in pairs]
            return
        if self._is_made_there:
            self.found = [v.reshape(shape) for v in values]
            return
        with self._lock:
            self.found = self.found or [self._ex.store.allocate(shape, dtype) for dtype in self._dtypes]
        part = labelled_box(self._write.labels, self._shape, patch.box)
        place = slices_within(part, self._own)
        for out, value in zip(self.found, values, strict=True):
            out[(slice(None),) * len(partial) + place] = value


def _owned(value: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """The value as a contiguous array that shares no memory with an operand."""
    array = np.ascontiguousarray(value, dtype)
    return array if array.flags.owndata else array.copy()
