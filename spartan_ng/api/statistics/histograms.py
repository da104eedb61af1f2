"""Histograms: edges by NumPy's estimators, then searches and counts."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, joining, reductions
from spartan_ng.api.core.conversion import as_handle, forced, values
from spartan_ng.api.core.dispatch import gathered, numpy_function
from spartan_ng.api.core.few import QUICKER
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.quick import AS_TILED, binned, shortened
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.statistics import quantiles, statistics
from spartan_ng.api.statistics.statistics import mean
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_INDEX = np.dtype(np.int64)
_OF_WIDTHS = frozenset(map(np.dtype, ("f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4")))
"""The dtypes of values whose distance from the first edge says the bin: numbers that a double has exactly."""


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
    n, spread = a.size, forced(_spread(a))
    if n <= 1 or spread == 0:
        return 1
    losses = []
    for bins in builtins.range(1, max(100, int(np.sqrt(n))) + 1):
        part = histogram(a, bins, (low, high))[0]._force() / n
        losses.append((2 - (n + 1) * part.dot(part)) / (spread / bins))
    return int(np.argmin(losses)) + 1


def _count_by(name: str, a: ndarray, limits: Any, weights: Any) -> int:
    """How many bins an estimator asks for, by the values within the limits."""
    if name != "stone" and name not in _WIDTHS:
        raise ValueError(f"{name!r} is not a valid estimator for `bins`")
    if weights is not None:
        raise TypeError("Automated estimation of the number of bins is not supported for weighted data")
    low, high = np.histogram_bin_edges(np.zeros(0), 1, limits)
    if a.dtype.kind == "b":  # as NumPy counts them
        a = a.astype(np.uint8)
    if limits is not None:
        a = a[(a >= low) & (a <= high)]
    if a.size == 0:
        return 1
    count = _trial(a, limits) if name == "stone" else 0
    spread = as_handle(_spread(a))
    width, spread = values(as_handle(_WIDTHS[name](a)) if not count else spread / count, spread)
    if limits is not None:
        spread = high - low
    if a.dtype.kind in "iu" and 0 < width < 1:
        width = 1
    return int(np.ceil(spread / width)) if width else 1


def _edges(a: ndarray, bins: Any, limits: Any, weights: Any = None) -> tuple[Any, Any]:
    """The edges of a histogram's bins, and the first and the last of them as numbers where all bins are
    equally wide, else None; looks at the data's range if none is given."""
    if isinstance(bins, str):
        bins = _count_by(bins, a, limits, weights)
    if np.ndim(bins):
        return np.histogram_bin_edges(np.zeros(0, a.dtype), np.array(bins)), None  # as they are now
    try:
        bins = operator.index(bins)
    except TypeError:
        raise TypeError(f"`bins` must be an integer, a string, or an array, not {bins!r}") from None
    if limits is None and a.size:
        limits = values(reductions.min(a), reductions.max(a))
    edges = np.histogram_bin_edges(np.zeros(0, a.dtype), bins, limits)
    first, last = (0, 1) if limits is None else limits
    return edges, (first - 0.5, last + 0.5) if first == last else (first, last)


def _edges_along(points: list[ndarray], bins: list[Any], limits: list[Any]) -> list[Any]:
    """The edges along each axis of a grid, which have the limits' dtype where those are given; looks at the
    data's ranges, all at once, where none are."""
    axes = zip(points, bins, limits, strict=True)
    sought = [i for i, (x, b, known) in enumerate(axes) if np.ndim(b) == 0 and known is None and x.size]
    found = values(*(end(points[i]) for i in sought for end in (reductions.min, reductions.max)))
    ends = dict(zip(sought, zip(found[::2], found[1::2], strict=True), strict=True))
    each = [b if np.ndim(b) == 0 else np.array(b) for b in bins]  # as they are now
    return [
        np.histogramdd(np.zeros((0, 1), x.dtype), [each[i]], [ends.get(i, limits[i])])[1][0]
        for i, x in enumerate(points)
    ]


