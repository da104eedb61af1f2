"""What `explain` says of fusion: the template of every stage, and what the policies would have cost.

Fusion plans (SystemML), sections 4.1 and 4.3.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from spartan_ng.costs import Profile
from spartan_ng.costs.profile import PS
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.fusion.policies import weigh_policies
from spartan_ng.optimizer.fusion.select import Selected, compare
from spartan_ng.optimizer.fusion.templates import Template
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused
from spartan_ng.units import time_text

POLICY_NAMES = {"cost": "the plan found", "no_redundancy": "no redundancy", "all": "fuse all"}
"""What people are told of the ways to cut a graph into stages."""


class ExplainedPartition(Struct, frozen=True):
    """One partition of the graph: what its plans cost by the cost model, in seconds.

    Parameters
    ----------
    operators : how many operators may fuse with each other
    points : the fusion decisions there are
    stored : decisions in which a value is read, although it could be computed again
    templates : those of the chosen fused operators
    chosen_s, fuse_all_s : predicted seconds of the chosen plan and of the one that fuses all
    costed : plans that were costed
    exact : whether no plan costs less
    """

    operators: int
    points: int
    stored: int
    templates: tuple[str, ...]
    chosen_s: float
    fuse_all_s: float
    costed: int
    exact: bool


class ExplainedFusion(Struct, frozen=True):
    """The policy in force, the partitions that leave it a choice, and what stages cost as they are formed.

    Parameters
    ----------
    formed_s : predicted seconds of all stages, for the plan that the search found ("cost") and the
        heuristics, as each policy forms them
    """

    policy: str
    partitions: tuple[ExplainedPartition, ...]
    formed_s: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and strings."""
        return {**asdict(self), "partitions": [asdict(part) for part in self.partitions]}

    @property
    def lines(self) -> list[str]:
        """One line a partition, and one for the stages."""
        found = [f"{POLICY_NAMES[p]} {time_text(s)}" for p, s in self.formed_s.items()]
        formed = [f"stages as formed: {', '.join(found)}"] if found else []
        return [_line(p) for p in self.partitions] + formed


def explain_fusion(order: list[Node], roots: set[Node], policy: str, profile: Profile) -> ExplainedFusion:
    """What selection finds in a topologically ordered graph whose `roots` are stored."""
    selected = [s for s in compare(order, roots, profile) if s.partition.points]
    formed = weigh_policies(order, roots, profile) if selected else []
    costs = {f.policy: f.cost_ps / PS for f in formed}
    return ExplainedFusion(policy, tuple(_explained(s) for s in selected), costs)


def _explained(selected: Selected) -> ExplainedPartition:
    found = selected.found
    return ExplainedPartition(
        len(selected.partition.operators),
        len(selected.partition.points),
        found.mask.bit_count(),
        tuple(str(stage.template or "basic") for stage in selected.stages),
        found.cost / PS,
        selected.fuse_all_ps / PS,
        found.costed,
        found.exact,
    )


def _line(p: ExplainedPartition) -> str:
    best = "the cheapest" if p.exact else "the cheapest found"
    return (
        f"{', '.join(p.templates)} of {p.operators} operators, {p.stored} of {p.points} dependencies stored: "
        f"{time_text(p.chosen_s)}, {best} of {p.costed} costed plans; "
        f"fuse all {time_text(p.fuse_all_s)}"
    )


def template(stage: Fused) -> str:
    """The template that a stage is an instance of; "basic" where one operator runs alone.

    Row where some dimension stays whole, Outer where a product is computed at non-zeros alone.
    """
    if len(stage.every_row) <= 1:
        return "basic"
    if stage.driver >= 0 and any(r.kind == "contract" and r.sampled for r in stage.rows):
        return str(Template.OUTER)
    if stage.whole or any(_needs_lines(r) for r in stage.every_row):
        return str(Template.ROW)
    if len(stage.reducers) > 1 and all(not w.labels for w in stage.writes):
        return str(Template.MAGG)
    return str(Template.CELL)


def _needs_lines(row: Row) -> bool:
    return row.kind in ("contract", "along_axis", "take", "search")
