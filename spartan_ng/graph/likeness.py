"""Whether two nodes surely are the same elements: the same steps of the same arrays, and of equal numbers.

Programs name a mask by its formula, once where they read and once where they write
(`d[d > h] = d[d > h] - 4`). Each time it is a node of its own; the optimizer merges those, but how the
statement is put into a graph is decided before.
"""

from __future__ import annotations

from spartan_ng.arrays import ArrayRef
from spartan_ng.graph.node import Node
from spartan_ng.ops.functions import UserFunction

_MOST = 64
"""Pairs of nodes that are looked at; formulas of masks have a few."""


def surely_alike(a: Node, b: Node) -> bool:
    """Whether two nodes are the same elements for sure; functions of the user's may answer as they like."""
    seen: set[tuple[Node, Node]] = set()
    waiting = [(a, b)]
    while waiting:
        pair = a, b = waiting.pop()
        if a is b or pair in seen:
            continue
        seen.add(pair)
        # Inputs first: a node that becomes a leaf meanwhile has its data before it loses them.
        below = a.inputs, b.inputs
        if a.data is not None and b.data is not None:
            if not _are_one(a.data, b.data):
                return False
        elif _step(a) != _step(b) or isinstance(a.fn, UserFunction) or len(seen) > _MOST:
            return False
        else:
            waiting += zip(*below, strict=False)
    return True


def _step(node: Node) -> tuple[object, ...]:
    return node.op, node.fn, node.params, node.shape, node.dtype, node.format, len(node.inputs), node.data


def _are_one(a: ArrayRef, b: ArrayRef) -> bool:
    """Whether two leaves are one array, or one number."""
    if a is b or a.shape or b.shape or a.dtype != b.dtype or a.dtype.hasobject:
        return a is b
    x, y = a.value, b.value
    return x is not None and y is not None and bool(x.tobytes() == y.tobytes())  # of zeros the sign, too
