"""Covariances, histograms, differences and filters, made of products, searches and counts."""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import (
    creation,
    logic,
    manipulation,
    products,
    quantiles,
    reductions,
    sorting,
    statistics,
    ufuncs,
)
from spartan_ng.api.dispatch import gathered, numpy_function
from spartan_ng.api.handle import Handle, as_handle, values, wrap, wrap_node
from spartan_ng.api.statistics import mean
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

_NONE: Any = np._NoValue


@numpy_function(np.cov, whole=True)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> ndarray:
    """The covariance matrix of variables in rows (or in columns)."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = as_handle(m)
    if x.ndim > 2:
        raise ValueError(f"m has more than 2 dimensions: shape {x.shape}")
    x = manipulation.atleast_2d(x)
    if not rowvar and as_handle(m).ndim != 1:
        x = x.T
    if y is not None:
        other = manipulation.atleast_2d(as_handle(y))
        if not rowvar and other.shape[0] != 1:
            other = other.T
        x = manipulation.concatenate((x, other), 0)
    kind = np.result_type(x.dtype, np.float64) if dtype is None else np.dtype(dtype)
    x = x.astype(kind)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observed(fweights, aweights, x.shape[1])
    n: float = x.shape[1] - ddof
    if weights is None:
        x = x - mean(x, 1, None, None, True)
        weighted = x
    else:
        squares = reductions.sum(weights if aweights is None else weights * as_handle(aweights))
        total, excess = map(float, values(reductions.sum(weights), squares))
        if total == 0:
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        n = total - ddof * excess / total
        x = x - reductions.sum(x * weights, 1, None, None, True) / total
        weighted = x * weights
    if n <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=2)
        n = 0.0
    other = weighted.T if kind.kind != "c" else ufuncs.conjugate(weighted.T)
    return (products.matmul(x, other) * ufuncs.divide(1, kind.type(n))).squeeze()  # type: ignore[no-any-return]


def _observed(fweights: Any, aweights: Any, n: int) -> ndarray | None:
    """How much each of `n` observations counts, by how often it was made and how far it is trusted."""
    found: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        w = as_handle(given).astype(np.float64)
        if name == "fweights" and reductions.any(w != ufuncs.rint(w)):
            raise TypeError("fweights must be integer")
        if w.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}: shape {w.shape}")
        if w.shape != (n,):
            raise RuntimeError(f"incompatible numbers of samples and {name}: {n} and shape {w.shape}")
        if reductions.any(w < 0):
            raise ValueError(f"{name} cannot be negative")
        found = w if found is None else found * w
    return found  # type: ignore[no-any-return]


@numpy_function(np.corrcoef, whole=True)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> ndarray:
    """The matrix of correlation coefficients."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = ufuncs.sqrt(products.diagonal(c).real)
    return (
        logic.clip(c / spread.reshape(-1, 1) / spread.reshape(1, -1), -1, 1)
        if c.dtype.kind != "c"
        else (c / spread.reshape(-1, 1) / spread.reshape(1, -1))
    )


def _spread(a: Any) -> Any:
    """Greatest minus least; of signed integers unsigned, which cannot overflow."""
    if a.dtype.kind != "i":
        return statistics.ptp(a)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return reductions.max(a).astype(unsigned) - reductions.min(a).astype(unsigned)


def _scott(a: Any) -> Any:
    return (24.0 * np.pi**0.5 / a.size) ** (1.0 / 3.0) * statistics.std(a)


def _quartiles(a: Any) -> Any:
    high, low = quantiles.percentile(a, [75, 25])
    return 2.0 * (high - low) * a.size ** (-1.0 / 3.0)


def _skewed(a: Any) -> Any:
    """Doane's width: Sturges's, for skewed values."""
    n = a.size
    sigma = statistics.std(a)
    if n <= 2 or not sigma > 0:
        return 0.0
    skew = ufuncs.absolute(mean(((a - mean(a)) / sigma) ** 3))
    unit = np.sqrt(6.0 * (n - 2) / ((n + 1.0) * (n + 3)))
    return _spread(a) / (1.0 + np.log2(n) + ufuncs.log2(1.0 + skew / unit))


