"""Tiles put together: of regions of arrays, and of partial states."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import box_shape, cover, slices_within
from spartan_ng.arrays.copying import copy_run, is_mapped
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.memory import block_bytes
from spartan_ng.ops.by_ufunc import State
from spartan_ng.plan.stages import (
    Assemble,
    Combine,
)
from spartan_ng.scratch import put
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.fused import run_finish
from spartan_ng.worker.stages.results import dying_tile, shares_inputs

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor


def run_combine(ex: Executor, run: Run, stage: Combine, task: Task) -> None:
    """Partial states in index order, then the value."""
    if task.box is None:
        return
    (reducer,) = task.reducers
    assert reducer is not None, "prepared with the program"
    slot = run.plan.slots[stage.slot]
    if task.parts:
        whole = ex.store.allocate(box_shape(task.box), (slot if stage.finish is None else stage.row).dtype)
        for part in task.parts:
            assert part.box is not None, "a part of a box"
            ex.check(run)
            value = np.asarray(reducer.finalize(_total(ex, run, stage, part, reducer)), whole.dtype)
            put(whole[slices_within(part.box, task.box)], value)
    else:
        total = _total(ex, run, stage, task, reducer)
        is_last = stage.finish is None
        whole = reducer.finalize(total, ex.store.allocate) if is_last else reducer.finalize(total)
    if stage.finish is not None:
        assert task.finish is not None, "prepared with the program"
        after = ex.load_all(run, task.finish.operands)
        run_finish(ex, run, stage.finish, task.finish, [*after, whole])
        return
    ex.put(run, stage.slot, np.asarray(whole, slot.dtype).reshape(box_shape(task.box)))


def _total(ex: Executor, run: Run, stage: Combine, task: Task, reducer: Reducer) -> State:
    """The state that all of a task's states come to."""
    states = ex.load_all(run, task.operands)
    if stage.spans:
        return reducer.grown(tuple(states), stage.spans)
    total: Any = None
    for together, index in _each(states, stage):
        own = total is None and reducer.combines_in_place
        new = tuple(np.array(s[index]) if own else s[index] for s in together)
        total = new if total is None else reducer.combine(total, new)
    return total  # type: ignore[no-any-return]


def _each(operands: list[Any], stage: Combine) -> Iterator[tuple[list[Any], tuple[int, ...]]]:
    """Of each state, in order, the arrays that have it, and its index there."""
    for k in range(0, len(operands), len(stage.states)):
        together = operands[k : k + len(stage.states)]
        for index in np.ndindex(*together[0].shape[: stage.lead]):
            yield together, index


def run_assemble(ex: Executor, run: Run, stage: Assemble, task: Task) -> None:
    """Regions of the inputs at their places in the output tile."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    shape = box_shape(task.box)
    if stage.how == "reshape":
        ex.put(run, stage.slot, _reshaped(ex, run, stage, task, shape, slot.shape))
        return
    operands, places = ex.load_all(run, task.operands), task.places
    out = None
    if task.dying is not None:  # all but the parts that are assigned is there
        out = dying_tile(ex, run, stage.reads[task.dying].slot, operands[task.dying])
    if out is None:
        out = ex.store.allocate(shape, slot.dtype)
    else:
        operands, places = operands[1:], places[1:]
    pairs = [(out[p], dense(v)) for p, v in zip(places, operands, strict=True)]
    # What is assigned is written over what was there; all else has places of its own.
    for together in [[pair] for pair in pairs] if stage.how == "assign" else [pairs]:
        pieces = [piece for place, value in together for piece in _pieces(place, value, block_bytes())]
        small = slot.dtype.hasobject or sum(place.nbytes for place, _ in together) <= block_bytes()
        ex.parallel(run, pieces, lambda: _copied, small)
    ex.put(run, stage.slot, out)


def _copied(piece: tuple[Any, Any]) -> None:
    place, value = piece
    np.copyto(place, value)


def _pieces(place: Any, value: Any, nbytes: int) -> Iterator[tuple[Any, Any]]:
    """A place and what is to be copied to it, some bytes at a time, along the outermost axes."""
    if place.nbytes <= nbytes or place.size <= 1:
        yield place, value
        return
    axis = next(i for i, n in enumerate(place.shape) if n > 1)
    each = place.nbytes // place.shape[axis]
    for lo in range(0, place.shape[axis], max(nbytes // each, 1)):
        part = (*(slice(None),) * axis, slice(lo, lo + max(nbytes // each, 1)))
        yield from _pieces(place[part], value[part], nbytes)


def _reshaped(
    ex: Executor, run: Run, stage: Assemble, task: Task, shape: tuple[int, ...], whole: tuple[int, ...]
) -> Any:
    """The tile's run of the flat index space, cut out of the covering box: a view, where it may be one."""
    (read,) = stage.reads
    assert task.box is not None, "checked by the caller"
    covering = ex.load(run, task.operands[0])
    size = prod(shape)
    first = task.box[0][0] * prod(whole[1:]) if whole else 0
    lows = _first_index(read.shape, first, first + size - 1)
    offset = first - int(np.ravel_multi_index(lows, read.shape)) if read.shape else 0
    covering = dense(covering)
    if covering.flags.c_contiguous:
        own = _is_own(ex, run, read.slot, covering)
        if own or (stage.slot not in run.plan.outputs and (ex.store.pool is None or is_mapped(covering))):
            shown = covering.reshape(-1)[offset : offset + size].reshape(shape)
            shown.flags.writeable = own  # what else has the elements is not to be overwritten
            return shown
    out = ex.store.allocate(shape, covering.dtype)
    copy_run(covering, offset, out.reshape(-1))
    return out


def _is_own(ex: Executor, run: Run, slot: int, covering: Any) -> bool:
    """Whether nothing else has a tile's elements, nor needs the tile after this stage: every view of what is
    somebody's is read-only. Where memory is counted, each tile has its own."""
    if ex.store.pool is not None or not covering.flags.writeable or slot not in run.program.dying[run.index]:
        return False
    is_read_once = sum(slot in stage.read_slots() for stage in run.plan.stages) == 1
    return is_read_once and not shares_inputs(ex, run, covering)


def _first_index(shape: tuple[int, ...], first: int, last: int) -> tuple[int, ...]:
    return tuple(lo for lo, _ in cover(shape, first, last))
