"""What a fusion plan costs: the sum over its fused operators of write + max(read, compute).

An assignment says which interesting points are materialized. From the roots down, an operator that has
to be stored opens a fused operator of the best template; its operands join as far as the template
references them and the assignment allows. An operator in two of them is computed twice. Times are integers of
picoseconds, so that equal plans have equal costs and bounds are exact.

Fused operators of one domain that share a read, and do not wait for each other, run as one pass of several
results (MAgg and its like): they are costed as one.

Fusion plans (SystemML), section 4.3, Eq. 4. Sparse operands scale reads and operations by their density.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from spartan_ng.costs import Profile
from spartan_ng.costs.operations import weighed
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.group import repeats_cheaply
from spartan_ng.optimizer.fusion.merge import leaves_uncut
from spartan_ng.optimizer.fusion.operators import Edge, Operator, is_view, stored_bytes
from spartan_ng.optimizer.fusion.partitions import Partition, Point
from spartan_ng.optimizer.fusion.templates import Template

_ROOT_ORDER = (Template.OUTER, Template.ROW, Template.MAGG, Template.CELL)
"""Of several templates that may end at an operator the first is taken: it references the most operands."""


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
        return self.write_ps + max(self.read_ps, self.compute_ps)


class _Link(NamedTuple):
    """An operand inside the cost table: its target's place, its point's bit, and who may fuse it."""

    target: int
    bit: int
    row: bool
    cell: bool
    outer: bool


@dataclass(slots=True)
class _Target:
    """A value that may be read: picoseconds plain, by an Outer operator, and until the first byte comes."""

    read: int
    sampled: int
    wait: int
    shareable: bool


@dataclass(slots=True)
class _Entry:
    """A template that may end here: valid unless all of `needs`, a mask of points, is materialized."""

    template: Template
    needs: int
    always: bool


@dataclass(slots=True)
class _Place:
    """What the cost of a partition needs to know of one operator."""

    operator: Operator
    links: list[_Link]
    ends: list[_Entry]
    row: bool
    outer: bool
    compute: int
    sampled: int
    write: int
    required: bool
    storable: bool
    """Whether a pass that computes the value for itself may store it: not what every block makes anew."""
    mergeable: bool
    domain: tuple[int, ...]


class PlanCosts:
    """The cost of one partition's plans under assignments: bit i of a mask is point i."""

    def __init__(self, memo: Memo, partition: Partition, profile: Profile, merge: bool = True) -> None:
        self.memo, self.partition, self.profile, self.merge = memo, partition, profile, merge
        self.bits = {p: 1 << i for i, p in enumerate(partition.points)}
        self._number = {n: i for i, n in enumerate(partition.operators)}
        self._targets: list[_Target] = []
        self._outside: dict[object, int] = {}
        self.density = self._outer_density()
        self._large = max(memo.operators[n].node.size for n in partition.operators)
        """Operands of so many elements are touched at the non-zeros only."""
        self._fill()
        self._bound()
        self._work = [(p.compute, p.sampled) for p in self.places]
        self._reading = [(t.read, t.sampled, t.wait) for t in self._targets]

    # --- tables ------------------------------------------------------------------------------------

    def _outer_density(self) -> float:
        """The least density that an Outer operator of the partition is driven by; 1 without one."""
        return min(
            (
                self._density(self.memo.operators[n])
                for n in self.partition.operators
                if (a := self.memo.groups[n].get(Template.OUTER)) is not None and a.status.is_valid
            ),
            default=1.0,
        )

    def _density(self, operator: Operator) -> float:
        """The density of the sparse operand that drives an Outer operator ending here."""
        sparse = [e.source for e in operator.edges if e.source.format == "csr"]
        if operator.node.format == "csr" or not sparse:
            return operator.density
        drivers = [self.memo.operators[e.producer].density for e in operator.edges if e.producer >= 0]
        return min(drivers, default=1.0)

    def _fill(self) -> None:
        members = self.partition.operators
        for n in members:
            operator = self.memo.operators[n]
            self._targets.append(self._target_of(operator))
        self.places = [self._place(self.memo.operators[n]) for n in members]
        domains = {p.domain for p in self.places if p.mergeable}
        self._near = {
            d: [o for o in domains if d == o or _takes_in(d, o) or _takes_in(o, d)] for d in domains
        }
        """For each domain those that passes over it may share a pass with."""
        forced = {
            link.target
            for place in self.places
            for link in place.links
            if link.target < len(members) and not (link.row or link.cell or link.outer)
        }
        for i in forced:
            self.places[i].required = True

    def _target_of(self, operator: Operator) -> _Target:
        readers = (self.memo.operators[c] for c in operator.consumers)
        aligned = any(e.aligned for c in readers for e in c.edges if e.producer == operator.number)
        return self._read(operator.nbytes, operator.node, aligned)

    def _read(self, nbytes: int, node: Node, aligned: bool) -> _Target:
        """Reading a value: what tasks do not have of their own is sent to all of them."""
        local = aligned or not self.profile.network_ps or node.size <= 1
        rate = self.profile.memory_ps if local else self.profile.network_ps
        wait = self.profile.step_ps + (0 if local else self.profile.message_ps)
        d = 1.0 if node.format == "csr" or node.size < self._large else self.density
        return _Target(nbytes * rate, int(nbytes * d) * rate, wait, 2 * node.size > self._large)

    def _place(self, operator: Operator) -> _Place:
        group, node = self.memo.groups[operator.number], operator.node
        refers = {t: group[t].fusible if t in group else frozenset[int]() for t in Template}
        cells = refers[Template.CELL] | refers[Template.MAGG]
        links: dict[_Link, None] = {}
        bit_at: dict[int, int] = {}
        for j, edge in enumerate(operator.edges):
            target = self._number.get(edge.producer, -1)
            if target < 0:
                target = self._external(edge)
            fused = (j in refers[Template.ROW], j in cells, j in refers[Template.OUTER])
            bit_at[j] = self.bits.get(Point(operator.number, edge.producer), 0) if any(fused) else 0
            links[_Link(target, bit_at[j], *fused)] = None
        ends = []
        for template in _ROOT_ORDER:
            if template in group and group[template].status.is_valid:
                masks = [bit_at[j] for j in group[template].needs]
                needs = 0
                for m in masks:
                    needs |= m
                ends.append(_Entry(template, needs, not masks or 0 in masks))
        own = self.profile.flop_ps * weighed(node, operator.flops, operator.share)
        sampled = own
        if _is_large(operator, self._large):
            sampled = int(operator.flops * self.density) * self.profile.flop_ps
        write = operator.nbytes * self.profile.memory_ps
        if self.profile.network_ps and prod(operator.domain) > node.size:
            write += operator.nbytes * self.profile.network_ps
        dense = node.format == "dense" and all(e.source.format == "dense" for e in operator.edges)
        product = node.fn == "contract" and node.size**2 >= prod(operator.domain)
        return _Place(
            operator,
            list(links),
            ends,
            Template.ROW in group,
            Template.OUTER in group,
            own,
            min(own, sampled),
            write,
            operator.required or operator.number in self.partition.roots,
            dense and not repeats_cheaply(node),
            dense and not product,
            tuple(sorted(n for n in operator.domain if n > 1)),
        )

    def _external(self, edge: Edge) -> int:
        """The place of a value that is made outside the partition."""
        source = edge.source
        number = self._outside.get(source)
        if number is None:
            density = self.memo.operators[edge.producer].density if edge.producer >= 0 else 1.0
            nbytes = 0 if is_view(source) else stored_bytes(source, density)
            number = len(self._targets)
            self._outside[source] = number
            self._targets.append(self._read(nbytes, source, edge.aligned))
        return number

    def _bound(self) -> None:
        """Static costs: inputs are read, operators computed, and required values written, each once."""
        n = len(self.places)
        seen = {link.target for p in self.places for link in p.links if link.target >= n}
        self._least_read = sum(min(self._targets[t].read, self._targets[t].sampled) for t in seen)
        self._least_compute = sum(p.sampled for p in self.places)
        self._least_write = sum(p.write for p in self.places if p.required)
        self._least_write += self.profile.launch_ps + n * self.profile.step_ps
        self._least_write += sum(self._targets[t].wait for t in seen)

    @property
    def entries(self) -> set[int]:
        """The operators that are stored under every assignment: passes start there."""
        return {p.operator.number for p in self.places if p.required}

    def may_share(self, some: set[int], others: set[int]) -> bool:
        """Whether a pass over one of some operators' domains may take in one over one of the others'."""
        domains = {d for n in some if (d := self._domain(n)) is not None}
        near = set[tuple[int, ...]]().union(*(self._near[d] for d in domains))
        return any(self._domain(n) in near for n in others)

    def _domain(self, number: int) -> tuple[int, ...] | None:
        place = self.places[self._number[number]]
        return place.domain if place.mergeable else None

    # --- costs -------------------------------------------------------------------------------------

    def at_least(self, mask: int) -> int:
        """A lower bound for every assignment that materializes the points in `mask` and maybe others.

        Each distinct target is written and read once. Reads overlap with computing, so what both bound is
        their maximum; summing the maxima would count too much.
        """
        targets = {p.target for p, bit in self.bits.items() if mask & bit}
        read, write = self._least_read, self._least_write
        for number in targets:
            i = self._number[number]
            read += min(self._targets[i].read, self._targets[i].sampled)
            write += self._targets[i].wait
            if not self.places[i].required:
                write += self.places[i].write
        return write + max(read, self._least_compute)

    def cost(self, mask: int) -> int:
        """The cost of the plan that an assignment selects, in picoseconds."""
        _, _, times = self._timed(mask)
        return sum(write + max(read, compute) for read, compute, write in times)

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
        places = self.places
        n = len(places)
        row, cell, outer = [0] * n, [0] * n, [0] * n
        stored = [p.required for p in places]
        plan = _Plan([0] * n, [0] * len(self._targets), {})
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
            for link in place.links:
                t = link.target
                joins = 0
                if t < n and not link.bit & mask:
                    below = places[t]
                    if r and link.row:
                        joins |= r
                        if below.row:
                            row[t] |= r
                        else:
                            cell[t] |= r
                    if c and link.cell:
                        joins |= c
                        cell[t] |= c
                    if o and link.outer:
                        joins |= o
                        if below.outer:
                            outer[t] |= o
                        else:
                            cell[t] |= o
                rest = everyone & ~joins
                if rest:
                    readers[t] |= rest
                    if t < n:
                        stored[t] = True
        return plan

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
            write[number[i]] += self.places[i].write
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
        placed = 0
        for i in plan.templates:
            near = beside.get(i, 0)
            if near & placed:
                for k, group in enumerate(groups):
                    if near & group and not (waiting[k] >> i & 1 or waits[i] & group):
                        groups[k] |= 1 << i
                        waiting[k] |= waits[i]
                        break
                else:
                    near = 0
            if not near & placed:
                groups.append(1 << i)
                waiting.append(waits[i])
            placed |= 1 << i
        return groups

    def _beside(self, plan: _Plan) -> dict[int, int]:
        """For fused operators those whose pass they may share, if neither waits for the other."""
        places, n = self.places, len(self.places)
        beside: dict[int, int] = {}
        read = [r | c for r, c in zip(plan.readers, plan.computed, strict=False)] + plan.readers[n:]
        shared = {m for m, t in zip(read, self._targets, strict=True) if m & (m - 1) and t.shareable}
        if shared:
            alike: dict[tuple[int, ...], int] = {}
            for i, template in plan.templates.items():
                if places[i].mergeable and template is not None:
                    alike[places[i].domain] = alike.get(places[i].domain, 0) | 1 << i
            near = [(m, _union(alike.get(d, 0) for d in self._near[domain])) for domain, m in alike.items()]
            for sharing in shared:
                for here, others in near:
                    for i in _bits(sharing & here):
                        beside[i] = beside.get(i, 0) | sharing & others
        for i in plan.templates:
            inside = plan.computed[i] & ~(1 << i)
            if inside and places[i].storable:
                beside[i] = beside.get(i, 0) | inside
                for j in _bits(inside):
                    beside[j] = beside.get(j, 0) | 1 << i
        return beside


def _bits(mask: int) -> Iterator[int]:
    """The positions of the bits of a mask."""
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit.bit_length() - 1


def _passes(mask: int, number: dict[int, int]) -> Iterable[int]:
    """The numbers of the passes that the fused operators in a mask run in, each once."""
    if mask & (mask - 1) == 0:
        return (number[mask.bit_length() - 1],) if mask else ()
    return {number[i] for i in _bits(mask)}


def _union(masks: Iterable[int]) -> int:
    """All bits of some masks."""
    union = 0
    for mask in masks:
        union |= mask
    return union


def _takes_in(domain: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a pass over a domain has room for one over another: its further dimensions then stay whole."""
    further = Counter(domain)
    further.subtract(other)
    return min(further.values(), default=0) >= 0 and leaves_uncut(prod(domain), prod(further.elements()))


@dataclass(slots=True)
class _Plan:
    """Fused operators are bits, by the place of their root: where each operator is computed and read."""

    computed: list[int]
    readers: list[int]
    templates: dict[int, Template | None]


def _is_large(operator: Operator, large: int) -> bool:
    return operator.node.size >= large or prod(operator.domain) > operator.node.size >= 1
