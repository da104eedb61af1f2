"""Cumulative aggregates on one worker: totals of its part, offsets for a line of parts, the part's own scan.

Distributed cumulative aggregates (BTW '19), section 3.1. The forward cascade leaves a part's state in a row
of the totals; where a line of totals has been collected, each is replaced by the state of all before it; the
backward cascade scans each part behind its row. Within a tile the same scheme runs over threads: lines side
by side where there are enough, else totals of chunks of the lines first, then each chunk behind them.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.kernels.compiled.scans import CompiledScan, compiled_scan, compiled_total
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.ordered import Ordered
from spartan_ng.kernels.scans import Cumulation, State, cumulation
from spartan_ng.plan.plan import ScanOffsets, ScanTile, ScanTotals
from spartan_ng.worker.program import Task

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run


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
    compiled = compiled_total(ordered.reads, ordered.rows, loaded, ordered.cut, ex.errstate)
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
    ordered = task.ordered
    assert ordered is not None, "prepared with the program"
    out = None if task.dying is None else _own(ex, run, operands[task.dying])
    if out is None:
        out = ex.store.allocate(box_shape(task.box), run.plan.slots[stage.slot].dtype)
    known = None if stage.totals is None else run.chunks.pop(stage.totals)
    _scan(ex, run, ordered, operands, out, before, known)
    ex.put(run, stage.slot, out)


def _own(ex: Executor, run: Run, operand: Any) -> Any | None:
    """The tile of a dying operand, to be scanned in place, unless it is (part of) somebody's input."""
    if type(operand) is not np.ndarray or not (operand.flags.c_contiguous and operand.flags.writeable):
        return None
    given = [ex.store.get(run.keys[s]) for s in run.plan.inputs if ex.store.holds(run.keys[s])]
    shared = any(isinstance(g, np.ndarray) and np.may_share_memory(g, operand) for g in given)
    return None if shared else operand


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
    ordered: Ordered,
    operands: list[Any],
    out: Any,
    before: State | None,
    known: list[list[State]] | None,
) -> None:
    """Scan a tile into `out`; `known` has the states of each piece's chunks, where a stage has made them."""
    cut, axis = ordered.cut, ordered.axis
    compiled = compiled_scan(ordered.reads, ordered.rows, operands, out, cut, ex.errstate)
    carries: list[State | None] = []
    totals = known or _totals(ex, run, ordered, compiled, operands, list(cut.chunks[:-1]))
    for piece, found in zip(cut.pieces, totals, strict=True):
        place = _place(piece, cut.box, axis)
        carry = None if before is None else tuple(s[place] for s in before)
        carries.append(carry)
        for total in found[: len(cut.chunks) - 1]:
            carry = total if carry is None else ordered.how.combine(carry, total)
            carries.append(carry)

    def scan(item: tuple[Box, State | None]) -> None:
        part, carry = item
        if compiled is not None:
            compiled.run(part, carry)
        else:
            ordered.run(operands, part, out, carry)

    parts = [_chunk(p, axis, c) for p, c in product(cut.pieces, cut.chunks)]
    ex.parallel(run, list(zip(parts, carries, strict=True)), lambda: scan, len(parts) == 1)
