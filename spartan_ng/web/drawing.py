"""A plan's picture, from what a client says of it: checked against its types, and escaped."""

from __future__ import annotations

from typing import Any

import msgspec

from spartan_ng.plan.explain import explain
from spartan_ng.plan.explanation import ExplainedSlot, ExplainedStage, Explanation, summary
from spartan_ng.plan.picture import KINDS, ROLES, draw_plan
from spartan_ng.plan.plan import Plan


class Description(msgspec.Struct):
    """What `Explanation.to_dict` gives, as far as it is shown."""

    workers: int
    arrays: tuple[ExplainedSlot, ...]
    stages: tuple[ExplainedStage, ...]
    inputs: tuple[int, ...]
    """Numbers of arrays, as the plan's inputs are bound, and"""
    outputs: tuple[int, ...]
    projected_bytes: int = 0

    def __post_init__(self) -> None:
        """Numbers are of arrays that are there, and all can be drawn."""
        if not {s.kind for s in self.stages} <= KINDS or not {a.role for a in self.arrays} <= ROLES:
            raise ValueError("a description has stages or arrays of kinds that nobody knows")
        numbers = {n for stage in self.stages for n in (*stage.reads, *stage.writes)}
        if not numbers.union(self.inputs, self.outputs) <= set(range(len(self.arrays))):
            raise ValueError("a description speaks of arrays that it does not have")


def describe_plan(plan: Plan) -> bytes:
    """What a plan does, for `described`."""
    found = explain(plan).to_dict()
    bound = {"inputs": plan.inputs, "outputs": plan.outputs}  # also what nobody asked for, and what two did
    return msgspec.json.encode({**found, **bound})


def described(data: bytes) -> dict[str, Any]:
    """A description that a client has sent; ValueError, or its kin, where it is none."""
    return msgspec.to_builtins(msgspec.json.decode(data, type=Description))  # type: ignore[no-any-return]


def picture(description: dict[str, Any]) -> str:
    """The SVG picture of a description."""
    found = msgspec.convert(description, Description)
    explanation = Explanation(
        found.workers, found.arrays, found.stages, projected_bytes=found.projected_bytes
    )
    return draw_plan(explanation, summary(explanation))
