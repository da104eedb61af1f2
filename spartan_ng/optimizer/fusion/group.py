"""Stages to be: which nodes one pass computes, over which domain, and what it stores of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod
from typing import NamedTuple

from msgspec import Struct, field

from spartan_ng.arrays import WHOLE
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.labels import Labels, is_transparent, root
from spartan_ng.optimizer.fusion.sampling import Drivers


class Result(Struct, frozen=True):
    """A further result of a stage: a fused member that is stored, too, or a value reduced over the domain."""

    node: Node
    out: Labels
    inputs: tuple[Labels, ...] | None = None
    """Of a reduced value, the labels of its operands; None: the node is a member."""


class Group(Struct, eq=False):
    """One stage to be: its root (a node whose value is stored), domain and fused members."""

    root: Node
    domain: tuple[int, ...]
    out: Labels
    whole: set[int]
    uncut: set[int] = field(default_factory=set)
    """Dimensions that tiles must not cut (their blocks may be): axes of sparse operands."""
    ends: set[Node] = field(default_factory=set)
    """Where the chosen passes end that the stage is."""
    closed: bool = False
    """Whether it is better left with the results that it has."""
    members: list[tuple[Node, Labels]] = field(default_factory=list)
    """Fused nodes and views with their labels, users before inputs."""
    separate: bool = False
    """A stage of its own kind: nothing is fused into it."""
    alone: bool = False
    """Whether its root leaves no memory for anything beside it (`legality.stands_alone`)."""
    scan: Node | None = None
    """The cumulative aggregate in the stage: only maps stand around it, and no dimension stays whole."""
    more: list[Result] = field(default_factory=list)
    """Further results of the same pass."""
    users: dict[Group, None] = field(default_factory=dict)
    """Stages that read a result of this one."""
    rank: int = 0
    """More than that of any user: what a stage waits for ranks higher."""
    _held: set[Node] = field(default_factory=set)
    _counted: int = 0
    """So many of the members are in `_held`."""
    is_product: bool = False
    """Whether the stage ends in a product that is better left alone."""

    def __post_init__(self) -> None:
        self.is_product = is_product(self.root)
        self.ends.add(self.root)

    @property
    def stored(self) -> list[Node]:
        """The nodes whose values the stage stores."""
        return [self.root, *[r.node for r in self.more]]

    def holds(self, node: Node) -> bool:
        """Whether the stage computes the node."""
        if self._counted < len(self.members):
            self._held.update([m for m, _ in self.members[self._counted :]])
            self._counted = len(self.members)
        if node in self._held or node is self.root:
            return True
        return bool(self.more) and any(r.node is node for r in self.more)

    def recount(self) -> None:
        """Take notice of members that have come anywhere but at the end."""
        self._held, self._counted = set(), 0

    def canonical(self, labels: Labels) -> Labels:
        """Labels with WHOLE for dimensions that are never cut: the same elements under one name."""
        if self.whole.isdisjoint(labels):
            return labels
        return tuple([WHOLE if d in self.whole else d for d in labels])


class Grouping(Struct):
    """All stages, users before inputs, and the stored nodes."""

    groups: list[Group]
    stored: dict[Node, Group]
    drivers: Drivers = field(default_factory=dict)
    fusing: Fusing = field(default_factory=dict)
    crossing: frozenset[Node] = frozenset()
    """Products that are made in passes over all of their matrix, see `crossing`."""
    makers: dict[Group, dict[Group, None]] = field(default_factory=dict)
    """For a stage, those whose results it reads. Not kept by the stage: stages that lead to each other would
    keep arrays until somebody collects garbage."""

    def serve(self, stage: Group, users: Iterable[Group]) -> None:
        """Let further stages read results of a stage."""
        for user in users:
            stage.users[user] = None
            self.makers.setdefault(user, {})[stage] = None
        raised = [stage]
        while raised:
            one = raised.pop()
            least = max((user.rank + 1 for user in one.users), default=0)
            if one.rank < least:
                one.rank = least
                raised.extend(self.makers.get(one, ()))

    def put(self, host: Group, stage: Group) -> None:
        """Let a stage read and serve in the stead of another, which becomes part of it."""
        for user in stage.users:
            del self.makers[user][stage]
        self.serve(host, stage.users)
        for maker in self.makers.pop(stage, {}):
            del maker.users[stage]
            self.serve(maker, [host])


class JoinedPasses(NamedTuple):
    """A pass that runs in that of another: where both end."""

    host: Node
    end: Node
    labels: Labels | None
    """The other's dimensions for each of its own; None where the other computes the value on its way, and
    stores it, too."""


Demand = tuple[Group, Labels | None]
"""A stage that asks for a value, and how its domain's dimensions follow the value's axes."""
Fusing = Mapping[Node, Collection[Node]]
"""For a node, where the passes end that compute it, each for itself; all others read it."""


def open_stage(node: Node, fusible: bool, alone: bool = False) -> tuple[Group, tuple[Labels | None, ...]]:
    """The stage that ends in a node, before anything has joined it, and how it sees the node's operands."""
    if fusible or is_transparent(node):
        shape = root(node)
        scan = node if node.op is Op.SCAN else None
        return Group(node, shape.domain, shape.out, set(shape.whole), scan=scan, alone=alone), shape.inputs
    every = tuple(range(node.ndim))
    stage = Group(node, node.shape, every, set(), separate=node.op is not Op.SLICE)
    return stage, (None,) * len(node.inputs)


def keep_rows(source: Node, stage: Group, labels: Labels | None, reader: Node) -> bool:
    """Tiles of the stage must not cut the columns of a sparse or compressed array.

    True where the stage is closed by it: it goes over the elements that are stored, and not over its domain.
    """
    if source.format == "dense" or labels is None or labels[1] == WHOLE:
        return False
    stage.uncut.add(labels[1])
    closes = reader.op not in (Op.MAP, Op.FOLD) or source.format == "compressed"
    stage.closed |= closes
    return closes


def is_product(node: Node) -> bool:
    """Whether the node is a product that is better left to BLAS as a whole: its result is its cost."""
    if node.fn != "contract":
        return False
    domain = prod(root(node).domain)
    return prod(node.shape) ** 2 >= domain and not _reads_once(node, domain)


def reads_once(node: Node) -> bool:
    """Whether a product with a vector uses each number of its other operand once: reading that is its
    cost, wherever it runs."""
    return node.fn == "contract" and _reads_once(node, prod(root(node).domain))


def _reads_once(product: Node, domain: int) -> bool:
    return min(i.ndim for i in product.inputs) == 1 and max(i.size for i in product.inputs) == domain
