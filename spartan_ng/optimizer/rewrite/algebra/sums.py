"""Sums of products: what is added up is added before it is multiplied, or without making the product.

A sum over an axis of one operand is that operand's own: (A @ B).sum(0) = A.sum(0) @ B. What is
infinite or NaN among the operands leaves no result finite: it meets every element of its line, and 0 * inf is
NaN. Which of the two a result is may change, as may what overflows on the way. Integers wrap around to the
same.
"""

from __future__ import annotations

from math import prod

from spartan_ng.costs.choices import PAYS
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.rewrite.algebra.contraction import Contraction, Labels, cost, fold_cost
from spartan_ng.optimizer.rewrite.rule import ReaderCounts


def sum_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(A @ B).sum(0) = A.sum(0) @ B; over an axis of both operands it is one more label that is summed."""
    c = Contraction.of(node.inputs[0])
    if node.fn != "add" or len(node.inputs) != 1 or c is None or not readers.alone(c.node):
        return None
    if node.dtype != c.node.dtype or not c.is_linear or not c.is_dense:
        return None
    (axes,) = node.params
    gone = {c.lo[i] for i in axes}
    a, la, cost_a = _summed(c.a, c.la, gone - {*c.lb})
    b, lb, cost_b = _summed(c.b, c.lb, gone - {*c.la})
    lo = tuple(x for x in c.lo if x not in gone)
    if not {*la} & {*lb}:
        return None
    before = c.cost + fold_cost(c.node, node.size)
    after = cost(la, lb, lo, c.sizes, node.dtype.itemsize) + cost_a + cost_b
    return c.product(a, la, b, lb, lo) if after * PAYS < before else None


def _summed(operand: Node, labels: Labels, gone: set[int]) -> tuple[Node, Labels, int]:
    """An operand summed over its own labels among those that go, and what that costs."""
    axes = [i for i, x in enumerate(labels) if x in gone]
    if not axes:
        return operand, labels, 0
    left = tuple(x for x in labels if x not in gone)
    total = build.fold("add", operand, axes, dtype=operand.dtype)
    return total, left, fold_cost(operand, prod(total.shape))


def product_without_matrix(node: Node, readers: ReaderCounts) -> Node | None:
    """A sum of A * B over axes of both is one pass over both, not a stack of products of single rows."""
    c = Contraction.of(node)
    if c is None or len(c.la) < 2 or {*c.la} != {*c.lb} or not c.is_dense or not c.is_linear:
        return None
    turned = readers.turned(c.b, [c.lb.index(x) for x in c.la])
    factors = build.map_("multiply", c.a, turned, dtype=node.dtype)
    gone = [i for i, x in enumerate(c.la) if x not in c.lo]
    total = build.fold("add", factors, gone, dtype=node.dtype)
    kept = [x for x in c.la if x in c.lo]
    return build.transpose(total, [kept.index(x) for x in c.lo])
