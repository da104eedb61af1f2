"""Products of one large matrix with vectors along its rows and along its columns: one pass has to make both.

What follows such a product (`x += A @ y`) goes along one axis of the matrix, and would have whole lines of it
for each of its elements: a pass in which no product along the other axis can stand. So those that do not wait
for each other are made in passes over the whole matrix, which then are one, and what follows reads vectors.
So is one that is made of another (`x - A.T @ (A @ x)`), where its pass has room for that one's lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.fusion.costs import read_ps
from spartan_ng.optimizer.fusion.group import Group, open_stage, reads_once
from spartan_ng.optimizer.fusion.labels import is_transparent, root
from spartan_ng.optimizer.fusion.legality import whole_if_joined

_Kind = tuple[Any, ...]


def crossing_products(order: Sequence[Node], profile: Profile) -> frozenset[Node]:
    """The products of a topologically ordered graph that go along one axis of a matrix beside others along
    the other: such as do not wait for them, or are computed for them alone."""
    seen: dict[Node, list[tuple[Node, int]]] = {}
    for node in order:
        if node.fn == "contract" and node.ndim == 1 and reads_once(node):
            matrix, axis = _along(node)
            if matrix.format == "dense" and _is_large(matrix, profile):
                seen.setdefault(matrix, []).append((node, axis))
    found: set[Node] = set()
    for products in seen.values():
        if len({axis for _, axis in products}) > 1:
            found |= _beside(products, order)
    return frozenset(found)


def goes_alone(product: Node, stage: Group) -> bool:
    """Whether a stage would go through the matrix of a crossing product for that one alone, by lines."""
    return prod(stage.domain) < prod(root(product).domain)


def _along(product: Node) -> tuple[Node, int]:
    """The matrix of a product with a vector, below transposes, and its axis that the result has."""
    letters, matrix = max(zip(product.params, product.inputs, strict=False), key=lambda p: p[1].ndim)
    axis = letters.index(product.params[2][0])
    while matrix.op is Op.TRANSPOSE:
        axis = matrix.params[0][axis]
        (matrix,) = matrix.inputs
    return matrix, axis


def _is_large(matrix: Node, profile: Profile) -> bool:
    """Whether reading a matrix takes longer than one more pass does, besides its work."""
    return read_ps(matrix.nbytes, matrix, True, profile)[0] > profile.launch_ps


def _beside(products: Sequence[tuple[Node, int]], order: Sequence[Node]) -> set[Node]:
    """Of products of one matrix those that do not wait for one along its other axis, nor that for them, and
    those whose pass can make one on its way."""
    bit = {node: 1 << i for i, (node, _) in enumerate(products)}
    behind: dict[Node, int] = {}  # for each node the products that it needs,
    made_of: dict[Node, int] = {}  # and those that it is made of element by element
    for node in order:
        mask, near = bit.get(node, 0), bit.get(node, 0)
        for below in node.inputs:
            mask |= behind.get(below, 0)
            if node.op is Op.MAP or is_transparent(node):
                near |= made_of.get(below, 0)
        if mask:
            behind[node], made_of[node] = mask, near
    found: set[Node] = set()
    along: dict[int, int] = {}  # for each axis the products along it so far,
    kinds: dict[_Kind, tuple[int, Node]] = {}  # for each kind those of it, and one of them,
    makes: dict[tuple[_Kind, _Kind], bool] = {}  # and whether a pass for one kind may make the other
    for i, (node, axis) in enumerate(products):
        others = ((1 << i) - 1) & ~along.get(axis, 0)
        apart = others & ~behind[node]
        vector = min(node.inputs, key=lambda operand: operand.ndim)
        within, kind, is_made = others & made_of.get(vector, 0), _kind(node), False
        for other, (mask, one) in kinds.items() if within else ():
            if mask & within and (kind, other) not in makes:
                makes[kind, other] = _may_make(node, one)
            is_made |= bool(mask & within) and makes[kind, other]
        found.update([products[k][0] for k in range(i) if apart >> k & 1] if apart else [])
        if apart or is_made:
            found.add(node)
        along[axis] = along.get(axis, 0) | 1 << i
        kinds[kind] = kinds.get(kind, (0, node))[0] | 1 << i, node
    return found


def _kind(product: Node) -> _Kind:
    """What tells products apart for what may be made in a pass: a loop's steps have two kinds."""
    return product.params, product.dtype, *((i.shape, i.dtype, i.format) for i in product.inputs)


def _may_make(product: Node, other: Node) -> bool:
    """Whether a pass over a product's matrix may make another one, of which its vector is made."""
    stage, seen = open_stage(product, True)
    labels = min(zip(product.inputs, seen, strict=True), key=lambda pair: pair[0].ndim)[1]
    return labels is not None and whole_if_joined(other, stage, labels, False) is not None
