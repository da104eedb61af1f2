"""Medians and quantiles: lines of values are sorted, NaN last, and read at the places that a rule names.

The functions that leave NaN out are the same, with as many values in each line as are not NaN. The rules are
those of Hyndman and Fan, "Sample quantiles in statistical packages" (The American Statistician 50(4), 1996),
and four plain ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.base import constants, cumulative, joining, manipulation, reductions
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import copied
from spartan_ng.api.core.layouts import lie
from spartan_ng.api.core.operands import stored
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.ordering import sorting
from spartan_ng.api.places import taking
from spartan_ng.api.statistics.few_values import warned_of_none
from spartan_ng.api.statistics.nans import has_holes
from spartan_ng.api.statistics.statistics import mean, weights_like
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NONE: Any = np._NoValue


# --- rules -------------------------------------------------------------------------------------------


class QuantileRule(Struct, frozen=True):
    """Where the quantile of a fraction q stands among n sorted values.

    Parameters
    ----------
    name : NumPy's
    place : of n and q; whole and fraction, counted from 0
    share : how much of the higher neighbour a place with this fraction takes; None for rules whose places
        are whole
    """

    name: str
    place: Callable[[Any, Any], Any]
    share: Callable[[Any], Any] | None = lambda fraction: fraction


def _between(alpha: float, beta: float) -> Callable[[Any, Any], Any]:
    """Hyndman and Fan's continuous rules."""
    return lambda n, q: n * q + (alpha + q * (1 - alpha - beta)) - 1


def _closest(n: Any, q: Any) -> Any:
    """The nearest value; of two as near, the one at the odd place."""
    place = n * q - 1.5
    low = np.floor(place)
    return np.maximum(np.where((place == low) & (low % 2 == 1), low, low + 1), 0)


def _middle(n: Any, q: Any) -> Any:
    """A whole place, or what lies in the middle between two."""
    return 0.5 * (np.floor((n - 1) * q) + np.ceil((n - 1) * q))


_ROWS = [
    QuantileRule("inverted_cdf", lambda n, q: np.maximum(np.ceil(n * q - 1), 0), None),
    QuantileRule("averaged_inverted_cdf", lambda n, q: n * q - 1, lambda t: np.where(t == 0, 0.5, 1.0)),
    QuantileRule("closest_observation", _closest, None),
    QuantileRule("interpolated_inverted_cdf", _between(0, 1)),
    QuantileRule("hazen", _between(0.5, 0.5)),
    QuantileRule("weibull", _between(0, 0)),
    QuantileRule("linear", lambda n, q: (n - 1) * q),
    QuantileRule("median_unbiased", _between(1 / 3, 1 / 3)),
    QuantileRule("normal_unbiased", _between(3 / 8, 3 / 8)),
    QuantileRule("lower", lambda n, q: np.floor((n - 1) * q), None),
    QuantileRule("higher", lambda n, q: np.ceil((n - 1) * q), None),
    QuantileRule("midpoint", _middle, lambda t: t),
    QuantileRule("nearest", lambda n, q: np.rint((n - 1) * q), None),
]

RULES: dict[str, QuantileRule] = {row.name: row for row in _ROWS}
"""Every method by its name."""


# --- sorted lines ------------------------------------------------------------------------------------


class _Lines(Struct, frozen=True):
    """Sorted values along the last axis.

    Parameters
    ----------
    values : the lines
    count : values in each: of all lines, or of each
    kept : the result's shape with the axes kept
    skips : whether NaN is left out; else a line that has one gives NaN
    """

    values: ndarray
    count: Any
    kept: tuple[int, ...]
    skips: bool

    def at(self, place: Any) -> ndarray:
        """The value of each line at a place, which is moved into the line where it is not."""
        if isinstance(self.count, int):
            return self.values[..., int(min(max(place, 0), self.count - 1))]  # type: ignore[no-any-return]
        place = ufuncs.minimum(place, self.count - 1).astype(np.intp)
        place = logic.clip(place, 0, self.values.shape[-1] - 1)
        return taking.take_along_axis(self.values, place[..., None], -1)[..., 0]  # type: ignore[no-any-return]

    def result(self, found: ndarray, keepdims: bool) -> ndarray:
        """What was found, or NaN where a line has it, or nothing else."""
        if self.skips:
            found = warned_of_none(logic.where(self.count == 0, _hole_of(found.dtype), found), self.count)
        elif has_holes(self.values):
            last = self.values[..., -1]
            found = logic.where(ufuncs.isnan(last), last, found)
        return copied(found.reshape(self.kept)) if keepdims else found


def _hole_of(dtype: np.dtype[Any]) -> Any:
    """NaN or NaT."""
    return np.array("NaT" if dtype.kind in "mM" else np.nan).astype(dtype)[()]


