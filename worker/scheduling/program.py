"""A plan as one rank sees it: the operands of its task in every stage, worked out once.

A program is kept with its plan, so that running the plan again costs no index arithmetic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from spartan_ng.arrays import Box, box_of, box_shape, box_size, box_slices
from spartan_ng.arrays import cut as cut_axis
from spartan_ng.costs.operations import flops
from spartan_ng.costs.tuned import LENT_FLOPS
from spartan_ng.kernels.blocks import Cut, block_sizes, cut
from spartan_ng.kernels.body import Body
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.ordered import Ordered
from spartan_ng.kernels.reducers import Reducer, reducer_of
from spartan_ng.kernels.rows import labelled_box
from spartan_ng.ops.functions import users_of
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS
from spartan_ng.plan.cascade import scanned_rows
from spartan_ng.plan.estimate import read_slots, written_slots
from spartan_ng.plan.plan import (
    VALUE,
    Accumulate,
    Assemble,
    Combine,
    Fused,
    Join,
    MergeParts,
    Plan,
    Read,
    Row,
    ScanOffsets,
    ScanTile,
    ScanTotals,
    SortParts,
    Stage,
)
from spartan_ng.worker.memory.regions import Operand, identity, resolve
from spartan_ng.worker.scheduling.blas import load_scipys

Sources = Iterator[tuple[Read, Box, tuple[slice, ...]]]
"""What an output tile is assembled from: a read, its own box, its place in the tile."""


@dataclass(slots=True)
class Task:
    """One rank's share of a stage: the box it makes (None: nothing) and what it reads."""

    box: Box | None
    operands: list[Operand] = field(default_factory=list)
    places: list[tuple[slice, ...]] = field(default_factory=list)
    """Of an assembling stage: where each operand goes in the output tile."""
    later: list[Operand] = field(default_factory=list)
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
    blas: bool = False
    """Whether its rows call BLAS."""
    cut: Cut = field(default_factory=list)
    tier: Tier | None = None
    ordered: Ordered | None = None
    packed: dict[tuple[Any, ...], Task] = field(default_factory=dict)
    """The task with its rows cut for compressed operands, by which they are and their numbers of groups."""
    dying: int | None = None
    """Of a scan: the operand whose tile may hold the result, since nobody else needs it any more."""

    def reads(self) -> Iterator[Operand]:
        """All operands, each as often as it is read."""
        for part in self.parts:
            yield from part.reads()
        yield from (*(() if self.parts else self.operands), *self.later)
        if self.finish is not None:
            yield from self.finish.reads()


class Program:
    """The tasks of one rank, and what becomes of its tiles."""

    def __init__(self, plan: Plan, rank: int) -> None:
        self.plan = plan
        self.rank = rank
        self.tasks = [task_of(plan, stage, rank) for stage in plan.stages]
        for stage, task in zip(plan.stages, self.tasks, strict=True):
            _prepare(plan, stage, task)
        self.users = [frozenset(f"{fn} at {fn.origin}" for fn in users_of(stage)) for stage in plan.stages]
        """The users' functions that each stage calls."""
        self.calls_users = any(self.users)
        self.calls_matrices = any(
            row.kind == "matrices" for stage in plan.stages if isinstance(stage, Fused) for row in stage.rows
        )
        """Whether it has NumPy decompose matrices and the like, each in one call."""
        self.lends = frozenset(i for i, stage in enumerate(plan.stages) if _is_lent(plan, stage))
        """Stages whose tasks other workers may take over."""
        self.remote_reads = self._count_remote_reads()
        self.dynamic = frozenset(s for stage in plan.stages for s in dynamic_slots(stage))
        self.dying = self._last_uses()
        for stage, task, slots in zip(plan.stages, self.tasks, self.dying, strict=True):
            if isinstance(stage, ScanTile) and task.box is not None:
                task.dying = self._dying_operand(stage, task.box, slots)

    def _count_remote_reads(self) -> Counter[int]:
        """How often other ranks will read this rank's tile of each slot."""
        count: Counter[int] = Counter()
        for rank in range(self.plan.workers):
            if rank != self.rank:
                for stage in self.plan.stages:
                    for operand in task_of(self.plan, stage, rank).reads():
                        count[operand.slot] += sum(p.rank == self.rank for p in operand.pieces)
        return count

    def _dying_operand(self, stage: ScanTile, box: Box, dying: list[int]) -> int | None:
        """The read whose whole tile dies with the stage, where its last row is the scan itself."""
        stored = [w.slots[0] for w in stage.writes if w.reducer is None]
        if stage.rows[-1].kind != "scan" or not stored:
            return None
        out = self.plan.slots[stored[0]]
        for i, read in enumerate(stage.reads):
            slot = self.plan.slots[read.slot]
            plain = read.labels == tuple(range(len(stage.domain))) == read.order
            plain = plain and all((a.start, a.step) == (0, 1) for a in read.axes)
            alone = read.slot in dying and read.slot not in self.dynamic and not self.remote_reads[read.slot]
            same = (slot.shape, slot.dtype, slot.format) == (out.shape, out.dtype, out.format)
            once = sum(r.slot == read.slot for r in stage.reads) == 1
            if plain and alone and same and once and slot.tiling.box_on(slot.shape, self.rank) == box:
                return i
        return None

    def _last_uses(self) -> list[list[int]]:
        """For each stage, the slots that this rank needs no more after it (never inputs or outputs)."""
        last: dict[int, int] = {}
        for i, stage in enumerate(self.plan.stages):
            for slot in (*read_slots(stage), *written_slots(stage)):
                last[slot] = i
        kept = {*self.plan.inputs, *self.plan.outputs}
        dying: list[list[int]] = [[] for _ in self.plan.stages]
        for slot, i in last.items():
            if slot not in kept:
                dying[i].append(slot)
        return dying


