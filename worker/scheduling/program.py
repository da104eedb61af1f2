"""A plan as one rank sees it: the operands of its task in every stage, worked out once.

A program is kept with its plan, so that running the plan again costs no index arithmetic.
"""

from __future__ import annotations

from collections import Counter
from math import prod

from msgspec.structs import replace

from spartan_ng.arrays import Box, box_size
from spartan_ng.costs import Profile
from spartan_ng.costs.tuned import BACKED_S, LENT_FLOPS
from spartan_ng.kernels.blocks import block_sizes, walks
from spartan_ng.kernels.body import Body
from spartan_ng.kernels.compiled.select import Tier
from spartan_ng.kernels.contract import load_products
from spartan_ng.kernels.predicting import interpreted_and_saved_s
from spartan_ng.kernels.reducers import Reducer, reducer_of
from spartan_ng.kernels.rows import function_of, labelled_box
from spartan_ng.kernels.widths import stored_widths
from spartan_ng.memory import block_bytes
from spartan_ng.ops.functions import users_of
from spartan_ng.ops.matrices import MATRIX_FUNCTIONS
from spartan_ng.plan.cascade import scanned_rows
from spartan_ng.plan.destinations import destinations, sink_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import (
    Assemble,
    Combine,
    Fused,
    ScanTile,
    ScanTotals,
    SortParts,
    Stage,
)
from spartan_ng.plan.working import uncut_bytes
from spartan_ng.sinks.sink import Sink
from spartan_ng.worker.scheduling.blas import find_libraries, load_scipys
from spartan_ng.worker.scheduling.shares import Task, task_of


class Program:
    """The tasks of one rank, and what becomes of its tiles."""

    def __init__(self, plan: Plan, rank: int) -> None:
        self.plan = plan
        self.rank = rank
        self.tasks = [task_of(plan, stage, rank) for stage in plan.stages]
        for stage, task in zip(plan.stages, self.tasks, strict=True):
            _prepare(plan, stage, task)
        called = [users_of(stage) for stage in plan.stages]
        self.users = [frozenset(f"{fn} at {fn.origin}" for fn in functions) for functions in called]
        """The users' functions that each stage calls."""
        self.calls_users = any(self.users)
        self.shows_state = any(fn.is_users for functions in called for fn in functions)
        """Whether code of the user's own sees the error state."""
        self.calls_matrices = any(
            row.kind == "matrices" for stage in plan.stages if isinstance(stage, Fused) for row in stage.rows
        )
        """Whether it has NumPy decompose matrices and the like, each in one call."""
        self.is_long: bool | None = None
        """Whether who runs it should rather wait for it; None until that is asked."""
        self.lends = frozenset(i for i, stage in enumerate(plan.stages) if _is_lent(plan, stage))
        """Stages whose tasks other workers may take over."""
        self.destinations = destinations(plan)
        self.backed: frozenset[int] = frozenset()
        """Stages whose share other workers may run, too, where this one is slow."""
        self.remote_reads = self._count_remote_reads()
        self.dynamic = frozenset(s for stage in plan.stages for s in stage.sought_slots())
        reshapes = (s for s in plan.stages if isinstance(s, Assemble) and s.how == "reshape")
        self._shown = frozenset(read.slot for stage in reshapes for read in stage.reads)
        """Slots whose tiles others may be views of."""
        self.dying = self._last_uses()
        for stage, task, slots in zip(plan.stages, self.tasks, self.dying, strict=True):
            if isinstance(stage, ScanTile | Assemble) and task.box is not None:
                task.dying = self._dying_operand(stage, task.box, slots)
        self.backed = frozenset(i for i, stage in enumerate(plan.stages) if self._is_backed(i, stage))
        self.is_shared = bool(self.lends or self.backed)
        """Whether others may do what is this rank's to do."""

    def lay_out(self, threads: int) -> None:
        """Have the kernels of its passes ready that lie on disk, before so many threads are to run them."""
        if any(task.blas for task in self.tasks):
            load_products()
            if threads > 1:
                find_libraries()
        for stage, task in zip(self.plan.stages, self.tasks, strict=True):
            if isinstance(stage, Fused):
                task.lay_out(stage, self.plan.slots, threads)

    def _is_backed(self, index: int, stage: Stage) -> bool:
        """Whether a share takes long, or nobody knows how long (users' functions and what lies outside), and
        leaves what it reads as it is."""
        task, plan = self.tasks[index], self.plan
        if plan.workers == 1 or task.box is None or task.dying is not None or _writes_outside(stage):
            return False
        if not self.destinations.keys().isdisjoint(stage.written_slots()):
            return False  # its tile may lie outside
        if self.users[index] or any(plan.slots[s].chunks is not None for s in stage.read_slots()):
            return True
        return stage.seconds(plan.slots, 0, Profile(workers=plan.workers)) >= BACKED_S

    def _count_remote_reads(self) -> Counter[int]:
        """How often other ranks will read this rank's tile of each slot."""
        count: Counter[int] = Counter()
        for rank in range(self.plan.workers):
            if rank != self.rank:
                for stage in self.plan.stages:
                    for operand in task_of(self.plan, stage, rank).asks():
                        count[operand.slot] += sum(p.rank == self.rank for p in operand.pieces)
        return count

    def _dying_operand(self, stage: ScanTile | Assemble, box: Box, dying: list[int]) -> int | None:
        """The read whose whole tile dies with the stage, and may hold its result: of a pass that ends with a
        scan, or what parts are assigned to."""
        if isinstance(stage, Assemble):
            among, stored = (stage.reads[:1], [stage.slot]) if stage.how == "assign" else ((), [])
        else:
            among = stage.reads if stage.rows[-1].kind == "scan" else ()
            stored = [w.slots[0] for w in stage.writes if w.reducer is None]
        for i, read in enumerate(among if stored else ()):
            slot, out = self.plan.slots[read.slot], self.plan.slots[stored[0]]
            plain = read.labels == tuple(range(len(box))) == read.order
            plain = plain and all((a.start, a.step) == (0, 1) for a in read.axes)
            # Neither this rank nor another may ask for the tile once it is written over, nor see it reshaped,
            alone = read.slot in dying and read.slot not in self.dynamic | self._shown
            alone = alone and not self.remote_reads[read.slot]
            same = (slot.shape, slot.dtype, slot.format) == (out.shape, out.dtype, out.format)
            # and a second read of it would see what has been written.
            once = sum(r.slot == read.slot for r in stage.reads) == 1
            if plain and alone and same and once and slot.tiling.box_on(slot.shape, self.rank) == box:
                return i
        return None

    def _last_uses(self) -> list[list[int]]:
        """For each stage, the slots that this rank needs no more after it (never inputs or outputs)."""
        last: dict[int, int] = {}
        for i, stage in enumerate(self.plan.stages):
            for slot in (*stage.read_slots(), *stage.written_slots()):
                last[slot] = i
        kept = {*self.plan.inputs, *self.plan.outputs}
        dying: list[list[int]] = [[] for _ in self.plan.stages]
        for slot, i in last.items():
            if slot not in kept:
                dying[i].append(slot)
        return dying


