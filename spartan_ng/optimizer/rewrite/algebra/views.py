"""Parts of products as products of parts: every element that is left is the same sum as before.

Nothing is added in another order than a product of that shape adds it, so these hold for every dtype, and
for infinities and NaN.
"""

from __future__ import annotations

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.rewrite.algebra.contraction import Contraction, Labels
from spartan_ng.optimizer.rewrite.rule import ReaderCounts

Cut = tuple[int, int, int]
"""Start, step and length of what is left of an axis."""


def slice_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(A @ B)[rows, columns] = A[rows] @ B[:, columns], where fewer elements are left."""
    c = Contraction.of(node.inputs[0])
    if c is None or not readers.alone(c.node) or node.size >= c.node.size:
        return None
    cuts = {x: (*p, n) for x, p, n in zip(c.lo, node.params, node.shape, strict=True)}
    parts = _parts(c, cuts, readers)
    return None if parts is None else c.product(parts[0], c.la, parts[1], c.lb, c.lo)


def _parts(c: Contraction, cuts: dict[int, Cut], readers: ReaderCounts) -> list[Node] | None:
    """The operands, of which some labels are cut."""
    parts = []
    for operand, labels in ((c.a, c.la), (c.b, c.lb)):
        part = _part(operand, labels, cuts, readers)
        if part is None:
            return None
        parts.append(part)
    if c.a is c.b and parts[0] is not parts[1]:
        readers.read_again(c.a)
    return parts


def _part(operand: Node, labels: Labels, cuts: dict[int, Cut], readers: ReaderCounts) -> Node | None:
    """A slice of an operand; None where its format has none: stored rows are cut along rows, one after the
    other."""
    whole = {x: (0, 1, n) for x, n in zip(labels, operand.shape, strict=True)}
    mine = {x: cuts.get(x, w) for x, w in whole.items()}
    if operand.format != "dense" and mine != whole:
        rows, columns = labels
        if operand.format != "csr" or mine[columns] != whole[columns] or mine[rows][1] != 1:
            return None
    starts, steps, shape = zip(*mine.values(), strict=True) if mine else ((), (), ())
    return readers.cut(operand, starts, steps, shape)


def transpose_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(A @ B).T = B.T @ A.T, by the names of its labels: no operand is turned."""
    c = Contraction.of(node.inputs[0])
    if c is None or not readers.alone(c.node):
        return None
    (axes,) = node.params
    lo = tuple(c.lo[i] for i in axes)
    if lo and lo[0] in c.lb and lo[0] not in c.la:
        return c.product(c.b, c.lb, c.a, c.la, lo)
    return c.product(c.a, c.la, c.b, c.lb, lo)


def diagonal_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """diagonal(A @ B) = (A * B.T).sum(1): a slice of the flat matrix whose steps go one column further."""
    flat = node.inputs[0]
    c = Contraction.of(flat.inputs[0]) if flat.op is Op.RESHAPE else None
    if c is None or not (c.is_dense and readers.alone(flat) and readers.alone(c.node)):
        return None
    planes = c.node.shape[:-2]
    if not (flat.shape[:-1] == node.shape[:-1] == planes and flat.ndim == c.node.ndim - 1):
        return None
    if any(p != (0, 1) for p in node.params[:-1]):
        return None
    *lead, row, column = c.lo
    (start, step), n = node.params[-1], node.shape[-1]
    columns = c.sizes[column]
    i, j = divmod(start, columns)
    apart = (row in c.la) != (column in c.la) and (row in c.lb) != (column in c.lb)
    # What lies in the columns lies in the rows, too: the slice is one of the flat matrix.
    inside = j + n <= columns and (step == columns + 1 or n == 1)
    if not (apart and inside):
        return None
    cuts = {row: (i, 1, n), column: (j, 1, n)}
    parts = _parts(c, cuts, readers)
    if parts is None:
        return None
    la, lb = (tuple(row if x == column else x for x in labels) for labels in (c.la, c.lb))
    return c.product(parts[0], la, parts[1], lb, (*lead, row))


def lookup_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(A @ B)[indices] = A[indices] @ B, where it looks up fewer lines than there are."""
    if node.fn != "take":
        return None
    c, indices = Contraction.of(node.inputs[0]), node.inputs[1]
    if c is None or not readers.alone(c.node) or not c.is_dense:
        return None
    (axis,) = node.params
    label = c.lo[axis]
    if indices.size >= c.sizes[label] or (label in c.la and label in c.lb):
        return None
    new = tuple(max(c.sizes) + 1 + i for i in range(indices.ndim))
    parts = []
    for operand, labels in ((c.a, c.la), (c.b, c.lb)):
        if label in labels:
            at = labels.index(label)
            operand, labels = build.take(operand, indices, at), (*labels[:at], *new, *labels[at + 1 :])
        parts.append((operand, labels))
    (a, la), (b, lb) = parts
    return c.product(a, la, b, lb, (*c.lo[:axis], *new, *c.lo[axis + 1 :]))


def selection_of_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(A @ B)[mask] = A[mask] @ B for a mask of rows."""
    if node.fn != "compress":
        return None
    c, mask = Contraction.of(node.inputs[0]), node.inputs[1]
    if c is None or not readers.alone(c.node) or not c.is_dense or mask.ndim != 1 or node.size >= c.node.size:
        return None
    (count,), label = node.params, c.lo[0]
    if c.la[0] == label and label not in c.lb:
        return c.product(build.compress(c.a, mask, count), c.la, c.b, c.lb, c.lo)
    return None