def dynamic_slots(stage: Stage) -> Iterator[int]:
    """Slots whose remote reads depend on data: they stay until the job ends."""
    if isinstance(stage, Accumulate):
        yield stage.updates
    elif isinstance(stage, MergeParts):
        yield from read_slots(stage)
    elif isinstance(stage, Join) and stage.how in ("compress", "take"):
        yield stage.reads[0].slot


def task_of(plan: Plan, stage: Stage, rank: int) -> Task:
    """The share of `rank` in a stage."""
    if isinstance(stage, Fused):
        return _fused_task(plan, stage, stage.grid.box_on(stage.domain, rank), rank)
    if isinstance(stage, SortParts):
        return _grid_task(plan, (stage.read,), stage.grid.box_on(stage.read.shape, rank), rank)
    if isinstance(stage, Join) and stage.how == "user":
        return _user_task(plan, stage, rank)
    if isinstance(stage, ScanTotals):
        return _totals_task(plan, stage, rank)
    if isinstance(stage, ScanTile):
        box = stage.grid.box_on(stage.domain, rank)
        return Task(None) if box is None else _scan_task(plan, stage, box, rank)
    slot = plan.slots[stage.slot]
    box = slot.tiling.box_on(slot.shape, rank)
    if box is None:
        return Task(None)
    if isinstance(stage, Combine):
        lead = [box_of(plan.slots[s].shape[: stage.lead]) for s in stage.states]
        states = [
            identity(s, (*a, *box), plan.slots[s], rank) for s, a in zip(stage.states, lead, strict=True)
        ]
        return Task(box, states, finish=_finish_task(plan, stage.finish, box, rank))
    if isinstance(stage, ScanOffsets):
        return _scan_task(plan, stage, box, rank)
    if isinstance(stage, Assemble):
        return _assemble_task(plan, stage, box, rank)
    if isinstance(stage, Join):
        return _join_task(plan, stage, box, rank)
    return Task(box)


def _fused_task(plan: Plan, stage: Fused, box: Box | None, rank: int) -> Task:
    """A box of the domain, perhaps in parts, and what the finish reads."""
    task = _grid_task(plan, stage.reads, box, rank, stretch=False)
    if box is not None and stage.finish is not None:
        (write,) = stage.writes
        task.finish = _finish_task(plan, stage.finish, tuple(box[d] for d in write.labels), rank)
    if box is not None and stage.parts > 1:
        (lo, hi), d = box[stage.turns], stage.turns
        parts = min(stage.parts, hi - lo)
        for k in range(parts):
            a, b = cut_axis(hi - lo, parts, k)
            own = (*box[:d], (lo + a, lo + b), *box[d + 1 :])
            task.parts.append(_grid_task(plan, stage.reads, own, rank, stretch=False))
    return task


def _finish_task(plan: Plan, finish: Fused | None, box: Box, rank: int) -> Task | None:
    if finish is None:
        return None
    return _grid_task(plan, finish.reads[:-1], box, rank, stretch=False)


def _grid_task(plan: Plan, reads: tuple[Read, ...], box: Box | None, rank: int, stretch: bool = True) -> Task:
    if box is None:
        return Task(None)
    return Task(box, [resolve(r, box, plan.slots[r.slot], rank, stretch) for r in reads])


def _totals_task(plan: Plan, stage: ScanTotals, rank: int) -> Task:
    """A part of the scanned arrays; of states, with all arrays of a state."""
    box = stage.grid.box_on(stage.domain, rank)
    if box is not None and stage.of_states:
        box = ((0, stage.reads[0].shape[0]), *box)
    return _grid_task(plan, stage.reads, box, rank, stretch=False)


