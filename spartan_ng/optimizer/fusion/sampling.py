"""Which values are needed at the non-zeros of a sparse array alone: the Outer template's condition.

Where a sparse X is multiplied by anything, the other operand matters only where X is not zero, and so do the
operands of all maps that lead to it. Such a node can be *sampled*: computed at X's non-zeros, one by one. A
matrix product among them costs a dot product a non-zero, and the dense product never exists.

"On Optimizing Operator Fusion Plans", sections 2.2 and 4.1: the templates Cell and Outer over a sparse main
operand. Whether a function keeps zeros is a property of its row in `ops.elementwise`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spartan_ng.graph.node import Node, Op
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction

Drivers = dict[Node, frozenset[Node]]
"""For each node that may be sampled, the sparse nodes at whose non-zeros alone it is needed."""


def find_drivers(order: Sequence[Node], roots: Collection[Node]) -> Drivers:
    """The nodes that may be sampled, in a topologically ordered graph; most graphs have none."""
    if "csr" not in {n.format for n in order}:
        return {}
    patterns = _patterns(order)
    needed: dict[Node, frozenset[Node]] = {}
    used: set[Node] = set(roots)
    for node in reversed(order):
        here = needed.setdefault(node, frozenset()) | patterns.get(node, frozenset())
        needed[node] = here
        passes = here if node.op is Op.MAP and is_sampled(node) else frozenset()  # a product needs lines
        for source in dict.fromkeys(node.inputs):
            same = passes if source.shape == node.shape else frozenset()
            needed[source] = needed.get(source, frozenset()) & same if source in used else same
            used.add(source)
    return {n: d - {n} for n, d in needed.items() if is_sampled(n) and d - {n}}


def is_sampled(node: Node) -> bool:
    """Whether the node can be computed at single elements."""
    if len(node.shape) != 2:
        return False
    if node.op is Op.MAP:
        return not isinstance(node.fn, UserFunction)
    return is_sampled_product(node)


def is_sampled_product(node: Node) -> bool:
    """Whether the node is a product of two dense matrices (or vectors) whose elements are dot products."""
    if node.fn != "contract" or any(i.format != "dense" for i in node.inputs):
        return False
    la, lb, lo = node.params
    if len(lo) != 2 or len(la) > 2 or len(lb) > 2 or node.dtype.kind == "O":
        return False
    return (
        (lo[0] in la) != (lo[0] in lb) and (lo[1] in la) != (lo[1] in lb) and (lo[0] in la) != (lo[1] in la)
    )


def is_union(node: Node) -> bool:
    """Whether a sparse map has non-zeros where none of its operands has all of them: it is stored."""
    return node.format == "csr" and node.op is Op.MAP and _of_operands(node, {}) == frozenset()


def _patterns(order: Sequence[Node]) -> dict[Node, frozenset[Node]]:
    """For each sparse node, sparse nodes whose non-zeros include its own; itself is one."""
    patterns: dict[Node, frozenset[Node]] = {}
    for node in order:
        if node.format == "csr":
            inherited = _of_operands(node, patterns) if node.op is Op.MAP else frozenset()
            patterns[node] = inherited | {node}
    return patterns


def _of_operands(node: Node, patterns: dict[Node, frozenset[Node]]) -> frozenset[Node]:
    """The sparse nodes below a sparse map that include its non-zeros."""
    zero = ELEMENTWISE[str(node.fn)].zero
    # A choice has none where the condition has none.
    inputs = node.inputs[::2] if node.fn == "where" else node.inputs[:1] if zero == "first" else node.inputs
    sparse = [patterns.get(i, frozenset({i})) for i in inputs if i.format == "csr" and i.shape == node.shape]
    if not sparse:
        return frozenset()
    if zero == "any":
        return frozenset().union(*sparse)
    return frozenset.intersection(*sparse)
