"""What the costs of a partition's plans rest on: its operators, what each reads, and what all that takes.

Times are integers of picoseconds, so that equal plans have equal costs and bounds are exact. Sparse operands
scale reads and operations by their density: an Outer operator touches large operands at the non-zeros only.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.costs import driven, read_ps, write_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.operators import Edge, Operator, is_view
from spartan_ng.optimizer.fusion.partitions import Partition, Point
from spartan_ng.optimizer.fusion.templates import Status, Template

_ROOT_ORDER = (Template.OUTER, Template.ROW, Template.MAGG, Template.CELL)
"""Of several templates that may end at an operator the first is taken: it references the most operands."""


_NONE = frozenset[int]()


class Link(NamedTuple):
    """An operand inside the cost table: its target's place, its point's bit, and who may fuse it."""

    target: int
    bit: int
    row: bool
    cell: bool
    outer: bool
    enters: bool
    """Whether what is made at a sparse operand's non-zeros alone begins here, in a pass of any template."""
    share: float | None
    """The part of the value that is read, where only the non-zeros of a sparse operand are visited; None
    where all that ask for the value read all of it."""


class Target(NamedTuple):
    """Reading a value: picoseconds for all of it, and until it comes; its bytes, and the time of each."""

    read: int
    wait: int
    nbytes: int
    rate: int


class End(Struct):
    """A template that may end here: valid unless all of `needs`, a mask of points, is materialized."""

    template: Template
    needs: int
    always: bool


class Place(Struct):
    """What the cost of a partition needs to know of one operator."""

    operator: Operator
    links: list[Link]
    ends: list[End]
    row: bool
    outer: bool
    compute: int
    sampled: int
    write: int
    kept: int
    """Writing the value in a pass that makes it on its way,"""
    required: bool
    mergeable: bool
    driven: bool
    """Whether the value is needed at non-zeros alone; a pass that ends in it makes all of it."""
    scans: bool
    """One pass makes a scan at most, which goes over the parts before each, too,"""
    draws: bool
    """and random numbers, which take twice the time if they are drawn twice."""


def part_ps(target: Target, share: float) -> int:
    """What reading a part of a value takes."""
    return target.read if share == 1 else int(target.nbytes * share) * target.rate


