"""What a worker's threads work on at one time, beside its arrays: blocks, and lines that no block may cut.

A plan says what a pass may take at most, and not what it takes: compiled loops need a part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from spartan_ng.arrays import WHOLE
from spartan_ng.memory import block_bytes, threads, threads_at_work
from spartan_ng.ops.line_work import worked_bytes
from spartan_ng.ops.random import drawn_blocks
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import VALUE, Row
from spartan_ng.plan.stages import Fused, SortParts, Stage
from spartan_ng.plan.stages.passes import Pass


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
        yield from (_part_bytes(row, parts) for row in stage.rows)


def uncut_bytes(stage: Stage) -> int:
    """Bytes of the least that a block of a pass has (`_least_block`), or what a step of a product makes on
    the way, its result with what that is added to."""
    if not isinstance(stage, Fused):
        return 0
    if stage.heavy:
        return _step_bytes(stage) if stage.steps else 0
    live, most, least = 0, 0, _least_block(stage)
    for row, dying in zip(stage.rows, _dying_rows(stage), strict=True):
        line = _line(row, least)
        most = max(most, live + _row_bytes(row, line))
        live += line * row.dtype.itemsize - sum(_line(r, least) * r.dtype.itemsize for r in dying)
    return most


def _least_block(stage: Fused) -> tuple[int, ...]:
    """The least extents of a block: one index of the dimensions that may be cut, or as many random numbers as
    are drawn together."""
    for row in stage.rows:
        if row.kind == "random":
            return drawn_blocks(row.params[0], row.shape)[: len(stage.domain)]
    return tuple(n if d in stage.whole else 1 for d, n in enumerate(stage.domain))


def _line(row: Row, least: tuple[int, ...]) -> int:
    """Elements of a row's value in the least block."""
    return prod(n if d == WHOLE else min(n, least[d]) for n, d in zip(row.shape, row.labels, strict=True))


def _dying_rows(stage: Fused) -> list[list[Row]]:
    """For each row those whose values nobody reads behind it, so that others take their buffers. What NumPy
    gives (a line that was sorted, a view) has none, and stays until the block is done."""
    rows, first = stage.rows, len(stage.reads)
    last = {n: i for i, row in enumerate(stage.every_row) for n in row.args}
    kept = {write.register for write in stage.writes}
    dying: list[list[Row]] = [[] for _ in rows]
    for n, row in enumerate(rows, first):
        end = last.get(n, len(rows))
        if row.kind == "map" and n not in kept and end < len(rows):
            dying[end].append(row)
    return dying


def _step_bytes(stage: Fused) -> int:
    """Bytes of the rows of a product's step, and of its state twice."""
    parts = [n * k for n, k in zip(stage.grid.parts, stage.steps, strict=True)]

    def nbytes(row: Row, labels: tuple[int, ...]) -> int:
        pairs = zip(row.shape, labels, strict=True)
        return row.dtype.itemsize * prod(n if d == WHOLE else -(-n // parts[d]) for n, d in pairs)

    made = sum(nbytes(row, row.labels) for row in stage.rows)
    return made + 2 * sum(nbytes(w.reducer, w.labels) for w in stage.writes if w.reducer is not None)


def _row_bytes(row: Row, elements: int) -> int:
    """What is there while so many elements of a row's value are made."""
    return worked_bytes(row.kind, row.params, row.shape, row.dtype, elements)


def _part_bytes(row: Row, parts: int) -> int:
    """The same of a task's part of a row's value."""
    cut = any(d != WHOLE for d in row.labels)
    return -(-_row_bytes(row, prod(row.shape)) // (parts if cut else 1))
