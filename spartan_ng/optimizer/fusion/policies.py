"""The ways to cut a graph into stages: by cost, by one of the two heuristics, or not at all.

Fusion plans (SystemML), section 4.1.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.costs import formed_ps
from spartan_ng.optimizer.fusion.explore import Memo
from spartan_ng.optimizer.fusion.form import group
from spartan_ng.optimizer.fusion.group import Grouping
from spartan_ng.optimizer.fusion.operators import estimates
from spartan_ng.optimizer.fusion.select import Choice, candidates, leaves_choice, select

_SEARCHED = ("cost", "all")
"""The policies that choose among candidates. Without redundancy, what all that read it have in one stage is
fused as stages are formed, and the rest stored."""


class Formed(Struct, frozen=True):
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
    searched = policy in _SEARCHED and leaves_choice(order, profile)
    memo = candidates(order, roots, profile, apart) if searched else None
    return _form(order, roots, policy, profile, memo)


def _form(order: list[Node], roots: set[Node], policy: str, profile: Profile, memo: Memo | None) -> Grouping:
    """The stages of a policy, whose candidates are in a memo table where it has some."""
    if memo is None or policy not in _SEARCHED:
        return group(order, roots, policy != "off", profile)
    return form_chosen(order, roots, profile, memo, select(memo, profile, policy))


def form_chosen(
    order: list[Node], roots: set[Node], profile: Profile, memo: Memo, choice: Choice
) -> Grouping:
    """The stages of a choice."""
    return group(order, roots, True, profile, choice.fusing, memo.drivers, choice.joined, memo.crossing)


def weigh_policies(
    order: list[Node], roots: set[Node], profile: Profile, apart: Collection[Node] = ()
) -> list[Formed]:
    """The stages that the search finds, first, and the heuristics', each with its cost as it was formed."""
    known = estimates(order)
    memo = candidates(order, roots, profile, apart, known)
    formed = []
    for policy in ("cost", "no_redundancy", "all"):
        stages = _form(order, roots, policy, profile, memo)
        formed.append(Formed(policy, stages, formed_ps(stages, known, profile)))
    return formed