def _coordinates(sample: Any) -> list[ndarray]:
    """The coordinates of points along each axis, of one dtype: lines that stay where they are."""
    if isinstance(sample, list | tuple) and sample:
        each = [as_handle(x) for x in sample]
        if all(x.ndim == 1 and x.shape == each[0].shape for x in each):
            kind = np.result_type(*(x.dtype for x in each))
            return [x.astype(kind, copy=False) for x in each]
        points = joining.stack(each, 1)
    else:
        points = as_handle(sample)
    points = points.reshape(-1, 1) if points.ndim < 2 else points
    if points.ndim != 2:
        raise ValueError(f"histogramdd: points are rows of coordinates, not of shape {points.shape}")
    return [points[:, i] for i in builtins.range(points.shape[1])]


@numpy_function(
    np.histogram_bin_edges, front=shortened(np.histogram_bin_edges, 2, AS_TILED, frozenset({"range"}))
)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> ndarray:
    """The edges that `histogram` uses."""
    if isinstance(bins, str) and as_handle(a).dtype.kind == "c":
        return gathered(np.histogram_bin_edges, a, bins, range, weights)  # type: ignore[no-any-return]
    edges, _ = _edges(as_handle(a).ravel(), bins, range, weights)
    return bins if isinstance(bins, Handle) and bins.ndim else wrap(np.asarray(edges))  # type: ignore[return-value]


def _bin_of(x: ndarray, edges: Any) -> ndarray:
    """The bin of each value, one too many for what lies outside; the last edge belongs to the last bin."""
    place = _place_of(x, edges) - 1
    return logic.where(place < 0, len(edges) - 1, place)  # type: ignore[no-any-return]


def _bin_by_width(x: ndarray, edges: Any, ends: tuple[Any, Any]) -> ndarray:
    """The same where bins are equally wide, told by how far a value lies from the first edge, as by NumPy:
    that is off by one at the most. All of it is one pass over the values, and their bins are never stored."""
    (first, last), n, kind, table = ends, len(edges) - 1, edges.dtype, wrap(edges)._node()

    def edge(place: Any) -> Any:
        return wrap_node(build.take(table, build.cast(place._node(), _INDEX), 0))

    inside = (x >= first) & (x <= last)
    y = logic.where(inside, x, kind.type(first)).astype(kind)
    whole = kind.type(last) - kind.type(first) if np.result_type(first, last).kind in "iu" else last - first
    guess = ufuncs.minimum(((y - kind.type(first)) / whole * n).astype(_INDEX), n - 1)
    guess = guess - (y < edge(guess))
    above = (y >= edge(guess + 1)) & (guess != n - 1)
    return logic.where(inside, guess + above, n)  # type: ignore[no-any-return]


def _place_of(x: ndarray, edges: Any) -> Any:
    """How many edges are at or below each value; the last edge belongs to the last bin. No array of places is
    stored: the search is a step of the pass that counts."""
    kind = np.result_type(edges.dtype, x.dtype)
    table = wrap(np.asarray(edges, kind))._node()
    place = wrap_node(build.search(table, build.cast(x._node(), kind), "right"))
    return logic.where(x == edges[-1], len(edges) - 1, place)


def _running(x: ndarray, edges: Any, weights: ndarray) -> ndarray:
    """The weights in each bin as NumPy finds them for given edges: as differences of their running sum,
    which stays what it is once it is infinite or NaN."""
    n = len(edges) - 1
    place = build.cast(_place_of(x, edges)._node(), _INDEX)
    sums = _counted(place, n + 2, weights)
    until = cumulative.cumsum(sums[: n + 1])
    return logic.where(ufuncs.isfinite(until[1:]), sums[1 : n + 1], until[1:] - until[:-1])  # type: ignore[no-any-return]


def _counted(place: Any, length: int, weights: ndarray | None) -> Any:
    """How often each place stands there, or its summed weights, in their dtype."""
    if weights is None:
        return wrap_node(build.bincount(place, length, None))
    if weights.dtype.kind == "c":
        parts = [_counted(place, length, w) for w in (weights.real, weights.imag)]
        return (parts[0] + 1j * parts[1]).astype(weights.dtype)
    found = wrap_node(build.bincount(place, length, weights.astype(np.float64)._node()))
    return found.astype(weights.dtype, copy=False)


