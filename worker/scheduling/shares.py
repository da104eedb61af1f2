"""What one rank does of a stage: its box, and the operands it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.lib.stride_tricks import as_strided

from spartan_ng.arrays import Box, box_of, box_shape, box_slices, cover, part_span
from spartan_ng.kernels.blocks import Cut, cut_tile
from spartan_ng.kernels.body import Body
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.kernels.rows import Evaluate
from spartan_ng.ops.line_states import LINE_STATES
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.plan.stages import (
    Accumulate,
    Assemble,
    Combine,
    Fused,
    Join,
    MergeParts,
    ScanOffsets,
    ScanTile,
    ScanTotals,
    SortParts,
    Stage,
)
from spartan_ng.worker.memory.regions import Piece, PiecedOperand, identity, resolve

if TYPE_CHECKING:
    from spartan_ng.kernels.ordered import Ordered

Sources = Iterator[tuple[Read, Box, tuple[slice, ...]]]
"""What an output tile is assembled from: a read, its own box, its place in the tile."""


class Task(Struct):
    """One rank's share of a stage: the box it makes (None: nothing) and what it reads."""

    box: Box | None
    operands: list[PiecedOperand] = field(default_factory=list)
    places: list[tuple[slice, ...]] = field(default_factory=list)
    """Of an assembling stage: where each operand goes in the output tile."""
    later: list[PiecedOperand] = field(default_factory=list)
    """Operands that the stage itself makes on other ranks, read in its second half."""
    body: Body | None = None
    reducers: list[Reducer | None] = field(default_factory=list)
    """One a result; None where it is not reduced."""
    owns: list[Box] = field(default_factory=list)
    """Of a pass: the part of each result (of its values, not its states) that the box gives."""
    finish: Task | None = None
    """The share in the stage's finish, over the result's indices."""
    parts: list[Task] = field(default_factory=list)
    """The task cut into parts, which run one after the other."""
    sizes: tuple[int, ...] = ()
    flops: int = 0
    """Operations on the elements of the box, for a pass."""
    uncut_bytes: int = 0
    """Of a pass: what a thread works on at least, where that is more than a block may take; else 0."""
    walks: bool = False
    """Whether random numbers are walked to."""
    blas: bool = False
    """Whether its rows call BLAS."""
    cut: Cut | None = None
    """The interpreter's blocks, once somebody has asked for them."""
    tier: Tier | None = None
    ordered: Ordered | None = None
    sink: Evaluate | None = None
    """Of a scan whose values go to a file: what puts a block of them there, and gives what is folded."""
    chunks: tuple[int, ...] | None = None
    """The boxes that it takes best (`Sink.chunks`)."""
    packed: dict[tuple[Any, ...], Task] = field(default_factory=dict)
    """The task with its rows cut for compressed operands, by which they are and their numbers of groups."""
    dying: int | None = None
    """Of a scan, or an assignment: the operand whose tile may hold the result, since nobody else needs it."""

    def blocks(self, stage: Fused) -> Cut:
        """The interpreter's blocks, which a run that is compiled has no need of."""
        if self.cut is None:
            assert self.box is not None, "a pass with a share"
            self.cut = cut_tile(stage, self.box, self.sizes, together=False)
        return self.cut

    def lay_out(self, stage: Fused, slots: Sequence[Slot], threads: int) -> None:
        """Have the kernels of a pass that lie on disk ready for operands as plans make them, and most
        programs: dense, their elements in order."""
        read = [(operand, slots[operand.slot]) for operand in self.operands]
        plain = all(s.format == "dense" and not s.is_outside and len(o.pieces) == 1 for o, s in read)
        if self.tier is not None and plain and not self.parts and not stage.steps:
            lying = [o.present(_lying(s)[o.pieces[0].index]) for o, s in read]
            self.tier.prepare_ahead(lying, threads)

    def reads(self) -> Iterator[PiecedOperand]:
        """All operands, each as often as it is read."""
        for task in self.runs():
            yield from (*(() if task.parts else task.operands), *task.later)

    def asks(self) -> Iterator[PiecedOperand]:
        """One operand for each time that pieces are asked for: what several have in common comes once."""
        for task in self.runs():
            operands = () if task.parts else task.operands
            yield from (*{id(o.pieces): o for o in operands}.values(), *task.later)

    def runs(self) -> Iterator[Task]:
        """What the task consists of, in the order in which it runs: its parts, itself, its finish."""
        yield from self.parts
        yield self
        if self.finish is not None:
            yield self.finish


