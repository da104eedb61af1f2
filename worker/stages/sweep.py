"""One pass for several results: every run of blocks fills its part of the plain ones, and gives states of
the reduced ones.

Results are reduced over different dimensions, so the pass goes through the tile along one of them: of a
result that follows this dimension each run has its own part, of the others each run has a state, combined
in the order of the runs. States are kept by the box of the result that they are of.

Fusion plans (SystemML), section 2.2: the template MAgg.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import Box, box_size
from spartan_ng.kernels.blocks import Sweep
from spartan_ng.kernels.compiled.prepared import Compiled
from spartan_ng.kernels.compiled.runner import CompiledRunner
from spartan_ng.kernels.compiled.select import FittedKernel
from spartan_ng.kernels.compiled.whole import WholeRunner, first_state
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.reducers import block_states, sums_on_the_way
from spartan_ng.kernels.sampled import runner
from spartan_ng.kernels.sequences import Run as Blocks
from spartan_ng.ops.by_ufunc import State
from spartan_ng.plan.stages import Fused
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.results import (
    KEPT_TOGETHER,
    Finish,
    InTurn,
    ResultPlaces,
    States,
    add_state,
    adding,
    in_place,
    is_crowded,
    is_tight,
    one_by_one,
)
from spartan_ng.worker.stages.windows import Bands

Each = Callable[[Blocks], Iterable[Box]]
"""The blocks of a run, one after the other (`BlockThreads.looked`)."""

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_sweep(
    ex: Executor,
    run: Run,
    stage: Fused,
    task: Task,
    operands: list[Any],
    choice: FittedKernel | None,
    small: bool,
    blas: bool,
    bands: Bands | None = None,
    most: int | None = None,
) -> None:
    """Run a stage of several results."""
    assert task.box is not None, "checked by the caller"
    places = ResultPlaces(ex, run, stage.writes, task.box)
    cut = task.blocks(stage) if choice is None else choice.cut
    assert isinstance(cut, Sweep), "a stage of several results is swept"
    in_order = all(r is None or r.combines_in_turn for r in task.reducers)
    tight = in_order and is_tight(_state_bytes(cut, places), ex.threads)
    if tight:
        every_write = zip(stage.writes, task.reducers, places.own, strict=True)
        counting = [r and in_place(ex, run, w, r, own) for w, r, own in every_write]
        task = replace(task, reducers=counting)
    shared: list[Any] = [None] * len(stage.writes)
    each: Each = partial(ex.looked, run) if run.files else iter
    if choice is None:
        make = _interpreted(task, operands, places, each)
        first: States = [{} for _ in stage.writes]
    elif choice.body.is_whole:
        shared = _shared_states(ex, choice.body, cut, places)
        make = _whole(choice.body, operands, places, shared)
        first = [{places.own[k]: (s,)} if s is not None else {} for k, s in enumerate(shared)]
    else:
        make = _compiled(choice.body, operands, task, places, each)
        first = [{} for _ in stage.writes]
    finished = [
        None if w.reducer is None else Finish(ex, run, task, k, places, shared[k])
        for k, w in enumerate(stage.writes)
    ]
    fills = choice is not None and choice.body.is_whole
    runs = one_by_one(cut.runs) if tight and not fills else cut.runs
    turns = {blocks: n for n, blocks in enumerate(runs)}
    own = {k for k, w in enumerate(stage.writes) if w.reducer is not None and cut.split in w.labels}
    ends = {k: finished[k] for k in own} if runs is cut.runs and not fills else {}
    add = adding(task, is_crowded(len(runs) * KEPT_TOGETHER * _state_bytes(cut, places)))
    every = InTurn(add, add([{} for _ in stage.writes], first))

    def in_turn() -> Callable[[Any], bool]:
        one = make()
        return lambda blocks: every.add(turns[blocks], _rest(one(blocks), ends))

    ex.parallel(run, runs, in_turn, small or tight, blas, bands=bands, most=most)
    for k, write in enumerate(stage.writes):
        end = finished[k]
        if end is None:
            ex.put(run, write.slots[0], places.tiles[k])
        else:
            end.put(every.total[k])


def _rest(states: States, ends: dict[int, Any]) -> States:
    """What a run knows, but results of which each makes boxes of its own (`ends`) have these filled at once,
    in any order: the states of all runs are as large as the results, or larger."""
    for k, end in ends.items():
        for box, state in states[k].items():
            end.fill(box, [state])
    return [{} if k in ends else found for k, found in enumerate(states)]


def _state_bytes(cut: Sweep, places: ResultPlaces) -> int:
    """What the states of a run take: those of results of which it has no part of its own."""
    every = zip(places.writes, places.own, places.slots, strict=True)
    return sum(
        box_size(own) * slot.dtype.itemsize
        for write, own, slot in every
        if write.reducer is not None and cut.split not in write.labels
    )


def _interpreted(
    task: Task, operands: list[Any], places: ResultPlaces, each: Each
) -> Callable[[], Callable[[Any], States]]:
    """Tier 0's workers."""
    assert task.body is not None, "a task with a box has a body"
    assert task.box is not None, "checked by the caller"
    body, box, sums = task.body, task.box, sums_on_the_way(task.body.stage)

    def make() -> Callable[[Any], States]:
        one = runner(body, operands, box, task.sizes)

        def states_of(block: Box) -> list[State | None]:
            targets = places.targets(block)
            wanted = {places.writes[k].register: targets[k] for k in places.plain}
            registers = one.run(block, wanted)
            for register, place in wanted.items():
                if registers[register] is not place:
                    np.copyto(place, dense(registers[register]), casting="unsafe")
            states: list[State | None] = [None] * len(task.reducers)
            block_states(task.reducers, sums, registers.__getitem__, block, states)
            return states

        return lambda blocks: _collect(task, places, each(blocks), states_of)

    return make


def _compiled(
    body: Compiled,
    operands: list[Any],
    task: Task,
    places: ResultPlaces,
    each: Each,
) -> Callable[[], Callable[[Any], States]]:
    """Tier 2's workers where NumPy calls stand between loops."""

    def make() -> Callable[[Any], States]:
        one = CompiledRunner(body, operands, task.reducers)
        return lambda blocks: _collect(
            task, places, each(blocks), lambda block: one.run(block, places.targets(block))
        )

    return make


def _whole(
    body: Compiled, operands: list[Any], places: ResultPlaces, shared: list[Any]
) -> Callable[[], Callable[[Any], States]]:
    """Tier 2's workers where the stage is all loops: states have the tile's size."""
    outs = [s if s is not None else t for s, t in zip(shared, places.tiles, strict=True)]

    def make() -> Callable[[Any], States]:
        one = WholeRunner(body, operands, outs)
        return lambda blocks: [
            {} if state is None else {places.own[k]: state} for k, state in enumerate(one.run(blocks))
        ]

    return make


def _shared_states(ex: Executor, body: Compiled, sweep: Sweep, places: ResultPlaces) -> list[Any]:
    """States that all runs fill together, each its own part, and that may be the tiles; None for the other
    results."""
    return [
        first_state(body, -1 - k, body.tile, ex.store.allocate)
        if w.reducer is not None and sweep.split in w.labels
        else None
        for k, w in enumerate(places.writes)
    ]


def _collect(
    task: Task, places: ResultPlaces, blocks: Iterable[Box], states: Callable[[Box], list[State | None]]
) -> States:
    """The states of a run's blocks, combined where they are of one box."""
    out: States = [{} for _ in task.reducers]
    for block in blocks:
        for k, state in enumerate(states(block)):
            if state is not None:
                add_state(task, k, out[k], places.box(k, block), block, state)
    return out