def _operations(plan: Plan, stage: Fused, elements: int) -> int:
    """Operations that so many elements of a stage's domain take, and one each to come by them."""
    return elements * (1 + -(-stage.operations(plan.slots) // max(prod(stage.domain), 1)))


def _writes_outside(stage: Stage) -> bool:
    """Whether it writes where others look once the job is done: nobody may be at it still, who was slower."""
    return any(isinstance(fn.function, Sink) for fn in users_of(stage))


def _is_lent(plan: Plan, stage: Stage) -> bool:
    """Whether a stage is large enough that workers who wait ask for its tasks, and its tasks can travel."""
    if plan.workers == 1 or not isinstance(stage, Fused) or len(stage.writes) > 1 or stage.heavy:
        return False
    if _writes_outside(stage):
        return False
    if (
        stage.band is not None
        or stage.driver >= 0
        or any(plan.slots[s].format != "dense" for s in stage.writes[0].slots)
    ):
        return False
    return _operations(plan, stage, prod(stage.domain)) >= LENT_FLOPS * plan.workers


def _prepare(plan: Plan, stage: Stage, task: Task) -> None:
    """What the kernels need, once for all runs of the program."""
    if isinstance(stage, Fused) and task.box is not None:
        task.body = Body(stage)
        task.reducers = [reducer_of(stage, w) for w in stage.writes]
        shapes = [plan.slots[w.slots[0]].shape[len(w.partial) :] for w in stage.writes]
        task.owns = [labelled_box(w.labels, s, task.box) for w, s in zip(stage.writes, shapes, strict=True)]
        task.sizes = block_sizes(stage, task.box, sparse=stored_widths(stage, plan.slots))
        task.flops = _operations(plan, stage, box_size(task.box))
        uncut = uncut_bytes(stage)
        task.uncut_bytes = uncut if uncut > block_bytes() else 0
        task.walks = walks(stage)
        task.blas = any(row.kind in ("contract", "matrices") for row in stage.every_row)
        if any(row.kind == "matrices" and MATRIX_FUNCTIONS[row.params[0]].scipys for row in stage.rows):
            load_scipys()
        share = box_size(task.box) / max(prod(stage.domain), 1)
        seconds, saved_s = interpreted_and_saved_s(stage, plan.slots)
        task.tier = Tier(stage, task.box, share * seconds, saved_s / seconds if seconds else 1.0)
        for part in task.parts:
            # What finishes the result needs the sum of all parts.
            _prepare(plan, replace(stage, finish=None, parts=1), part)
    elif isinstance(stage, ScanTile) and task.box is not None:
        from spartan_ng.kernels.ordered import Ordered

        rows, sink, band = stage.rows, sink_of(stage.rows[-1]), stage.band
        if sink is not None and rows[-1].args == (len(stage.reads) + len(rows) - 2,):
            *others, last = rows
            rows = tuple(others)
            task.sink, task.chunks = function_of(replace(last, args=(0,)), stage), sink.chunks
            if band is not None and sink.chunks is not None:  # a part has whole ones
                along, length = band
                chunk = sink.chunks[along]
                band = along, max(length // chunk, 1) * chunk
        task.ordered = Ordered(
            stage.reads,
            rows,
            stage.domain,
            task.box,
            exact=stage.exact,
            whole=any(w.units for w in stage.writes),
            band=band,
        )
        task.reducers = [reducer_of(stage, w) for w in stage.writes]
    elif isinstance(stage, ScanTotals) and task.box is not None and not stage.of_states:
        from spartan_ng.kernels.ordered import Ordered

        rows = scanned_rows(stage, plan)
        task.ordered = Ordered(stage.reads, rows, stage.domain, task.box, band=stage.band)
    elif isinstance(stage, SortParts) and stage.length and task.box is not None:
        task.body = Body(stage.line)
        (size,) = block_sizes(replace(stage.line, block_bytes=block_bytes()), task.box)
        task.sizes = (min(size, stage.length),)
    elif isinstance(stage, Combine):
        task.reducers = [Reducer(stage.row)]
    if stage.finish is not None and task.finish is not None:
        _prepare(plan, stage.finish, task.finish)
