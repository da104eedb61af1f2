"""Cumulative aggregates on one worker: totals of its part, offsets for a line of parts, the part's own scan.

Distributed cumulative aggregates (BTW '19), section 3.1. The forward cascade leaves a part's state in a row
of the totals; where a line of totals has been collected, each is replaced by the state of all before it; the
backward cascade scans each part behind its row. Within a tile the same scheme runs over threads.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.kernels.compiled.scans import compiled_scan
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.scans import Cumulation, State, cumulation
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.plan import ScanOffsets, ScanTile, ScanTotals
from spartan_ng.worker.program import Task

if TYPE_CHECKING:
    from spartan_ng.worker.executor import Executor, Run

_CHUNKS = 8
"""Chunks that a large tile is scanned in, whatever the number of threads: the answer's last bits depend
on them."""
_LARGE = 1 << 17
_BLOCK = 1 << 15
"""Elements that are accumulated and offset in one go, so that both passes stay in the cache."""


def run_scan_totals(ex: Executor, run: Run, stage: ScanTotals, task: Task) -> None:
    """One level of the forward cascade: the part's state, as one row."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    how = cumulation(stage.fn, stage.axis, slot.dtype)
    loaded = ex.load_all(run, task.operands)
    if stage.of_states:
        total = _reduced(how, _rows(loaded[0], stage.axis))
    else:
        loaded = [dense(x) for x in loaded]
        chunks = _chunks(loaded[0].shape, stage.axis)
        total = _reduced(how, _totals(ex, run, how, loaded, stage.axis, chunks))
    ex.put(run, stage.slot, np.stack(total))


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
    """The part's cumulative values, behind its row of the offsets."""
    if task.box is None:
        return
    xs = [dense(x) for x in ex.load_all(run, task.operands)]
    before = _before(ex, run, task, stage.axis)
    slot = run.plan.slots[stage.slot]
    out = ex.store.allocate(xs[0].shape, slot.dtype)
    _scan(ex, run, stage.fn, xs, out, stage.axis, before)
    ex.put(run, stage.slot, out)


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


def _chunks(shape: tuple[int, ...], axis: int) -> list[tuple[int, int]]:
    """The intervals of the axis that a tile is scanned in."""
    n = shape[axis]
    count = min(_CHUNKS, n) if prod(shape) >= _LARGE else 1
    return [(i * n // count, (i + 1) * n // count) for i in range(count)]


def _part(array: Any, axis: int, lo: int, hi: int) -> Any:
    return array[(slice(None),) * axis + (slice(lo, hi),)]


def _totals(
    ex: Executor, run: Run, how: Cumulation, xs: list[Any], axis: int, chunks: list[tuple[int, int]]
) -> list[State]:
    """The state of each chunk."""

    def total(chunk: tuple[int, int]) -> State:
        return how.total([_part(x, axis, *chunk) for x in xs])

    return ex.parallel(run, chunks, lambda: total, len(chunks) <= 1)


def _scan(
    ex: Executor,
    run: Run,
    fn: str | UserFunction,
    xs: list[Any],
    out: Any,
    axis: int,
    before: State | None,
) -> None:
    """Scan a tile into `out`: whole lines side by side where there are enough; else totals of chunks of
    the lines first, then each chunk behind them."""
    how = cumulation(fn, axis, out.dtype)
    compiled = None
    if isinstance(fn, str):
        compiled = compiled_scan(fn, xs, out, axis, ex.errstate)
    pieces = compiled.pieces(ex.threads) if compiled is not None else None
    if compiled is not None and pieces is not None:
        carried = None if before is None else before[0]

        def scan_piece(piece: tuple[tuple[int, int], tuple[int, int]]) -> None:
            compiled.run(*piece, (0, out.shape[axis]), carried)

        ex.parallel(run, pieces, lambda: scan_piece, False)
        return
    chunks = _chunks(out.shape, axis)
    step = max(1, _BLOCK // max(1, out.size // max(out.shape[axis], 1)))
    whole = (0, prod(out.shape[:axis])), (0, prod(out.shape[axis + 1 :]))
    offsets = [before]
    for total in _totals(ex, run, how, xs, axis, chunks[:-1]):
        offsets.append(total if offsets[-1] is None else how.combine(offsets[-1], total))

    def scan_chunk(item: tuple[tuple[int, int], State | None]) -> None:
        (lo, hi), carry = item
        if compiled is not None:
            compiled.run(*whole, (lo, hi), None if carry is None else carry[0])
            return
        for a in range(lo, hi, step):
            b = min(a + step, hi)
            carry = how.scan([_part(x, axis, a, b) for x in xs], _part(out, axis, a, b), carry)

    ex.parallel(run, list(zip(chunks, offsets, strict=True)), lambda: scan_chunk, len(chunks) == 1)
