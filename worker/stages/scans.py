"""Cumulative aggregates on one worker: totals of its part, offsets for a line of parts, the part's own scan.

Distributed cumulative aggregates (BTW '19), section 3.1. The forward cascade leaves a part's state in a row
of the totals; where a line of totals has been collected, each is replaced by the state of all before it; the
backward cascade scans each part behind its row. Within a tile the same scheme runs over threads: lines side
by side where there are enough, else totals of chunks of the lines first, then each chunk behind them. What
sources give is scanned so part by part, as it is read: each behind the one before, where it goes on there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from spartan_ng.arrays import Box, box_shape, slices_within
from spartan_ng.kernels.compiled.scan_proof import trusted_scan, trusted_total
from spartan_ng.kernels.compiled.scans import CompiledScan
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.ordered import Ordered
from spartan_ng.kernels.scans import Cumulation, ScanCut, State, blocks_along, cumulation
from spartan_ng.memory import block_bytes
from spartan_ng.plan.stages import ScanOffsets, ScanTile, ScanTotals
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.results import (
    ResultPlaces,
    States,
    Totals,
    add_state,
    adding,
    dying_tile,
    finish,
)
from spartan_ng.worker.stages.windows import Bands, opened

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_FOLDED = 1 << 17
"""Elements of a block that is folded as soon as it is scanned, at most."""
_CHUNKS = 4
"""A block has no more chunks of a file, where it cannot be cut to one."""


def run_scan_totals(ex: Executor, run: Run, stage: ScanTotals, task: Task) -> None:
    """One level of the forward cascade: the part's state, as one row."""
    if task.box is None:
        return
    slot = run.plan.slots[stage.slot]
    if stage.of_states:
        (loaded,) = ex.load_all(run, task.operands)
        how = cumulation(stage.fn, stage.axis, slot.dtype)
        total = _reduced(how, _rows(dense(loaded), stage.axis))
        ex.put(run, stage.slot, np.stack(total))
        return
    ordered = task.ordered
    assert ordered is not None, "prepared with the program"
    box = ordered.box
    shape = tuple(1 if d == stage.axis else n for d, n in enumerate(box_shape(box)))
    out = np.empty((slot.shape[0], *shape), slot.dtype)
    with _in_order(ex, run, stage, task) as (operands, quiet, cuts):
        compiled: CompiledScan | None = None
        for cut in cuts:
            if cut.part == ordered.parts[0]:
                compiled = trusted_total(ordered, operands, ex.errstate)
            states = _totals(ex, quiet, ordered, compiled, operands, cut, list(cut.chunks))
            if stage.band is None:
                run.chunks[stage.slot] = states
            for piece, found in zip(cut.pieces, states, strict=True):
                place = (slice(None), *_place(piece, box, stage.axis))
                before = [] if piece[stage.axis][0] == box[stage.axis][0] else [tuple(out[place])]
                out[place] = _reduced(ordered.how, [*before, *found])
    ex.put(run, stage.slot, out)


@contextmanager
def _in_order(
    ex: Executor, run: Run, stage: ScanTotals | ScanTile, task: Task
) -> Iterator[tuple[list[Any], Run, Iterator[ScanCut]]]:
    """The operands of a scan's pass, a run whose blocks report nothing by themselves if there are many, and
    how the tile is cut: once, or, of what sources give, for each of its parts while that is there."""
    ordered = task.ordered
    assert ordered is not None, "prepared with the program"
    if stage.band is None:
        yield [dense(x) for x in ex.load_all(run, task.operands)], run, ordered.cuts()
        return
    with opened(ex, run, stage, task, ex.unread_all(run, task.operands)) as (operands, bands):
        yield [dense(x) for x in operands], replace(run, report=None), _as_read(run, bands, ordered)


