"""The ways to cut a graph into stages: by cost, by one of the two heuristics, or not at all.

Fusion plans (SystemML), section 4.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.costs import Rates
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.formed import formed_ps
from spartan_ng.optimizer.fusion.group import Fusing, Grouping, group
from spartan_ng.optimizer.fusion.operators import densities
from spartan_ng.optimizer.fusion.select import candidates, leaves_choice, select
from spartan_ng.optimizer.tiling.profile import ClusterProfile

MOST_ROUNDS = 4
"""How often candidates are selected anew after stages have refused some."""


@dataclass(frozen=True, slots=True)
class Formed:
    """The stages that a policy forms, and what they are predicted to cost, in picoseconds."""

    policy: str
    grouping: Grouping
    cost_ps: int


def form_stages(
    order: list[Node],
    roots: set[Node],
    policy: str = "cost",
    profile: ClusterProfile | None = None,
    apart: Collection[Node] = (),
) -> Grouping:
    """The stages of a topologically ordered graph; `roots` are stored in any case.

    Parameters
    ----------
    policy : "cost" for the cheapest plan; "all" computes again what several stages need; "no_redundancy"
        stores it; "off" stores every value
    profile : the cluster that costs are predicted for
    apart : nodes that are stored in any case, where stages are chosen by cost
    """
    profile = profile or ClusterProfile()
    if policy == "cost" and leaves_choice(order):
        return cheapest(weigh_policies(order, roots, profile, apart)).grouping
    if policy == "all":
        memo = candidates(order, roots, profile)
        return _formed(order, roots, profile, (), memo, select(memo, profile, True), True)
    return group(order, roots, policy != "off", profile.workers > 1)


def weigh_policies(
    order: list[Node], roots: set[Node], profile: ClusterProfile, apart: Collection[Node] = ()
) -> list[Formed]:
    """The stages that the search finds, and the two heuristics', each with its cost as it was formed.

    Where the search fuses all, both are one.
    """
    memo = candidates(order, roots, profile, apart)
    chosen, fused = select(memo, profile), select(memo, profile, True)
    alone = dict.fromkeys(apart, ())
    groupings = {
        "cost": _formed(order, roots, profile, apart, memo, chosen),
        "no_redundancy": group(order, roots, True, profile.workers > 1, alone),
    }
    if chosen != fused:
        groupings["all"] = _formed(order, roots, profile, apart, memo, fused, True)
    rates, density = Rates.of(profile), densities(order)
    return [Formed(policy, g, formed_ps(g, density, rates)) for policy, g in groupings.items()]


def cheapest(formed: Sequence[Formed]) -> Formed:
    """The one that costs least; of equals, the first."""
    return min(formed, key=lambda f: f.cost_ps)


def _formed(
    order: list[Node],
    roots: set[Node],
    profile: ClusterProfile,
    apart: Collection[Node],
    memo: Memo,
    chosen: Fusing,
    fuse_all: bool = False,
) -> Grouping:
    """The stages of a choice among candidates; what stages refuse is taken out, and the choice made anew."""
    alone = dict.fromkeys(apart, ())
    refused: set[Node] = set()
    for _ in range(MOST_ROUNDS):
        result = group(order, roots, True, profile.workers > 1, {**chosen, **alone})
        if result.refused <= refused:
            break
        refused |= result.refused
        memo = candidates(order, roots, profile, {*refused, *apart})
        chosen = select(memo, profile, fuse_all)
    return result
