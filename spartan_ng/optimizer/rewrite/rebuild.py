"""Rebuild a graph bottom-up by a rule; what the rule does not change keeps its identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from spartan_ng.graph.node import Node, topological
from spartan_ng.graph.trail import tell


def rebuild(roots: Sequence[Node], rule: Callable[[Node], Node]) -> list[Node]:
    """Apply `rule` to every node, inputs first; it sees nodes whose inputs are already new."""
    new: dict[Node, Node] = {}
    for node in topological(roots):
        inputs = tuple(new[i] for i in node.inputs)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        new[node] = rule(node if same else replace(node, inputs=inputs))
    tell(new)
    return [new[r] for r in roots]
