"""Cumulative functions: a ufunc's `accumulate`, and NumPy's sums and products so far."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import reductions
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import are_numbers, without_details
from spartan_ng.api.core.layouts import asked_of_tiny, lie, lying_as
from spartan_ng.api.core.operands import check_output, stored
from spartan_ng.api.core.outputs import folds_in, is_other
from spartan_ng.api.core.telling import told
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.scans import SCANS
from spartan_ng.scratch import copy_fits, to_be_written

_ALIKE = frozenset({"add", "maximum", "minimum", "fmax", "fmin"})
"""What gives durations of durations."""

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def accumulate(name: str, a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Any ufunc's `accumulate`."""
    a = as_handle(a)
    if out is not None:
        check_output(out)
        if dtype is None and is_other(a.dtype, out.dtype):
            dtype = folds_in(name, a.dtype, out.dtype)
            if dtype is None:
                return by_numpy(getattr(np, name).accumulate, a, axis, out=out)  # type: ignore[no-any-return]
    value = reductions.promptly(a)
    if value is not None and reductions.is_prompt(value):
        scan = getattr(np, name).accumulate  # elements that are objects have the user's code
        result = wrap((scan if value.dtype.hasobject else partial(told, scan))(value, axis, dtype))
    elif not are_numbers(a.dtype, dtype):
        result = gathered(_with_room(name), a, axis, dtype)
    else:
        result = lying_as(wrap_node(_scanned(name, a, axis, dtype)), a)
    return stored(name, result, out, casting="unsafe")


def _with_room(name: str) -> Callable[..., Any]:
    """NumPy's `accumulate`, to disk where memory has no room for the dates or durations that it gives."""
    function = getattr(np, name).accumulate

    @wraps(function)
    def accumulated(value: Any, axis: Any, dtype: Any) -> Any:
        is_alike = dtype is None and value.dtype.isnative and name in _ALIKE
        if copy_fits(value.nbytes) or value.dtype.kind not in "mM" or not is_alike:
            return function(value, axis, dtype)
        return wrap(function(value, axis, out=to_be_written(np.empty_like(value))))

    return accumulated


def _scanned(name: str, a: ndarray, axis: Any, dtype: Any) -> Node:
    """A scan by the table's row, or whole lines by NumPy where the table has none."""
    if isinstance(axis, tuple) and len(axis) == 1:
        (axis,) = axis
    if (axis is None and a.ndim > 1) or isinstance(axis, tuple):
        raise ValueError("accumulate does not allow multiple axes")
    axis = 0 if axis is None else axis
    if a.ndim == 0 and axis in (0, -1):
        raise TypeError("cannot accumulate on a scalar")
    where = build.axis_index(axis, a.ndim)
    if name not in SCANS:
        kind = getattr(np, name).accumulate(np.ones(1, a.dtype), dtype=dtype).dtype
        keywords = (("ufunc", name), ("dtype", kind.str))
        return build.along_axis("accumulate", [a._node()], where, dtype=kind, keywords=keywords)
    target = np.dtype(dtype) if dtype is not None else SCANS[name].dtype(a.dtype)
    if a.size == 0:
        return build.cast(a._node(), target)
    node = a._node() if name in reductions.LOGICAL else build.cast(a._node(), target)
    return build.scan(name, node, where, target)


def _cumulative(name: str, a: Any, axis: Any, dtype: Any, out: Any) -> ndarray:
    a, dtype = as_handle(a), without_details(dtype)
    axis = None if axis is None else operator.index(axis)
    if axis is not None and isinstance(out, Handle | np.ndarray):
        build.axis_index(axis, max(a.ndim, 1))  # before whether `out` may be written to, unlike `accumulate`
    if axis is None or a.ndim == 0:
        a, axis = a.reshape(-1), axis or 0
    if dtype is None and out is None and a.dtype.kind in "biu":
        dtype = FOLDS[name].dtype(a.dtype)
    return accumulate(name, a, axis, dtype, out)


@numpy_function(np.cumsum, few=2)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative sums along `axis` (None: of the flat array)."""
    return _cumulative("add", a, axis, dtype, out)


@numpy_function(np.cumprod, few=2)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative products along `axis` (None: of the flat array)."""
    return _cumulative("multiply", a, axis, dtype, out)


def _cumulative_with_initial(
    name: str, x: Any, axis: Any, dtype: Any, out: Any, include_initial: bool
) -> ndarray:
    x = as_handle(x)
    x = x.reshape(1) if x.ndim == 0 else x
    if axis is None:
        if x.ndim > 1:
            raise ValueError(
                "For arrays which have more than one dimension ``axis`` argument is required "
                f"(shape {x.shape})."
            )
        axis = 0
    (axis,) = axis if isinstance(axis, tuple) and len(axis) == 1 else (axis,)
    if out is not None and not include_initial:
        return accumulate(name, x, axis, dtype, out)
    if out is not None:
        check_output(out)
    if out is not None and dtype is None and is_other(x.dtype, out.dtype):
        dtype = folds_in(name, x.dtype, out.dtype)
        if dtype is None:
            function: Any = {"add": np.cumulative_sum, "multiply": np.cumulative_prod}[name]
            return by_numpy(function, x, axis=axis, out=out, include_initial=True)  # type: ignore[no-any-return]
    result = _cumulative(name, x, axis, dtype, None)
    if include_initial:
        where = build.axis_index(axis, x.ndim)
        shape = (*x.shape[:where], 1, *x.shape[where + 1 :])
        first = build.constant(np.asarray(FOLDS[name].identity, result.dtype))
        nodes = [build.broadcast(first, shape), result._node()]
        order = asked_of_tiny([result], lambda tiny: np.concatenate([tiny, tiny], where))
        result = lie(wrap_node(build.concatenate(nodes, where)), order)
    return stored(name, result, out, casting="unsafe")


@numpy_function(np.cumulative_sum, few=1)
def cumulative_sum(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Cumulative sums; with `include_initial` the first is 0."""
    return _cumulative_with_initial("add", x, axis, dtype, out, include_initial)


@numpy_function(np.cumulative_prod, few=1)
def cumulative_prod(
    x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> ndarray:
    """Cumulative products; with `include_initial` the first is 1."""
    return _cumulative_with_initial("multiply", x, axis, dtype, out, include_initial)


__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
]
