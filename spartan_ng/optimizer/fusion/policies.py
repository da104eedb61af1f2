"""The ways to cut a graph into stages: by cost, by one of the two heuristics, or not at all.

Fusion plans (SystemML), section 4.1.
"""

from __future__ import annotations

from collections.abc import Collection

from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.group import Grouping, group
from spartan_ng.optimizer.fusion.select import leaves_choice, select
from spartan_ng.optimizer.tiling.profile import ClusterProfile

MOST_ROUNDS = 4
"""How often candidates are selected anew after stages have refused some."""


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
    several = profile.workers > 1
    if policy in ("off", "no_redundancy") or (policy == "cost" and not leaves_choice(order)):
        return group(order, roots, policy != "off", several)
    refused: set[Node] = set()
    for _ in range(MOST_ROUNDS):
        result = _formed(order, roots, policy, profile, refused, apart)
        if result.refused <= refused:
            break
        refused |= result.refused
    return result


def _formed(
    order: list[Node],
    roots: set[Node],
    policy: str,
    profile: ClusterProfile,
    refused: Collection[Node],
    apart: Collection[Node],
) -> Grouping:
    chosen = select(order, roots, profile, {*refused, *apart}, policy == "all")
    fusing = {**chosen, **dict.fromkeys(apart, ())}
    return group(order, roots, True, profile.workers > 1, fusing)