def _lying(slot: Slot) -> Any:
    """An array of a slot's shape whose elements lie in order, and are not there: nobody is to read them."""
    strides = [prod(slot.shape[i + 1 :]) * slot.dtype.itemsize for i in range(len(slot.shape))]
    return as_strided(np.empty(1, slot.dtype), slot.shape, strides, writeable=False)


def task_of(plan: Plan, stage: Stage, rank: int) -> Task:
    """The share of `rank` in a stage. What its operands show of one part of a source is asked for once."""
    task = _SHARES[type(stage)](plan, stage, rank)
    for own in task.runs():
        if any(plan.slots[operand.slot].is_outside for operand in own.operands):
            own.operands = _asked_once(plan, own.operands)
    return task


def _asked_once(plan: Plan, operands: Sequence[PiecedOperand]) -> list[PiecedOperand]:
    """Operands of which those that show the same part of a source have their pieces in common."""
    pieces: dict[tuple[Any, ...], tuple[Piece, ...]] = {}
    found = []
    for own in operands:
        if plan.slots[own.slot].is_outside:
            part = (own.slot, *(piece.region for piece in own.pieces))
            own = replace(own, pieces=pieces.setdefault(part, own.pieces))
        found.append(own)
    return found


def _fused_task(plan: Plan, stage: Fused, rank: int) -> Task:
    """A box of the domain, perhaps in parts, and what the finish reads."""
    box = stage.grid.box_on(stage.domain, rank)
    task = _grid_task(plan, stage.reads, box, rank, stretch=False)
    if box is not None and stage.finish is not None:
        (write,) = stage.writes
        task.finish = _finish_task(plan, stage.finish, tuple(box[d] for d in write.labels), rank)
    if box is not None and stage.parts > 1:
        (lo, hi), d = box[stage.turns], stage.turns
        parts = min(stage.parts, hi - lo)
        for k in range(parts):
            a, b = part_span(hi - lo, parts, k)
            own = (*box[:d], (lo + a, lo + b), *box[d + 1 :])
            task.parts.append(_grid_task(plan, stage.reads, own, rank, stretch=False))
    return task


def _finish_task(plan: Plan, finish: Fused | None, box: Box, rank: int) -> Task | None:
    if finish is None:
        return None
    # The last read is that of the result itself, which is not fetched from anybody.
    return _grid_task(plan, finish.reads[:-1], box, rank, stretch=False)


def _grid_task(plan: Plan, reads: tuple[Read, ...], box: Box | None, rank: int, stretch: bool = True) -> Task:
    """A box of the domain, and what it reads. An array that is read as it lies and turned, or stretched, is
    asked for once: its operands have their pieces in common. What shows the same part along other dimensions,
    as both of a matrix's product with itself, does so of sources only: of tiles these are predicted to move
    for each."""
    if box is None:
        return Task(None)
    operands: list[PiecedOperand] = []
    same: dict[tuple[Any, ...], PiecedOperand] = {}
    for read in reads:
        own = resolve(read, box, plan.slots[read.slot], rank, stretch)
        first = same.setdefault((read.slot, *read.axes), own)
        operands.append(own if own is first else replace(own, pieces=first.pieces))
    return Task(box, operands)


def _sort_task(plan: Plan, stage: SortParts, rank: int) -> Task:
    """A part of the line, and what it is made of, which blocks of runs stretch."""
    box = stage.grid.box_on(stage.domain, rank)
    return _grid_task(plan, stage.reads, box, rank, stretch=not stage.length)


