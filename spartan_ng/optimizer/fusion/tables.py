"""What the costs of a partition's plans rest on: its operators, what each reads, and what all that takes.

Times are integers of picoseconds, so that equal plans have equal costs and bounds are exact. Sparse operands
scale reads and operations by their density: an Outer operator touches large operands at the non-zeros only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.costs import read_ps, write_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.legality import leaves_tasks, repeats_cheaply
from spartan_ng.optimizer.fusion.operators import Edge, Operator, is_view
from spartan_ng.optimizer.fusion.partitions import Partition, Point
from spartan_ng.optimizer.fusion.sampling import is_sampled
from spartan_ng.optimizer.fusion.templates import Template

_ROOT_ORDER = (Template.OUTER, Template.ROW, Template.MAGG, Template.CELL)
"""Of several templates that may end at an operator the first is taken: it references the most operands."""


class Link(NamedTuple):
    """An operand inside the cost table: its target's place, its point's bit, and who may fuse it."""

    target: int
    bit: int
    row: bool
    cell: bool
    outer: bool


@dataclass(slots=True)
class Target:
    """A value that may be read: picoseconds plain, by an Outer operator, and until the first byte comes."""

    read: int
    sampled: int
    wait: int
    shareable: bool


@dataclass(slots=True)
class End:
    """A template that may end here: valid unless all of `needs`, a mask of points, is materialized."""

    template: Template
    needs: int
    always: bool


@dataclass(slots=True)
class Place:
    """What the cost of a partition needs to know of one operator."""

    operator: Operator
    links: list[Link]
    ends: list[End]
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


class Tables:
    """The operators of a partition by their places, inputs first, and the values that they read.

    A value that is made outside the partition comes behind the operators in `targets`.
    """

    def __init__(self, memo: Memo, partition: Partition, profile: Profile) -> None:
        self.memo, self.partition, self.profile = memo, partition, profile
        self.bits = {p: 1 << i for i, p in enumerate(partition.points)}
        self.number = {n: i for i, n in enumerate(partition.operators)}
        self.targets: list[Target] = []
        self._outside: dict[object, int] = {}
        self.density = self._outer_density()
        self._large = max([memo.operators[n].node.size for n in partition.operators])
        """Operands of so many elements are touched at the non-zeros only."""
        self._fill()
        self._bound()

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
        if operator.node.format == "csr":
            return operator.known.density
        below = (self.memo.operators[e.producer] for e in operator.edges if e.producer >= 0)
        return min((o.known.density for o in below), default=1.0)

    def _fill(self) -> None:
        members = self.partition.operators
        for n in members:
            operator = self.memo.operators[n]
            self.targets.append(self._target_of(operator))
        self.places = [self._place(self.memo.operators[n]) for n in members]
        domains = {p.domain for p in self.places if p.mergeable}
        self.near = {d: [o for o in domains if d == o or _takes_in(d, o) or _takes_in(o, d)] for d in domains}
        """For each domain those that passes over it may share a pass with."""
        forced = {
            link.target
            for place in self.places
            for link in place.links
            if link.target < len(members) and not (link.row or link.cell or link.outer)
        }
        for i in forced:
            self.places[i].required = True

    def _target_of(self, operator: Operator) -> Target:
        readers = [self.memo.operators[c] for c in operator.consumers]
        aligned = any(e.aligned for c in readers for e in c.edges if e.producer == operator.number)
        return self._read(operator.known.nbytes, operator.node, aligned)

    def _read(self, nbytes: int, node: Node, aligned: bool) -> Target:
        """Reading a value: what tasks do not have of their own is sent to all of them."""
        size = node.size
        plain, wait = read_ps(nbytes, node, aligned, self.profile)
        sampled = plain
        if self.density < 1 and node.format != "csr" and size >= self._large:
            sampled, _ = read_ps(int(nbytes * self.density), node, aligned, self.profile)
        return Target(plain, sampled, wait, 2 * size > self._large)

    def _place(self, operator: Operator) -> Place:
        group, node = self.memo.groups[operator.number], operator.node
        refers = {t: group[t].fusible if t in group else frozenset[int]() for t in _ROOT_ORDER}
        cells = refers[Template.CELL] | refers[Template.MAGG]
        links: dict[Link, None] = {}
        bit_at: dict[int, int] = {}
        for j, edge in enumerate(operator.edges):
            target = self.number.get(edge.producer, -1)
            if target < 0:
                target = self._external(edge)
            fused = (j in refers[Template.ROW], j in cells, j in refers[Template.OUTER])
            bit_at[j] = self.bits.get(Point(operator.number, edge.producer), 0) if any(fused) else 0
            links[Link(target, bit_at[j], *fused)] = None
        ends = []
        for template in _ROOT_ORDER:
            if template in group and group[template].status.is_valid:
                masks = [bit_at[j] for j in group[template].needs]
                needs = 0
                for m in masks:
                    needs |= m
                ends.append(End(template, needs, not masks or 0 in masks))
        own = sampled = operator.known.work * self.profile.flop_ps
        everywhere = node.format == "dense" and is_sampled(node) and node not in self.memo.drivers
        if _is_large(operator, self._large) and not everywhere:
            sampled = int(operator.known.flops * self.density) * self.profile.flop_ps
        write = write_ps(operator.known.nbytes, node, operator.domain, self.profile)
        dense = node.format == "dense" and {e.source.format for e in operator.edges} <= {"dense"}
        return Place(
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
            operator.shares,
            tuple(sorted([n for n in operator.domain if n > 1])),
        )

    def _external(self, edge: Edge) -> int:
        """The place of a value that is made outside the partition."""
        source = edge.source
        number = self._outside.get(source)
        if number is None:
            made = self.memo.operators[edge.producer].known if edge.producer >= 0 else source
            nbytes = 0 if is_view(source) else made.nbytes
            number = len(self.targets)
            self._outside[source] = number
            self.targets.append(self._read(nbytes, source, edge.aligned))
        return number

    def _bound(self) -> None:
        """Static costs: inputs are read, operators computed, and required values written, each once."""
        n = len(self.places)
        seen = {link.target for p in self.places for link in p.links if link.target >= n}
        self.least_read = sum([min(self.targets[t].read, self.targets[t].sampled) for t in seen])
        self.least_compute = sum([p.sampled for p in self.places])
        self.least_write = sum([p.write for p in self.places if p.required])
        self.least_write += self.profile.launch_ps + n * self.profile.step_ps
        self.least_write += sum([self.targets[t].wait for t in seen])


def _takes_in(domain: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a pass over a domain has room for one over another: its further dimensions then stay whole."""
    further = Counter(domain)
    further.subtract(other)
    left, kept = prod(other), prod(further.elements())
    return min(further.values(), default=0) >= 0 and leaves_tasks(prod(domain), left, kept)


def _is_large(operator: Operator, large: int) -> bool:
    return operator.node.size >= large or prod(operator.domain) > operator.node.size >= 1