def _as_read(run: Run, bands: Bands | None, ordered: Ordered) -> Iterator[ScanCut]:
    """The cuts of a tile's parts, each while that is there."""
    if bands is not None:
        bands.begin([[part] for part in ordered.parts])
    for number, cut in enumerate(ordered.cuts()):
        with nullcontext() if bands is None else bands.reading(number):
            yield cut
        if run.report is not None:
            run.report(run.index + (number + 1) / len(ordered.parts))


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
    with _in_order(ex, run, stage, task) as (operands, quiet, cuts):
        before = _before(ex, run, task, stage.axis)
        dying = task.dying
        own = None if dying is None else dying_tile(ex, run, stage.reads[dying].slot, operands[dying])
        places = ResultPlaces(ex, run, stage.writes, task.box, own)
        known = None if stage.totals is None else run.chunks.pop(stage.totals, None)
        scanning = _Scanning(ex, quiet, task, operands, places, in_parts=stage.band is not None)
        for cut in cuts:
            before = scanning.scan(cut, before, known)
    for k, write in enumerate(stage.writes):
        if write.reducer is None:
            ex.put(run, write.slots[0], places.tiles[k])
        else:
            finish(ex, run, task, k, scanning.totals[k], places)


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
    cut: ScanCut,
    chunks: list[tuple[int, int]],
) -> list[list[State]]:
    """For each piece the state of each chunk."""
    parts = [_chunk(p, ordered.axis, c) for p, c in product(cut.pieces, chunks)]

    def total(part: Box) -> State:
        return ordered.total(operands, part) if compiled is None else compiled.total(part)

    found = iter(ex.parallel(run, parts, lambda: total, len(parts) <= 1))
    return [[next(found) for _ in chunks] for _ in cut.pieces]


Part = tuple[Box, State | None]
"""A part of a tile, and a state before or behind it."""


