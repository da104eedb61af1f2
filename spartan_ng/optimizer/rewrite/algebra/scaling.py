"""Numbers beside products: what scales an operand scales the result, once it is there.

A product of matrices as they lie is one call of BLAS; where one of them is scaled before, either a
scaled copy is stored, or the product is made of panels that are. As for sums, what is infinite or NaN
leaves no result finite, and which of the two it is may change, as may what overflows on the way: of
numbers in double precision or integers, which programs do not scale for that. Those in single precision
they do (`(G * mass) @ x` in SI units passes 1e38), so these are scaled as they are written.
"""

from __future__ import annotations

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.rewrite.algebra.contraction import Contraction, Labels
from spartan_ng.optimizer.rewrite.rule import ReaderCounts

_GROWTH = 2
"""The result has at most so many times the elements of what is scaled: it is written anyway."""


def product_of_scaled(node: Node, readers: ReaderCounts) -> Node | None:
    """(s * A) @ B = s * (A @ B)."""
    c = Contraction.of(node)
    if c is None or not c.is_linear or not c.is_dense or c.a is c.b or node.dtype.char in "fF":
        return None
    for scaled, one, lone in ((c.a, c.la, c.lb), (c.b, c.lb, c.la)):
        parts = _scaled(scaled, node) if readers.alone(scaled) else None
        if parts is not None and node.size <= _GROWTH * scaled.size:
            factor, matrix = parts
            found = _product(c, scaled, matrix, one, lone)
            return build.map_("multiply", factor, found, dtype=node.dtype)
    return None


def _scaled(a: Node, product: Node) -> tuple[Node, Node] | None:
    """The number and the array that a node is the product of, all of one dtype."""
    if a.op is not Op.MAP or a.fn != "multiply" or a.ndim == 0:
        return None
    if any(n.dtype != product.dtype for n in (a, *a.inputs)):
        return None
    for factor, matrix in (a.inputs, a.inputs[::-1]):
        if factor.ndim == 0 and matrix.shape == a.shape and matrix.format == "dense":
            return factor, matrix
    return None


def _product(c: Contraction, scaled: Node, matrix: Node, one: Labels, lone: Labels) -> Node:
    """The same product of an operand that is not scaled."""
    if scaled is c.a:
        return c.product(matrix, one, c.b, lone, c.lo)
    return c.product(c.a, lone, matrix, one, c.lo)
