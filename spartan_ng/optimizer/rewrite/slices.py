"""Push slices towards the leaves: a slice of a map is the map of slices, if nobody needs the rest.

A slice under a map would store the map's whole value; at a leaf it is a part of the read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spartan_ng.graph.build import slice_
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer.rewrite.rebuild import rebuild


def push_slices(roots: Sequence[Node]) -> list[Node]:
    """Move each slice below the elementwise maps that it alone reads, all the way down."""
    order = topological(roots)
    if not any(n.op is Op.SLICE for n in order):
        return list(roots)
    users = Counter(i for n in order for i in n.inputs)
    users.update(roots)

    def rule(node: Node) -> Node:
        while node.op is Op.SLICE and _movable(node.inputs[0]) and users[node.inputs[0]] <= 1:
            node = _below(node, users)
        return node

    return rebuild(roots, rule)


def _movable(node: Node) -> bool:
    return node.op is Op.MAP and not isinstance(node.fn, UserFunction) and node.format == "dense"


def _below(node: Node, users: Counter[Node]) -> Node:
    """The map of the slices in place of the slice of the map, and so on for each operand."""
    map_node = node.inputs[0]
    operands = []
    for operand in map_node.inputs:
        part = _slice_operand(operand, map_node, node)
        while part.op is Op.SLICE and _movable(part.inputs[0]) and users[part.inputs[0]] <= 1:
            part = _below(part, users)
        operands.append(part)
    return Node(
        Op.MAP, map_node.fn, tuple(operands), map_node.params, node.shape, map_node.dtype, map_node.format
    )


def _slice_operand(operand: Node, map_node: Node, view: Node) -> Node:
    """The operand's part: axes that it stretches, or lacks, are not cut."""
    first = map_node.ndim - operand.ndim
    starts, steps, shape = [], [], []
    for i, n in enumerate(operand.shape):
        start, step = view.params[first + i]
        stretched = n != map_node.shape[first + i]
        starts.append(0 if stretched else start)
        steps.append(1 if stretched else step)
        shape.append(n if stretched else view.shape[first + i])
    return slice_(operand, starts, steps, tuple(shape))
