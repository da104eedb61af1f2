"""The plans of a partition: what an assignment selects, and the sum of what its passes take.

An assignment says which interesting points are materialized. From the roots down, an operator that has
to be stored opens a fused operator of the best template; its operands join as far as the template
references them, the pass reaches (`reach`) and the assignment allows. An operator in two of them is computed
twice. Fused operators of one domain that share a read, and do not wait for each other, run as one pass of
several results (MAgg and its like): they are costed as one.

Fusion plans (SystemML), section 4.3, Eq. 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from spartan_ng.costs import Profile
from spartan_ng.optimizer.fusion.costs import pass_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.partitions import Partition
from spartan_ng.optimizer.fusion.reach import Reach
from spartan_ng.optimizer.fusion.tables import Tables
from spartan_ng.optimizer.fusion.templates import Template


@dataclass(frozen=True, slots=True)
class Stage:
    """A fused operator of a plan: its roots (several share the pass), template, members and costs."""

    roots: tuple[int, ...]
    template: Template | None
    members: tuple[int, ...]
    read_ps: int
    compute_ps: int
    write_ps: int

    @property
    def cost_ps(self) -> int:
        """Write, and the longer of read and compute: they overlap."""
        return pass_ps(self.read_ps, self.compute_ps, self.write_ps)


class PlanCosts:
    """The cost of one partition's plans under assignments: bit i of a mask is point i."""

    def __init__(self, memo: Memo, partition: Partition, profile: Profile, merge: bool = True) -> None:
        self.memo, self.partition, self.profile, self.merge = memo, partition, profile, merge
        self.tables = Tables(memo, partition, profile)
        self.bits = self.tables.bits
        self._reaches: dict[int, tuple[Reach, int]] = {}
        """For passes, by where they end, how far they reach, and the place that they were followed to."""
        self._followed = [0] * len(partition.operators)
        """For each operator the passes that were followed down to it,"""
        self._allowed = [0] * len(partition.operators)
        """and those of them that may compute it."""
        places, over = self.tables.places, dict[tuple[int, ...], int]()
        for i, place in enumerate(places):
            if place.mergeable:
                over[place.domain] = over.get(place.domain, 0) | 1 << i
        self._near = {d: _union([over[o] for o in self.tables.near[d]]) for d in over}
        """For each domain the operators with whose passes one over it may be shared."""
        self._shareable = [t for t, target in enumerate(self.tables.targets) if target.shareable]
        self._costs: dict[int, int] = {}
        """What assignments cost that have been asked for."""
        self._work = [(p.compute, p.sampled) for p in places]
        self._reading = [(t.read, t.sampled, t.wait) for t in self.tables.targets]

    @property
    def entries(self) -> set[int]:
        """The operators that are stored under every assignment: passes start there."""
        return {p.operator.number for p in self.tables.places if p.required}

    def may_share(self, some: set[int], others: set[int]) -> bool:
        """Whether a pass over one of some operators' domains may take in one over one of the others'."""
        domains = {d for n in some if (d := self._domain(n)) is not None}
        near = set[tuple[int, ...]]().union(*(self.tables.near[d] for d in domains))
        return any(self._domain(n) in near for n in others)

    def _domain(self, number: int) -> tuple[int, ...] | None:
        place = self.tables.places[self.tables.number[number]]
        return place.domain if place.mergeable else None

    # --- costs -------------------------------------------------------------------------------------

    def at_least(self, mask: int) -> int:
        """A lower bound for every assignment that materializes the points in `mask` and maybe others.

        Each distinct target is written and read once. Reads overlap with computing, so what both bound is
        their maximum; summing the maxima would count too much.
        """
        targets = {p.target for p, bit in self.bits.items() if mask & bit}
        read, write = self.tables.least_read, self.tables.least_write
        for number in targets:
            i = self.tables.number[number]
            read += min(self.tables.targets[i].read, self.tables.targets[i].sampled)
            write += self.tables.targets[i].wait
            if not self.tables.places[i].required:
                write += self.tables.places[i].write
        return write + max(read, self.tables.least_compute)

    def cost(self, mask: int) -> int:
        """The cost of the plan that an assignment selects, in picoseconds."""
        if mask not in self._costs:
            _, _, times = self._timed(mask)
            self._costs[mask] = sum([write + max(read, compute) for read, compute, write in times])
        return self._costs[mask]

    def stages(self, mask: int) -> list[Stage]:
        """The fused operators that an assignment selects."""
        plan, groups, times = self._timed(mask)
        numbers = self.partition.operators
        stages = []
        for group, (read, compute, write) in zip(groups, times, strict=True):
            roots = [numbers[i] for i in _bits(group)]
            members = [numbers[i] for i, m in enumerate(plan.computed) if m & group]
            template = plan.templates[group.bit_length() - 1]
            stages.append(Stage(tuple(roots), template, tuple(members), read, compute, write))
        return stages

    def _open(self, mask: int) -> _Plan:
        """From the roots down: which operators are stored, and in which fused operators each is computed."""
        places = self.tables.places
        n = len(places)
        row, cell, outer = [0] * n, [0] * n, [0] * n
        stored = [p.required for p in places]
        plan = _Plan([0] * n, [0] * len(self.tables.targets), {})
        followed, allowed = self._followed, self._allowed
        computed, readers = plan.computed, plan.readers
        for i in range(n - 1, -1, -1):
            place = places[i]
            r, c, o = row[i], cell[i], outer[i]
            if stored[i]:
                template = None
                for end in place.ends:
                    if end.always or end.needs & ~mask:
                        template = end.template
                        break
                plan.templates[i] = template
                if template is Template.ROW:
                    r |= 1 << i
                elif template is Template.OUTER:
                    o |= 1 << i
                else:
                    c |= 1 << i
            everyone = r | c | o
            computed[i] = everyone
            for t, bit, by_row, by_cell, by_outer in place.links:
                joins = 0
                if t < n and not bit & mask:
                    rows = r if by_row else 0
                    cells = c if by_cell else 0
                    samples = o if by_outer else 0
                    joins = rows | cells | samples
                    if joins & ~followed[t]:
                        self._follow(joins & ~followed[t], t)
                    joins &= allowed[t]
                if joins:
                    below = places[t]
                    if below.row:
                        row[t] |= rows & joins
                    else:
                        cells |= rows
                    if below.outer:
                        outer[t] |= samples & joins
                    else:
                        cells |= samples
                    cell[t] |= cells & joins
                rest = everyone & ~joins
                if rest:
                    readers[t] |= rest
                    if t < n:
                        stored[t] = True
        return plan

    def _follow(self, ends: int, last: int) -> None:
        """Note who may be computed in some passes, down to one operator."""
        numbers, place = self.partition.operators, self.tables.number
        for end in _bits(ends):
            if end not in self._reaches:
                self._reaches[end] = Reach(self.memo, numbers[end], place), end
            reach, before = self._reaches[end]
            self._reaches[end] = reach, last
            for i in range(last, before):
                self._followed[i] |= 1 << end
            for number in reach.down_to(numbers[last]):
                self._allowed[place[number]] |= 1 << end

    def _timed(self, mask: int) -> tuple[_Plan, list[int], list[tuple[int, int, int]]]:
        """The plan, its passes as masks of roots, and each one's read, compute and write."""
        plan = self._open(mask)
        groups = self._merged(plan) if self.merge else [1 << i for i in plan.templates]
        number = {i: g for g, group in enumerate(groups) for i in _bits(group)}
        sampled = [plan.templates[group.bit_length() - 1] is Template.OUTER for group in groups]
        passes = {mask: _passes(mask, number) for mask in {*plan.computed, *plan.readers}}
        read, compute, write = [0] * len(groups), [0] * len(groups), [self.profile.launch_ps] * len(groups)
        step = self.profile.step_ps
        for work, mask in zip(self._work, plan.computed, strict=True):
            for g in passes[mask]:
                compute[g] += work[sampled[g]]
                write[g] += step
        for reading, mask in zip(self._reading, plan.readers, strict=True):
            if mask:
                for g in passes[mask]:
                    read[g] += reading[sampled[g]]
                    write[g] += reading[2]
        for i in plan.templates:
            write[number[i]] += self.tables.places[i].write
        return plan, groups, list(zip(read, compute, write, strict=True))

    def _merged(self, plan: _Plan) -> list[int]:
        """The fused operators as masks of their roots, those that share a pass together."""
        if len(plan.templates) == 1:
            return [1 << i for i in plan.templates]
        beside = self._beside(plan)
        waits = dict.fromkeys(plan.templates, 0)
        if beside:
            for i in sorted(plan.templates):
                before = 1 << i | waits[i]
                for j in _bits(plan.readers[i]):
                    waits[j] |= before
        groups: list[int] = []
        waiting: list[int] = []
        for i in plan.templates:
            near = beside.get(i, 0)
            for k, group in enumerate(groups if near else ()):
                if near & group and not (waiting[k] >> i & 1 or waits[i] & group):
                    groups[k] |= 1 << i
                    waiting[k] |= waits[i]
                    break
            else:
                groups.append(1 << i)
                waiting.append(waits[i])
        return groups

    def _beside(self, plan: _Plan) -> dict[int, int]:
        """For fused operators those whose pass they may share, if neither waits for the other."""
        places, n = self.tables.places, len(self.tables.places)
        beside: dict[int, int] = {}
        hosts = fusing = 0
        for i, template in plan.templates.items():
            if places[i].mergeable:
                hosts |= 1 << i
                fusing |= 0 if template is None else 1 << i
        shared = set()
        for t in self._shareable:
            sharing = (plan.readers[t] | plan.computed[t] if t < n else plan.readers[t]) & fusing
            if sharing & (sharing - 1):
                shared.add(sharing)
        for sharing in shared:
            for i in _bits(sharing):
                beside[i] = beside.get(i, 0) | sharing & self._near[places[i].domain]
        for i in plan.templates:
            inside = plan.computed[i] & hosts & ~(1 << i)
            if inside and places[i].storable:
                beside[i] = beside.get(i, 0) | inside
                for j in _bits(inside):
                    beside[j] = beside.get(j, 0) | 1 << i
        return beside


@lru_cache(maxsize=1 << 14)
def _bits(mask: int) -> tuple[int, ...]:
    """The positions of the bits of a mask; those of one partition's plans meet the same again and again."""
    found = []
    while mask:
        bit = mask & -mask
        mask ^= bit
        found.append(bit.bit_length() - 1)
    return tuple(found)


def _union(masks: Iterable[int]) -> int:
    """All bits of some masks."""
    union = 0
    for mask in masks:
        union |= mask
    return union


def _passes(mask: int, number: dict[int, int]) -> Iterable[int]:
    """The numbers of the passes that the fused operators in a mask run in, each once."""
    if mask & (mask - 1) == 0:
        return (number[mask.bit_length() - 1],) if mask else ()
    return {number[i] for i in _bits(mask)}


@dataclass(slots=True)
class _Plan:
    """Fused operators are bits, by the place of their root: where each operator is computed and read."""

    computed: list[int]
    readers: list[int]
    templates: dict[int, Template | None]