def _combine_task(plan: Plan, stage: Combine, box: Box, rank: int) -> Task:
    """The states of the own tile, perhaps in parts, and what the finish reads. Those of lines, which may be
    large, are operands one by one: they are combined from where they lie."""
    lead = plan.slots[stage.states[0]].shape[: stage.lead]
    boxes = [box_of(lead)]
    if stage.row.kind in LINE_STATES:
        boxes = [tuple((i, i + 1) for i in index) for index in product(*map(range, lead))]

    def states(own: Box) -> list[PiecedOperand]:
        return [identity(s, (*a, *own), plan.slots[s], rank) for a in boxes for s in stage.states]

    parts = [Task(own, states(own)) for own in _parts(box, stage.parts)] if stage.parts > 1 else []
    return Task(box, states(box), finish=_finish_task(plan, stage.finish, box, rank), parts=parts)


def _parts(box: Box, count: int) -> Iterator[Box]:
    """A box cut along its longest axis."""
    d = max(range(len(box)), key=lambda axis: box[axis][1] - box[axis][0])
    lo, hi = box[d]
    count = min(count, hi - lo)
    for a, b in (part_span(hi - lo, count, k) for k in range(count)):
        yield (*box[:d], (lo + a, lo + b), *box[d + 1 :])


def _totals_task(plan: Plan, stage: ScanTotals, rank: int) -> Task:
    """A part of the scanned arrays; of states, with all arrays of a state."""
    box = stage.grid.box_on(stage.domain, rank)
    if box is not None and stage.of_states:
        box = ((0, stage.reads[0].shape[0]), *box)
    return _grid_task(plan, stage.reads, box, rank, stretch=False)


def _scan_task(plan: Plan, stage: ScanTile, rank: int) -> Task:
    """The own part, and later the row of offsets before it."""
    task = _grid_task(plan, stage.reads, stage.grid.box_on(stage.domain, rank), rank, stretch=False)
    part = stage.grid.index_on(rank)
    if task.box is not None and part is not None:
        task.later = _offsets_before(plan, stage, part[stage.axis], task.box, rank)
    return task


def _offsets_task(plan: Plan, stage: ScanOffsets, box: Box, rank: int) -> Task:
    """The own row of states, and later that of offsets before it."""
    part = plan.slots[stage.slot].tiling.index_on(rank)
    assert part is not None, "the rank has a tile"
    states = [identity(stage.states, box, plan.slots[stage.states], rank)]
    return Task(box, states, later=_offsets_before(plan, stage, part[stage.axis + 1], box[1:], rank))


def _offsets_before(
    plan: Plan, stage: ScanTile | ScanOffsets, index: int, cross: Box, rank: int
) -> list[PiecedOperand]:
    """What stands before a part of a line; the first one has none."""
    axis = stage.axis
    if stage.offsets is not None and index > 0:
        slot = plan.slots[stage.offsets]
        row = ((0, slot.shape[0]), *cross[:axis], (index, index + 1), *cross[axis + 1 :])
        return [identity(stage.offsets, row, slot, rank)]
    return []


def _join_task(plan: Plan, stage: Join, rank: int) -> Task:
    return _user_task(plan, stage, rank) if stage.how == "user" else _of_tile(_places_task)(plan, stage, rank)


def _user_task(plan: Plan, stage: Join, rank: int) -> Task:
    """Inputs cut along their joined axis as the grid says, whole otherwise."""
    axes, _ = stage.params
    size = next((r.shape[a] for r, a in zip(stage.reads, axes, strict=True) if a >= 0), 1)
    box = stage.grid.box_on((size,), rank)
    if box is None:
        return Task(None)
    operands = []
    for read, axis in zip(stage.reads, axes, strict=True):
        own = tuple(box[0] if i == axis else (0, n) for i, n in enumerate(read.shape))
        operands.append(resolve(read, own, plan.slots[read.slot], rank))
    return Task(box, operands)


