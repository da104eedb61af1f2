"""One run of a plan as an engine's tasks: what each is given, and which are run again for what they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from spartan_ng.arrays import box_size
from spartan_ng.backends.engines.inlined import Value
from spartan_ng.backends.engines.protocol import Engine, Handle
from spartan_ng.backends.protocol import Progress
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.lessons import StageStats
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import Accumulate, Join, MergeParts, ScanTile, ScanTotals, Stage
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.tasks import (
    Given,
    Number,
    Round,
    Wanted,
    asked,
    elements,
    facts,
    pick,
    read,
    read_asked,
    reads,
    run_all,
    run_apart,
    run_task,
)

LITTLE_BYTES = 64 * 1024
"""Tiles of up to this size go to their readers as they are: a task that cuts them would cost more. Stages
whose arrays are no larger are one task for all ranks."""
_LITTLE_OPERATIONS = 1 << 20
"""About a millisecond of work, as long as a task's way to its worker."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Where a tile is: number `number` of what a task has made."""

    handle: Handle
    number: Number
    alone: bool
    """Whether the task has made nothing else that counts."""


Tiles = dict[int, Tile]
"""By rank."""


@dataclass(frozen=True, slots=True)
class StageReads:
    """What is known of a stage before it runs."""

    reads: tuple[tuple[int, tuple[Wanted, ...]], ...]
    """For each rank that has a task: what it reads."""
    once: bool
    """Whether all ranks make the same, so that one task does it."""
    little: bool
    """Whether all that it reads and writes is little, so that one task does it for all ranks."""
    dying: tuple[int, ...]
    """Slots that nobody reads after it."""


@dataclass(slots=True)
class _Task:
    """What a task is submitted with; see `run_task`."""

    rank: int
    given: tuple[Given, ...]
    data: list[Handle]
    rounds: list[Round] = field(default_factory=list)


