"""Folds of sliding windows as elementwise steps over slices: no window is made.

`sliding_window_view(x, n).sum(-1)` is `x[0:k] + x[1:k+1] + ...`, n slices of one array in one pass, where the
windows would be an array n times as large. So are running means, extremes and counts, xarray's `rolling` too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from spartan_ng.costs.choices import WINDOW_ELEMENTS
from spartan_ng.graph import build
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.graph.windows import is_every_start
from spartan_ng.optimizer.rewrite.rebuild import rebuild

_FOLDS = frozenset({"add", "multiply", "minimum", "maximum", "logical_and", "logical_or"})
"""Folds that elementwise functions of the same names do, two at a time."""


def fold_windows(roots: Sequence[Node]) -> list[Node]:
    """Fold windows of up to `WINDOW_ELEMENTS` elements without making them."""
    if not any(n.op is Op.FOLD and _windows(n.inputs[0]) for n in topological(roots)):
        return list(roots)
    return rebuild(roots, _folded)


def _folded(node: Node) -> Node:
    """The fold of each window as steps over slices; another node is itself."""
    if node.op is not Op.FOLD or len(node.inputs) != 1 or not goes_in_pairs(node):
        return node
    found = _windows(node.inputs[0])
    is_short = 1 < node.inputs[0].shape[-1] <= WINDOW_ELEMENTS
    if found is None or node.params != ((found[0].ndim,),) or not is_short:
        return node
    base, axis = found

    def shifted(first: int) -> Node:
        starts = tuple(first if i == axis else 0 for i in range(base.ndim))
        return build.slice_(base, starts, (1,) * base.ndim, node.shape)

    return in_pairs(node, map(shifted, range(node.inputs[0].shape[-1])))


def goes_in_pairs(fold: Node) -> bool:
    """Whether an elementwise function folds as NumPy does, two elements at a time."""
    return fold.fn in _FOLDS and fold.dtype.char != "e"  # it adds halves up in more bits


def in_pairs(fold: Node, parts: Iterable[Node]) -> Node:
    """What a fold makes of parts by its elementwise function, one after the other. As NumPy folds: every
    element is in the fold's dtype before it is added."""
    name, of = str(fold.fn), fold.dtype
    return reduce(
        lambda before, part: build.map_(name, before, part, dtype=of), (build.cast(p, of) for p in parts)
    )


def _windows(node: Node) -> tuple[Node, int] | None:
    """Of what array, and along which axis, these are all windows, with the places inside a window last."""
    taken, order = node, tuple(range(node.ndim))
    if node.op is Op.TRANSPOSE:
        (taken,), (order,) = node.inputs, node.params
    if taken.op is not Op.JOIN_UPDATE or taken.fn != "take":
        return None
    base, places = taken.inputs
    (axis,) = taken.params
    inside_last = (*(i for i in range(taken.ndim) if i != axis + 1), axis + 1)
    if base.format != "dense" or order != inside_last or not is_every_start(places):
        return None
    return (base, axis) if places.shape[0] + places.shape[1] == base.shape[axis] + 1 else None
