"""Cumulative aggregates beyond NumPy's names, and what is built on them: frames, averages, segments, runs.

Distributed cumulative aggregates (BTW '19), sections 3.3 (cumsumprod), 3.4 (recurrences) and 4.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, cumulative, joining, manipulation, reductions, segments
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.ordering import sets, sorting
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import Recurrence

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

# --- scans -----------------------------------------------------------------------------------------


def cummin(a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative minima along `axis`; from the first NaN on, NaN."""
    return cumulative.accumulate("minimum", a, axis, dtype, out)


def cummax(a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative maxima along `axis`; from the first NaN on, NaN."""
    return cumulative.accumulate("maximum", a, axis, dtype, out)


def nancummin(a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative minima of what is not NaN."""
    return cumulative.accumulate("fmin", a, axis, dtype, out)


def nancummax(a: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative maxima of what is not NaN."""
    return cumulative.accumulate("fmax", a, axis, dtype, out)


def cumsum_compensated(a: Any, axis: int = 0, dtype: Any = None) -> ndarray:
    """Cumulative sums of floats without the rounding errors of long sums (Neumaier's compensation)."""
    node, where = _floats(as_handle(a), axis, dtype)
    return wrap_node(node if node.size == 0 else build.scan("compensated_add", node, where))


def cumsumprod(y: Any, w: Any, axis: int = 0) -> ndarray:
    """z_i = y_i + w_i * z_(i-1) along `axis`, of floats that broadcast together.

    A weight of 0 is a frame boundary: nothing passes it, were it infinite or NaN. Infinite and NaN weights
    do what they do row by row (among complex numbers, which have too many infinities, an infinite weight may
    make NaN of what follows in its frame).
    """
    a, b, where = _pair("cumsumprod", y, w, axis, float)
    name = "cumsumprod_complex" if a.dtype.kind == "c" else "cumsumprod"
    return wrap_node(a if a.size == 0 else build.recurrence(name, a, b, where))


def recurrence(
    plus: Callable[[Any, Any], Any], times: Callable[[Any, Any], Any], y: Any, w: Any, axis: int = 0
) -> ndarray:
    """z_i = plus(y_i, times(w_i, z_(i-1))) along `axis`, with elementwise functions of two arrays.

    Both functions must be associative, and `times` must distribute over `plus`, as in (maximum, add).
    """
    for function in (plus, times):
        if not callable(function):
            raise TypeError(f"recurrence(plus, times, y, w): {type(function).__name__} is no function")
    a, b, where = _pair("recurrence", y, w, axis, None)
    if a.size == 0:
        return wrap_node(a)
    return wrap_node(build.recurrence(UserFunction(Recurrence(plus, times)), a, b, where))


def _floats(a: Any, axis: int, dtype: Any) -> Any:
    """The node of an array as floats, and its axis."""
    where = build.axis_index(axis, a.ndim)
    kind = np.dtype(dtype) if dtype is not None else np.result_type(a.dtype, np.float32)
    return build.cast(a._node(), kind), where


def _pair(name: str, y: Any, w: Any, axis: int, least: Any) -> Any:
    """Two operands of one shape and dtype, and the axis."""
    a, b = as_handle(y), as_handle(w)
    shape = build.broadcast_shapes(name, a.shape, b.shape)
    where = build.axis_index(axis, len(shape))
    kind = np.result_type(a.dtype, b.dtype)
    if least is not None and kind.kind not in "fc":
        kind = np.result_type(kind, least)
    first, second = (build.broadcast(build.cast(h._node(), kind), shape) for h in (a, b))
    return first, second, where


# --- averages and windows --------------------------------------------------------------------------


def ewma(x: Any, alpha: float, axis: int = 0, adjust: bool = True) -> ndarray:
    """Exponentially weighted moving averages with smoothing factor 0 < `alpha` <= 1.

    With `adjust`, weighted means of all elements so far (weights (1 - alpha)^k); else z_0 = x_0 and
    z_i = alpha * x_i + (1 - alpha) * z_(i-1).
    """
    if not 0 < alpha <= 1:
        raise ValueError(f"ewma: alpha is {alpha}, not in (0, 1]")
    a = as_handle(x)
    where = build.axis_index(axis, a.ndim)
    decay = constants.full(a.shape, 1.0 - alpha)
    if adjust:
        weights: ndarray = cumsumprod(constants.ones(a.shape), decay, where)
        means: ndarray = cumsumprod(a, decay, where) / weights
        return means
    first = (slice(None),) * where + (slice(0, 1),)
    scaled = a * alpha
    scaled[first] = a[first]
    return cumsumprod(scaled, decay, where)


def rolling_sum(x: Any, window: int, axis: int = 0) -> ndarray:
    """Sums of `window` neighbours, one for each full window, as differences of cumulative sums."""
    a = as_handle(x)
    where = build.axis_index(axis, a.ndim)
    if not 0 < window <= a.shape[where]:
        raise ValueError(f"rolling_sum: a window of {window} in an axis of length {a.shape[where]}")
    sums = cumulative.cumulative_sum(a, axis=where, include_initial=True)
    before = (slice(None),) * where
    found: ndarray = sums[(*before, slice(window, None))] - sums[(*before, slice(None, -window))]
    return found


def rolling_mean(x: Any, window: int, axis: int = 0) -> ndarray:
    """Means of `window` neighbours, one for each full window."""
    means: ndarray = rolling_sum(x, window, axis) / window
    return means


# --- segments and runs -----------------------------------------------------------------------------


def segment_sum(x: Any, starts: Any, axis: int = 0) -> ndarray:
    """Sums of the segments that begin at the ascending indices `starts`, the last up to the end.

    A cumulative sum that starts anew with each segment, so that segments do not lose each other's precision.
    """
    a = as_handle(x)
    where = build.axis_index(axis, a.ndim)
    first = np.asarray(starts, np.int64)
    n = a.shape[where]
    if first.ndim != 1 or first.size == 0 or (np.diff(first) <= 0).any() or first[0] < 0 or first[-1] >= n:
        raise ShapeError(f"segment_sum: starts must ascend within [0, {n})")
    return segments.segments("add", a._node(), first.tolist(), where)


def run_lengths(x: Any) -> tuple[ndarray, ndarray]:
    """The values of the runs of equal neighbours of a 1-d array, and how long each is."""
    a = as_handle(x)
    if a.ndim != 1:
        raise ShapeError(f"run_lengths: shape {a.shape} has not one axis")
    if a.size == 0:
        return a.copy(), constants.zeros(0, np.intp)
    changed = joining.concatenate([constants.ones(1, bool), a[1:] != a[:-1]])
    starts = sorting.flatnonzero(changed)
    ends = joining.concatenate([starts[1:], constants.full(1, a.size, np.intp)])
    return a[changed], ends - starts


def remove_empty(x: Any, axis: int = 0, select: Any = None) -> ndarray:
    """`x` without its rows (lines across `axis`) of zeros; with `select`, a boolean vector, what it selects.

    A scan of the selection gives each row its new place; only rows that stay move.
    """
    a = as_handle(x)
    where = build.axis_index(axis, a.ndim)
    if select is None:
        others = tuple(i for i in range(a.ndim) if i != where)
        kept = reductions.any(ufuncs.not_equal(a, 0), others) if others else ufuncs.not_equal(a, 0)
    else:
        kept = as_handle(select).astype(bool)
        if kept.shape != (a.shape[where],):
            raise ShapeError(f"remove_empty: select of shape {kept.shape} for an axis of {a.shape[where]}")
    return manipulation.moveaxis(manipulation.moveaxis(a, where, 0)[kept], 0, where)


def ecdf(x: Any) -> tuple[ndarray, ndarray]:
    """The empirical distribution function: distinct values, and the fraction of elements up to each."""
    a = as_handle(x)
    if a.size == 0:
        raise ValueError("ecdf: no elements")
    values, counts = sets.unique_counts(a)
    return values, cumulative.cumsum(counts) / a.size


__all__ = [
    "cummax",
    "cummin",
    "cumsum_compensated",
    "cumsumprod",
    "ecdf",
    "ewma",
    "nancummax",
    "nancummin",
    "recurrence",
    "remove_empty",
    "rolling_mean",
    "rolling_sum",
    "run_lengths",
    "segment_sum",
]
