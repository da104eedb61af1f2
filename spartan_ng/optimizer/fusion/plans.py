"""The plans of a partition: what an assignment selects, and the sum of what its passes take.

An assignment says which interesting points are materialized; which fused operators it opens is found in
`opening`. Those of one domain that share a read, and do not wait for each other, run as one pass of several
results (MAgg and its like): they are costed as one (`sharing`).

Fusion plans (SystemML), section 4.3, Eq. 4.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.optimizer.fusion.costs import pass_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import Fusing, JoinedPasses
from spartan_ng.optimizer.fusion.masks import bits
from spartan_ng.optimizer.fusion.opening import Opened, Opening
from spartan_ng.optimizer.fusion.operators import is_aligned
from spartan_ng.optimizer.fusion.partitions import Partition
from spartan_ng.optimizer.fusion.reach import Reaches
from spartan_ng.optimizer.fusion.sharing import Shared, Sharing, may_embed
from spartan_ng.optimizer.fusion.tables import Tables, part_ps
from spartan_ng.optimizer.fusion.templates import Template


class Stage(Struct, frozen=True):
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
        self._reaches = Reaches(memo, partition.operators, self.tables.number)
        places = self.tables.places
        self._opening = Opening(self.tables, self._reaches)
        self._sharing = Sharing(self.tables, self._reaches)
        self._costs: dict[int, int] = {}
        """What assignments cost that have been asked for,"""
        self._alike: dict[Hashable, int] = {}
        """and plans: those of many assignments are one."""
        self._drawn = [i for i, p in enumerate(places) if p.draws]
        self._driven = sum([1 << i for i, p in enumerate(places) if p.driven])
        self._work = [(p.compute, p.sampled) for p in places]
        self._far = [0] * len(self.tables.targets)
        """For each value the passes whose tasks do not have their own parts of it,"""
        self._placed = [0] * len(self.tables.targets)
        """of those that this is known of."""

    @property
    def entries(self) -> set[int]:
        """The operators that are stored under every assignment: passes start there."""
        return {p.operator.number for p in self.tables.places if p.required}

    def may_share(self, some: set[int], others: set[int]) -> bool:
        """Whether a pass over one of some operators' domains may take in one over one of the others'."""
        above, below = (
            {p.operator.domain for p in self.tables.places if p.mergeable and p.operator.number in numbers}
            for numbers in (some, others)
        )
        return any(may_embed(d, o) for d in above for o in below)

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
            read += self.tables.least[i]
            write += self.tables.targets[i].wait
            if not self.tables.places[i].required:
                write += self.tables.places[i].kept
        return write + max(read, self.tables.least_compute)

    def cost(self, mask: int) -> int:
        """The cost of the plan that an assignment selects, in picoseconds."""
        found = self._costs.get(mask)
        if found is None:
            plan = self._opening.open(mask, self.merge)
            # Of what is drawn, the assignment says once more what is stored.
            key = mask if self._drawn else plan.key()
            found = self._alike.get(key)
            if found is None:
                _, _, times = self._timed(mask, plan)
                found = sum([write + max(read, compute) for read, compute, write in times])
                self._alike[key] = found
            self._costs[mask] = found
        return found

    def stages(self, mask: int) -> list[Stage]:
        """The fused operators that an assignment selects."""
        plan, groups, times = self._timed(mask)
        numbers = self.partition.operators
        stages = []
        for group, (read, compute, write) in zip(groups, times, strict=True):
            roots = [numbers[i] for i in bits(group)]
            members = [numbers[i] for i, m in enumerate(plan.computed) if m & group]
            template = plan.templates[group.bit_length() - 1]
            stages.append(Stage(tuple(roots), template, tuple(members), read, compute, write))
        return stages

    def _chosen(self, mask: int, plan: Opened | None = None) -> tuple[Opened, list[Shared]]:
        """The plan of an assignment, and the passes in which its fused operators run.

        Random numbers that are asked for in several passes, are stored.
        """
        plan = self._opening.open(mask, self.merge) if plan is None else plan
        shared = self._shared(plan)
        drawn = [i for i in self._drawn if plan.computed[i] & (plan.computed[i] - 1)]
        stored = set[int]()
        while again := [i for i in drawn if not self._draws_once(i, plan.computed[i], shared)]:
            stored.update(again)
            drawn = [i for i in drawn if i not in stored]
            plan = self._opening.open(mask, self.merge, stored)
            shared = self._shared(plan)
        return plan, shared

    def _draws_once(self, place: int, ends: int, shared: Sequence[Shared]) -> bool:
        """Whether all passes that compute random numbers run as one, which does not store them, too."""
        return not ends >> place & 1 and any(ends & ~group.ends == 0 for group in shared)

    def _timed(
        self, mask: int, plan: Opened | None = None
    ) -> tuple[Opened, list[int], list[tuple[int, int, int]]]:
        """The plan, its passes as masks of roots, and each one's read, compute and write."""
        plan, shared = self._chosen(mask, plan)
        groups = [pass_.ends for pass_ in shared]
        number = {i: g for g, group in enumerate(groups) for i in bits(group)}
        few = [not self._driven & group for group in groups]
        read, compute, write = [0] * len(groups), [0] * len(groups), [self.profile.launch_ps] * len(groups)
        step = self.profile.step_ps
        for work, ends in zip(self._work, plan.computed, strict=True):
            for g in _passes(ends, number):
                compute[g] += work[few[g]]
                write[g] += step
        network, near, distant = self.profile.network_ps, self.tables.targets, self.tables.far
        partly = self._shares(plan, number, few) if plan.parts else {}
        for t, ends in enumerate(plan.readers):
            if ends:
                far = network and self._far_from(t, ends)
                for g in _passes(ends, number):
                    reading = distant[t] if far and not groups[g] & ends & ~far else near[t]
                    read[g] += part_ps(reading, partly[g, t]) if (g, t) in partly else reading.read
                    write[g] += reading.wait
        for i, g in number.items():
            place = self.tables.places[i]
            write[g] += place.kept if i in shared[g].inside else place.write
        return plan, groups, list(zip(read, compute, write, strict=True))

    def _shares(
        self, plan: Opened, number: dict[int, int], few: Sequence[bool]
    ) -> dict[tuple[int, int], float]:
        """The parts of values that passes read."""
        shares: dict[tuple[int, int], float] = {}
        for (t, share, driven), mask in plan.parts.items():
            for g in _passes(mask & plan.readers[t], number):
                part = 1.0 if driven and not few[g] else share
                shares[g, t] = max(part, shares.get((g, t), 0.0))
        return shares

    def _far_from(self, target: int, ends: int) -> int:
        """Of some passes those whose tasks do not have their own parts of a value."""
        for i in bits(ends & ~self._placed[target]):
            reach = self._reaches.of(i)
            ways = reach.ways.get(self.tables.sources[target], ())
            if not any(is_aligned(reach.stage, way) for way in ways):
                self._far[target] |= 1 << i
        self._placed[target] |= ends
        return self._far[target] & ends

    def _shared(self, plan: Opened) -> list[Shared]:
        """The fused operators by the passes in which they run."""
        ends = list(plan.templates)
        if len(ends) == 1 or not self.merge:
            return [Shared(i, 1 << i, {}, {}) for i in ends]
        return self._sharing.join(plan.computed, plan.readers, ends, plan.scanning)

    def chosen(self, mask: int) -> tuple[Fusing, list[JoinedPasses]]:
        """For each operator of the partition, where the fused operators end that compute it, and those that
        run in the pass of another."""
        plan, shared = self._chosen(mask)
        node = [p.operator.node for p in self.tables.places]
        fusing = {node[t]: {node[i] for i in bits(m)} for t, m in enumerate(plan.computed)}
        joined = [
            JoinedPasses(node[inside.get(i, host)], node[i], labels.get(i))
            for host, ends, labels, inside in shared
            for i in bits(ends & ~(1 << host))
        ]
        return fusing, joined


def _passes(mask: int, number: dict[int, int]) -> Iterable[int]:
    """The numbers of the passes that the fused operators in a mask run in, each once."""
    if mask & (mask - 1) == 0:
        return (number[mask.bit_length() - 1],) if mask else ()
    return {number[i] for i in bits(mask)}