def _scan_task(plan: Plan, stage: ScanTile | ScanOffsets, box: Box, rank: int) -> Task:
    """The own part, and later the row of offsets before it (the first part of a line has none)."""
    if isinstance(stage, ScanTile):
        task = _grid_task(plan, stage.reads, box, rank, stretch=False)
        axis, cross = stage.axis, box
    else:
        task = Task(box, [identity(stage.states, box, plan.slots[stage.states], rank)])
        axis, cross = stage.axis, box[1:]
    grid = stage.grid if isinstance(stage, ScanTile) else plan.slots[stage.slot].tiling
    part = grid.index_on(rank)
    assert part is not None, "the rank has a tile"
    index = part[axis if isinstance(stage, ScanTile) else axis + 1]
    if stage.offsets is not None and index > 0:
        slot = plan.slots[stage.offsets]
        row = ((0, slot.shape[0]), *cross[:axis], (index, index + 1), *cross[axis + 1 :])
        task.later = [identity(stage.offsets, row, slot, rank)]
    return task


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


def _join_task(plan: Plan, stage: Join, box: Box, rank: int) -> Task:
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


def cover(shape: tuple[int, ...], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The box of all indices whose flat position lies in `[first, last]`, made rectangular."""
    inside = prod(shape)
    one_line = True
    for n in shape:
        inside //= max(n, 1)
        if not one_line:
            yield (0, n)
            continue
        a, b = first // inside % n, last // inside % n
        yield (a, b + 1)
        one_line = a == b


_SOURCES = {
    "concatenate": _concatenate_sources,
    "assign": _assign_sources,
    "reshape": _reshape_sources,
}


def _each(row: Row) -> int:
    """Operations of a row for each element of its stage's domain, about."""
    made = max(prod(row.shape), 1)
    return flops(row.kind, row.fn, row.params, row.shape, made) // made


def _operations(stage: Fused, elements: int) -> int:
    """Operations that so many elements of a stage's domain take."""
    return elements * (1 + sum(_each(row) for row in stage.rows))


def _is_lent(plan: Plan, stage: Stage) -> bool:
    """Whether a stage is large enough that workers who wait ask for its tasks, and its tasks can travel."""
    if plan.workers == 1 or not isinstance(stage, Fused) or len(stage.writes) > 1 or stage.heavy:
        return False
    if (
        stage.band is not None
        or stage.driver >= 0
        or any(plan.slots[s].format != "dense" for s in stage.writes[0].slots)
    ):
        return False
    return _operations(stage, prod(stage.domain)) >= LENT_FLOPS * plan.workers


def _prepare(plan: Plan, stage: Stage, task: Task) -> None:
    """What the kernels need, once for all runs of the program."""
    if isinstance(stage, Fused) and task.box is not None:
        task.body = Body(stage)
        task.reducers = [reducer_of(stage, w) for w in stage.writes]
        shapes = [plan.slots[w.slots[0]].shape[len(w.partial) :] for w in stage.writes]
        task.owns = [labelled_box(w.labels, s, task.box) for w, s in zip(stage.writes, shapes, strict=True)]
        sparse = frozenset(
            r.slot for r in stage.reads if r.slot != VALUE and plan.slots[r.slot].format == "csr"
        )
        task.sizes = block_sizes(stage, task.box, sparse=sparse)
        task.flops = _operations(stage, box_size(task.box))
        reducers = [w.reducer for w in stage.writes if w.reducer is not None]
        task.blas = any(row.kind in ("contract", "matrices") for row in (*stage.rows, *reducers))
        if any(row.kind == "matrices" and MATRIX_FUNCTIONS[row.params[0]].scipys for row in stage.rows):
            load_scipys()
        task.tier = Tier(stage, task.box)
        task.cut = cut(stage, task.box, task.sizes, together=False)
        for part in task.parts:
            _prepare(plan, replace(stage, finish=None, parts=1), part)
    elif isinstance(stage, ScanTile) and task.box is not None:
        task.ordered = Ordered(
            stage.reads,
            stage.rows,
            stage.domain,
            task.box,
            exact=stage.exact,
            whole=any(w.units for w in stage.writes),
        )
        task.reducers = [reducer_of(stage, w) for w in stage.writes]
    elif isinstance(stage, ScanTotals) and task.box is not None and not stage.of_states:
        task.ordered = Ordered(stage.reads, scanned_rows(stage, plan), stage.domain, task.box)
    elif isinstance(stage, Combine):
        task.reducers = [Reducer(stage.row)]
    if isinstance(stage, Fused | Combine) and stage.finish is not None and task.finish is not None:
        _prepare(plan, stage.finish, task.finish)