def _either(a: Any) -> Any:
    """The less of the quartiles' width and Sturges's, but not less than half of the square root's."""
    by_quartiles = ufuncs.maximum(_quartiles(a), _WIDTHS["sqrt"](a) / 2)
    return ufuncs.minimum(by_quartiles, _WIDTHS["sturges"](a))


_WIDTHS: dict[str, Callable[[Any], Any]] = {
    "sqrt": lambda a: _spread(a) / np.sqrt(a.size),
    "sturges": lambda a: _spread(a) / (np.log2(a.size) + 1.0),
    "rice": lambda a: _spread(a) / (2.0 * a.size ** (1.0 / 3)),
    "scott": _scott,
    "doane": _skewed,
    "fd": _quartiles,
    "auto": _either,
}
"""The width of a bin by each of NumPy's estimators but Stone's, which tries counts out."""


def _trial(a: ndarray, limits: Any) -> int:
    """Stone's number of bins: of all that are tried, the one with the least estimated loss."""
    low, high = limits if limits is not None else values(reductions.min(a), reductions.max(a))
    n, spread = a.size, _forced(_spread(a))
    if n <= 1 or spread == 0:
        return 1
    losses = []
    for bins in builtins.range(1, max(100, int(np.sqrt(n))) + 1):
        part = histogram(a, bins, (low, high))[0]._force() / n
        losses.append((2 - (n + 1) * part.dot(part)) / (spread / bins))
    return int(np.argmin(losses)) + 1


def _forced(x: Any) -> Any:
    return x._force() if isinstance(x, Handle) else x


def _count_by(name: str, a: ndarray, limits: Any, weights: Any) -> int:
    """How many bins an estimator asks for, by the values within the limits."""
    if name != "stone" and name not in _WIDTHS:
        raise ValueError(f"{name!r} is not a valid estimator for `bins`")
    if weights is not None:
        raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
    low, high = np.histogram_bin_edges(np.zeros(0), 1, limits)
    if limits is not None:
        a = a[(a >= low) & (a <= high)]
    if a.size == 0:
        return 1
    if name == "stone":
        return _trial(a, limits)
    width, spread = values(as_handle(_WIDTHS[name](a)), as_handle(_spread(a)))
    if limits is not None:
        spread = high - low
    if a.dtype.kind in "iu" and width < 1:
        width = 1
    return int(np.ceil(spread / width)) if width else 1


def _edges(a: ndarray, bins: Any, limits: Any, weights: Any = None) -> Any:
    """The edges of a histogram's bins; looks at the data's range if none is given."""
    if isinstance(bins, str):
        bins = _count_by(bins, a, limits, weights)
    if np.ndim(bins) == 0:
        try:
            bins = operator.index(bins)
        except TypeError:
            raise TypeError(f"`bins` must be an integer, a string, or an array, not {bins!r}") from None
        if limits is None and a.size:
            low, high = values(reductions.min(a), reductions.max(a))
            limits = (low, high)
        return np.histogram_bin_edges(np.zeros(0, a.dtype), bins, limits)
    return np.histogram_bin_edges(np.zeros(0, a.dtype), np.asarray(bins))


