"""Candidate selection: the cheapest plan of every partition, as the dependencies to materialize.

Partitions are independent: none fuses into another. In each, the assignments of the interesting points are
the candidates, and the one that fuses everything is costed first.

Fusion plans (SystemML), section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.cutsets import cut_sets
from spartan_ng.optimizer.fusion.explore import Memo, explore
from spartan_ng.optimizer.fusion.group import Fusing, Grouping
from spartan_ng.optimizer.fusion.operators import Estimate, operators
from spartan_ng.optimizer.fusion.partitions import Partition, Point, partitions
from spartan_ng.optimizer.fusion.plans import PlanCosts, Stage
from spartan_ng.optimizer.fusion.sampling import find_drivers
from spartan_ng.optimizer.fusion.search import Found, descend, skip_enumerate

PRUNED = 32
"""Enumeration is tried where it has at most this many times the plans that may be costed; pruning skips most.
Larger spaces are searched by descent."""
VISITS = 30
"""A program of n operators may have plans costed with this many times n operators in all, and"""
MOST_NODES = 20_000
"""Larger graphs are cut into stages without redundancy: the search, although linear, takes half a minute at
100,000 nodes, and forming stages without it three seconds."""
LEAST_VISITS = 200
"""so many more, but"""
MOST_VISITS = 20_000
"""no more than so many,"""
LEAST_PLANS = 8
"""and so many plans of a partition at least."""


@dataclass(frozen=True, slots=True)
class Selected:
    """The plan of one partition, and what the two heuristics would have cost."""

    partition: Partition
    found: Found
    stages: tuple[Stage, ...]
    fuse_all_ps: int
    no_redundancy_ps: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The dependencies to materialize in all partitions, what that costs, and what fusing all does."""

    cut: frozenset[Point]
    cost_ps: int
    fuse_all_ps: int


def select(memo: Memo, profile: Profile, found: Sequence[Partition], start: Collection[Point] = ()) -> Choice:
    """The cheapest dependencies to materialize in these partitions; searches start from `start`, too."""
    cut: set[Point] = set()
    cost = fuse_all = 0
    for costs, most in candidate_plans(memo, profile, found):
        best = search(costs, most, sum(bit for p, bit in costs.bits.items() if p in start))
        cut.update(p for p, bit in costs.bits.items() if best.mask & bit)
        cost, fuse_all = cost + best.cost, fuse_all + costs.cost(0)
    return Choice(frozenset(cut), cost, fuse_all)


def materialized(memo: Memo, found: Sequence[Partition], grouping: Grouping) -> set[Point]:
    """The dependencies across which no stage computes both ends."""
    passes: dict[Node, set[int]] = {}
    for i, stage in enumerate(grouping.groups):
        for node in (*stage.stored, *(m for m, _ in stage.members)):
            passes.setdefault(node, set()).add(i)
    nodes = [o.node for o in memo.operators]
    points = (p for partition in found for p in partition.points)
    return {p for p in points if passes[nodes[p.consumer]].isdisjoint(passes[nodes[p.target]])}


def fuse_except(memo: Memo, found: Sequence[Partition], cut: Collection[Point]) -> Fusing:
    """Who computes what in its own pass where all is fused but for some dependencies."""
    partition = {n: i for i, p in enumerate(found) for n in p.operators}
    fusing: dict[Node, set[Node]] = {}
    for operator, references in zip(memo.operators, memo.references, strict=True):
        here = partition.get(operator.number)
        for j in references:
            target = memo.operators[operator.edges[j].producer]
            if partition.get(target.number) != here:
                continue  # nothing was weighed: it is fused where all that read it are in one stage
            takers = fusing.setdefault(target.node, set())
            if Point(operator.number, target.number) not in cut:
                takers.add(operator.node)
    return fusing


def candidates(
    order: Sequence[Node],
    roots: Collection[Node],
    profile: Profile,
    apart: Collection[Node] = (),
    known: Mapping[Node, Estimate] | None = None,
) -> Memo:
    """The partial fusion plans of a topologically ordered graph whose `roots` are stored.

    `apart` and `known` are as `operators` has them.
    """
    return explore(operators(order, roots, profile, apart, known), find_drivers(order, roots))


def compare(
    order: Sequence[Node],
    roots: Collection[Node],
    profile: Profile,
    apart: Collection[Node] = (),
) -> list[Selected]:
    """The chosen plan of every partition beside the heuristics': what `explain` shows."""
    memo = candidates(order, roots, profile, apart)
    plans = candidate_plans(memo, profile, partitions(memo), every=True)
    return [weigh(costs, most) for costs, most in plans]


def weigh(costs: PlanCosts, most: int) -> Selected:
    """The chosen plan of one partition beside the heuristics'."""
    found = search(costs, most)
    return Selected(
        costs.partition,
        found,
        tuple(costs.stages(found.mask)),
        costs.cost(0),
        costs.cost(no_redundancy(costs)),
    )


def candidate_plans(
    memo: Memo, profile: Profile, found: Sequence[Partition], every: bool = False
) -> list[tuple[PlanCosts, int]]:
    """Each partition that leaves a choice (or every one) with its costs, and how many plans may be costed."""
    points = sum(len(p.points) for p in found) or 1
    visits = min(MOST_VISITS, LEAST_VISITS + VISITS * len(memo.operators))
    plans = []
    for partition in found:
        if partition.points or every:
            share = visits * len(partition.points) // points
            most = max(LEAST_PLANS, share // len(partition.operators))
            plans.append((PlanCosts(memo, partition, profile), most))
    return plans


def leaves_choice(order: Sequence[Node]) -> bool:
    """Whether a graph may have interesting points at all: values that are shared, or sparse ones.

    Template switches matter where one side exploits sparsity. Very large graphs are not searched.
    """
    if len(order) > MOST_NODES:
        return False
    seen: set[Node] = set()
    for node in order:
        if node.format == "csr":
            return True
        for below in dict.fromkeys(node.inputs):
            if below.inputs:
                if below in seen:
                    return True
                seen.add(below)
    return False


def search(costs: PlanCosts, most: int, start: int = 0) -> Found:
    """The best assignment: exact for few interesting points, else improved from `start` and heuristics."""
    count = len(costs.partition.points)
    if 1 << count <= PRUNED * most:
        found = skip_enumerate(costs, count, cut_sets(costs), most)
        if found.exact:
            return found
    return descend(costs, moves(costs), sorted({0, start, no_redundancy(costs)}), most)


def moves(costs: PlanCosts) -> list[int]:
    """Changes of an assignment to try, as masks: all points of one target, then each point alone.

    Where one reader of a value is fused and another is not, the value is stored and computed again: between
    a plan that stores it and one that does not there is often no better one.
    """
    together: dict[int, int] = {}
    for point, bit in costs.bits.items():
        together[point.target] = together.get(point.target, 0) | bit
    return list(dict.fromkeys([*together.values(), *costs.bits.values()]))


def no_redundancy(costs: PlanCosts) -> int:
    """The assignment that computes nothing twice: everything with several consumers is materialized."""
    shared = costs.partition.shared
    return sum(bit for point, bit in costs.bits.items() if point.target in shared)
