"""Products with an indicator matrix are sums by group, and its sums are counts: nothing is multiplied.

(labels[:, None] == arange(k)).T @ X adds up the rows of X that have each label, and E[labels].T @ X is E.T
times those sums. In a product every row meets every group: where one is infinite or NaN, the groups that it
does not belong to become NaN, since 0 * inf is. So do they here (`_poisoned`).
"""

from __future__ import annotations

import numpy as np

from spartan_ng.costs.choices import GROUP_ROWS
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op
from spartan_ng.optimizer.rewrite.algebra.contraction import Contraction, Labels
from spartan_ng.optimizer.rewrite.rule import ReaderCounts


def indicator_product(node: Node, readers: ReaderCounts) -> Node | None:
    """(labels[:, None] == arange(k)).T @ X as sums by group."""
    for c, rows, group in _sides(node):
        found = _indicator(c.a, c.la.index(rows))
        if found is None:
            continue
        labels, k = found
        sums = _sums(c, rows, _below(labels, k), k + 1)
        if sums is None or k * GROUP_ROWS > labels.size:
            return None
        kept = build.slice_(_poisoned(sums), (0,) * sums.ndim, (1,) * sums.ndim, (k, *sums.shape[1:]))
        return _turned(kept, (group, *(x for x in c.lb if x != rows)), c.lo)
    return None


def indicator_sum(node: Node, readers: ReaderCounts) -> Node | None:
    """(labels[:, None] == arange(k)).sum(0) as counts of the labels."""
    if node.fn != "add" or len(node.inputs) != 1 or len(node.params[0]) != 1 or node.inputs[0].ndim != 2:
        return None
    if node.dtype.kind not in "iuf":
        return None
    (rows,) = node.params[0]
    found = _indicator(node.inputs[0], rows)
    if found is None:
        return None
    labels, k = found
    counts = build.slice_(build.bincount(_below(labels, k), k + 1), (0,), (1,), (k,))
    return build.reshape_step(build.cast(counts, node.dtype), node.shape)


def lookup_product(node: Node, readers: ReaderCounts) -> Node | None:
    """E[labels].T @ X as E.T times sums by group."""
    for c, rows, _ in _sides(node):
        a, axis = c.a, c.la.index(rows)
        if a.op is Op.TRANSPOSE and readers.alone(a):
            a, axis = a.inputs[0], a.params[0][axis]
        if a.fn != "take" or not readers.alone(a) or a.params != (0,) or axis != 0 or a.inputs[1].ndim != 1:
            continue
        table, labels = a.inputs
        k = table.shape[0]
        sums = _sums(c, rows, labels, k)
        if sums is None or table.dtype != node.dtype or k * GROUP_ROWS > labels.size:
            return None
        seen = build.reshape_step(build.cast(build.bincount(labels, k), np.dtype(bool)), (k, 1))
        zero = build.cast(build.iota(1), table.dtype)
        table = build.map_("where", seen, table, zero, dtype=table.dtype)  # rows that nobody looks up
        (column,) = (x for x in c.la if x != rows)
        return c.product(table, (rows, column), sums, (rows, *(x for x in c.lb if x != rows)), c.lo)
    return None


def _sides(node: Node) -> list[tuple[Contraction, int, int]]:
    """A product of floats whose first operand is a matrix, both ways round: with the label that is summed and
    the other of that matrix."""
    first = Contraction.of(node)
    if first is None or not first.is_dense or node.dtype.char not in "fd" or node.ndim not in (1, 2):
        return []
    second = Contraction(node, first.b, first.a, first.lb, first.la, first.lo)
    found = []
    for c in (first, second):
        (*summed,) = {*c.la} & {*c.lb}
        if len(c.la) == 2 and len(summed) == 1 and summed[0] not in c.lo:
            (other,) = (x for x in c.la if x != summed[0])
            found.append((c, summed[0], other))
    return found


def _indicator(node: Node, rows: int) -> tuple[Node, int] | None:
    """The labels along axis `rows`, and how many there are, where a matrix compares labels with 0, 1, ...

    Whoever else reads the matrix has it made of the same labels: nothing is computed a second time.
    """
    while node.fn == "cast" or node.op is Op.TRANSPOSE:
        rows = node.params[0][rows] if node.op is Op.TRANSPOSE else rows
        (node,) = node.inputs
    if node.fn != "equal":
        return None
    n, k = node.shape[rows], node.shape[1 - rows]
    for labels, numbers in (node.inputs, node.inputs[::-1]):
        # As many labels as there are lines lie along them where the numbers lie along the other axis.
        counts = numbers.size == k and (numbers.shape[-1] == k) == (rows == 0) and _counts(numbers, k)
        if labels.size == n and counts and labels.dtype.kind in "iu" and labels.dtype != np.uint64:
            return build.reshape_step(labels, (n,)), k
    return None


def _counts(node: Node, k: int) -> bool:
    """Whether a node is 0, 1, ..., k - 1."""
    while node.op is Op.RESHAPE or (
        node.fn == "cast" and node.dtype.kind in "iu" and node.dtype.itemsize > 2
    ):
        (node,) = node.inputs
    return node.op is Op.INDEX and node.shape == (k,) and not node.params


def _sums(c: Contraction, rows: int, labels: Node, k: int) -> Node | None:
    """The sums of the second operand's rows by label, all in [0, k)."""
    x = c.b
    if x.ndim > 2 or x.dtype != c.node.dtype:
        return None
    at = c.lb.index(rows)
    x = build.transpose(x, (at, *(i for i in range(x.ndim) if i != at)))
    return build.bincount(labels, k, x, x.dtype)


def _below(labels: Node, k: int) -> Node:
    """The labels, and k in place of those that are not in [0, k)."""
    labels = build.cast(labels, np.dtype(np.int64))
    last = build.slice_(build.iota(k + 1), (k,), (1,), (1,))
    negative = build.map_("less", labels, build.iota(1))
    return build.map_("minimum", build.map_("where", negative, last, labels, dtype=labels.dtype), last)


def _poisoned(sums: Node) -> Node:
    """Sums by group as a product has them: NaN where another group, or what has none, is infinite or NaN."""
    nothing = build.map_("subtract", sums, sums)  # 0, or NaN
    bad = build.map_("isnan", nothing)
    count = build.cast(bad, np.dtype(np.int64))
    others = build.map_("subtract", build.fold("add", count, (0,)), count)
    elsewhere = build.cast(others, np.dtype(bool))
    return build.map_("where", elsewhere, build.fold("add", nothing, (0,)), sums, dtype=sums.dtype)


def _turned(value: Node, labels: Labels, lo: Labels) -> Node:
    """The value with its axes in the order of a product's result."""
    return build.transpose(value, [labels.index(x) for x in lo])
