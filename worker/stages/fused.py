"""A pass over the blocks of a task: interpreted or compiled, stored or folded."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import WHOLE, Box, box_shape, slices_within
from spartan_ng.arrays.sparse import stacked
from spartan_ng.compressed import is_compressed
from spartan_ng.costs.tuned import SMALL_FLOPS
from spartan_ng.kernels.body import Runner
from spartan_ng.kernels.compiled.bound import Bound
from spartan_ng.kernels.compiled.prepared import Compiled
from spartan_ng.kernels.compiled.runner import CompiledRunner
from spartan_ng.kernels.compiled.sampled import Sampled
from spartan_ng.kernels.compiled.whole import WholeRunner
from spartan_ng.kernels.contract import dense_turned
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.packed import packed_cut
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.kernels.rows import labelled_box
from spartan_ng.kernels.sampled import runner
from spartan_ng.kernels.sequences import Run as Blocks
from spartan_ng.ops.random import is_near, is_walk
from spartan_ng.plan.rows import Write
from spartan_ng.plan.stages import (
    Fused,
)
from spartan_ng.worker.scheduling.lending import lending
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.nonzeros import run_nonzeros
from spartan_ng.worker.stages.products import is_sparse_product, multiplied, run_sparse_product
from spartan_ng.worker.stages.reduced import PassRun, Target, reduced
from spartan_ng.worker.stages.results import in_place, room_for_lines, threads_for_lines
from spartan_ng.worker.stages.sweep import Each, run_sweep
from spartan_ng.worker.stages.windows import Bands, opened

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_fused(ex: Executor, run: Run, stage: Fused, task: Task, has_room: bool = False) -> None:
    """A pass over the blocks of the task's box: bring operands, as much of them as there is at a time, and
    work on them. Where no block cuts lines, they have room first: operands stay while they are read."""
    if task.box is None:
        return
    if task.uncut_bytes and not has_room:
        with room_for_lines(ex, task):
            run_fused(ex, run, stage, task, has_room=True)
        return
    if task.parts:
        run_parts(ex, run, stage, task)
        return
    after = task.finish.operands if task.finish is not None else []
    if stage.band is not None:
        with opened(ex, run, stage, task, ex.unread_all(run, task.operands)) as (found, bands):
            run_loaded(ex, run, stage, task, found, ex.load_all(run, after), bands)
        return
    started = [*ex.start_all(run, task.operands), *ex.start_all(run, after)]
    operands = ex.finish_all(run, started, packed=True)
    run_loaded(ex, run, stage, task, operands[: len(task.operands)], operands[len(task.operands) :])


def run_parts(ex: Executor, run: Run, stage: Fused, task: Task) -> None:
    """Part after part of the reduced dimension; operands arrive while the part before is worked on."""
    (reducer,) = task.reducers
    assert reducer is not None, "only a reduced dimension is cut into parts"
    total: Any = None
    arriving = ex.start_all(run, task.parts[0].operands)
    for n, part in enumerate(task.parts):
        operands = ex.finish_all(run, arriving, packed=True)
        arriving = []  # what has been put together is let go before more arrives
        if n + 1 < len(task.parts):
            arriving = ex.start_all(run, task.parts[n + 1].operands)
        state = tuple(_made(ex, run, stage, part, operands))
        total = state if total is None else reducer.combine(total, state)
        del operands, state
        if run.backup is not None:
            run.backup.forget()
    _store(ex, run, stage, task, list(total), None)


def run_loaded(
    ex: Executor,
    run: Run,
    stage: Fused,
    task: Task,
    operands: list[Any],
    after: list[Any],
    bands: Bands | None = None,
) -> None:
    """The pass, once its operands (and its finish's, `after`) are there, or as they are read in `bands`."""
    values = _made(ex, run, stage, task, operands, bands)
    if values:
        _store(ex, run, stage, task, values, after)


def _store(
    ex: Executor, run: Run, stage: Fused, task: Task, values: list[Any], after: list[Any] | None
) -> None:
    """Put a reduced result's arrays into their slots, or through the finish."""
    if stage.finish is None:
        (write,) = stage.writes
        for number, value in zip(write.slots, values, strict=True):
            ex.put(run, number, value)
        return
    assert task.finish is not None, "prepared with the program"
    (value,) = values
    loaded = ex.load_all(run, task.finish.operands) if after is None else after
    run_finish(ex, run, stage.finish, task.finish, [*loaded, value])


def run_finish(ex: Executor, run: Run, stage: Fused, task: Task, operands: list[Any]) -> None:
    """The pass over what another has made."""
    with room_for_lines(ex, task) if task.uncut_bytes else nullcontext():
        run_loaded(ex, run, stage, task, operands, [])


def _made(
    ex: Executor, run: Run, stage: Fused, task: Task, operands: list[Any], bands: Bands | None = None
) -> list[Any]:
    """Run the blocks: give the arrays of a single reduced result; others are stored at once."""
    if is_sparse_product(stage):
        run_sparse_product(ex, run, stage, operands)
        return []
    product = None if bands is not None else multiplied(ex, run, stage, operands)
    if product is not None:
        return product
    task = _packed(stage, task, operands)
    if stage.steps:
        operands = _laid_out(stage, operands)
    body, box, tier = task.body, task.box, task.tier
    assert body is not None, "a task with a box has a body"
    assert box is not None, "a task with a box"
    assert tier is not None, "a task with a box has tiers"

    small = task.flops < SMALL_FLOPS
    if bands is not None and tier.is_hot:
        bands.show_end(box)
    choice = tier.choose(operands, ex.errstate, ex.threads)
    if choice is None:
        body = tier.interpreted(body, operands, ex.errstate)
        task = task if body is task.body else replace(task, body=body, cut=task.blocks(stage))

    def interpreter() -> Runner:
        return runner(body, operands, box, task.sizes)

    blas = task.blas and (choice is None or choice.calls_blas)
    most = threads_for_lines(ex, task) if task.uncut_bytes else None
    if task.walks and not _are_near(stage, box):
        most = 1  # others would have to go all the way to where they begin, too
    start = time.perf_counter()
    values: list[Any] = []
    if len(stage.writes) > 1 or task.walks:
        assert not isinstance(choice, Sampled), "a loop over non-zeros has one result"
        run_sweep(ex, run, stage, task, operands, choice, small, blas, bands, most)
    elif isinstance(choice, Sampled):
        values = run_nonzeros(ex, run, stage, task, Bound(choice, operands))
    else:
        (write,) = stage.writes
        (reducer,) = task.reducers
        each: Each = partial(ex.looked, run) if run.files else iter
        patches = (task.cut or task.blocks(stage)) if choice is None else choice.cut
        assert isinstance(patches, list), "a stage with one result is cut into patches"
        if reducer is not None and reducer.counts and len(patches) == 1:
            reducer = in_place(ex, run, write, reducer, task.owns[0])
        if choice is None:
            work = _interpreted(interpreter, write, reducer, each)
            lent = operands if bands is None and run.program.lends else None
            how = PassRun(patches, work, small, blas, lent, bands, most=most)
        else:
            work = _compiled(choice.body, operands, reducer, each)
            how = PassRun(patches, work, small, blas, bands=bands, fills=choice.body.is_whole, most=most)
        if reducer is not None:
            values = reduced(ex, run, stage, write, task, how, reducer)
        else:
            _plain(ex, run, stage, write, task, how, interpreter)
    if choice is None:
        tier.record(time.perf_counter() - start)
    return values


def _are_near(stage: Fused, box: Box) -> bool:
    """Whether all random numbers of a task can be drawn from anywhere in it: nobody has to walk to them, or
    somebody has."""
    return all(
        is_near(row.params[0], row.shape, labelled_box(row.labels, row.shape, box))
        for row in stage.rows
        if row.kind == "random" and is_walk(row.params[0])
    )


def _packed(stage: Fused, task: Task, operands: list[Any]) -> Task:
    """The task with its rows cut for what is compressed among its operands."""
    if stage.driver < 0 or not is_compressed(operands[stage.driver]):
        return task
    if stage.driver_labels[0] in (WHOLE, *stage.whole):
        return task
    packed = frozenset(i for i, o in enumerate(operands) if is_compressed(o))
    assert task.box is not None, "a task with operands has a box"
    matrix = operands[stage.driver]
    key = packed, len(matrix.coding.groups), len(matrix.plain_columns)
    if key not in task.packed:
        sizes, cut = packed_cut(stage, task.box, matrix, packed)
        task.packed[key] = replace(task, sizes=sizes, cut=cut)
    return task.packed[key]


def _laid_out(stage: Fused, operands: list[Any]) -> list[Any]:
    """Operands of a product of whole reads as its blocks want them in memory, once for all blocks."""
    (write,) = stage.writes
    row = write.reducer
    if row is None or row.kind != "contract" or max(row.args) >= len(operands) or len(set(row.args)) < 2:
        return operands
    a, b = row.args
    la, lb, _ = row.params
    operands = list(operands)
    operands[a], operands[b] = dense_turned(operands[a], operands[b], la, lb)
    return operands


def _interpreted(
    interpreter: Callable[[], Runner], write: Write, reducer: Reducer | None, each: Each
) -> Callable[[Any, Target], Callable[[Blocks], Any]]:
    """Tier 0's workers."""

    def worker(out: Any, target: Target) -> Callable[[Blocks], Any]:
        one = interpreter()

        def block_state(block: Box) -> Any:
            assert reducer is not None, "only reduced stages have states"
            registers = one.run(block)
            return block, reducer.block([registers[a] for a in reducer.row.args], block)

        def fill(blocks: Blocks) -> None:
            for block in each(blocks):
                place = target(block)
                value = one.run(block, {write.register: place})[write.register]
                if value is not place:
                    np.copyto(place, dense(value), casting="unsafe")

        return fill if reducer is None else lambda blocks: reducer.run_state(map(block_state, each(blocks)))

    return worker


def _compiled(
    body: Compiled, operands: list[Any], reducer: Reducer | None, each: Each
) -> Callable[[Any, Target], Callable[[Blocks], Any]]:
    """Tier 2's workers."""

    def worker(out: Any, target: Target) -> Callable[[Blocks], Any]:
        if body.is_whole:
            whole = WholeRunner(body, operands, [out])
            return lambda blocks: whole.run(blocks)[0]
        one = CompiledRunner(body, operands, [reducer])

        def block_state(block: Box) -> Any:
            return block, one.run(block, [])[0]

        def fill(blocks: Blocks) -> None:
            for block in each(blocks):
                one.run(block, [target(block)])

        return fill if reducer is None else lambda blocks: reducer.run_state(map(block_state, each(blocks)))

    return worker


def _plain(
    ex: Executor,
    run: Run,
    stage: Fused,
    write: Write,
    task: Task,
    how: PassRun,
    interpreter: Callable[[], Runner],
) -> None:
    """Every block fills its part of the output tile."""
    slot = run.plan.slots[write.slots[0]]
    (own,) = task.owns
    runs = [r for patch in how.patches for r in patch.runs]
    blocks = [b for r in runs for b in r]
    if slot.format == "csr":
        parts = ex.parallel(
            run, blocks, lambda: _block_value(interpreter(), write), how.small, how.blas, most=how.most
        )
        places = [labelled_box(write.labels, slot.shape, b) for b in blocks]
        ex.put(run, write.slots[0], _stacked(places, parts))
        return
    if len(blocks) == 1 and stage.heavy and how.bands is None:
        value = _block_value(interpreter(), write)(blocks[0])
        ex.put(run, write.slots[0], np.ascontiguousarray(value))
        return
    out = ex.store.allocate(box_shape(own), slot.dtype)

    def target(block: Box) -> Any:
        part = labelled_box(write.labels, slot.shape, block)
        place: tuple[Any, ...] = slices_within(part, own)
        return out[(*place, ...)]  # the ellipsis keeps a 0-d target an array

    def filled(number: int, values: Any) -> None:
        for block, value in zip(runs[number], values, strict=True):
            np.copyto(target(block), value, casting="unsafe")

    lent = None if how.operands is None else lending(ex, run, stage, task, how.operands, runs, filled)
    work = lambda: how.worker(out, target)  # noqa: E731
    ex.parallel(run, runs, work, how.small, how.blas, lent, bands=how.bands, most=how.most)
    ex.put(run, write.slots[0], out)


def _stacked(places: list[Box], parts: list[Any]) -> Any:
    """A CSR tile from its blocks, which lie in the order of their rows, then columns."""
    bands: dict[tuple[int, int], list[Any]] = {}
    for (rows, _), part in zip(places, parts, strict=True):
        bands.setdefault(rows, []).append(part)
    return stacked(bands.values())


def _block_value(runner: Runner, write: Write) -> Callable[[Box], Any]:
    return lambda block: runner.run(block)[write.register]