def _places_task(plan: Plan, stage: Join, box: Box, rank: int) -> Task:
    """Scatter sees its part of the base and all else whole; compress sees the whole mask, a take its
    own indices. What the last two read of their array depends on data."""
    task = Task(box)
    if stage.how == "take":
        (axis,) = stage.params
        indices = stage.reads[1]
        own = box[axis : axis + len(indices.shape)]
        task.operands.append(resolve(indices, own, plan.slots[indices.slot], rank))
        return task
    reads = stage.reads[1:] if stage.how == "compress" else stage.reads
    for i, read in enumerate(reads):
        own = box if stage.how == "scatter" and i == 0 else box_of(read.shape)
        task.operands.append(resolve(read, own, plan.slots[read.slot], rank))
    return task


def _assemble_task(plan: Plan, stage: Assemble, box: Box, rank: int) -> Task:
    task = Task(box)
    for read, own, place in _SOURCES[stage.how](stage, plan.slots[stage.slot].shape, box):
        task.operands.append(resolve(read, own, plan.slots[read.slot], rank))
        task.places.append(place)
    return task


def _concatenate_sources(stage: Assemble, shape: tuple[int, ...], box: Box) -> Sources:
    """The pieces that meet the box, each with its own box and its place."""
    (axis,) = stage.params
    lo, hi = box[axis]
    first = 0
    for read in stage.reads:
        n = read.shape[axis]
        a, b = max(lo, first), min(hi, first + n)
        if a < b:
            own = (*box[:axis], (a - first, b - first), *box[axis + 1 :])
            place = [slice(0, b1 - b0) for b0, b1 in box]
            place[axis] = slice(a - lo, b - lo)
            yield read, own, tuple(place)
        first += n


def _assign_sources(stage: Assemble, shape: tuple[int, ...], box: Box) -> Sources:
    """The base's box, then the part of the value that falls into it."""
    base, value = stage.reads
    yield base, box, box_slices(box_of(box_shape(box)))
    own, place = [], []
    for (start, step), n, (lo, hi) in zip(stage.params, value.shape, box, strict=True):
        k0 = max(0, -(-(lo - start) // step))
        k1 = min(n, -(-(hi - start) // step))
        if k1 <= k0:
            return
        own.append((k0, k1))
        place.append(slice(start + k0 * step - lo, start + (k1 - 1) * step + 1 - lo, step))
    yield value, tuple(own), tuple(place)


def _reshape_sources(stage: Assemble, shape: tuple[int, ...], box: Box) -> Sources:
    """The smallest box of the input that covers the tile's run of the flat index space."""
    (read,) = stage.reads
    row = prod(shape[1:])
    first, last = (box[0][0] * row, box[0][1] * row - 1) if shape else (0, 0)
    own = tuple(cover(read.shape, first, last))
    yield read, own, ()


_SOURCES = {
    "concatenate": _concatenate_sources,
    "assign": _assign_sources,
    "reshape": _reshape_sources,
}


def _of_tile(share: Callable[[Plan, Any, Box, int], Task]) -> Callable[[Plan, Any, int], Task]:
    """The share of who has a tile of the stage's result."""

    def task(plan: Plan, stage: Any, rank: int) -> Task:
        slot = plan.slots[stage.slot]
        box = slot.tiling.box_on(slot.shape, rank)
        return Task(None) if box is None else share(plan, stage, box, rank)

    return task


_SHARES: dict[type[Stage], Callable[[Plan, Any, int], Task]] = {
    Fused: _fused_task,
    Combine: _of_tile(_combine_task),
    ScanTotals: _totals_task,
    ScanOffsets: _of_tile(_offsets_task),
    ScanTile: _scan_task,
    Assemble: _of_tile(_assemble_task),
    Join: _join_task,
    Accumulate: _of_tile(lambda plan, stage, box, rank: Task(box)),
    SortParts: _sort_task,
    MergeParts: _of_tile(lambda plan, stage, box, rank: Task(box)),
}