class Tables:
    """The operators of a partition by their places, inputs first, and the values that they read.

    A value that is made outside the partition comes behind the operators in `targets`.
    """

    def __init__(self, memo: Memo, partition: Partition, profile: Profile) -> None:
        self.memo, self.partition, self.profile = memo, partition, profile
        self.bits = {p: 1 << i for i, p in enumerate(partition.points)}
        self.number = {n: i for i, n in enumerate(partition.operators)}
        self.targets: list[Target] = []
        """Reading values in passes whose tasks have their own parts of them,"""
        self.far: list[Target] = []
        """and in others."""
        self._outside: dict[Node, int] = {}
        self.sources: list[Node] = [memo.operators[n].node for n in partition.operators]
        """The values that the targets are."""
        self._fill()
        self._bound()

    def _fill(self) -> None:
        members = self.partition.operators
        for n in members:
            operator = self.memo.operators[n]
            self.targets.append(self._target(operator.known.nbytes, operator.node))
        self.places = [self._place(self.memo.operators[n]) for n in members]
        forced = {
            link.target
            for place in self.places
            for link in place.links
            if link.target < len(members) and not (link.row or link.cell or link.outer)
        }
        for i in forced:
            self.places[i].required = True
        self._find_parts()

    def _find_parts(self) -> None:
        """Which values are read in part, and what reading each takes at least."""
        least: dict[int, float] = {}
        for place in self.places:
            for link in place.links:
                if link.share is not None:
                    least[link.target] = min(link.share, least.get(link.target, 1.0))
        self.partly = frozenset(least)
        self.least = [part_ps(t, least.get(i, 1.0)) for i, t in enumerate(self.targets)]
        for place in self.places if least else ():
            place.links = [
                x._replace(share=1.0) if x.share is None and x.target in least else x for x in place.links
            ]

    def _target(self, nbytes: int, node: Node) -> Target:
        """Reading a value: what tasks do not have of their own is sent to all of them."""
        prices = []
        for aligned in (True, False) if self.profile.network_ps else (True,):
            plain, wait = read_ps(nbytes, node, aligned, self.profile)
            prices.append(Target(plain, wait, nbytes, read_ps(1, node, aligned, self.profile)[0]))
        self.far.append(prices[-1])
        return prices[0]

    def _place(self, operator: Operator) -> Place:
        group, node = self.memo.groups[operator.number], operator.node
        own = sampled = operator.known.work * self.profile.flop_ps
        share, drivers = operator.known.share, self.memo.drivers.get(node)
        if drivers:
            share, work = driven(node, drivers, self.memo.known)
            sampled = work * self.profile.flop_ps
        rows, outers, cells, sums = [
            group[t].fusible if t in group else _NONE
            for t in (Template.ROW, Template.OUTER, Template.CELL, Template.MAGG)
        ]
        links: dict[Link, None] = {}
        bit_at: dict[int, int] = {}
        for j, edge in enumerate(operator.edges):
            target = self.number.get(edge.producer, -1)
            if target < 0:
                target = self._external(edge)
            fused = (j in rows, j in cells or j in sums, j in outers)
            bit_at[j] = self.bits.get(Point(operator.number, edge.producer), 0) if True in fused else 0
            visits = share < 1 and edge.source.format == "dense" and edge.source.shape == node.shape
            part = share if visits else None
            links[Link(target, bit_at[j], *fused, fused[2] and self._enters(node, edge), part)] = None
        ends = []
        for template in _ROOT_ORDER:
            if template in group and group[template].status.is_valid:
                masks = [bit_at[j] for j in group[template].needs]
                needs = 0
                for m in masks:
                    needs |= m
                ends.append(End(template, needs, not masks or 0 in masks))
        nbytes = operator.known.nbytes
        write = write_ps(nbytes, node, operator.domain, self.profile)
        return Place(
            operator,
            list(links),
            ends,
            Template.ROW in group,
            Template.OUTER in group,
            own,
            min(own, sampled),
            write,
            write_ps(nbytes, node, node.shape, self.profile),
            operator.required or operator.number in self.partition.roots,
            operator.shares,
            node in self.memo.drivers and node.format == "dense",
            node.op is Op.SCAN,
            node.op is Op.RANDOM,
        )

    def _enters(self, node: Node, edge: Edge) -> bool:
        """Whether an operand is needed at the non-zeros of a sparse map alone."""
        below = self.memo.groups[edge.producer].get(Template.OUTER) if edge.producer >= 0 else None
        return node.format == "csr" and below is not None and below.status is Status.OPEN_INVALID

    def _external(self, edge: Edge) -> int:
        """The place of a value that is made outside the partition."""
        source = edge.source
        number = self._outside.get(source)
        if number is None:
            made = self.memo.operators[edge.producer].known if edge.producer >= 0 else source
            nbytes = 0 if is_view(source) else made.nbytes
            number = len(self.targets)
            self._outside[source] = number
            self.sources.append(source)
            self.targets.append(self._target(nbytes, source))
        return number

    def _least_passes(self) -> int:
        """How many passes wait for each other, whatever is materialized: where no template goes on."""
        before = [1] * len(self.places)
        for i in range(len(before) - 1, -1, -1):
            for link in self.places[i].links:
                if link.target < len(before):
                    waits = not (link.row or link.cell or link.outer or link.enters)
                    before[link.target] = max(before[link.target], before[i] + waits)
        return max(before)

    def _bound(self) -> None:
        """Static costs: inputs are read, operators computed, and required values written, each once."""
        n = len(self.places)
        seen = {link.target for p in self.places for link in p.links if link.target >= n}
        self.least_read = sum([self.least[t] for t in seen])
        self.least_compute = sum([p.sampled for p in self.places])
        self.least_write = sum([p.kept for p in self.places if p.required])
        self.least_write += self._least_passes() * self.profile.launch_ps + n * self.profile.step_ps
        self.least_write += sum([self.targets[t].wait for t in seen])
