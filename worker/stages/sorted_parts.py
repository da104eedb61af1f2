"""The sorted parts of one line, wherever they lie: what is read of them, and where they are cut.

Whoever has several parts that something is wanted of is asked once: messages grow with the workers, not with
the parts. Runs of a worker of the same host are read where they lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops.line_sorts import run_step, sample_step
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import MergeParts
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.stages.cuts import Samples, Search, cut
from spartan_ng.worker.stages.picking import Asked

if TYPE_CHECKING:
    from spartan_ng.worker import executor
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

_TOGETHER = 8
"""Cuts that are searched for at one time."""
_FEW, _FEW_STEPS = 64, 8
"""Elements of a part that are read, not sampled, to find a cut: of a run, and, since a round that less is
asked for takes longer than it saves, in steps between samples of a tile's part."""


def part_places(plan: Plan, stage: MergeParts) -> list[tuple[int, int, int]]:
    """Of every sorted part whose tile it lies in, where in the tile, and how many elements it has: tiles, or
    the runs that they are sorted in."""
    (n,) = plan.slots[stage.values].shape
    found = []
    for p in range(stage.grid.parts[0]):
        lo, hi = stage.grid.cut(0, n, p)
        length = stage.length or max(hi - lo, 1)
        found += [(p, at, min(length, hi - lo - at)) for at in range(0, max(hi - lo, 1), length)]
    return found


def samples_of(plan: Plan, stage: MergeParts) -> list[tuple[int, Region]]:
    """Of every tile that is one sorted part its number, and the region of its samples."""
    assert not stage.length, "a tile's runs are sampled together"
    return [(p, ((0, n, sample_step(n)),)) for p, _, n in part_places(plan, stage)]


class Coming(Struct, frozen=True):
    """Elements of sorted parts under way."""

    asked: executor.Asked
    parts: list[list[int]]
    """For each read of `asked` the numbers of what was asked for that it brings, one behind the other."""
    lengths: list[int]
    """Elements of each."""


class SortedParts:
    """The sorted parts of one line, read piece by piece from where they lie."""

    def __init__(self, ex: Executor, run: Run, stage: MergeParts) -> None:
        self._ex, self._run, self._stage = ex, run, stage
        places = part_places(run.plan, stage)
        self._ranks = [ex.rank if stage.grid.duplicate else stage.grid.rank((p,)) for p, _, _ in places]
        self._starts = [at for _, at, _ in places]
        self.sizes = np.array([n for _, _, n in places])
        self._shown: dict[tuple[int, int], Any] = self._looked_at() if stage.length else {}
        """By slot and rank what others have, as far as it can be read where it lies."""

    def _looked_at(self) -> dict[tuple[int, int], Any]:
        elements: Counter[int] = Counter()
        for rank, n in zip(self._ranks, self.sizes.tolist(), strict=True):
            elements[rank] += n
        asked = {
            (slot, rank): self._ex.tiles.look(self._run.keys[slot], rank, ((0, n, 1),))
            for slot in self._stage.read_slots()
            for rank, n in elements.items()
            if not self._ex.tiles.is_here(self._run.keys[slot], rank)
        }
        found = {
            (slot, rank): self._ex.wait(self._run, future, rank)
            for (slot, rank), future in asked.items()
            if future is not None
        }
        return {where: tile for where, tile in found.items() if tile is not None}

    @property
    def are_here(self) -> bool:
        """Whether all of them can be read where they lie."""
        return all(
            self._ex.tiles.is_here(self._run.keys[slot], rank) or (slot, rank) in self._shown
            for slot in self._stage.read_slots()
            for rank in set(self._ranks)
        )

    def at(self, asked: Sequence[Asked]) -> list[Any]:
        """The elements at positions in sorted parts, all at once."""
        return self.take(self._ask(self._stage.values, asked))

    def between(self, slot: int, starts: Any, stops: Any) -> Coming:
        """Ask for the elements of every sorted part from a start to a stop."""
        every = zip(starts.tolist(), stops.tolist(), strict=True)
        return self._ask(slot, [(p, range(a, b)) for p, (a, b) in enumerate(every)])

    def take(self, coming: Coming) -> list[Any]:
        """What was asked for, in order, as soon as it is there."""
        found: list[Any] = [None] * len(coming.lengths)
        every = self._ex.arrived(self._run, coming.asked)
        for numbers, data in zip(coming.parts, every, strict=True):
            at = 0
            for i in numbers:
                found[i] = data[at : at + coming.lengths[i]]
                at += coming.lengths[i]
        return found

    def _ask(self, slot: int, asked: Sequence[Asked]) -> Coming:
        """Ask for positions of parts; everybody else once."""
        ranges, lengths = [], []
        by_rank: dict[int, list[int]] = {}
        parts: list[list[int]] = []
        for i, (p, at) in enumerate(asked):
            first, rank = self._starts[p], self._ranks[p]
            ranges.append((first + at.start, first + at.stop, at.step))
            lengths.append(len(at))
            if rank != self._ex.rank and rank in by_rank and (slot, rank) not in self._shown:
                by_rank[rank].append(i)
                continue
            by_rank[rank] = [i]
            parts.append(by_rank[rank])
        every: executor.Asked = []
        for numbers in parts:
            rank, one = self._ranks[asked[numbers[0]][0]], ranges[numbers[0]]
            region: Region = (np.array([ranges[i] for i in numbers]) if len(numbers) > 1 else one,)
            shown = self._shown.get((slot, rank))
            if shown is None:
                every += self._ex.ask_all(self._run, slot, [(rank, region)])
                continue
            there: Future[Any] = Future()
            there.set_result(shown[slice(*one)])
            every.append((rank, self._run.keys[slot], region, there))
        return Coming(every, parts, lengths)

    def cuts(self, ranks: Sequence[int]) -> list[Any]:
        """For each global rank, how many elements of each part come before it."""
        total = self.sizes.sum()
        found = {r: self.sizes if r >= total else 0 * self.sizes for r in ranks}
        inner = [r for r in found if 0 < r < total]
        if inner:
            steps = np.array([(run_step if self._stage.length else sample_step)(n) for n in self.sizes])
            every = [
                (p, range(0, n, step)) for p, (n, step) in enumerate(zip(self.sizes, steps, strict=True))
            ]
            samples = Samples([np.array(s) for s in self.at(every)], self.sizes, steps)
            few = _FEW if self._stage.length else _FEW_STEPS * int(steps.max())
            for k in range(0, len(inner), _TOGETHER):
                some = inner[k : k + _TOGETHER]
                found.update(zip(some, self._found([cut(r, samples, few) for r in some]), strict=True))
        return [found[r] for r in ranks]

    def _found(self, searches: Sequence[Search]) -> list[Any]:
        """What searches find that go on together."""
        found: list[Any] = [None] * len(searches)
        answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
        while answers:
            asked = {}
            for i, answer in answers.items():
                try:
                    asked[i] = searches[i].send(answer)
                except StopIteration as end:
                    found[i] = end.value
            arrived = iter(self.at([one for every in asked.values() for one in every]))
            answers = {i: [next(arrived) for _ in every] for i, every in asked.items()}
        return found
