"""Rewrites of scans: single rows, lower triangles, suffix sums, and aggregates without the scan's output.

Distributed cumulative aggregates (BTW '19), Eq. 3, each under the condition that keeps every value:

- a scan along an axis of length 1 is its input;
- cumsum(eye) is a comparison of indices (X * cumsum(eye), X's lower triangle, is then one pass);
- flip(cumsum(flip(X))) = X + sum(X) - cumsum(X) for integers only: infinities, NaN and cancellation
  would show in floats;
- sum(cumsum(X)) = sum(X * [n, n-1, ..., 1]) for integers and for float64;
- min(cumsum(X)) and max(cumsum(X)) are folds with the state (sum, extreme prefix), for floats: a sum that
  wraps around has no order. Whatever X is made of runs in the same pass;
- cumsum(X)[k] = sum(X[:k + 1]) and cumsum(X)[k:m] = sum(X[:k]) + cumsum(X[k:m]), and so for other functions
  that are folds, too: what is behind is not read.

The last three only where nobody reads the scan but such aggregates (several then share the pass over X).
Suffix sums of floats stay scans: that X is finite, as the rewrite asks, is known only when X has been read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.folds import FOLDS, PREFIX_FOLDS
from spartan_ng.optimizer.rewrite.rebuild import rebuild

_ROWS = 3
"""Single rows of a scan that take no longer, each by itself, than the scan."""


def simplify_scans(roots: Sequence[Node]) -> list[Node]:
    """Apply the rewrites that hold whoever else reads the scan; a root that would be a leaf stays a step."""
    if not any(n.op is Op.SCAN for n in topological(roots)):
        return list(roots)
    return rebuild(roots, _simplify, {root for root in roots if root.op is not Op.DATA})


def fold_scans(roots: Sequence[Node]) -> list[Node]:
    """Aggregate cumulative sums without their output, where only such aggregates read it."""
    order = topological(roots)
    if not any(n.op is Op.SCAN for n in order):
        return list(roots)
    needed = set(roots)
    parts = Counter(n.inputs[0] for n in order if n.op is Op.SLICE)
    needed.update(
        n.inputs[0] for n in order if n.op is Op.SLICE and parts[n.inputs[0]] > (_ROWS if _is_row(n) else 1)
    )
    for node in order:
        # Somebody needs the scan itself: folding it apart would go through X twice.
        needed.update(i for i in node.inputs if i.op is Op.SCAN and _folded(node) is node)

    def rule(node: Node) -> Node:
        found = _folded(node)
        return node if found is node or node.inputs[0] in needed else found

    return rebuild(roots, rule)


def _simplify(node: Node) -> Node:
    if node.op is Op.SCAN:
        (axis,) = node.params
        x = node.inputs[0]
        if node.shape[axis] == 1 and x.dtype == node.dtype and x.format == node.format:
            return x
        return _triangle(node, axis)
    return _suffix_sum(node) if node.op is Op.SLICE else node


def _triangle(scan: Node, axis: int) -> Node:
    """The cumulative sum of an identity matrix (or another diagonal of ones) as a comparison."""
    found = _diagonal(scan.inputs[0])
    if scan.fn != "add" or found is None:
        return scan
    row, column = found
    ahead, behind = (row, column) if axis == 0 else (column, row)
    first = build.slice_(ahead, (0,) * ahead.ndim, (1,) * ahead.ndim, (1,) * ahead.ndim)
    passed = build.map_("greater_equal", ahead, behind)
    started = build.map_("greater_equal", behind, first)
    return build.cast(build.map_("logical_and", passed, started), scan.dtype)


def _diagonal(node: Node) -> tuple[Node, Node] | None:
    """The row and column numbers that a matrix of zeros and ones compares."""
    while node.op is Op.MAP and node.fn == "cast":
        (node,) = node.inputs
    if node.op is not Op.MAP or node.fn != "equal" or node.ndim != 2:
        return None
    row, column = node.inputs
    ascending = _ascends(row) and _ascends(column)
    return (row, column) if ascending and row.shape == (node.shape[0], 1) else None


def _ascends(node: Node) -> bool:
    """Whether a node is the index along an axis, perhaps moved by a constant."""
    while node.op is Op.RESHAPE or (node.op is Op.MAP and node.fn == "add" and node.inputs[1].shape == ()):
        node = node.inputs[0]
    return node.op is Op.INDEX and not node.params


def _suffix_sum(node: Node) -> Node:
    """X + sum(X) - cumsum(X) for the flipped cumulative sum of flipped integers."""
    (scan,) = node.inputs
    if scan.op is not Op.SCAN or scan.fn != "add" or scan.dtype.kind not in "iu":
        return node
    (axis,) = scan.params
    flipped = scan.inputs[0]
    if flipped.op is not Op.SLICE or flipped.dtype != scan.dtype:
        return node
    x = flipped.inputs[0]
    flip = tuple((n - 1, -1) if i == axis else (0, 1) for i, n in enumerate(x.shape))
    if not (x.shape == node.shape == flipped.shape and node.params == flipped.params == flip):
        return node
    total = build.fold("add", x, (axis,), dtype=x.dtype)
    # With the axis, of length 1, that the fold has dropped.
    wide = build.reshape_step(total, tuple(1 if i == axis else n for i, n in enumerate(x.shape)))
    rest = build.map_("subtract", wide, build.scan("add", x, axis, x.dtype), dtype=x.dtype)
    return build.map_("add", x, rest, dtype=x.dtype)


def _folded(node: Node) -> Node:
    """The fold of a scan as a fold of what is scanned, and a part of one as that of a part; another node is
    itself."""
    if node.op is Op.SLICE and (below := node.inputs[0]).op is Op.SCAN:
        return _part(node, below)
    if node.op is not Op.FOLD or len(node.inputs) != 1:
        return node
    (scan,) = node.inputs
    plain = scan.op is Op.SCAN and len(scan.inputs) == 1 and scan.inputs[0].dtype == scan.dtype
    return _aggregate(node, scan) if plain and scan.params[0] in node.params[0] else node


def _is_row(node: Node) -> bool:
    """Whether a slice of a scan is one index of its axis."""
    (scan,) = node.inputs
    return scan.op is Op.SCAN and node.shape[scan.params[0]] == 1


def _part(node: Node, scan: Node) -> Node:
    """A part of a scan, as a scan of no more than what is up to its end along the axis; of single indices as
    folds, and of what begins further on behind that of all before it."""
    (axis,) = scan.params
    (start, step), count = node.params[axis], node.shape[axis]
    end = start + step * (count - 1) + 1
    if step < 0 or not node.size or node.shape == scan.shape:
        return node
    are_whole = all(node.shape[i] == n for i, n in enumerate(scan.shape) if i != axis)
    folds = scan.fn in FOLDS and len(scan.inputs) == 1

    def of(x: Node, lo: int, hi: int) -> Node:
        starts = [lo if i == axis else s for i, (s, _) in enumerate(node.params)]
        steps = [1 if i == axis else s for i, (_, s) in enumerate(node.params)]
        return build.slice_(x, starts, steps, (*node.shape[:axis], hi - lo, *node.shape[axis + 1 :]))

    def total(hi: int) -> Node:
        found = build.fold(str(scan.fn), of(scan.inputs[0], 0, hi), (axis,), dtype=scan.dtype)
        return build.reshape_step(found, (*node.shape[:axis], 1, *node.shape[axis + 1 :]))

    if folds and count == 1 and end > 1:
        return total(end)
    first = start if folds and step == 1 else 0
    if not first and end == scan.shape[axis] and are_whole:
        return node
    inputs = tuple(of(x, first, end) for x in scan.inputs)
    found = replace(scan, inputs=inputs, shape=inputs[0].shape)
    if first:
        return build.map_(str(scan.fn), total(first), found, dtype=scan.dtype)
    along = [(start, step) if i == axis else (0, 1) for i in range(node.ndim)]
    return build.slice_(found, [s for s, _ in along], [s for _, s in along], node.shape)


def _aggregate(node: Node, scan: Node) -> Node:
    """The fold of a scan along its axis, among others."""
    (axes,), (axis,) = node.params, scan.params
    x = scan.inputs[0]
    name = str(node.fn)
    # The sums are rounded, or wrap around, in the scan's dtype, and then are added in another.
    if node.dtype != scan.dtype:
        return node
    # The least of running minima is the last of them.
    if name == scan.fn and name in ("minimum", "maximum"):
        return build.fold(name, x, axes, dtype=node.dtype)
    if scan.fn != "add":
        return node
    if name == "add" and (x.dtype.kind in "iu" or x.dtype == np.float64):
        shape = tuple(n if i == axis else 1 for i, n in enumerate(x.shape))
        n = shape[axis]
        left = build.slice_(build.iota(n + 1), (n,), (-1,), (n,))
        weights = build.reshape_step(build.cast(left, x.dtype), shape)
        return build.fold("add", build.map_("multiply", x, weights, dtype=x.dtype), axes, dtype=node.dtype)
    if name in PREFIX_FOLDS and x.dtype.kind == "f":
        first = build.fold(PREFIX_FOLDS[name], x, (axis,), dtype=node.dtype)
        others = tuple(i - (i > axis) for i in axes if i != axis)
        return build.fold(name, first, others, dtype=node.dtype) if others else first
    return node
