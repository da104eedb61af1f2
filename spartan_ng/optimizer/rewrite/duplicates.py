"""Common subexpressions: nodes that compute the same become one.

Random nodes with one key are the same numbers, so they merge, too; two draws never have one key.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.rewrite.rebuild import rebuild


def merge_duplicates(roots: Sequence[Node]) -> list[Node]:
    """One node for each (operator, function, parameters, inputs, dtype)."""
    first: dict[Hashable, Node] = {}

    def canonical(node: Node) -> Node:
        if node.op is Op.DATA:
            return first.setdefault(node.data, node)
        key = (node.op, node.fn, node.params, node.inputs, node.shape, node.dtype, node.format)
        return first.setdefault(key, node)

    return rebuild(roots, canonical)
