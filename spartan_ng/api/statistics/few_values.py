"""NumPy's warnings of slices that have too few values, given where what is made of the slices is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.layouts import lying_as
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.error_state import warn_hearer
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_INFINITIES = np.array([np.inf, -np.inf])


# --- functions of whole results, which are small ---------------------------------------------------------


def _of_extremes(result: Any) -> Any:
    """Extremes as they are: one that is NaN had nothing else in its slice."""
    if np.isnan(result).any():
        warn_hearer("All-NaN slice encountered")
    return result


def _of_quantiles(result: Any, count: Any) -> Any:
    """Quantiles as they are, of so many values each."""
    if not np.all(count):
        warn_hearer("All-NaN slice encountered")
    return result


def _of_counts(count: Any) -> Any:
    """Counts as they are."""
    if not np.all(count):
        warn_hearer("Mean of empty slice")
    return count


def _of_freedom(free: Any) -> Any:
    """Degrees of freedom, not less than zero."""
    if np.any(free <= 0):
        warn_hearer("Degrees of freedom <= 0 for slice")
    return np.maximum(free, 0)


def _means_of(total: Any, count: Any) -> Any:
    """Means from sums and counts."""
    return _middles_of(total, _of_counts(count))


def _middles_of(total: Any, count: Any) -> Any:
    """Means, on the way to something else; nothing that was added is NaN, and compiled loops tell nobody of
    infinities that have made one: so NumPy is asked to."""
    if np.isnan(total).any():
        np.add.reduce(_INFINITIES)
    with np.errstate(all="ignore"):
        return np.divide(total, count).astype(total.dtype)


def _variances_of(total: Any, free: Any, middle: Any) -> Any:
    """Variances from sums of squares, degrees of freedom, and means, from which infinities had to differ."""
    few = np.asarray(free <= 0)
    if few.any():
        warn_hearer("Degrees of freedom <= 0 for slice.")
    if (np.isnan(total) & ~np.isnan(middle)).any():
        np.subtract(_INFINITIES, _INFINITIES)
    return np.where(few, np.nan, total / np.maximum(free, 1)).astype(total.dtype)


_FUNCTIONS = {
    f: UserFunction(f, origin="few values")
    for f in (_of_extremes, _of_quantiles, _of_counts, _of_freedom, _means_of, _middles_of, _variances_of)
}


def _made(function: Callable[..., Any], *parts: ndarray) -> ndarray:
    """A function of this module over whole results."""
    nodes = (as_handle(p)._node() for p in parts)
    return lying_as(wrap_node(build.map_(_FUNCTIONS[function], *nodes, dtype=parts[0].dtype)), parts[0])


# --- what statistics are made with ------------------------------------------------------------------------


def warned_of_nan(result: ndarray) -> ndarray:
    """Extremes; where they are made, NumPy's warning of slices that have nothing but NaN."""
    return _made(_of_extremes, result)


def warned_of_none(result: ndarray, count: ndarray) -> ndarray:
    """Quantiles of so many values in each slice, with the same warning."""
    return _made(_of_quantiles, result, count)


def warned_of_empty(count: ndarray) -> ndarray:
    """How many values each mean is of, with NumPy's warning of none."""
    return _made(_of_counts, count)


def freedom_of(free: ndarray) -> ndarray:
    """Degrees of freedom, not less than zero, with NumPy's warning of none."""
    return _made(_of_freedom, free)


def mean_of(total: ndarray, count: ndarray) -> ndarray:
    """Means of what is not NaN, from sums and counts, with NumPy's warning of none."""
    return _made(_means_of, total, count)


def middle_of(total: ndarray, count: ndarray) -> ndarray:
    """The same, of which nobody is warned."""
    return _made(_middles_of, total, count)


def variance_of(total: ndarray, free: ndarray, middle: ndarray) -> ndarray:
    """Variances of what is not NaN, from sums of squares, degrees of freedom and means."""
    return _made(_variances_of, total, free, middle)
