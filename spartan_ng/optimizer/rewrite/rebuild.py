"""Rebuild a graph bottom-up by a rule; what the rule does not change keeps its identity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.trail import tell


def rebuild(roots: Sequence[Node], rule: Callable[[Node], Node], steps: Collection[Node] = ()) -> list[Node]:
    """Apply `rule` to every node, inputs first; it sees nodes whose inputs are already new. Those of `steps`
    do not become leaves."""
    new: dict[Node, Node] = {}
    for node in topological(roots):
        inputs = tuple([new[i] for i in node.inputs])
        before = node if inputs == node.inputs else replace(node, inputs=inputs)
        found = rule(before)
        new[node] = before if found.op is Op.DATA and node in steps else found
    tell(new)
    return [new[r] for r in roots]
