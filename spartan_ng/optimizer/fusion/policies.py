"""The ways to cut a graph into stages: by cost, by one of the two heuristics, or not at all.

Fusion plans (SystemML), section 4.1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.costs import formed_ps
from spartan_ng.optimizer.fusion.form import group
from spartan_ng.optimizer.fusion.group import Fusing, Grouping
from spartan_ng.optimizer.fusion.operators import estimates
from spartan_ng.optimizer.fusion.partitions import partitions
from spartan_ng.optimizer.fusion.select import candidates, fuse_except, leaves_choice, materialized, select

HOPELESS = 3
"""Stages that fuse all are not formed where the search finds so many times cheaper plans: what is predicted
and what is formed differ by less."""


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
    profile: Profile | None = None,
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
    profile = profile or Profile()
    if policy == "cost" and leaves_choice(order):
        return cheapest(weigh_policies(order, roots, profile, apart)).grouping
    if policy == "all":
        memo = candidates(order, roots, profile)
        return group(order, roots, True, profile, fuse_except(memo, partitions(memo), ()))
    return group(order, roots, policy != "off", profile)


def weigh_policies(
    order: list[Node], roots: set[Node], profile: Profile, apart: Collection[Node] = ()
) -> list[Formed]:
    """The stages that the search finds, first, and the heuristics', each with its cost as it was formed.

    The heuristic that computes nothing twice is formed before the search, which starts from it, too. What the
    search leaves as it is, or fuses whole, is formed once, and what is hopeless not at all.
    """
    alone = dict.fromkeys(apart, ())
    known = estimates(order)
    memo = candidates(order, roots, profile, apart, known)

    def form(policy: str, chosen: Fusing) -> Formed:
        stages = group(order, roots, True, profile, {**chosen, **alone}, memo.drivers)
        return Formed(policy, stages, formed_ps(stages, known, profile))

    found = partitions(memo)
    plain = form("no_redundancy", {})
    start = materialized(memo, found, plain.grouping)
    choice = select(memo, profile, found, start)
    same = choice.cut == start
    formed = [
        replace(plain, policy="cost") if same else form("cost", fuse_except(memo, found, choice.cut)),
        plain,
    ]
    if choice.cut and choice.fuse_all_ps < HOPELESS * choice.cost_ps:
        formed.append(form("all", fuse_except(memo, found, ())))
    return formed


def cheapest(formed: Sequence[Formed]) -> Formed:
    """The one that costs least; of equals, the first."""
    return min(formed, key=lambda f: f.cost_ps)
