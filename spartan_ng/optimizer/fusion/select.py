"""Candidate selection: the cheapest plan of every partition, as the dependencies to materialize.

Partitions are independent: none fuses into another. In each, the assignments of the interesting points are
the candidates, and the one that fuses everything is costed first.

Fusion plans (SystemML), section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.crossing import crossing_products
from spartan_ng.optimizer.fusion.cutsets import cut_sets
from spartan_ng.optimizer.fusion.explore import Memo, explore
from spartan_ng.optimizer.fusion.group import Fusing, JoinedPasses
from spartan_ng.optimizer.fusion.operators import Estimate, estimates, operators
from spartan_ng.optimizer.fusion.partitions import MOST_OPERATORS, Partition, partitions
from spartan_ng.optimizer.fusion.placement import lies_cut
from spartan_ng.optimizer.fusion.plans import PlanCosts, Stage
from spartan_ng.optimizer.fusion.sampling import find_drivers
from spartan_ng.optimizer.fusion.search import Found, descend, skip_enumerate

PRUNED = 32
"""Enumeration is tried where it has at most this many times the plans that may be costed; pruning skips most.
Larger spaces are searched by descent."""
VISITS = 20
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


class Selected(Struct, frozen=True):
    """The plan of one partition, and what fusing all would have cost."""

    partition: Partition
    found: Found
    stages: tuple[Stage, ...]
    fuse_all_ps: int


class Choice(Struct, frozen=True):
    """The plans of all partitions: which passes compute what, and run as one, and what that costs."""

    fusing: Fusing
    joined: tuple[JoinedPasses, ...]
    cost_ps: int


def select(memo: Memo, profile: Profile, policy: str = "cost") -> Choice:
    """The cheapest plans of all partitions, or those of the policy "all", which compute again what several
    passes need."""
    found = partitions(memo)
    fusing: dict[Node, Collection[Node]] = {o.node: (o.node,) for o in memo.operators}
    joined: list[JoinedPasses] = []
    cost = 0
    for costs, most in candidate_plans(memo, profile, found, every=True):
        mask = search(costs, most).mask if policy == "cost" else 0
        passes, together = costs.chosen(mask)
        fusing.update(passes)
        joined += together
        cost += costs.cost(mask)
    unknown = open_nodes(memo, found)
    for node in unknown:
        del fusing[node]
    # Where a value goes of which nothing is chosen is seen as stages form: it ends no pass to be joined.
    kept = [j for j in joined if j.host not in unknown and (j.labels is None or j.end not in unknown)]
    return Choice(fusing, tuple(kept), cost)


def open_nodes(memo: Memo, found: Sequence[Partition]) -> set[Node]:
    """Values about which nothing is chosen, as they are asked for from another piece of a large partition.

    They are fused where all that read them are in one stage, and may be.
    """
    if len(memo.operators) <= MOST_OPERATORS:
        return set()
    partition = {n: i for i, p in enumerate(found) for n in p.operators}
    return {
        memo.operators[t].node
        for operator, references in zip(memo.operators, memo.references, strict=True)
        for t in [operator.edges[j].producer for j in references]
        if partition.get(t) != partition.get(operator.number)
    }


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
    known = estimates(order) if known is None else known
    found = operators(order, roots, profile, apart, known)
    return explore(found, find_drivers(order, roots), known, crossing_products(order, profile))


def compare(
    order: Sequence[Node],
    roots: Collection[Node],
    profile: Profile,
    apart: Collection[Node] = (),
) -> list[Selected]:
    """The chosen plan of every partition beside the one that fuses all: what `explain` shows."""
    memo = candidates(order, roots, profile, apart)
    plans = candidate_plans(memo, profile, partitions(memo), every=True)
    return [weigh(costs, most) for costs, most in plans]


def weigh(costs: PlanCosts, most: int) -> Selected:
    """The chosen plan of one partition beside the one that fuses all."""
    found = search(costs, most)
    return Selected(costs.partition, found, tuple(costs.stages(found.mask)), costs.cost(0))


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


def leaves_choice(order: Sequence[Node], profile: Profile) -> bool:
    """Whether a graph may have interesting points at all: values that are shared, or sparse ones, or what
    large arrays would have to move for.

    Template switches matter where one side exploits sparsity. Very large graphs are not searched.
    """
    if len(order) > MOST_NODES:
        return False
    several = profile.workers > 1
    seen: set[Node] = set()
    for node in order:
        if node.format == "csr" or (several and lies_cut(node)):
            return True
        for below in dict.fromkeys(node.inputs):
            if below.inputs:
                if below in seen:
                    return True
                seen.add(below)
    return False


def search(costs: PlanCosts, most: int) -> Found:
    """The best assignment: exact for few interesting points, else improved from the heuristics."""
    count = len(costs.partition.points)
    starts = {0, no_redundancy(costs), made_where_read(costs)}
    if 1 << count <= PRUNED * most:
        found = skip_enumerate(costs, count, cut_sets(costs), most)
        if found.exact:
            return found
        starts.add(found.mask)
    return descend(costs, moves(costs), sorted(starts), most)


def moves(costs: PlanCosts) -> list[int]:
    """Changes of an assignment to try, as masks: all points of one target, then each point alone.

    Where one reader of a value is fused and another is not, the value is stored and computed again: between
    a plan that stores it and one that does not there is often no better one.
    """
    together: dict[int, int] = {}
    for point, bit in costs.bits.items():
        together[point.target] = together.get(point.target, 0) | bit
    return list(dict.fromkeys([*together.values(), *costs.bits.values()]))


def made_where_read(costs: PlanCosts) -> int:
    """The same, but that one pass which ends in a reader of such a value makes it, and stores it, too."""
    mask, entries, made = no_redundancy(costs), costs.entries, set[int]()
    for point, bit in costs.bits.items():
        if mask & bit and point.consumer in entries and point.target not in made:
            made.add(point.target)
            mask ^= bit
    return mask


def no_redundancy(costs: PlanCosts) -> int:
    """An assignment that computes nothing twice: everything with several consumers is materialized."""
    shared = costs.partition.shared
    return sum(bit for point, bit in costs.bits.items() if point.target in shared)
