"""One run of a plan as an engine's tasks: what each is given, and which are run again for what they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import box_size
from spartan_ng.backends.engines.inlined import InlinedValue
from spartan_ng.backends.engines.protocol import Engine, Handle
from spartan_ng.backends.engines.steps import LITTLE_BYTES, EngineStep, RankShare
from spartan_ng.backends.protocol import Progress
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stats import StageStats
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.tasks import (
    Given,
    Number,
    Part,
    Round,
    Wanted,
    asked,
    facts,
    pick_tiles,
    read,
    read_asked,
    run_apart,
    run_task,
    wanted_elements,
)


class TilePlace(Struct, frozen=True):
    """Where a tile is: number `number` of what a task has made."""

    handle: Handle
    number: Number
    alone: bool
    """Whether the task has made nothing else that counts."""


Tiles = dict[int, TilePlace]
"""By rank."""


class _Task(Struct):
    """What a task is submitted with; see `run_task`."""

    name: str
    rank: int
    parts: tuple[Part, ...]
    makes: dict[Number, tuple[int, int]]
    """What it gives: by its number a tile's slot and rank."""
    data: list[Handle]
    rounds: list[Round] = field(default_factory=list)


class EngineJob:
    """One run of a plan.

    Parameters
    ----------
    engine : whose tasks the stages become
    plan, sent : the plan, and the engine's object of it
    steps : its stages, as tasks have them
    where : the tiles of the plan's inputs, by slot; then of all slots that are still read
    """

    def __init__(
        self, engine: Engine, plan: Plan, sent: Handle, steps: Sequence[EngineStep], where: dict[int, Tiles]
    ) -> None:
        self._engine = engine
        self._plan = plan
        self._sent = sent
        self._steps = steps
        self.where = where
        self._inputs = {tile.handle for tiles in where.values() for tile in tiles.values()}
        self._shared = engine.shared
        self.stats = [StageStats() for _ in plan.stages]
        self._parts: dict[tuple[Handle, int, Region], Handle] = {}
        self._light: dict[Handle, tuple[Number, ...]] = {}
        """What is little of tasks that have made something large, too."""
        self._picked: dict[Handle, Handle] = {}
        """Of those, the little alone."""
        self._made: list[tuple[int, TilePlace]] = []
        """For stages that teach something, what their tasks have made."""

    def handles(self) -> list[Handle]:
        """All that the job makes and still wants; its inputs are the program's."""
        every = (t.handle for tiles in self.where.values() for t in tiles.values())
        return [handle for handle in every if handle not in self._inputs]

    def submit(self, progress: Progress | None) -> None:
        """Submit all steps; wait only where what comes next depends on data."""
        for step in self._steps:
            tasks = [self._task(step, shares) for shares in step.tasks()]
            made: dict[int, Tiles] = {slot: {} for slot in step.makes}
            for task, handles in zip(tasks, self._submitted(step, tasks), strict=True):
                for (number, (slot, rank)), handle in zip(task.makes.items(), handles, strict=True):
                    made[slot][rank] = TilePlace(
                        handle, number, step.little or self._is_alone(task, handles, slot)
                    )
                if step.teaches and handles:
                    self._made.append((step.stages[0], TilePlace(handles[0], next(iter(task.makes)), True)))
            for slot, tiles in made.items():
                if tiles and self._plan.slots[slot].tiling.duplicate:
                    tiles = dict.fromkeys(range(self._plan.workers), *tiles.values())
                self.where[slot] = tiles
            for slot in step.dying:
                self.where.pop(slot, None)
            self._parts = {k: h for k, h in self._parts.items() if k[1] not in step.dying}
            if progress is not None and step.asks:
                progress(step.stages[0], len(self._plan.stages))

    def _task(self, step: EngineStep, shares: Sequence[RankShare]) -> _Task:
        """A task with what it reads."""
        parts: list[Part] = []
        makes: dict[Number, tuple[int, int]] = {}
        own: dict[tuple[int, int], Number] = {}
        """What the task has made, by slot and rank."""
        data: dict[Handle, int] = {}
        whole = self._whole(step, shares)
        for share in shares:
            slots = self._plan.stages[share.stage].written_slots()
            found = (self._given(share, wanted, own, data, whole) for wanted in share.reads)
            given = tuple(one for one in found if one is not None)
            together = step.little or share.stage in step.again
            written: dict[int, Number] = {s: (s, share.rank) if together else s for s in slots}
            parts.append(Part(share.stage, share.rank, given, tuple(written.items())))
            for slot, number in written.items():
                alike = range(self._plan.workers) if self._plan.slots[slot].tiling.duplicate else [share.rank]
                own.update({(slot, rank): number for rank in alike})
                if slot in step.makes:
                    makes[number] = (slot, share.rank)
        name = "; ".join(self._plan.stages[n].name for n in step.stages)
        return _Task(name, shares[0].task, tuple(parts), makes, list(data))

    def _whole(self, step: EngineStep, shares: Iterable[RankShare]) -> set[Handle]:
        """What a task is given as it is, with all that is little in it."""
        wanted = ((one, self.where.get(one.slot, {}).get(one.rank)) for s in shares for one in s.reads)
        return {
            tile.handle
            for one, tile in wanted
            if one.slot not in step.written and tile is not None and self._goes_whole(one, tile)
        }

    def _given(
        self,
        share: RankShare,
        one: Wanted,
        own: dict[tuple[int, int], Number],
        data: dict[Handle, int],
        whole: set[Handle],
    ) -> Given | None:
        """Where a task finds what it wants; `data` is what it is submitted with, `whole` what of that goes as
        it is. None where nobody has it."""
        if (one.slot, one.rank) in own:
            return Given(one, None, own[one.slot, one.rank])
        tile = self.where.get(one.slot, {}).get(one.rank)
        if tile is None:
            return None
        slot = self._plan.slots[one.slot]
        if one.rank != share.task and one.region is not None and not slot.tiling.duplicate:
            self.stats[share.stage].bytes_moved += wanted_elements(one) * slot.dtype.itemsize
        if tile.handle in whole:
            return Given(one, data.setdefault(tile.handle, len(data)), tile.number)
        if not tile.alone and not self._shared and self._is_little([one.slot]):
            tile = self._without_the_large(tile)
        if self._shared or self._goes_whole(one, tile):
            return Given(one, data.setdefault(tile.handle, len(data)), tile.number)
        return Given(one, data.setdefault(self._part(tile, one), len(data)))

    def _submitted(self, step: EngineStep, tasks: list[_Task]) -> list[list[Handle]]:
        """For each task the objects of what it makes, one after the other."""
        if step.asks:
            return [[handle] * len(task.makes) for task, handle in self._settled(step.stages[0], tasks)]
        several = self._engine.several and not step.little
        return [
            self._run_apart(task) if several and len(task.makes) > 1 else [self._run(task)] * len(task.makes)
            for task in tasks
        ]

    def _run(self, task: _Task) -> Handle:
        makes, rounds = tuple(task.makes), tuple(task.rounds)
        plan = self._plan_for(task)
        rank = task.rank if plan is self._plan else None
        return self._engine.submit(
            task.name, run_task, plan, task.parts, makes, rounds, *task.data, rank=rank
        )

    def _run_apart(self, task: _Task) -> list[Handle]:
        """An object for each tile that a task makes, so that none keeps another or goes along with it."""
        makes, plan = tuple(task.makes), self._plan_for(task)
        submit = self._engine.submit_several
        return list(submit(task.name, len(makes), run_apart, plan, task.parts, makes, *task.data))

    def _plan_for(self, task: _Task) -> Handle | Plan:
        """The engine's object of the plan; where a task reads no other object, the plan goes inside it: it
        would run where the plan lies, and so would all such tasks."""
        return self._sent if any(not isinstance(h, InlinedValue) for h in task.data) else self._plan

    def _is_alone(self, task: _Task, handles: list[Handle], slot: int) -> bool:
        """Whether nothing that counts is in one object with a tile; notes what of it is little."""
        slots = dict.fromkeys(s for s, _ in task.makes.values())
        if len(slots) == 1 or handles[0] != handles[-1]:
            return True
        self._light[handles[0]] = tuple(s for s in slots if self._is_little([s]))
        return self._is_little(s for s in slots if s != slot)

    def _is_little(self, slots: Iterable[int]) -> bool:
        """Whether these arrays are little together."""
        every = [self._plan.slots[s] for s in slots]
        return sum(s.nbytes for s in every) <= LITTLE_BYTES and all(s.format == "dense" for s in every)

    def _without_the_large(self, tile: TilePlace) -> TilePlace:
        """A little tile of a task that has made something large, too, which stays where it is."""
        if tile.handle not in self._picked:
            numbers = self._light[tile.handle]
            self._picked[tile.handle] = self._engine.submit("pick", pick_tiles, tile.handle, numbers)
        return TilePlace(self._picked[tile.handle], tile.number, True)

    def _goes_whole(self, wanted: Wanted, tile: TilePlace) -> bool:
        """Whether a tile is so small, or so much of it is read, that it goes as it is."""
        slot = self._plan.slots[wanted.slot]
        if wanted.region is None:
            return tile.alone or not self._is_little([wanted.slot])
        if not tile.alone or slot.format != "dense":
            return False
        box = slot.tiling.box_on(slot.shape, wanted.rank)
        size = box_size(box or ())
        return size * slot.dtype.itemsize <= LITTLE_BYTES or wanted_elements(wanted) == size

    def _part(self, tile: TilePlace, wanted: Wanted) -> Handle:
        """A region, cut out where its tile lies; once for all who read it."""
        assert wanted.region is not None, "a whole tile is no part"
        key = (tile.handle, wanted.slot, wanted.region)
        if key not in self._parts:
            self._parts[key] = self._engine.submit("read", read, tile.handle, tile.number, wanted.region)
        return self._parts[key]

    def _settled(self, index: int, tasks: list[_Task]) -> list[tuple[_Task, Handle]]:
        """The results of tasks that data decide: they are run again until they need no more."""
        submit = self._engine.submit
        made = [self._run(task) for task in tasks]
        left = list(range(len(tasks)))
        while left:
            questions = self._engine.get([submit("asked", asked, made[i]) for i in left])
            left = [i for i, question in zip(left, questions, strict=True) if question]
            for i, question in zip(left, filter(None, questions), strict=True):
                task, needs = tasks[i], made[i]
                task.data.append(needs)
                task.data += [self._answer(tile, needs) for tile in question]
                numbers = [self.where[slot][owner].number for slot, owner in question]
                task.rounds.append(tuple(zip(question, numbers, strict=True)))
                for (slot, _), size in question.items():
                    self.stats[index].bytes_moved += size * self._plan.slots[slot].dtype.itemsize
                made[i] = self._run(task)
        return list(zip(tasks, made, strict=True))

    def _answer(self, place: tuple[int, int], needs: Handle) -> Handle:
        """What a task has asked for of a tile, or the tile."""
        slot, owner = place
        tile = self.where[slot][owner]
        if self._shared:
            return tile.handle
        return self._engine.submit("read", read_asked, tile.handle, tile.number, needs, slot, owner)

    def output(self, slot: int) -> Tiles:
        """The tiles of a result, each alone."""
        tiles = self.where[slot]
        picked: dict[int, TilePlace] = {}
        out: Tiles = {}
        for rank, tile in tiles.items():
            if not tile.alone:
                key = tile.handle
                if key not in picked:
                    handle = self._engine.submit("pick", pick_tiles, tile.handle, (tile.number,))
                    picked[key] = replace(tile, handle=handle, alone=True)
                tile = picked[key]
            out[rank] = tile
        return out

    @property
    def teaches(self) -> bool:
        """Whether something is known only when it has ended."""
        return bool(self._made)

    def learn(self) -> None:
        """Count what could not be known before."""
        asked_of = [self._engine.submit("count", facts, t.handle, t.number) for _, t in self._made]
        found = self._engine.get(asked_of) if asked_of else []
        for (index, _), (_, nbytes) in zip(self._made, found, strict=True):
            self.stats[index].bytes_made += nbytes
