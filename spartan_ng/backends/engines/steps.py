"""Which stages of a plan are one task: what a rank goes on with alone is no object in between.

An object costs a task that waits for it, and on most engines a copy; a large array that a pass makes for the
next one of its rank never leaves the task.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.costs.choices import AGAIN_OPERATIONS, LITTLE_OPERATIONS
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Row
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
    Stage,
)
from spartan_ng.plan.stages.passes import Pass
from spartan_ng.worker.tasks import Wanted, reads

LITTLE_BYTES = 64 * 1024
"""Tiles of up to this size go to their readers as they are: a task that cuts them would cost more. Stages
whose arrays are no larger are one task for all ranks."""
_SURE = frozenset({"map", "fold", "contract", "transpose", "broadcast", "reshape", "iota", "random", "scan"})
"""Kinds of rows that raise nothing, whatever numbers they are given: others call functions of whole lines, or
look something up."""
_UNSURE = frozenset({"power"})
"""But this, of integers."""
_FEW_READS = 64
"""So many tasks' objects may be sent to others, so that one task less comes between them."""


class RankShare(Struct, frozen=True):
    """What a rank does in a stage."""

    stage: int
    rank: int
    reads: tuple[Wanted, ...]
    task: int
    """The rank in whose task it is done: another one where all do the same."""


class EngineStep(Struct):
    """Stages that are one task for each rank, or one for all ranks."""

    stages: list[int]
    shares: list[RankShare]
    """Of one stage after the other."""
    written: set[int]
    """Slots that are written in it."""
    once: bool
    """Whether all ranks make the same, so that one task does it."""
    alone: bool
    """Whether one rank does it."""
    little: bool
    """Whether all that it reads and writes is little, so that one task does it for all ranks."""
    asks: bool
    """Whether what its first stage reads depends on data."""
    teaches: bool
    """Whether how many bytes it makes is known when it has run."""
    again: set[int] = field(default_factory=set)
    """Stages that each task does for itself, for all ranks."""
    makes: tuple[int, ...] = ()
    """Slots that are read after it."""
    dying: tuple[int, ...] = ()
    """Slots that nobody reads after it."""

    def reads(self) -> Iterator[Wanted]:
        """All that its tasks read, and may have made themselves."""
        return (wanted for share in self.shares for wanted in share.reads)

    def tasks(self) -> list[tuple[RankShare, ...]]:
        """For each task its shares, in the order of the stages."""
        if self.little:
            return [tuple(self.shares)] if self.shares else []
        tasks: dict[int, list[RankShare]] = {}
        for share in self.shares:
            tasks.setdefault(0 if self.alone else share.task, []).append(share)
        return [tuple(shares) for shares in tasks.values()]


def ordered_steps(plan: Plan) -> list[EngineStep]:
    """A plan's steps, each behind those that make what it reads."""
    steps: list[EngineStep] = []
    made_in: dict[int, int] = {}
    """By slot, the step that makes it."""
    for index, stage in enumerate(plan.stages):
        new = _step(plan, index, stage)
        home = _home(plan, new, steps, made_in)
        if home < len(steps):
            steps[home].stages += new.stages
            steps[home].shares += new.shares
            steps[home].written |= new.written
            steps[home].little &= new.little
            steps[home].once &= new.once
            steps[home].alone &= new.alone
        else:
            steps.append(new)
        made_in.update(dict.fromkeys(new.written, home))
    steps = _with_readers(plan, steps)
    _end(plan, steps)
    return steps


def _step(plan: Plan, index: int, stage: Stage) -> EngineStep:
    """A stage by itself."""
    written = stage.written_slots()
    once = all(plan.slots[s].tiling.duplicate for s in written)
    every = ((rank, reads(plan, stage, rank)) for rank in range(plan.workers))
    found = [RankShare(index, rank, tuple(wanted), rank) for rank, wanted in every if wanted is not None]
    shares = found[: 1 if once else None]
    return EngineStep(
        [index],
        shares,
        set(written),
        once,
        alone=len(shares) == 1,
        little=_is_little(plan, stage),
        asks=plan.workers > 1 and isinstance(stage, MergeParts | Join) and bool(stage.sought_slots()),
        teaches=isinstance(stage, Join) or any(plan.slots[s].format == "csr" for s in written),
    )


def _home(plan: Plan, new: EngineStep, steps: list[EngineStep], made_in: dict[int, int]) -> int:
    """The first step that a stage can join: one that has touched what it reads."""
    slots = {wanted.slot for share in new.shares for wanted in share.reads}
    # Not before the last of those that make what it reads.
    first = max((made_in[slot] for slot in slots if slot in made_in), default=0)
    for home in range(first, len(steps)):
        touched = {w.slot for share in steps[home].shares for w in share.reads} | steps[home].written
        if slots & touched and _goes_on(plan, new, steps[home]):
            return home
    return len(steps)


