"""Between which whole numbers a node's elements lie, as far as the way says that they are made.

Places are checked before they are looked up, as NumPy checks them, which takes a pass over them and over
all that they are made of. What is `clip(i, 0, n - 1)`, `i % n`, an `argmin`, or drawn of `integers(0, n)`,
needs none. Nothing is computed here: interval arithmetic over the last few nodes, and the range of the dtype
where these say nothing. What was found about a node that had to be looked at is kept as long as that lives,
since it does not change: a loop that takes by the same places each step looks at them once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from spartan_ng.graph.node import VIEWS, Node, Op

Range = tuple[int, int]
"""The least and the greatest that there may be."""
_DEPTH = 12
"""So many nodes one after the other are looked at: keys are small programs."""
_TRUTH: Range = (0, 1)
_found: WeakKeyDictionary[Node, dict[tuple[Any, ...], Range]] = WeakKeyDictionary()
"""By nodes the least and the greatest that they have, and their views, which are made anew for each step."""


def range_of(node: Node, depth: int = _DEPTH) -> Range | None:
    """The range of a node of integers or truth values; None of others."""
    if node.dtype.kind not in "iub":
        return None
    known = remembered(node)
    if known is not None:
        return known
    every = _of_dtype(node.dtype)
    found = _made_of(node, depth) if depth else None
    if found is None or found[0] < every[0] or found[1] > every[1]:
        return every  # numbers that do not fit come around
    return found


def remember(node: Node, found: Range) -> None:
    """Note the least and the greatest number that a node has. What lies in a file may be another's to
    change."""
    base, views = _under_views(node)
    if base.data is None or not base.data.is_mapped:
        _found.setdefault(base, {})[views] = found


def remembered(node: Node) -> Range | None:
    """The least and the greatest number of a node, where these were looked for."""
    if not _found:
        return None
    base, views = _under_views(node)
    return _found.get(base, {}).get(views)


def _under_views(node: Node) -> tuple[Node, tuple[Any, ...]]:
    """The node that views show, and what these are."""
    views: list[Any] = []
    while node.op in VIEWS:
        views += node.op, node.params, node.shape
        node = node.inputs[0]
    return node, tuple(views)


def _of_dtype(dtype: np.dtype[Any]) -> Range:
    if dtype.kind == "b":
        return _TRUTH
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _made_of(node: Node, depth: int) -> Range | None:
    if node.op is Op.DATA:
        return _held(node)
    if node.op is Op.INDEX:
        start, step = node.params or (0, 1)
        ends = start, start + step * max(node.shape[0] - 1, 0)
        return min(ends), max(ends)
    if node.op is Op.RANDOM:
        return _drawn(node)
    if node.op is Op.FILTER and node.fn == "nonzero":
        return 0, max(node.inputs[0].size - 1, 0)
    if node.op is Op.FOLD and node.fn in ("argmin", "argmax"):
        return 0, max(node.inputs[0].shape[node.params[0][0]] - 1, 0)
    if node.op is Op.JOIN_UPDATE:
        sorts = node.fn == "along_axis" and node.params[0] in ("argsort", "argpartition")
        return (0, max(node.inputs[0].shape[node.params[1]] - 1, 0)) if sorts else None
    if node.op in VIEWS or (node.op is Op.FILTER and node.fn == "compress"):
        return range_of(node.inputs[0], depth - 1)
    if node.op is Op.FOLD and len(node.inputs) == 1 and node.size:
        return _folded(node, range_of(node.inputs[0], depth - 1))
    if node.op is Op.MAP and isinstance(node.fn, str) and node.fn in _RULES:
        ranges = [range_of(each, depth - 1) for each in node.inputs]
        known = [each for each in ranges if each is not None]
        return _RULES[node.fn](*known) if len(known) == len(ranges) else None
    return None


def _folded(node: Node, of: Range | None) -> Range | None:
    if of is None or node.fn in ("minimum", "maximum"):
        return of
    count = node.inputs[0].size // node.size
    return (of[0] * count, of[1] * count) if node.fn == "add" else None


def _held(node: Node) -> Range | None:
    """Of a number that the driver has."""
    value = None if node.data is None or node.shape else node.data.value
    return (int(value), int(value)) if isinstance(value, np.ndarray) else None


def _drawn(node: Node) -> Range | None:
    if node.fn != "integers" or len(node.params) < 3:  # a walk's bounds are its stream's
        return None
    low, high = node.params[1:3]
    return (int(low), int(high) - 1) if np.ndim(low) == np.ndim(high) == 0 else None


def _minimum(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), min(a[1], b[1])


def _maximum(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), max(a[1], b[1])


def _remainder(a: Range, b: Range) -> Range | None:
    return (0, b[1] - 1) if b[0] > 0 else None


def _bitwise_and(a: Range, b: Range) -> Range | None:
    tops = [high for low, high in (a, b) if low >= 0]
    return (0, min(tops)) if tops else None


def _floor_divide(a: Range, b: Range) -> Range | None:
    if b[0] <= 0:
        return None
    ends = [end // by for end in a for by in b]
    return min(ends), max(ends)


_RULES: dict[str, Callable[..., Range | None]] = {
    "cast": lambda a: a,
    "positive": lambda a: a,
    "minimum": _minimum,
    "maximum": _maximum,
    "clip": lambda a, low, high: _minimum(_maximum(a, low), high),
    "where": lambda _, a, b: (min(a[0], b[0]), max(a[1], b[1])),
    "remainder": _remainder,
    "bitwise_and": _bitwise_and,
    "floor_divide": _floor_divide,
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "subtract": lambda a, b: (a[0] - b[1], a[1] - b[0]),
}
"""Of rows of elements; what cannot be said is None."""