class _Scanning:
    """The scan of a tile into its place, and what all parts of it know of what is folded."""

    def __init__(
        self, ex: Executor, run: Run, task: Task, operands: list[Any], places: ResultPlaces, in_parts: bool
    ) -> None:
        assert task.ordered is not None, "prepared with the program"
        self._ex, self._run, self._task, self._operands, self._places = ex, run, task, operands, places
        self._ordered = task.ordered
        self._compiled: CompiledScan | None = None
        self._sizes = (0, 0)
        """Of a block that is folded while it is in the cache, see there."""
        self._out = places.tiles[places.plain[0]] if places.plain else None
        self._folds = [(k, r) for k, r in enumerate(task.reducers) if r is not None]
        self._add = adding(task, in_parts)
        self.totals: Totals = [{} for _ in task.reducers]

    def scan(self, cut: ScanCut, before: State | None, known: list[list[State]] | None) -> State | None:
        """Scan what a cut is of behind a state; the state behind it, if the tile goes on there, else the one
        before. `known` has the states of each piece's chunks, where a stage has made them: whose pieces may
        be others if this one's are not cut."""
        ordered, axis = self._ordered, self._ordered.axis
        if cut.part == ordered.parts[0]:
            self._begin()
        if known is None or len(cut.chunks) == 1:
            chunks = list(cut.chunks[:-1])
            known = _totals(self._ex, self._run, ordered, self._compiled, self._operands, cut, chunks)
        parts: list[Part] = []
        for piece, found in zip(cut.pieces, known, strict=True):
            place = _place(piece, cut.box, axis)
            carry = None if before is None else tuple(s[place] for s in before)
            for number, chunk in enumerate(cut.chunks):
                parts.append((_chunk(piece, axis, chunk), carry))
                if number + 1 < len(cut.chunks):
                    carry = found[number] if carry is None else ordered.how.combine(carry, found[number])

        lines, step = self._sizes
        results = self._ex.parallel(self._run, parts, lambda: self._worker(cut, lines, step), len(parts) == 1)
        for states, _ in results:
            self.totals = self._add(self.totals, states)
        if cut.part[axis][1] == cut.box[axis][1]:
            return before
        ends = [(part, s) for _, found in results for part, s in found if part[axis][1] == cut.part[axis][1]]
        return _together(ends, cut, axis)

    def _begin(self) -> None:
        """See who scans, once the first part is there, and in which blocks: what is laid out for that is for
        all, and what is folded has the same boxes in all."""
        ordered, dtype = self._ordered, self._ordered.rows[-1].dtype
        layout = _laid_out(box_shape(ordered.box), dtype) if self._out is None else self._out
        if not ordered.exact:
            self._compiled = trusted_scan(ordered, self._operands, layout, self._ex.errstate)
            if self._folds and not any(r.units for _, r in self._folds):
                most = min(_FOLDED, max(block_bytes() // dtype.itemsize, 1))
                self._sizes = _sizes(ordered.cut, ordered.axis, self._task.chunks, most)

    def _worker(self, cut: ScanCut, lines: int, step: int) -> Callable[[Part], tuple[States, list[Part]]]:
        ordered, axis, task = self._ordered, self._ordered.axis, self._task
        spare = np.empty(0, ordered.rows[-1].dtype)
        goes_on = cut.part[axis][1] != cut.box[axis][1]
        """Whether anybody asks for the states at the ends of lines, which are as many as lines."""

        def scan(item: Part) -> tuple[States, list[Part]]:
            part, behind = item
            states: States = [{} for _ in task.reducers]
            ends: list[Part] = []
            for some in blocks_along(part, 0, lines) if lines else [part]:
                place = _place(some, part, axis)
                carry = None if behind is None else tuple(s[place] for s in behind)
                for block in blocks_along(some, axis, step):
                    carry = scan_block(block, carry, states)
                if goes_on:
                    ends.append((some, carry))
            return states, ends

        def scan_block(block: Box, carry: State | None, states: States) -> State | None:
            nonlocal spare
            shape = box_shape(block)
            if self._out is None and spare.size < prod(shape):
                spare = np.empty(prod(shape), spare.dtype)
            if self._out is None:
                place = spare[: prod(shape)].reshape(shape)
            else:
                place = self._out[slices_within(block, cut.box)]
            if self._compiled is not None:
                carry = self._compiled.run(block, carry, place)
            else:
                carry = ordered.run(self._operands, block, place, carry)
            value = place if task.sink is None else task.sink([place], block, None)
            for k, reducer in self._folds:
                state = tuple(_own_memory(s, place) for s in reducer.block([value], block))
                add_state(task, k, states[k], self._places.box(k, block), block, state)
            return carry

        return scan


def _together(ends: list[Part], cut: ScanCut, axis: int) -> State:
    """The states behind all pieces, as one."""
    (_, first), *_ = ends
    assert first is not None, "a part has a state behind it"
    shape = tuple(1 if d == axis else n for d, n in enumerate(box_shape(cut.box)))
    found = tuple(np.empty(shape, s.dtype) for s in first)
    for part, state in ends:
        for whole, own in zip(found, state or (), strict=True):
            whole[_place(part, cut.box, axis)] = own
    return found


def _sizes(cut: ScanCut, axis: int, chunks: tuple[int, ...] | None, most: int) -> tuple[int, int]:
    """Of a block of so many elements, which is folded while it is in the cache, the lengths along the first
    dimension (0: all of it) and along the axis: a few lines where these are short, so that it lies in one
    piece; the same ones for all pieces, whose results may have boxes in common. What goes to a file in
    `chunks` has theirs."""
    sizes = [max(hi - lo for lo, hi in spans) for spans in zip(*cut.pieces, strict=True)]
    beside = prod(n for d, n in enumerate(sizes) if d not in (0, axis))
    if chunks is not None and (chunks[0] if axis else 1) * chunks[axis] * beside <= _CHUNKS * prod(chunks):
        return (chunks[0] if axis else 0), chunks[axis]
    lines = max(1, most // max(prod(sizes[1:]), 1)) if axis else 0
    return lines, max(1, most // max(beside * min(lines or 1, sizes[0]), 1))


def _laid_out(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """An array without memory, with the strides of a tile."""
    strides = np.cumprod([dtype.itemsize, *shape[:0:-1]])[::-1]
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, tuple(int(s) for s in strides))


def _own_memory(state: Any, place: Any) -> Any:
    """A state that stays when its block's memory is used again."""
    return np.array(state) if np.may_share_memory(state, place) else state