def _goes_on(plan: Plan, new: EngineStep, old: EngineStep) -> bool:
    """Whether a task may go on from one step to the other: no task waits for what another makes in it, and
    none that is run again for what it asks has done anything before."""
    if new.asks or new.teaches or old.teaches:
        return False
    if new.little and old.little:
        return True
    if new.little != old.little and not (new.alone and old.alone):
        return False
    far = {w.slot for share in new.shares for w in share.reads if w.rank != share.rank}
    if old.asks and any(plan.slots[s].nbytes > LITTLE_BYTES for s in far):
        return False  # it would come again with each answer
    return (new.alone and old.alone) or (new.once == old.once and far.isdisjoint(old.written))


def _with_readers(plan: Plan, steps: list[EngineStep]) -> list[EngineStep]:
    """Have every rank make by itself what is made quickly of what all ranks read: a task less to wait for."""
    left = []
    for at, step in enumerate(steps):
        readers = [one for one in steps[at + 1 :] if any(w.slot in step.written for w in one.reads())]
        if len(readers) == 1 and _is_made_by(plan, step, readers[0]):
            (reader,) = readers
            tasks = dict.fromkeys(share.task for share in reader.shares)
            reader.stages[:0] = step.stages
            reader.shares[:0] = [replace(share, task=task) for task in tasks for share in step.shares]
            reader.written |= step.written
            reader.again |= {*step.stages}
        else:
            left.append(step)
    return left


def _is_made_by(plan: Plan, step: EngineStep, reader: EngineStep) -> bool:
    """Whether a step may be part of each task of the one that reads it."""
    if not (step.alone or step.little) or step.asks or step.teaches or step.written & {*plan.outputs}:
        return False
    if reader.alone or reader.little or reader.asks or reader.teaches:
        return False
    stages = [plan.stages[n] for n in step.stages]
    if users_of(stages) or sum(s.operations(plan.slots) for s in stages) > AGAIN_OPERATIONS:
        return False
    wanted = {w for w in step.reads() if w.slot not in step.written}
    slots = {w.slot: plan.slots[w.slot] for w in wanted}
    cut = {s for s, slot in slots.items() if not slot.tiling.duplicate and slot.tiling.ntiles > 1}
    # Instead of one task that reads them, each of the reader's does.
    edges = len({(w.slot, w.rank) for w in wanted if w.slot in cut}) * len(reader.tasks())
    more = cut | (slots.keys() - {w.slot for w in reader.reads()})
    return (
        edges <= _FEW_READS
        and all(slot.format == "dense" for slot in slots.values())
        and sum(slots[s].nbytes for s in more) <= LITTLE_BYTES
    )


def is_sure(plan: Plan) -> bool:
    """Whether all stages are passes and sums of numbers that raise nothing, whatever these are."""
    return not any(slot.is_outside or slot.dtype.kind not in "biufc" for slot in plan.slots) and all(
        isinstance(stage, Assemble | Combine | Fused | ScanOffsets | ScanTile | ScanTotals)
        and not users_of(stage)
        and all(map(_is_sure, _rows(stage)))
        for stage in plan.stages
    )


def _rows(stage: Stage) -> Iterator[Row]:
    """What a stage does with its blocks, and then with what it has made."""
    for each in (stage, stage.finish):
        if isinstance(each, Pass):
            yield from each.every_row


def _is_sure(row: Row) -> bool:
    whole = row.dtype.kind in "biu"
    return row.kind in _SURE and row.dtype.kind in "biufc" and not (whole and row.fn in _UNSURE)


def _end(plan: Plan, steps: list[EngineStep]) -> None:
    """Note what each step leaves to others, and what it is the last to read."""
    last: dict[int, int] = {}
    for i, step in enumerate(steps):
        for stage in (plan.stages[n] for n in step.stages):
            slots = [*stage.read_slots(), *stage.written_slots()]
            if isinstance(stage, ScanTile) and stage.totals is not None:
                slots.append(stage.totals)
            last.update(dict.fromkeys(slots, i))
    kept = {*plan.inputs, *plan.outputs}
    for i, step in enumerate(steps):
        written = dict.fromkeys(s for n in step.stages for s in plan.stages[n].written_slots())
        step.makes = tuple(s for s in written if s in kept or last[s] > i)
        step.dying = tuple(s for s, at in last.items() if at == i and s not in kept)


def _is_little(plan: Plan, stage: Stage) -> bool:
    """Whether a stage is work for one task: no function of a user's, and nothing that data decide."""
    if isinstance(stage, Accumulate | Join | MergeParts | ScanTile | ScanTotals) or users_of(stage):
        return False
    slots = [plan.slots[s] for s in dict.fromkeys((*stage.read_slots(), *stage.written_slots()))]
    return (
        all(s.format == "dense" and s.chunks is None for s in slots)
        and sum(s.nbytes for s in slots) <= LITTLE_BYTES
        and stage.operations(plan.slots) <= LITTLE_OPERATIONS
    )
