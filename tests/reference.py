"""A NumPy interpreter of the expression graph: slow, plain, and the oracle for every executor."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from spartan_ng.arrays import ArrayRef, box_of
from spartan_ng.graph.evaluation import Evaluator, answer_by
from spartan_ng.graph.node import Node, Op, topological
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.ops.matrices import evaluate_matrices
from spartan_ng.ops.random import draw
from spartan_ng.ops.scans import MONOIDS, SCANS, Recurrence, recurrence_scan


def evaluate(nodes: Sequence[Node], order: Sequence[Node] | None = None) -> list[ArrayRef]:
    """The values of `nodes`, one node after the other."""
    known: dict[Node, Any] = {}
    for node in topological(nodes) if order is None else order:
        value = np.asarray(_STEPS[node.op](node, *(known[i] for i in node.inputs)))
        assert value.shape == node.shape, f"{node}: the value has shape {value.shape}"
        assert value.dtype == node.dtype, f"{node}: the value has dtype {value.dtype}"
        known[node] = value
    return [_ref(n, known[n]) for n in nodes]


def install() -> Evaluator:
    """Make this interpreter the one that evaluates; returns who did before."""
    return answer_by(Evaluator(evaluate))


def _ref(node: Node, value: Any) -> ArrayRef:
    if node.format == "csr":
        matrix = sparse.csr_array(value)
        return ArrayRef(node.shape, node.dtype, value=matrix, format="csr", nnz=int(matrix.nnz))
    return ArrayRef(node.shape, node.dtype, value=np.array(value))


def _data(node: Node) -> Any:
    assert node.data is not None
    value = node.data.value
    return value.toarray() if node.data.format != "dense" else value


def _map(node: Node, *inputs: Any) -> Any:
    if isinstance(node.fn, UserFunction):
        wide = np.broadcast_arrays(*inputs)
        wants_extent = bool(node.params)
        keywords = {"extent": box_of(node.shape)} if wants_extent else {}
        return np.asarray(node.fn.function(*wide, **keywords)).astype(node.dtype)
    assert node.fn is not None
    row = ELEMENTWISE[node.fn]
    with np.errstate(all="ignore"):
        if node.fn == "cast":
            return inputs[0].astype(node.dtype)
        if not row.is_ufunc:
            return np.asarray(row.function(*inputs)).astype(node.dtype)
        same = node.dtype == bool or node.fn in ("ldexp", "isnan", "absolute", "bitwise_count")
        if same:
            return row.function(*inputs)
        return row.function(*inputs, dtype=node.dtype, casting="unsafe")


def _fold(node: Node, x: Any, mask: Any = None) -> Any:
    (axes,) = node.params
    if isinstance(node.fn, UserFunction):
        f = node.fn.function
        for axis in sorted(axes, reverse=True):
            x = functools.reduce(f, [np.take(x, i, axis) for i in range(x.shape[axis])])
        return np.asarray(x).astype(node.dtype)
    assert node.fn is not None
    row = FOLDS[node.fn]
    with np.errstate(all="ignore"):
        return row.finalize(row.block(x, axes, node.dtype, mask, 0))


def _scan(node: Node, x: Any, w: Any = None) -> Any:
    (axis,) = node.params
    if w is not None or node.fn in MONOIDS:
        pair = node.fn.function if isinstance(node.fn, UserFunction) else None
        assert pair is None or isinstance(pair, Recurrence)
        monoid = MONOIDS[str(node.fn)] if pair is None else recurrence_scan(pair.plus, pair.times)
        inputs = (x,) if w is None else (x, w)
        states = [monoid.lift(*(np.take(i, [k], axis) for i in inputs)) for k in range(x.shape[axis])]
        states = list(itertools.accumulate(states, monoid.combine))
        return np.concatenate([monoid.project(s) for s in states], axis).astype(node.dtype)
    if isinstance(node.fn, UserFunction):
        lines = [np.take(x, i, axis) for i in range(x.shape[axis])]
        out = lines[:1]
        for line in lines[1:]:
            out.append(node.fn.function(out[-1], line))
        return np.stack(out, axis).astype(node.dtype)
    assert node.fn is not None
    whole = np.empty(node.shape, node.dtype)
    SCANS[node.fn].cumulate(x, axis, whole)
    return whole


def _join(node: Node, *inputs: Any) -> Any:
    if isinstance(node.fn, UserFunction):
        return _user_join(node, inputs)
    assert node.fn is not None
    return _JOINS[node.fn](node, *inputs)


def _contract(node: Node, a: Any, b: Any) -> Any:
    la, lb, lo = node.params
    return np.einsum(a, list(la), b, list(lb), list(lo), dtype=node.dtype, casting="unsafe")


def _assign(node: Node, base: Any, value: Any) -> Any:
    out = base.copy()
    for (_, step), n in zip(node.params, value.shape, strict=True):
        assert step > 0, f"{node}: a region runs backwards"
        assert n > 0, f"{node}: an empty region"
    out[tuple(slice(s, s + t * n, t) for (s, t), n in zip(node.params, value.shape, strict=True))] = value
    return out


def _take(node: Node, a: Any, indices: Any) -> Any:
    (axis,) = node.params
    assert indices.dtype == np.int64, f"{node}: indices are {indices.dtype}"
    assert ((indices >= 0) & (indices < a.shape[axis])).all(), f"{node}: an index is out of range"
    return np.take(a, indices, axis)


def _scatter(node: Node, base: Any, indices: Any, values: Any) -> Any:
    (accumulate,) = node.params
    assert indices.dtype == np.int64
    assert values.shape == indices.shape
    out = base.copy()
    if accumulate:
        getattr(np, accumulate).at(out, indices, values)
    else:
        for i, v in zip(indices.tolist(), values, strict=True):
            out[i] = v
    return out


def _along_axis(node: Node, *inputs: Any) -> Any:
    function, axis, keywords = node.params
    return AXIS_FUNCTIONS[function].function(*inputs, axis=axis, **dict(keywords))


def _matrices(node: Node, *inputs: Any) -> Any:
    name, batch, stacked, keywords = node.params
    out = np.empty(node.shape, node.dtype)
    for index in np.ndindex(*node.shape[:batch]):
        own = [x[index] if follows else x for x, follows in zip(inputs, stacked, strict=True)]
        out[index] = evaluate_matrices(name, own, stacked, (), node.shape[-1], node.dtype, keywords)
    return out


def _ends(node: Node, x: Any) -> Any:
    function, count, last = node.params
    found = np.sort(x) if function == "sort" else np.argsort(x, kind="stable")
    return found[len(x) - count :] if last else found[:count]


def _distinct(node: Node, x: Any) -> Any:
    found = np.unique(x)[: node.size]
    return np.pad(found, (0, node.size - len(found)), "edge")


def _between(node: Node, x: Any) -> Any:
    dtype, bounds, wanted, most = node.params
    x = x[x == x]
    above = [x > v if is_below else x >= v for v, is_below in bounds]
    found = np.sort(x[np.array(wanted)[sum(above, np.zeros(x.shape, int))]])
    size = len(found) if len(found) <= most else -1
    head = np.array([*(a.sum() for a in above), x.size, size], np.int64).tobytes()
    body = found.astype(dtype).tobytes() if len(found) <= most else b""
    return np.frombuffer((head + body).ljust(node.size, bytes(1)), np.uint8)


def _bincount(node: Node, x: Any, weights: Any = None) -> Any:
    assert x.dtype == np.int64
    if weights is None:
        return np.bincount(x, None, node.params[0])
    sums = np.zeros(node.shape, node.dtype)
    np.add.at(sums, x, weights)
    return sums


def _user_join(node: Node, inputs: tuple[Any, ...]) -> Any:
    assert isinstance(node.fn, UserFunction)
    axes, accumulate = node.params
    out = np.zeros(node.shape, node.dtype)
    written = np.zeros(node.shape, bool)
    combine = accumulate.function if isinstance(accumulate, UserFunction) else getattr(np, accumulate)
    lengths = {x.shape[a] for x, a in zip(inputs, axes, strict=True) if a >= 0}
    n = lengths.pop() if lengths else 1
    cuts = sorted({0, n // 2, n})
    for lo, hi in pairwise(cuts):
        boxes, tiles = [], []
        for x, axis in zip(inputs, axes, strict=True):
            box = list(box_of(x.shape))
            if axis >= 0:
                box[axis] = (lo, hi)
            boxes.append(tuple(box))
            tiles.append(x[tuple(slice(*b) for b in box)])
        result = node.fn.function(tuple(boxes), tuple(tiles))
        if (
            isinstance(result, tuple)
            and len(result) == 2
            and np.ndim(result[1]) == len(np.atleast_1d(result[0]))
        ):
            result = [result]
        for at, data in result:
            where = tuple(slice(i, i + m) for i, m in zip(np.atleast_1d(at), np.shape(data), strict=True))
            out[where] = np.where(written[where], combine(out[where], data), data)
            written[where] = True
    return out


def _slice(node: Node, a: Any) -> Any:
    lines = [s + t * np.arange(n) for (s, t), n in zip(node.params, node.shape, strict=True)]
    for line, n in zip(lines, a.shape, strict=True):
        assert ((line >= 0) & (line < n)).all(), f"{node}: a slice leaves shape {a.shape}"
    return a[np.ix_(*lines)] if lines else a


_JOINS: dict[str, Callable[..., Any]] = {
    "contract": _contract,
    "concatenate": lambda node, *inputs: np.concatenate(inputs, node.params[0]),
    "assign": _assign,
    "take": _take,
    "search": lambda node, a, values: np.asarray(np.searchsorted(a, values, node.params[0])),
    "tile_as": lambda node, a: a,
    "scatter": _scatter,
    "along_axis": _along_axis,
    "matrices": _matrices,
    "bincount": _bincount,
    "ends": _ends,
    "distinct": _distinct,
    "between": _between,
    "places": lambda node, x: np.concatenate([np.sort(x)[lo:hi] for lo, hi in node.params[1]]),
}


def _indices(start: int = 0, step: int = 1, *, n: int) -> Any:
    return start + step * np.arange(n, dtype=np.int64)


_STEPS: dict[Op, Callable[..., Any]] = {
    Op.DATA: _data,
    Op.INDEX: lambda node: _indices(*node.params, n=node.shape[0]),
    Op.RANDOM: lambda node: draw(
        node.fn, node.params[0], node.params[1:], node.shape, node.dtype, box_of(node.shape)
    ),
    Op.MAP: _map,
    Op.FOLD: _fold,
    Op.SCAN: _scan,
    Op.FILTER: lambda node, *inputs: (
        np.flatnonzero(*inputs) if node.fn == "nonzero" else inputs[0][inputs[1]]
    ),
    Op.JOIN_UPDATE: _join,
    Op.SLICE: _slice,
    Op.TRANSPOSE: lambda node, a: a.transpose(node.params[0]),
    Op.RESHAPE: lambda node, a: a.reshape(node.shape),
    Op.BROADCAST: lambda node, a: np.broadcast_to(a, node.shape),
}
