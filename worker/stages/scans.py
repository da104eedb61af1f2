"""Cumulative aggregates on one worker: totals of its part, offsets for a line of parts, the part's own scan.

Distributed cumulative aggregates (BTW '19), section 3.1. The forward cascade leaves a part's state in a row
of the totals; where a line of totals has been collected, each is replaced by the state of all before it; the
backward cascade scans each part behind its row. Within a tile the same scheme runs over threads: lines side
by side where there are enough, else totals of chunks of the lines first, then each chunk behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box, box_shape, slices_within
from spartan_ng.kernels.compiled.scan_proof import trusted_scan, trusted_total
from spartan_ng.kernels.compiled.scans import CompiledScan
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.ordered import Ordered
from spartan_ng.kernels.scans import Cumulation, ScanCut, State, cumulation
from spartan_ng.plan.stages import ScanOffsets, ScanTile, ScanTotals
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.results import ResultPlaces, States, add_state, finish, merged, shares_inputs

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_FOLDED = 1 << 17
"""Elements of a block that is folded as soon as it is scanned."""
_CHUNKS = 4
"""A block has no more chunks of a file, where it cannot be cut to one."""


def run_scan_totals(ex: Executor, run: Run, stage: ScanTotals, task: Task) -> None:
    """One level of the forward cascade: the part's state, as one row."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    loaded = [dense(x) for x in ex.load_all(run, task.operands)]
    if stage.of_states:
        how = cumulation(stage.fn, stage.axis, slot.dtype)
        total = _reduced(how, _rows(loaded[0], stage.axis))
        ex.put(run, stage.slot, np.stack(total))
        return
    ordered = task.ordered
    assert ordered is not None, "prepared with the program"
    box = ordered.box
    compiled = trusted_total(ordered, loaded, ex.errstate)
    states = run.chunks[stage.slot] = _totals(ex, run, ordered, compiled, loaded, list(ordered.cut.chunks))
    shape = tuple(1 if d == stage.axis else n for d, n in enumerate(box_shape(box)))
    out = np.empty((slot.shape[0], *shape), slot.dtype)
    for piece, found in zip(ordered.cut.pieces, states, strict=True):
        out[(slice(None), *_place(piece, box, stage.axis))] = _reduced(ordered.how, found)
    ex.put(run, stage.slot, out)


def run_scan_offsets(ex: Executor, run: Run, stage: ScanOffsets, task: Task) -> None:
    """Each state of a line of parts is replaced by that of all parts before it; row 0 of all is unused."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    how = cumulation(stage.fn, stage.axis, slot.dtype)
    states = ex.gather(run, task.operands[0])
    out = ex.store.allocate(states.shape, slot.dtype)
    before = _before(ex, run, task, stage.axis)
    for i, state in enumerate(_rows(states, stage.axis)):
        place = (slice(None),) * (stage.axis + 1) + (slice(i, i + 1),)
        out[place] = states[place] if before is None else np.stack(before)
        before = state if before is None else how.combine(before, state)
    ex.put(run, stage.slot, out)


def run_scan(ex: Executor, run: Run, stage: ScanTile, task: Task) -> None:
    """The part's cumulative values, and what its pass makes of them, behind its row of the offsets."""
    if task.box is None:
        return
    operands = [dense(x) for x in ex.load_all(run, task.operands)]
    before = _before(ex, run, task, stage.axis)
    own = None if task.dying is None else _own(ex, run, stage.reads[task.dying].slot, operands[task.dying])
    places = ResultPlaces(ex, run, stage.writes, task.box, own)
    known = None if stage.totals is None else run.chunks.pop(stage.totals, None)
    states = _scan(ex, run, task, operands, places, before, known)
    for k, write in enumerate(stage.writes):
        if write.reducer is None:
            ex.put(run, write.slots[0], places.tiles[k])
        else:
            finish(ex, run, task, k, merged(k, states), places)


def _own(ex: Executor, run: Run, slot: int, operand: Any) -> Any | None:
    """The tile of a dying operand, to be scanned in place, unless it is (part of) somebody's input."""
    if type(operand) is not np.ndarray or not (operand.flags.c_contiguous and operand.flags.writeable):
        return None
    if shares_inputs(ex, run, operand):
        return None
    ex.store.drop(run.keys[slot])  # a job that is stopped now leaves half of it overwritten
    return operand


def _before(ex: Executor, run: Run, task: Task, axis: int) -> State | None:
    """The task's row of the offsets, where there is something before it."""
    if not task.later:
        return None
    (row,) = _rows(ex.gather(run, task.later[0]), axis)
    return row


def _rows(states: Any, axis: int) -> list[State]:
    """The states that lie behind one another in an array with a leading axis for a state's arrays."""
    behind = (slice(None),) * axis
    return [tuple(s[(*behind, slice(i, i + 1))] for s in states) for i in range(states.shape[axis + 1])]


def _reduced(how: Cumulation, states: list[State]) -> State:
    """All states together, in their order."""
    total = states[0]
    for state in states[1:]:
        total = how.combine(total, state)
    return total


def _place(piece: Box, box: Box, axis: int) -> tuple[slice, ...]:
    """A piece's part of a row of states."""
    return tuple(
        slice(None) if d == axis else slice(a - lo, b - lo)
        for d, ((a, b), (lo, _)) in enumerate(zip(piece, box, strict=True))
    )