@numpy_function(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges that `histogram` uses."""
    return wrap(np.asarray(_edges(as_handle(a).ravel(), bins, range, weights)))


def _bin_of(x: ndarray, edges: Any) -> ndarray:
    """The bin of each value, one too many for what lies outside; the last edge belongs to the last bin."""
    n = len(edges) - 1
    place = sorting.searchsorted(wrap(np.asarray(edges)), x, "right") - 1
    place = logic.where(x == edges[-1], n - 1, place)
    return logic.where((place < 0) | (place >= n), n, place)  # type: ignore[no-any-return]


def _counted(place: Any, length: int, weights: ndarray | None) -> Any:
    """How often each place stands there, or its summed weights, in their dtype."""
    if weights is None:
        return wrap_node(build.bincount(place, length, None))
    if weights.dtype.kind == "c":
        parts = [_counted(place, length, w) for w in (weights.real, weights.imag)]
        return (parts[0] + 1j * parts[1]).astype(weights.dtype)
    found = wrap_node(build.bincount(place, length, weights.astype(np.float64)._node()))
    return found.astype(weights.dtype, copy=False)


@numpy_function(np.histogram, whole=True)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[ndarray, ndarray]:
    """How many values fall into each bin, and the bins' edges."""
    x = as_handle(a).ravel()
    given = None if weights is None else as_handle(weights).ravel()
    if given is not None and as_handle(weights).shape != as_handle(a).shape:
        raise ShapeError(
            f"weights should have the same shape as a: {as_handle(weights).shape} and {as_handle(a).shape}"
        )
    if given is not None and given.dtype.kind not in "biufc":
        return gathered(np.histogram, a, bins, range, density, weights)  # type: ignore[no-any-return]
    edges = _edges(x, bins, range, weights)
    n = len(edges) - 1
    place = build.cast(_bin_of(x, edges)._node(), np.dtype(np.int64))
    counts = _counted(place, n + 1, given)[:n].copy()
    if density:
        return counts / np.diff(edges) / counts.sum(), wrap(edges)
    return counts, wrap(edges)


@numpy_function(np.histogramdd, whole=True)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[ndarray, list[ndarray]]:
    """How many points fall into each cell of a grid, and the edges along each axis."""
    points = as_handle(sample) if not isinstance(sample, list | tuple) else manipulation.stack(sample, 1)
    d = points.shape[1]
    each = list(bins) if hasattr(bins, "__len__") else [bins] * d
    if len(each) != d:
        raise ValueError(
            f"The dimension of bins must be equal to the dimension of the sample x: {len(each)} and {d}"
        )
    limits = [None] * d if range is None else list(range)
    edges = [_edges(points[:, i], each[i], limits[i]) for i in builtins.range(d)]
    flat: Any = 0
    total = 1
    for i, e in enumerate(edges):
        flat = flat * len(e) + _bin_of(points[:, i], e)
        total *= len(e)
    place = build.cast(flat._node(), np.dtype(np.int64))
    counts = _counted(place, total, None if weights is None else as_handle(weights).astype(float))
    counts = counts.astype(float)
    counts = counts.reshape([len(e) for e in edges])[tuple(slice(0, len(e) - 1) for e in edges)].copy()
    if density:
        number = counts.sum()
        for i, e in enumerate(edges):
            counts = counts / np.diff(e).reshape((1,) * i + (-1,) + (1,) * (d - i - 1))
        counts = counts / number
    return counts, [wrap(e) for e in edges]


@numpy_function(np.histogram2d, whole=True)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[ndarray, ndarray, ndarray]:
    """How many points fall into each cell of a plane's grid, and the edges."""
    pair = bins if hasattr(bins, "__len__") and len(bins) == 2 else [bins, bins]
    counts, edges = histogramdd(
        manipulation.stack([as_handle(x), as_handle(y)], 1), list(pair), range, density, weights
    )
    return counts, edges[0], edges[1]


@numpy_function(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _NONE, append: Any = _NONE) -> ndarray:
    """Differences of neighbours along an axis."""
    a = as_handle(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    where = build.axis_index(axis, a.ndim)
    parts = []
    for part in (prepend, a, append):
        if part is _NONE:
            continue
        h = as_handle(part)
        if h.ndim == 0:
            h = manipulation.broadcast_to(h, (*a.shape[:where], 1, *a.shape[where + 1 :]))
        parts.append(h)
    if n == 0:
        return a  # type: ignore[no-any-return]
    value = a._peek()
    if value is not None and len(parts) == 1 and reductions.is_prompt(value):
        return wrap(np.diff(value, n, where))
    if len(parts) > 1:
        a = manipulation.concatenate(parts, where)
    before = (slice(None),) * where
    for _ in builtins.range(n):
        high, low = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = ufuncs.not_equal(high, low) if a.dtype == bool else ufuncs.subtract(high, low)
    return a  # type: ignore[no-any-return]


@numpy_function(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Differences of neighbours of the flat array, with values before and after them."""
    a = as_handle(ary).ravel()
    parts = [a[1:] - a[:-1]]
    if to_begin is not None:
        parts.insert(0, as_handle(to_begin).ravel().astype(a.dtype))
    if to_end is not None:
        parts.append(as_handle(to_end).ravel().astype(a.dtype))
    return manipulation.concatenate(parts) if len(parts) > 1 else parts[0]


@numpy_function(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> ndarray:
    """The integral by the trapezoidal rule."""
    y = as_handle(y)
    where = build.axis_index(axis, y.ndim)
    before = (slice(None),) * where
    step = dx
    if x is not None:
        x = as_handle(x)
        step = diff(x) if x.ndim == 1 else diff(x, axis=axis)
        if x.ndim == 1:
            step = step.reshape((1,) * where + (-1,) + (1,) * (y.ndim - where - 1))
    return reductions.sum(step * (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0, where)


_TAPS = 512
"""A filter up to so long slides as shifted multiples; each piece of a signal meets a longer one whole."""


def _convolved(extents: Any, tiles: Any) -> Any:
    """A piece of a signal against the whole filter: pieces overlap, and overlaps add up."""
    return (extents[0][0][0],), np.convolve(tiles[0], tiles[1])


_CONVOLVED = UserFunction(_convolved, origin="convolve")


@numpy_function(np.convolve, whole=True)
def convolve(a: Any, v: Any, mode: str = "full") -> ndarray:
    """The discrete convolution of two 1-d arrays; a short one slides over a long one in pieces."""
    a, v = as_handle(a).ravel(), as_handle(v).ravel()
    if v.size > a.size:
        a, v = v, a
    if v.size == 0:
        raise ValueError(f"convolve: shapes {a.shape} and {v.shape}: an array cannot be empty")
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    n, m = a.size, v.size
    cut = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (m - 1, n)}[mode]
    if m > _TAPS:
        kind = np.result_type(a.dtype, v.dtype)
        nodes = [build.cast(a._node(), kind), build.cast(v._node(), kind)]
        whole = build.join_update(_CONVOLVED, nodes, (0, -1), (n + m - 1,), kind)
        return wrap_node(whole)[cut[0] : cut[1]].copy()  # type: ignore[no-any-return]
    margin = creation.zeros(m - 1, a.dtype)
    wide = manipulation.concatenate([margin, a, margin]) if m > 1 else a
    out: Any = None
    for j in builtins.range(m):
        part = wide[m - 1 - j : m - 1 - j + n + m - 1] * v[j]
        out = part if out is None else out + part
    return out[cut[0] : cut[1]].copy()  # type: ignore[no-any-return]


@numpy_function(np.correlate, whole=True)
def correlate(a: Any, v: Any, mode: str = "valid") -> ndarray:
    """The cross-correlation of two 1-d arrays."""
    a, v = as_handle(a), as_handle(v)
    taps = (ufuncs.conjugate(v) if v.dtype.kind == "c" else v)[::-1]
    if v.size > a.size and mode == "same":  # an even number of taps leans to the other side
        return convolve(a, taps)[a.size // 2 : a.size // 2 + v.size].copy()  # type: ignore[no-any-return]
    return convolve(a, taps, mode)


@numpy_function(np.interp, whole=True)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> ndarray:
    """Piecewise linear interpolation through given points, which stay on the driver."""
    knots, heights = values(as_handle(xp), as_handle(fp))
    x = as_handle(x)
    if knots.shape != heights.shape or knots.ndim != 1 or not knots.size:
        raise ShapeError(
            f"interp: fp and xp are not of the same length, 1-d and not empty: {heights.shape}, {knots.shape}"
        )
    known = ufuncs.small_values((x,))
    if known is not None:
        return wrap(np.interp(known[0], knots, heights, left, right, period))
    kind = np.dtype(complex if np.iscomplexobj(heights) else float)

    def line(block: Any) -> Any:
        return np.interp(block, knots, heights, left, right, period)

    return wrap_node(build.map_(UserFunction(line, origin="interp"), x._node(), dtype=kind))


__all__ = [
    "convolve",
    "corrcoef",
    "correlate",
    "cov",
    "diff",
    "ediff1d",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
    "interp",
    "trapezoid",
]