class Job:
    """One run of a plan.

    Parameters
    ----------
    engine : whose tasks the stages become
    plan, sent : the plan, and the engine's object of it
    known : what is known of each stage
    where : the tiles of the plan's inputs, by slot; then of all slots that are still read
    """

    def __init__(
        self, engine: Engine, plan: Plan, sent: Handle, known: Sequence[StageReads], where: dict[int, Tiles]
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._sent = sent
        self._known = known
        self.where = where
        self.stats = [StageStats() for _ in plan.stages]
        self._parts: dict[tuple[Handle, int, Region], Handle] = {}
        self._light: dict[Handle, tuple[Number, ...]] = {}
        """What is little of tasks that have made something large, too."""
        self._picked: dict[Handle, Handle] = {}
        """Of those, the little alone."""
        self._made: list[tuple[int, list[Tile]]] = []
        """For stages that teach something, what they have made."""

    def handles(self) -> list[Handle]:
        """All that the job still wants."""
        return [t.handle for tiles in self.where.values() for t in tiles.values()]

    def submit(self, progress: Progress | None) -> None:
        """Submit all stages; wait only where what comes next depends on data."""
        for index, (stage, known) in enumerate(zip(self._plan.stages, self._known, strict=True)):
            written = tuple(dict.fromkeys(stage.written_slots()))
            tasks = [
                self._task(index, rank, wanted) for rank, wanted in known.reads[: 1 if known.once else None]
            ]
            if known.little and len(tasks) > 1:
                every = self._run_all(index, tasks)
                made = {task.rank: every for task in tasks}
                for slot in written:
                    self.where[slot] = {rank: Tile(every, (slot, rank), True) for rank in made}
            elif len(written) > 1 and self._engine.several and not _asks(stage):
                apart = {task.rank: self._run_apart(index, task, len(written)) for task in tasks}
                made = {rank: handles[0] for rank, handles in apart.items()}
                for n, slot in enumerate(written):
                    self._place(slot, {r: Tile(handles[n], slot, True) for r, handles in apart.items()})
            else:
                made = self._settled(index, tasks)
                for slot in written:
                    alone = self._is_little(s for s in written if s != slot)
                    self._place(slot, {rank: Tile(handle, slot, alone) for rank, handle in made.items()})
                light = tuple(s for s in written if self._is_little([s]))
                self._light.update(dict.fromkeys(made.values(), light))
            if isinstance(stage, Join) or any(self._plan.slots[s].format == "csr" for s in written):
                self._made.append((index, [Tile(h, written[0], True) for h in made.values()]))
            for slot in known.dying:
                self.where.pop(slot, None)
            self._parts = {k: h for k, h in self._parts.items() if k[1] not in known.dying}
            if progress is not None:
                progress(index, len(self._plan.stages))

    def _place(self, slot: int, tiles: Tiles) -> None:
        """Note where tiles are that tasks of their own have made; one that all ranks want is made once."""
        if tiles and self._plan.slots[slot].tiling.duplicate:
            tiles = dict.fromkeys(range(self._plan.workers), *tiles.values())
        self.where[slot] = tiles

    def _task(self, index: int, rank: int, wanted: Iterable[Wanted]) -> _Task:
        """A task with what it reads."""
        given: list[Given] = []
        data: list[Handle] = []
        for one in wanted:
            tile = self.where[one.slot].get(one.rank)
            if tile is None:
                continue
            if not tile.alone and self._is_little([one.slot]):
                tile = self._without_the_large(tile)
            if one.region is None or self._goes_whole(one, tile):
                given.append(Given(one, tile.number))
                data.append(tile.handle)
            else:
                given.append(Given(one))
                data.append(self._part(tile, one))
            if one.rank != rank:
                self.stats[index].bytes_moved += elements(one) * self._plan.slots[one.slot].dtype.itemsize
        return _Task(rank, tuple(given), data)

    def _run(self, index: int, task: _Task) -> Handle:
        name = self._plan.stages[index].name
        rounds, plan = tuple(task.rounds), self._plan_for(task)
        return self._engine.submit(name, run_task, plan, index, task.rank, task.given, rounds, *task.data)

    def _run_apart(self, index: int, task: _Task, count: int) -> Sequence[Handle]:
        """An object for each slot that the stage writes, so that none keeps another or goes along with it."""
        name, plan = self._plan.stages[index].name, self._plan_for(task)
        return self._engine.submit_several(
            name, count, run_apart, plan, index, task.rank, task.given, *task.data
        )

    def _plan_for(self, task: _Task) -> Handle | Plan:
        """The engine's object of the plan; where a task reads no other object, the plan goes inside it: it
        would run where the plan lies, and so would all such tasks."""
        return self._sent if any(not isinstance(h, Value) for h in task.data) else self._plan

    def _run_all(self, index: int, tasks: list[_Task]) -> Handle:
        name = self._plan.stages[index].name
        given = tuple((task.rank, task.given) for task in tasks)
        return self._engine.submit(
            name, run_all, self._sent, index, given, *(handle for task in tasks for handle in task.data)
        )

    def _is_little(self, slots: Iterable[int]) -> bool:
        """Whether these arrays are little together."""
        every = [self._plan.slots[s] for s in slots]
        return sum(s.nbytes for s in every) <= LITTLE_BYTES and all(s.format == "dense" for s in every)

    def _without_the_large(self, tile: Tile) -> Tile:
        """A little tile of a task that has made something large, too, which stays where it is."""
        if tile.handle not in self._picked:
            numbers = self._light[tile.handle]
            self._picked[tile.handle] = self._engine.submit("pick", pick, tile.handle, numbers)
        return Tile(self._picked[tile.handle], tile.number, True)

    def _goes_whole(self, wanted: Wanted, tile: Tile) -> bool:
        """Whether a tile is so small, or so much of it is read, that it goes as it is."""
        slot = self._plan.slots[wanted.slot]
        if not tile.alone or slot.format != "dense":
            return False
        box = slot.tiling.box_on(slot.shape, wanted.rank)
        size = box_size(box or ())
        return size * slot.dtype.itemsize <= LITTLE_BYTES or elements(wanted) == size

    def _part(self, tile: Tile, wanted: Wanted) -> Handle:
        """A region, cut out where its tile lies; once for all who read it."""
        assert wanted.region is not None, "a whole tile is no part"
        key = (tile.handle, wanted.slot, wanted.region)
        if key not in self._parts:
            self._parts[key] = self._engine.submit("read", read, tile.handle, tile.number, wanted.region)
        return self._parts[key]

    def _settled(self, index: int, tasks: list[_Task]) -> dict[int, Handle]:
        """The tasks' results; where they depend on data, tasks are run again until they need no more."""
        made = {task.rank: self._run(index, task) for task in tasks}
        if self._plan.workers == 1 or not _asks(self._plan.stages[index]):
            return made
        submit = self._engine.submit
        while tasks:
            questions = self._engine.get([submit("asked", asked, made[task.rank]) for task in tasks])
            more = [(task, question) for task, question in zip(tasks, questions, strict=True) if question]
            for task, question in more:
                needs = made[task.rank]
                task.data.append(needs)
                for (slot, owner), size in question.items():
                    tile = self.where[slot][owner]
                    task.data.append(submit("read", read_asked, tile.handle, tile.number, needs, slot, owner))
                    self.stats[index].bytes_moved += size * self._plan.slots[slot].dtype.itemsize
                task.rounds.append(tuple(question))
                made[task.rank] = self._run(index, task)
            tasks = [task for task, _ in more]
        return made

    def output(self, slot: int) -> Tiles:
        """The tiles of a result, each alone."""
        tiles = self.where[slot]
        picked: dict[int, Tile] = {}
        out: Tiles = {}
        for rank, tile in tiles.items():
            if not tile.alone:
                key = tile.handle
                if key not in picked:
                    handle = self._engine.submit("pick", pick, tile.handle, (tile.number,))
                    picked[key] = replace(tile, handle=handle, alone=True)
                tile = picked[key]
            out[rank] = tile
        return out

    def learn(self) -> None:
        """Count what could not be known before."""
        asked_of = [
            (i, self._engine.submit("count", facts, t.handle, t.number)) for i, ts in self._made for t in ts
        ]
        found = self._engine.get([h for _, h in asked_of]) if asked_of else []
        for (index, _), (_, nbytes) in zip(asked_of, found, strict=True):
            self.stats[index].bytes_made += nbytes


def _asks(stage: Stage) -> bool:
    """Whether what a stage reads depends on data."""
    return isinstance(stage, MergeParts | Join) and bool(stage.sought_slots())


def _is_little(plan: Plan, stage: Stage) -> bool:
    """Whether a stage is work for one task: no function of a user's, and nothing that data decide."""
    if isinstance(stage, Accumulate | Join | MergeParts | ScanTile | ScanTotals) or users_of(stage):
        return False
    slots = [plan.slots[s] for s in dict.fromkeys((*stage.read_slots(), *stage.written_slots()))]
    return (
        all(s.format == "dense" and s.chunks is None for s in slots)
        and sum(s.nbytes for s in slots) <= LITTLE_BYTES
        and stage.operations(plan.slots) <= _LITTLE_OPERATIONS
    )


def stage_reads(plan: Plan) -> list[StageReads]:
    """What each stage reads, and what dies with it."""
    last: dict[int, int] = {}
    for i, stage in enumerate(plan.stages):
        for slot in (*stage.read_slots(), *stage.written_slots()):
            last[slot] = i
        if isinstance(stage, ScanTile) and stage.totals is not None:
            last[stage.totals] = i
    kept = {*plan.inputs, *plan.outputs}
    out = []
    for i, stage in enumerate(plan.stages):
        each = ((rank, reads(plan, stage, rank)) for rank in range(plan.workers))
        out.append(
            StageReads(
                tuple((rank, tuple(found)) for rank, found in each if found is not None),
                all(plan.slots[s].tiling.duplicate for s in stage.written_slots()),
                _is_little(plan, stage),
                tuple(s for s, at in last.items() if at == i and s not in kept),
            )
        )
    return out
