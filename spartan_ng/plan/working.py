"""What a worker's threads work on at one time, beside its arrays: blocks, and lines that no block may cut.

A plan says what a pass may take at most, and not what it takes: compiled loops need a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.memory import block_bytes, threads, threads_at_work
from spartan_ng.ops.joins import worked_length
from spartan_ng.ops.transforms import transform_bytes
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import VALUE, Row
from spartan_ng.plan.stages import Fused, SortParts, Stage
from spartan_ng.plan.stages.passes import Pass

_COPIES = 2
"""Values that a call on lines has at a time for each that it gives: NumPy's sorts and transforms work on
copies."""
_LINES = ("along_axis", "matrices")


def working_bytes(plan: Plan, stage: Stage, memory_bytes: int) -> int:
    """Bytes that all threads of a worker with so much memory work on at a time in a stage."""
    each = uncut_bytes(stage)
    if each > block_bytes(memory_bytes):
        return min(threads_at_work(each, memory_bytes) * each, sum(_seen_bytes(plan, stage)))
    block = block_bytes(memory_bytes)
    if isinstance(stage, Fused):
        block = max(block, stage.block_bytes)
    of_blocks = min(threads() * block, sum(_seen_bytes(plan, stage)))
    if not isinstance(stage, SortParts):
        return of_blocks
    of_runs = stage.worked_bytes(plan.slots, threads())
    return of_blocks + of_runs if stage.rows else max(of_blocks, of_runs)


def _seen_bytes(plan: Plan, stage: Stage) -> Iterator[int]:
    """Bytes of what a task reads, makes and stores, all of it."""
    yield from (stage.share_bytes(plan.slots, read) for read in stage.views() if read.slot != VALUE)
    parts = max(stage.cut(plan.slots).ntiles, 1)
    shown = {read.slot for read in stage.views()}
    others = (*(n for n in stage.read_slots() if n not in shown), *stage.written_slots())
    yield from (-(-plan.slots[n].stored_bytes // parts) for n in others)
    if isinstance(stage, Pass):
        yield from (_row_bytes(row, parts) for row in stage.rows)


def uncut_bytes(stage: Stage) -> int:
    """Bytes of the least that a block of a pass has: one index of the dimensions that may be cut, or what a
    step of a product makes on the way, its result with what that is added to."""
    if not isinstance(stage, Fused):
        return 0
    if stage.heavy:
        return _step_bytes(stage) if stage.steps else 0
    total = 0
    for row in stage.rows:
        cut = [d == WHOLE or d in stage.whole for d in row.labels]
        line = prod(n for n, is_whole in zip(row.shape, cut, strict=True) if is_whole)
        total += _worked_bytes(row, line)
    return total


def _step_bytes(stage: Fused) -> int:
    """Bytes of the rows of a product's step, and of its state twice."""
    parts = [n * k for n, k in zip(stage.grid.parts, stage.steps, strict=True)]

    def nbytes(row: Row, labels: tuple[int, ...]) -> int:
        pairs = zip(row.shape, labels, strict=True)
        return row.dtype.itemsize * prod(n if d == WHOLE else -(-n // parts[d]) for n, d in pairs)

    made = sum(nbytes(row, row.labels) for row in stage.rows)
    return made + 2 * sum(nbytes(w.reducer, w.labels) for w in stage.writes if w.reducer is not None)


def _worked_bytes(row: Row, elements: int) -> int:
    """What is there while so many elements of a row's value are made, they among it."""
    if row.kind == "along_axis" and str(row.params[0]).startswith("fft."):
        given: int = max(row.shape[row.params[1]], 1)
        return transform_bytes(worked_length(row.params, row.shape)) * -(-elements // given)
    return (_COPIES if row.kind in _LINES else 1) * elements * row.dtype.itemsize


def _row_bytes(row: Row, parts: int) -> int:
    """The same of a task's part of a row's value."""
    cut = any(d != WHOLE for d in row.labels)
    return -(-_worked_bytes(row, prod(row.shape)) // (parts if cut else 1))
