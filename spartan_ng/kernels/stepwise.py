"""One function of NumPy's for each operator, on whole values: programs that are worked on step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from spartan_ng.costs.choices import TINY_BYTES
from spartan_ng.graph.node import Node, Op, indices, sliced
from spartan_ng.graph.windows import are_windows, is_every_start
from spartan_ng.kernels.contract import contract
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.line_sorts import line_function
from spartan_ng.kernels.searches import searched
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, ArgFold, fold_whole
from spartan_ng.ops.line_states import LINE_STATES
from spartan_ng.ops.matrices import evaluate_matrices
from spartan_ng.ops.scans import SCANS
from spartan_ng.scratch import copy_fits

OF_WINDOWS = frozenset({"add", "take"})
"""What places of windows are made by, and windows."""


def is_zero(node: Node) -> bool:
    """Whether a node is zeros, which the operating system hands out for nothing as long as nobody writes to
    them: for others than memory has room for, a plan makes a file."""
    if node.op is not Op.BROADCAST or node.inputs[0].data is None or not copy_fits(node.nbytes):
        return False
    value = node.inputs[0].data.value
    return value.nbytes <= TINY_BYTES and not any(value.tobytes())


def _map(node: Node, *inputs: Any) -> Any:
    if node.fn in OF_WINDOWS and node.size and is_every_start(node):
        return sliding_window_view(np.arange(sum(node.shape) - 1, dtype=node.dtype), node.shape[1])
    if node.fn == "cast":
        return inputs[0].astype(node.dtype)
    row = ELEMENTWISE[str(node.fn)]
    if row.nout > 1:
        return row.function(*inputs)[node.params[0]]
    if not row.is_ufunc:
        return row.function(*inputs)
    shape, alike = node.shape, None
    for x in inputs if len(shape) > 1 else ():
        if np.shape(x) == shape:
            alike = x
            break
    # As operands lie: across that, each element is a line of the cache.
    out = np.empty(shape, node.dtype) if alike is None else np.empty_like(alike, node.dtype, subok=False)
    return row.function(*inputs, out=out)


def _fold(node: Node, x: Any, where: Any = None) -> Any:
    (axes,) = node.params
    row = FOLDS[str(node.fn)]
    if isinstance(row, ArgFold):
        return row.find(x, axis=axes[0])
    return fold_whole(row, x, axes, node.dtype, where)


def _scan(node: Node, x: Any) -> Any:
    out = np.empty(node.shape, node.dtype)
    SCANS[str(node.fn)].cumulate(x, node.params[0], out)
    return out


def _join(node: Node, *inputs: Any) -> Any:
    return JOINS[str(node.fn)](node, *inputs)


def _assign(node: Node, base: Any, value: Any) -> Any:
    out = base.copy()
    out[tuple(slice(s, s + t * n, t) for (s, t), n in zip(node.params, value.shape, strict=True))] = value
    return out


def _take(node: Node, a: Any, indices: Any) -> Any:
    (axis,) = node.params
    if not are_windows(node):
        return np.take(a, indices, axis=axis)
    starts, length = indices.shape
    shown = sliding_window_view(a, length, axis)[(slice(None),) * axis + (slice(starts),)]
    return np.moveaxis(shown, -1, axis + 1)


def _scatter(node: Node, base: Any, indices: Any, values: Any) -> Any:
    (accumulate,) = node.params
    out = base.copy()
    if accumulate:
        getattr(np, accumulate).at(out, indices, values)
    else:
        out[indices] = values
    return out


def _along_axis(node: Node, *inputs: Any) -> Any:
    name, axis, keywords = node.params
    return line_function(name)(*inputs, axis=axis, **dict(keywords))


def _broadcast(node: Node, a: Any) -> Any:
    return np.zeros(node.shape, node.dtype) if is_zero(node) else np.broadcast_to(a, node.shape)


def _matrices(node: Node, *inputs: Any) -> Any:
    name, batch, stacked, keywords = node.params
    return evaluate_matrices(name, inputs, stacked, node.shape[:batch], node.shape[-1], node.dtype, keywords)


def _line_state(node: Node, x: Any) -> Any:
    line = LINE_STATES[str(node.fn)](*node.params)
    return line.value(line.state(x, 0))


JOINS: dict[str, Callable[..., Any]] = {
    "contract": lambda node, a, b: dense(contract(a, b, *node.params)),
    "concatenate": lambda node, *inputs: np.concatenate(inputs, node.params[0]),
    "assign": _assign,
    "take": _take,
    "search": lambda node, a, values: searched(a, values, *node.params),
    "scatter": _scatter,
    "along_axis": _along_axis,
    "matrices": _matrices,
    **dict.fromkeys(LINE_STATES, _line_state),
    "bincount": lambda node, x, weights=None: np.bincount(x, weights, node.params[0]),
}

_FILTERS: dict[Any, Callable[..., Any]] = {"compress": lambda a, mask: a[mask], "nonzero": np.flatnonzero}

STEPS: dict[Op, Callable[..., Any]] = {
    Op.DATA: lambda node: node.data.value,
    Op.INDEX: lambda node: indices(node.params, 0, node.shape[0]),
    Op.MAP: _map,
    Op.FOLD: _fold,
    Op.SCAN: _scan,
    Op.FILTER: lambda node, *inputs: _FILTERS[node.fn](*inputs),
    Op.JOIN_UPDATE: _join,
    Op.SLICE: lambda node, a: a[sliced(node)],
    Op.TRANSPOSE: lambda node, a: a.transpose(node.params[0]),
    Op.RESHAPE: lambda node, a: a.reshape(node.shape),
    Op.BROADCAST: _broadcast,
}
