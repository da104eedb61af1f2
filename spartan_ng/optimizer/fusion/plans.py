"""The plans of a partition: what an assignment selects, and the sum of what its passes take.

An assignment says which interesting points are materialized. From the roots down, an operator that has
to be stored opens a fused operator of the best template; its operands join as far as the template
references them, the pass reaches (`reach`) and the assignment allows. An operator in two of them is computed
twice. Fused operators of one domain that share a read, and do not wait for each other, run as one pass of
several results (MAgg and its like): they are costed as one.

Fusion plans (SystemML), section 4.3, Eq. 4.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from dataclasses import dataclass

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.costs import pass_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import Fusing, JoinedPasses
from spartan_ng.optimizer.fusion.legality import MOST_RESULTS, passed_values
from spartan_ng.optimizer.fusion.masks import bits
from spartan_ng.optimizer.fusion.operators import is_aligned
from spartan_ng.optimizer.fusion.partitions import Partition
from spartan_ng.optimizer.fusion.reach import Reaches
from spartan_ng.optimizer.fusion.sharing import Shared, Sharing, may_embed
from spartan_ng.optimizer.fusion.tables import Tables, part_ps
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
        self._reaches = Reaches(memo, partition.operators, self.tables.number)
        self._followed = [0] * len(partition.operators)
        """For each operator the passes that were followed down to it,"""
        self._allowed = [0] * len(partition.operators)
        """and those of them that may compute it."""
        places = self.tables.places
        self._sharing = Sharing(self.tables, self._reaches)
        self._costs: dict[int, int] = {}
        """What assignments cost that have been asked for,"""
        self._alike: dict[Hashable, int] = {}
        """and plans: those of many assignments are one."""
        self._drawn = [i for i, p in enumerate(places) if p.draws]
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
            plan = self._open(mask)
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

    def _open(self, mask: int, stored_drawn: Container[int] = ()) -> _Plan:
        """From the roots down: which operators are stored, and in which fused operators each is computed.

        `stored_drawn` are places of random numbers that are stored.
        """
        places = self.tables.places
        n = len(places)
        row, cell, outer = [0] * n, [0] * n, [0] * n
        stored = [p.required for p in places]
        plan = _Plan([0] * n, [0] * len(self.tables.targets), {}, [], {})
        followed, allowed = self._followed, self._allowed
        computed, readers = plan.computed, plan.readers
        for i in range(n - 1, -1, -1):
            place = places[i]
            r, c, o = row[i], cell[i], outer[i]
            if readers[i]:  # what a pass makes for one reader is there for all of its others
                readers[i] &= ~(r | c | o)
                stored[i] = stored[i] or readers[i] > 0
            if place.scans or i in stored_drawn:
                users = r | c | o
                if users and (stored[i] or users & (users - 1)):
                    makers = self._makers(i, users, stored[i]) if place.scans else 0
                    if rest := users & ~makers:
                        readers[i] |= rest
                        stored[i] = True
                        r, c, o = r & makers, c & makers, o & makers
                    if makers:
                        plan.scanning.append((i, makers | stored[i] << i))
            if stored[i]:
                template = next((e.template for e in place.ends if e.always or e.needs & ~mask), None)
                plan.templates[i] = template
                if template is Template.ROW:
                    r |= 1 << i
                elif template is Template.OUTER:
                    o |= 1 << i
                else:
                    c |= 1 << i
            everyone = r | c | o
            computed[i] = everyone
            for t, bit, by_row, by_cell, by_outer, enters, share in place.links:
                joins = 0
                if t < n and not bit & mask:
                    rows = r if by_row else 0
                    cells = c if by_cell else 0
                    samples = everyone if enters else o if by_outer else 0
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
                    if share is not None:
                        part = t, share, place.driven
                        plan.parts[part] = plan.parts.get(part, 0) | rest
        return plan

    def _follow(self, ends: int, last: int) -> None:
        """Note who may be computed in some passes, down to one operator."""
        for end in bits(ends):
            before, inside = self._reaches.follow(end, last)
            for i in range(last, before):
                self._followed[i] |= 1 << end
            for number in inside:
                self._allowed[self.tables.number[number]] |= 1 << end

    def _makers(self, place: int, users: int, stored: bool) -> int:
        """Of passes that ask for a scan those that make it, as one: they pass on the same."""
        node = self.tables.sources[place]
        values = {end: passed_values(self._reaches.of(end).stage) for end in bits(users)}
        one: set[Node | None] = {node}
        if not stored and all(passed == values[max(values)] for passed in values.values()):
            one = values[max(values)] - {None}
        found = sum([1 << end for end, passed in values.items() if passed == one])
        return found if self.merge and found.bit_count() < MOST_RESULTS else 0

    def _chosen(self, mask: int, plan: _Plan | None = None) -> tuple[_Plan, list[Shared]]:
        """The plan of an assignment, and the passes in which its fused operators run.

        Random numbers that are asked for in several passes, are stored.
        """
        plan = self._open(mask) if plan is None else plan
        shared = self._shared(plan)
        drawn = [i for i in self._drawn if plan.computed[i] & (plan.computed[i] - 1)]
        stored = set[int]()
        while again := [i for i in drawn if not self._draws_once(i, plan.computed[i], shared)]:
            stored.update(again)
            drawn = [i for i in drawn if i not in stored]
            plan = self._open(mask, stored)
            shared = self._shared(plan)
        return plan, shared

    def _draws_once(self, place: int, ends: int, shared: Sequence[Shared]) -> bool:
        """Whether all passes that compute random numbers run as one, which does not store them, too."""
        return not ends >> place & 1 and any(ends & ~group.ends == 0 for group in shared)

    def _timed(
        self, mask: int, plan: _Plan | None = None
    ) -> tuple[_Plan, list[int], list[tuple[int, int, int]]]:
        """The plan, its passes as masks of roots, and each one's read, compute and write."""
        plan, shared = self._chosen(mask, plan)
        groups = [pass_.ends for pass_ in shared]
        number = {i: g for g, group in enumerate(groups) for i in bits(group)}
        driven = sum([1 << i for i in number if self.tables.places[i].driven])
        few = [not driven & group for group in groups]
        passes = {mask: _passes(mask, number) for mask in {*plan.computed, *plan.readers}}
        read, compute, write = [0] * len(groups), [0] * len(groups), [self.profile.launch_ps] * len(groups)
        step = self.profile.step_ps
        for work, mask in zip(self._work, plan.computed, strict=True):
            for g in passes[mask]:
                compute[g] += work[few[g]]
                write[g] += step
        network, near, distant = self.profile.network_ps, self.tables.targets, self.tables.far
        partly = self._shares(plan, number, few) if plan.parts else {}
        for t, mask in enumerate(plan.readers):
            if mask:
                far = network and self._far_from(t, mask)
                for g in passes[mask]:
                    reading = distant[t] if far and not groups[g] & mask & ~far else near[t]
                    read[g] += part_ps(reading, partly[g, t]) if (g, t) in partly else reading.read
                    write[g] += reading.wait
        for i, g in number.items():
            place = self.tables.places[i]
            write[g] += place.kept if i in shared[g].inside else place.write
        return plan, groups, list(zip(read, compute, write, strict=True))

    def _shares(
        self, plan: _Plan, number: dict[int, int], few: Sequence[bool]
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

    def _shared(self, plan: _Plan) -> list[Shared]:
        """The fused operators by the passes in which they run."""
        ends = list(plan.templates)
        if len(ends) == 1 or not self.merge:
            return [Shared(i, 1 << i, {}, {}) for i in ends]
        return self._sharing.join(plan.computed, plan.readers, ends, plan.scanning)

    def passes(self, mask: int) -> Fusing:
        """For each operator of the partition, where the fused operators end that compute it."""
        node = [p.operator.node for p in self.tables.places]
        plan, _ = self._chosen(mask)
        return {node[t]: {node[i] for i in bits(m)} for t, m in enumerate(plan.computed)}

    def together(self, mask: int) -> list[JoinedPasses]:
        """The fused operators that run in the pass of another."""
        (_, shared), node = self._chosen(mask), [p.operator.node for p in self.tables.places]
        return [
            JoinedPasses(node[inside.get(i, host)], node[i], labels.get(i))
            for host, ends, labels, inside in shared
            for i in bits(ends & ~(1 << host))
        ]


def _passes(mask: int, number: dict[int, int]) -> Iterable[int]:
    """The numbers of the passes that the fused operators in a mask run in, each once."""
    if mask & (mask - 1) == 0:
        return (number[mask.bit_length() - 1],) if mask else ()
    return {number[i] for i in bits(mask)}


@dataclass(slots=True)
class _Plan:
    """Fused operators are bits, by the place of their root: where each operator is computed and read."""

    computed: list[int]
    readers: list[int]
    templates: dict[int, Template | None]
    scanning: list[tuple[int, int]]
    """Scans and the passes that make each as one."""
    parts: dict[tuple[int, float, bool], int]
    """For parts of values the passes that read them; whether for what is computed in part itself."""

    def key(self) -> Hashable:
        """Equal where plans are."""
        passes = tuple(self.computed), tuple(self.readers), tuple(self.templates)
        return *passes, tuple(self.scanning), tuple(self.parts.items())