def _chunk(piece: Box, axis: int, chunk: tuple[int, int]) -> Box:
    return (*piece[:axis], chunk, *piece[axis + 1 :])


def _totals(
    ex: Executor,
    run: Run,
    ordered: Ordered,
    compiled: CompiledScan | None,
    operands: list[Any],
    chunks: list[tuple[int, int]],
) -> list[list[State]]:
    """For each piece the state of each chunk."""
    cut = ordered.cut
    parts = [_chunk(p, ordered.axis, c) for p, c in product(cut.pieces, chunks)]

    def total(part: Box) -> State:
        return ordered.total(operands, part) if compiled is None else compiled.total(part)

    found = iter(ex.parallel(run, parts, lambda: total, len(parts) <= 1))
    return [[next(found) for _ in chunks] for _ in cut.pieces]


def _scan(
    ex: Executor,
    run: Run,
    task: Task,
    operands: list[Any],
    places: ResultPlaces,
    before: State | None,
    known: list[list[State]] | None,
) -> list[States]:
    """Scan a tile into its place, and give the states of what is folded; `known` has the states of each
    piece's chunks, where a stage has made them: whose pieces may be others if this one's are not cut."""
    ordered = task.ordered
    assert ordered is not None, "prepared with the program"
    cut, axis = ordered.cut, ordered.axis
    out = places.tiles[places.plain[0]] if places.plain else None
    layout = _laid_out(box_shape(cut.box), ordered.rows[-1].dtype) if out is None else out
    compiled = None if ordered.exact else trusted_scan(ordered, operands, layout, ex.errstate)
    carries: list[State | None] = []
    if known is None or len(cut.chunks) == 1:
        known = _totals(ex, run, ordered, compiled, operands, list(cut.chunks[:-1]))
    for piece, found in zip(cut.pieces, known, strict=True):
        place = _place(piece, cut.box, axis)
        carry = None if before is None else tuple(s[place] for s in before)
        carries.append(carry)
        for total in found[: len(cut.chunks) - 1]:
            carry = total if carry is None else ordered.how.combine(carry, total)
            carries.append(carry)

    folds = [(k, r) for k, r in enumerate(task.reducers) if r is not None]
    is_cut = bool(folds) and not any(r.units for _, r in folds) and not ordered.exact
    lines, step = _sizes(cut, axis, task.chunks) if is_cut else (0, 0)

    def work() -> Callable[[tuple[Box, State | None]], States]:
        spare = np.empty(0, ordered.rows[-1].dtype)

        def scan(item: tuple[Box, State | None]) -> States:
            part, behind = item
            states: States = [{} for _ in task.reducers]
            for some in _blocks(part, 0, lines) if lines else [part]:
                place = _place(some, part, axis)
                carry = None if behind is None else tuple(s[place] for s in behind)
                for block in _blocks(some, axis, step):
                    carry = scan_block(block, carry, states)
            return states

        def scan_block(block: Box, carry: State | None, states: States) -> State | None:
            nonlocal spare
            shape = box_shape(block)
            if out is None and spare.size < prod(shape):
                spare = np.empty(prod(shape), spare.dtype)
            place = spare[: prod(shape)].reshape(shape) if out is None else out[slices_within(block, cut.box)]
            if compiled is not None:
                carry = compiled.run(block, carry, place)
            else:
                carry = ordered.run(operands, block, place, carry)
            value = place if task.sink is None else task.sink([place], block, None)
            for k, reducer in folds:
                state = tuple(_own_memory(s, place) for s in reducer.block([value], block))
                add_state(task, k, states[k], places.box(k, block), block, state)
            return carry

        return scan

    parts = [_chunk(p, axis, c) for p, c in product(cut.pieces, cut.chunks)]
    return ex.parallel(run, list(zip(parts, carries, strict=True)), work, len(parts) == 1)


def _blocks(part: Box, axis: int, step: int) -> Iterator[Box]:
    """A part in blocks along an axis that end at multiples of `step`; whole if that is 0."""
    lo, hi = part[axis]
    ends = [*range(lo - lo % step + step, hi, step), hi] if step else [hi]
    return (_chunk(part, axis, span) for span in pairwise([lo, *ends]) if lo < hi)


def _sizes(cut: ScanCut, axis: int, chunks: tuple[int, ...] | None) -> tuple[int, int]:
    """Of a block that is folded while it is in the cache the lengths along the first dimension (0: all of it)
    and along the axis: a few lines where these are short, so that it lies in one piece; the same ones for all
    pieces, whose results may have boxes in common. What goes to a file in `chunks` has theirs."""
    sizes = [max(hi - lo for lo, hi in spans) for spans in zip(*cut.pieces, strict=True)]
    beside = prod(n for d, n in enumerate(sizes) if d not in (0, axis))
    if chunks is not None and (chunks[0] if axis else 1) * chunks[axis] * beside <= _CHUNKS * prod(chunks):
        return (chunks[0] if axis else 0), chunks[axis]
    lines = max(1, _FOLDED // max(prod(sizes[1:]), 1)) if axis else 0
    return lines, max(1, _FOLDED // max(beside * min(lines or 1, sizes[0]), 1))


def _laid_out(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array without memory, with the strides of a tile."""
    strides = np.cumprod([dtype.itemsize, *shape[:0:-1]])[::-1]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, tuple(int(s) for s in strides))


def _own_memory(state: Any, place: Any) -> Any:
    """A state that stays when its block's memory is used again."""
    return np.array(state) if np.may_share_memory(state, place) else state