def _flat_lines(a: ndarray, axis: Any) -> ndarray:
    """All values of the given axes along the last axis."""
    axes = build.axes_tuple(axis, a.ndim)
    rest = [i for i in range(a.ndim) if i not in axes]
    moved = manipulation.transpose(a, (*rest, *axes))
    length = a.shape[axes[0]] if len(axes) == 1 else -1  # as NumPy asks, which refuses it where nothing is
    return moved.reshape((*(a.shape[i] for i in rest), length))


def _sorted_lines(a: ndarray, axis: Any, skips: bool) -> _Lines:
    values = sorting.sort(_flat_lines(a, axis), -1)
    axes = build.axes_tuple(axis, a.ndim)
    kept = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
    count = reductions.sum(~ufuncs.isnan(values), -1, np.intp) if skips else values.shape[-1]
    return _Lines(values, count, kept, skips)


# --- medians -----------------------------------------------------------------------------------------


@numpy_function(np.median, whole=True)
def median(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> ndarray:
    """The middle of the sorted values, or the mean of the two in the middle."""
    return _median(as_handle(a), axis, out, keepdims)


@numpy_function(np.nanmedian, whole=True)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> ndarray:
    """The middle of the sorted values that are not NaN."""
    a = as_handle(a)
    keeps = keepdims is not _NONE and keepdims
    if not a.size:
        return by_numpy(np.nanmean, a, axis, None, out, keeps)  # type: ignore[no-any-return]
    return _median(a, axis, out, keeps, has_holes(a), broadcast=True)


def _median(
    a: ndarray, axis: Any, out: Any, keepdims: bool, skips: bool = False, broadcast: bool = False
) -> ndarray:
    lines = _sorted_lines(a, axis, skips)
    if lines.values.shape[-1] == 0:
        return mean(a, axis, None, out, keepdims)
    n = lines.count
    kind = a.dtype.newbyteorder("=") if a.dtype.kind in "fcmV" else np.dtype(np.float64)
    middle = joining.stack([lines.at((n - 1) // 2), lines.at(n // 2)])
    result = lines.result(mean(middle, 0, None if kind == middle.dtype else kind), keepdims)
    found = result if result.ndim or keepdims else result[()]
    return stored("median", found, out, casting="unsafe", broadcast=broadcast)


# --- quantiles ---------------------------------------------------------------------------------------


@numpy_function(np.quantile, whole=True)
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Values below which given fractions of the values lie, by one of `RULES`."""
    return _quantile(as_handle(a), q, axis, out, method, keepdims, weights, False)


@numpy_function(np.nanquantile, whole=True)
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Values below which given fractions of the values that are not NaN lie."""
    a = as_handle(a)
    keepdims = keepdims is not _NONE and keepdims
    if not a.size:
        return by_numpy(np.nanmean, a, axis, None, out, keepdims)  # type: ignore[no-any-return]
    if a.dtype.kind in "SUV":
        np.isnan(np.empty(0, a.dtype))  # NumPy's error
    found = _quantile(a, q, axis, out, method, keepdims, weights, has_holes(a))
    fractions = np.ndim(q)
    if out is not None or axis is None or found.ndim < 2:
        return found
    order = (*range(fractions, found.ndim), *range(fractions))  # NumPy finds all fractions of a line at once
    return lie(copied(found), order)


@numpy_function(np.percentile, whole=True)
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = False,
    *,
    weights: Any = None,
) -> ndarray:
    """Values below which given percentages of the values lie."""
    return quantile(a, _fractions(q), axis, out, overwrite_input, method, keepdims, weights=weights)


@numpy_function(np.nanpercentile, whole=True)
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: Any = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: Any = _NONE,
    *,
    weights: Any = None,
) -> ndarray:
    """Values below which given percentages of the values that are not NaN lie."""
    return nanquantile(a, _fractions(q), axis, out, overwrite_input, method, keepdims, weights=weights)


def _fractions(q: Any) -> Any:
    """Percentages as fractions."""
    if type(q) in (int, float):
        return q / 100
    fractions = np.true_divide(forced(q), 100)
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError("Percentiles must be in the range [0, 100]")
    return fractions


def _quantile(
    a: ndarray, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, skips: bool
) -> ndarray:
    """Both kinds of quantiles."""
    if a.dtype.kind == "c":
        raise TypeError(f"a must be an array of real numbers, not {a.dtype}")
    weak = type(q) in (int, float)
    fractions = np.asanyarray(forced(q))
    if fractions.dtype == object:  # as `fractions.Fraction`, with which NumPy counts exactly
        return by_numpy(  # type: ignore[no-any-return]
            np.nanquantile if skips else np.quantile,
            *(a, fractions[()], axis, out, False, method, keepdims),
            weights=weights,
        )
    if not ((fractions >= 0) & (fractions <= 1)).all():
        raise ValueError("Quantiles must be in the range [0, 1]")
    if weights is None and method not in RULES:
        raise ValueError(f"{method!r} is not a valid method. Use one of: {', '.join(RULES)}")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"Only method 'inverted_cdf' supports weights. Got: {method}.")
    if fractions.ndim > 2:
        raise ValueError(f"q must be a scalar or 1d, not of shape {fractions.shape}")
    if not fractions.size and fractions.ndim > 1:
        raise ValueError(f"q must have elements or one axis, not shape {fractions.shape}")
    if not fractions.size:
        one = _quantile(a, np.zeros(1), axis, None, method, keepdims, weights, skips)
        none = constants.zeros(fractions.shape + one.shape[1:], one.dtype)
        return stored("quantile", none, out, casting="unsafe", broadcast=True)
    if weights is None:
        lines = _sorted_lines(a, axis, skips)
        if lines.values.shape[-1] == 0:
            raise IndexError(f"cannot take a quantile of an empty array of shape {a.shape}")
        parts = [_by_rule(RULES[method], lines, f, weak) for f in fractions.ravel()]
    else:
        lines, shares = _weighted_lines(a, weights_like(a, weights, axis), axis, skips)
        parts = [_by_share(lines, shares, f) for f in fractions.ravel()]
    found = [lines.result(p, keepdims) for p in parts]
    result = found[0] if fractions.ndim == 0 else joining.stack(found)
    if fractions.ndim and RULES[method].share is None:  # elements, in their order of bytes
        result = result.astype(a.dtype, copy=False)
    if fractions.ndim > 1:
        result = result.reshape(fractions.shape + result.shape[1:])
    return stored(
        "quantile", result if result.ndim or keepdims else result[()], out, casting="unsafe", broadcast=True
    )


def _by_rule(rule: QuantileRule, lines: _Lines, q: Any, weak: bool) -> ndarray:
    """One quantile of every line; a `weak` fraction leaves the dtype of floats."""
    count = lines.count
    if not isinstance(count, int) and q.dtype.kind == "f":  # NumPy counts a line in a number of Python's
        count = count.astype(q.dtype)
    place = rule.place(count, q)
    if rule.share is None or (rule.name == "linear" and np.result_type(place).kind in "iu"):
        return lines.at(place)
    low = np.floor(place)
    x, y = lines.at(low), lines.at(low + 1)
    share: Any = rule.share(place - low).astype(place.dtype)
    kind = lines.values.dtype
    kind = np.result_type(kind if kind.kind in "biufc" else np.float64, 0.5 if weak else share.dtype)
    step = y - x
    if not isinstance(count, int):
        share = share.astype(kind)
        is_near = share >= 0.5
        back = logic.where(is_near, step, step.dtype.type(0)) * (1 - share)  # infinite steps that nobody goes
        return logic.where(is_near, y - back, x + step * share)  # type: ignore[no-any-return]
    share = kind.type(share)
    return y - step * (1 - share) if share >= 0.5 else x + step * share  # type: ignore[no-any-return]


def _weighted_lines(a: ndarray, weights: ndarray, axis: Any, skips: bool) -> tuple[_Lines, ndarray]:
    """Sorted lines, and the part of all weights that each value and those before it have."""
    if reductions.any(weights < 0):
        raise ValueError("Weights must be non-negative.")
    values, weights = _flat_lines(a, axis), _flat_lines(weights, axis).astype(np.float64)
    if skips:
        weights = logic.where(ufuncs.isnan(values), 0, weights)
    order = sorting.argsort(values, -1)
    values, weights = (taking.take_along_axis(x, order, -1) for x in (values, weights))
    axes = build.axes_tuple(axis, a.ndim)
    kept = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
    count: Any = reductions.sum(~ufuncs.isnan(values), -1, np.intp) if skips else values.shape[-1]
    total = reductions.sum(weights, -1, None, None, True)
    bad = ~(ufuncs.isfinite(total) & (total > 0))
    if reductions.any(bad[..., 0] & (count > 0) if skips else bad):
        raise ValueError("Weights included NaN, inf or were all zero.")
    sums = cumulative.cumsum(weights, -1)
    shares = sums / logic.where(bad, 1, sums[..., -1:])
    return _Lines(values, count, kept, skips), logic.where(shares == 0, -1, shares)


def _by_share(lines: _Lines, shares: ndarray, q: Any) -> ndarray:
    """The first value of every line whose share of the weights reaches `q`."""
    shares = shares.astype(q.dtype) if q.dtype.kind == "f" else shares
    place = reductions.sum(shares < q, -1, np.intp)
    place = logic.clip(place, 0, lines.values.shape[-1] - 1)
    return taking.take_along_axis(lines.values, place[..., None], -1)[..., 0]  # type: ignore[no-any-return]


__all__ = [
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]