def _at_once(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """NumPy's histogram of what is here; of doubles in equally wide bins without an array for each step."""
    found = None
    if binned is not None and _is_plain(a) and type(bins) is int and (weights is None or _is_plain(weights)):
        limits = (a.min(), a.max()) if range is None else range
        if (
            len(limits) == 2
            and _LIMITS.issuperset(map(type, limits))
            and -_EXACT < limits[0] < limits[1] < _EXACT
        ):
            edges = np.histogram_bin_edges(np.zeros(0), bins, limits)
            found = binned(a.ravel(), edges, None if weights is None else weights.ravel())
    if found is None or (weights is not None and weights.shape != a.shape):
        return np.histogram(a, bins, range, density, weights)
    return (found / np.diff(edges) / found.sum() if density else found), edges


def _is_plain(a: Any) -> bool:
    return type(a) is np.ndarray and a.dtype == np.float64 and a.size > 0 and a.flags.c_contiguous


_LIMITS = frozenset({int, float, np.float64})
_EXACT = 2.0**53
"""Up to here an integer is a double."""
QUICKER[np.histogram] = _at_once


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
    if x.dtype.kind == "c" or (given is not None and given.dtype.kind not in "biufc"):
        return gathered(np.histogram, a, bins, range, density, weights)  # type: ignore[no-any-return]
    if given is not None and given.size and np.ndim(bins):  # NumPy says which weights it cannot add up
        np.histogram(np.zeros(1), [0, 1], weights=np.zeros(1, given.dtype))
    edges, ends = _edges(x, bins, range, weights)
    if given is not None and given.dtype.kind in "fc" and np.ndim(bins):
        counts = _running(x, edges, given)
    else:
        n = len(edges) - 1
        by_width = ends is not None and x.dtype in _OF_WIDTHS
        place = build.cast((_bin_by_width(x, edges, ends) if by_width else _bin_of(x, edges))._node(), _INDEX)
        counts = _counted(place, n + 1, given)[:n].copy()
    if density:
        return counts / np.diff(edges) / counts.sum(), wrap(edges)
    return counts, wrap(edges)


@numpy_function(np.histogramdd, whole=True)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[ndarray, list[ndarray]]:
    """How many points fall into each cell of a grid, and the edges along each axis."""
    points = _coordinates(sample)
    d = len(points)
    each = list(bins) if hasattr(bins, "__len__") else [bins] * d
    if len(each) != d:
        raise ValueError(
            f"The dimension of bins must be equal to the dimension of the sample x: {len(each)} and {d}"
        )
    limits = [None] * d if range is None else list(range)
    if len(limits) != d:
        raise ValueError(f"range argument must have one entry per dimension: {len(limits)} and {d}")
    edges = _edges_along(points, each, limits)
    if prod(len(e) + 1 for e in edges) > np.iinfo(np.intp).max:
        raise ValueError(f"histogramdd: so many cells cannot be counted: {[len(e) - 1 for e in edges]}")
    flat: Any = 0
    total = 1
    for i, e in enumerate(edges):
        flat = flat * (len(e) + 1) + _place_of(points[i], e)
        total *= len(e) + 1
    place = build.cast(flat._node(), _INDEX)
    counts = _counted(place, total, None if weights is None else as_handle(weights).astype(float))
    counts = counts.astype(float)
    counts = counts.reshape([len(e) + 1 for e in edges])[(slice(1, -1),) * d]  # a view, as NumPy's
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
    if len(x) != len(y):
        raise ValueError(f"x and y must have the same length. They are {len(x)} and {len(y)}")
    pair = bins if hasattr(bins, "__len__") and len(bins) == 2 else [bins, bins]
    counts, edges = histogramdd([as_handle(x), as_handle(y)], list(pair), range, density, weights)
    return counts, edges[0], edges[1]


__all__ = [
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
]
