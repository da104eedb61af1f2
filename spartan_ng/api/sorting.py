"""Sorting, searching, counting and sets: sorts of whole lines, compressions, searches in sorted arrays."""

from __future__ import annotations

from collections import namedtuple
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import creation, reductions, ufuncs
from spartan_ng.api.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.forcing import count_true
from spartan_ng.api.handle import Handle, as_handle, wrap, wrap_node
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

UniqueAllResult = namedtuple("UniqueAllResult", ["values", "indices", "inverse_indices", "counts"])  # noqa: PYI024
UniqueCountsResult = namedtuple("UniqueCountsResult", ["values", "counts"])  # noqa: PYI024
UniqueInverseResult = namedtuple("UniqueInverseResult", ["values", "inverse_indices"])  # noqa: PYI024

_STABLE = (("kind", "stable"),)


# --- sorting ---------------------------------------------------------------------------------------


def _line(a: Any, axis: Any) -> tuple[ndarray, int]:
    """An array and the axis of its lines; axis None flattens."""
    a = as_handle(a)
    if axis is None:
        return a.reshape(-1 if a.size else 0), 0
    if a.ndim == 0:
        raise np.exceptions.AxisError(axis, 0)
    return a, build.axis_index(axis, a.ndim)


def _kind(kind: Any, stable: Any) -> tuple[tuple[str, Any], ...]:
    """The keyword of a stable sort, where one is asked for."""
    if kind is not None and stable is not None:
        raise ValueError("`kind` and `stable` parameters can't be provided at the same time.")
    if kind not in (None, "quicksort", "mergesort", "heapsort", "stable"):
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return _STABLE if stable or kind in ("stable", "mergesort") else ()


@numpy_function(np.sort, eager=True)
def sort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> ndarray:
    """A sorted copy; NaNs come last, or first where `descending` (the array API standard's)."""
    if order is not None:
        return gathered(np.sort, a, axis, kind, order, stable=stable)  # type: ignore[no-any-return]
    a, where = _line(a, axis)
    _kind(kind, stable)
    result = wrap_node(build.along_axis("sort", [a._node()], where, dtype=a.dtype))
    return _turned(result, where) if descending else result


@numpy_function(np.argsort, eager=True)
def argsort(
    a: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    stable: Any = None,
    descending: bool = False,
) -> ndarray:
    """The indices that sort; where `descending`, equal elements still keep their order."""
    if order is not None:
        return gathered(np.argsort, a, axis, kind, order, stable=stable)  # type: ignore[no-any-return]
    a, where = _line(a, axis)
    a = _turned(a, where) if descending else a
    result = wrap_node(
        build.along_axis("argsort", [a._node()], where, dtype=build.INTP, keywords=_kind(kind, stable))
    )
    return a.shape[where] - 1 - _turned(result, where) if descending else result


def _turned(a: ndarray, axis: int) -> ndarray:
    """The axis backwards."""
    return a[(slice(None),) * axis + (slice(None, None, -1),)]  # type: ignore[no-any-return]


@numpy_function(np.partition, whole=True)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """A copy whose element `kth` is where a sort would put it, smaller ones before it."""
    if order is not None or not len(np.atleast_1d(kth)):
        return gathered(np.partition, a, kth, axis, kind, order)  # type: ignore[no-any-return]
    a, where = _line(a, axis)
    keywords = (("kth", _kth(kth, a.shape[where])),)
    return wrap_node(build.along_axis("partition", [a._node()], where, dtype=a.dtype, keywords=keywords))


@numpy_function(np.argpartition, whole=True)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """The indices that partition."""
    if order is not None or not len(np.atleast_1d(kth)):
        return gathered(np.argpartition, a, kth, axis, kind, order)  # type: ignore[no-any-return]
    a, where = _line(a, axis)
    keywords = (("kth", _kth(kth, a.shape[where])),)
    return wrap_node(
        build.along_axis("argpartition", [a._node()], where, dtype=build.INTP, keywords=keywords)
    )


def _kth(kth: Any, n: int) -> Any:
    """Positions in [0, n), as an int or a tuple of ints."""
    places = [int(k) for k in np.atleast_1d(kth)]
    for k in places:
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")
    places = [k % n for k in places]
    return places[0] if len(places) == 1 else tuple(places)


@numpy_function(np.lexsort, whole=True)
def lexsort(keys: Any, axis: int = -1) -> ndarray:
    """An indirect stable sort by several keys, the last one first."""
    columns = [as_handle(k) for k in keys]
    if not columns:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    shapes = {c.shape for c in columns}
    if len(shapes) > 1:
        raise ValueError(f"all keys need to be the same shape, not {', '.join(map(str, sorted(shapes)))}")
    if columns[0].ndim == 0:
        return wrap(np.lexsort([c._force() for c in columns], axis))
    if columns[0].ndim > 1:
        return _lexsorted_lines(columns, build.axis_index(axis, columns[0].ndim))
    build.axis_index(axis, 1)
    order = argsort(columns[0], kind="stable")
    for key in columns[1:]:
        order = order[argsort(key[order], kind="stable")]
    return order


def _lexsorted_lines(keys: list[Any], axis: int) -> ndarray:
    """Each line of the last key is sorted, ties by the keys before it."""
    from spartan_ng.api.rearranging import take_along_axis

    order = argsort(keys[0], axis, kind="stable")
    for key in keys[1:]:
        order = take_along_axis(order, argsort(take_along_axis(key, order, axis), axis, kind="stable"), axis)
    return order


@numpy_function(np.sort_complex)
def sort_complex(a: Any) -> ndarray:
    """A sorted copy as complex numbers."""
    a = as_handle(a)
    result = sort(a)
    return result if a.dtype.kind == "c" else result.astype(np.result_type(a.dtype, np.complex64))


# --- searching -------------------------------------------------------------------------------------


@numpy_function(np.nonzero)
def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The indices of the elements that are not zero, one array an axis; counts them now."""
    a = as_handle(a)
    if a.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    known = ufuncs.small_values((a,))
    if known is not None:
        return tuple(wrap(i) for i in np.nonzero(known[0]))
    flat = flatnonzero(a)
    if a.ndim == 1:
        return (flat,)
    strides = [prod(a.shape[i + 1 :]) for i in range(a.ndim)]
    return tuple((flat // s) % n for s, n in zip(strides, a.shape, strict=True))


@numpy_function(np.flatnonzero)
def flatnonzero(a: Any) -> ndarray:
    """The flat indices of the elements that are not zero."""
    a = as_handle(a)
    mask = a if a.dtype == bool else a != 0
    flat = build.reshape(mask._node(), (a.size,))
    return wrap_node(build.compress(build.iota(a.size), flat, count_true(flat)))


@numpy_function(np.argwhere)
def argwhere(a: Any) -> ndarray:
    """The indices of the elements that are not zero, one row an element."""
    from spartan_ng.api import manipulation

    a = as_handle(a)
    if a.ndim == 0:
        return wrap(np.argwhere(a._force()))
    return manipulation.stack(nonzero(a), axis=1)


@numpy_function(np.searchsorted, whole=True)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> ndarray:
    """Where values belong in a sorted 1-d array."""
    a, v = as_handle(a), as_handle(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if a.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: shape {a.shape} is not 1-d")
    if sorter is not None:
        a = a[sorter]
    known = ufuncs.small_values((a, v))
    if known is not None:
        return wrap(np.searchsorted(known[0], known[1], side))  # type: ignore[call-overload]
    kind = np.result_type(a.dtype, v.dtype)
    nodes = [build.cast(a._node(), kind), build.reshape(build.cast(v._node(), kind), (v.size,))]
    node = build.join_update(_SEARCH[side], nodes, (-1, 0), (v.size,), build.INTP)
    return wrap_node(build.reshape(node, v.shape))


def _search_left(extents: Any, tiles: Any) -> Any:
    return (extents[1][0][0],), np.searchsorted(tiles[0], tiles[1], "left")


def _search_right(extents: Any, tiles: Any) -> Any:
    return (extents[1][0][0],), np.searchsorted(tiles[0], tiles[1], "right")


_SEARCH = {
    "left": UserFunction(_search_left, origin="searchsorted"),
    "right": UserFunction(_search_right, origin="searchsorted"),
}


@numpy_function(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The bin each value falls into."""
    x, bins = as_handle(x), as_handle(bins)
    if "c" in (x.dtype.kind, bins.dtype.kind):
        raise TypeError(f"digitize: x and bins may not be complex, as {x.dtype} and {bins.dtype} are")
    if bins.ndim != 1:
        raise ShapeError(
            f"object of too small depth for desired array: bins of shape {bins.shape} are not 1-d"
        )
    side = "left" if right else "right"
    if reductions.all(bins[1:] >= bins[:-1]):
        return searchsorted(bins, x, side)
    if reductions.all(bins[1:] <= bins[:-1]):
        return bins.shape[0] - searchsorted(bins[::-1], x, side)  # type: ignore[no-any-return]
    raise ValueError("bins must be monotonically increasing or decreasing")


# --- counting --------------------------------------------------------------------------------------


@numpy_function(np.bincount, whole=True)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each non-negative integer stands in `x`, or its summed weights."""
    x = as_handle(x)
    if x.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: shape {x.shape} is not 1-d")
    if not np.can_cast(x.dtype, np.int64, "safe"):
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    if minlength < 0:
        raise ValueError("'minlength' must not be negative")
    length = minlength
    if x.size:
        from spartan_ng.api.handle import values

        low, high = values(reductions.min(x), reductions.max(x))
        if low < 0:
            raise ValueError("'list' argument must have no negative elements")
        length = max(length, int(high) + 1)
    w = None
    if weights is not None:
        w = as_handle(weights).astype(np.float64)._node()
        if w.shape != x.shape:
            raise ValueError(
                f"The weights and list don't have the same length: shapes {w.shape} and {x.shape}"
            )
    return wrap_node(build.bincount(build.cast(x._node(), np.dtype(np.int64)), length, w))


# --- sets ------------------------------------------------------------------------------------------


@numpy_function(np.unique, whole=True)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
) -> Any:
    """The sorted distinct elements, and on request where they are, the inverse, and their counts."""
    a = as_handle(ar)
    if a.dtype.kind in "OV":
        return gathered(np.unique, a, return_index, return_inverse, return_counts, axis, equal_nan=equal_nan)
    if axis is not None:
        return _unique_slices(a, build.axis_index(axis, a.ndim), return_index, return_inverse, return_counts)
    flat = a.reshape(-1 if a.size else 0)
    if flat.size == 0:
        empty = wrap(np.zeros(0, np.intp))
        found = [flat.copy()] + [empty] * (return_index + return_counts)
        if return_inverse:
            found.insert(1 + return_index, empty.reshape(a.shape))
        return found[0] if len(found) == 1 else tuple(found)
    order = argsort(flat, kind="stable") if return_index or return_inverse else None
    line = flat[order] if order is not None else sort(flat)
    changed = line[1:] != line[:-1]
    if equal_nan and a.dtype.kind in "fcmM":
        changed = changed & ~(ufuncs.isnan(line[1:]) & ufuncs.isnan(line[:-1]))
    from spartan_ng.api import manipulation

    first = manipulation.concatenate([creation.ones(1, bool), changed])
    out = [line[first]]
    if return_index and order is not None:
        out.append(order[first])
    if return_inverse and order is not None:
        rank = reductions.cumsum(first.astype(np.intp)) - 1
        node = build.scatter(
            creation.zeros(flat.size, np.intp)._node(),
            build.cast(order._node(), np.dtype(np.int64)),
            rank._node(),
        )
        out.append(wrap_node(build.reshape(node, a.shape)))
    if return_counts:
        starts = flatnonzero(first)
        out.append(manipulation.concatenate([starts[1:], creation.full(1, flat.size, np.intp)]) - starts)
    return out[0] if len(out) == 1 else tuple(out)


def _unique_slices(a: ndarray, axis: int, *wanted: bool) -> Any:
    """The distinct slices along an axis, in lexicographic order, and on request what `unique` gives besides.

    Slices are ranked by ever more of their elements, until no two are equal.
    """
    from spartan_ng.api import manipulation

    lines = manipulation.moveaxis(a, axis, 0)
    rows = lines.reshape(a.shape[axis], prod(lines.shape[1:]))
    rank = creation.zeros(rows.shape[0], np.intp)
    for k in range(rows.shape[1] if rows.shape[0] else 0):
        values, place = unique(rows[:, k], return_inverse=True)
        distinct, rank = unique(rank * values.size + place, return_inverse=True)
        if distinct.size == rows.shape[0]:
            break
    if a.dtype.kind in "fcmM":  # slices with NaN are never equal, but stand where others would
        holes = reductions.any(ufuncs.isnan(rows), 1)
        own = ufuncs.multiply(holes, creation.arange(1, rows.shape[0] + 1))
        _, rank = unique(rank * (rows.shape[0] + 1) + own, return_inverse=True)
    _, first, counts = unique(rank, return_index=True, return_counts=True)
    found = manipulation.moveaxis(lines[first], 0, axis)
    more = [x for x, asked in zip((first, rank, counts), wanted, strict=True) if asked]
    return (found, *more) if more else found


@numpy_function(np.unique_values)  # NumPy's own does not sort
def unique_values(x: Any) -> ndarray:
    """The distinct elements."""
    return unique(x, equal_nan=False)  # type: ignore[no-any-return]


@numpy_function(np.unique_counts, whole=True)
def unique_counts(x: Any) -> Any:
    """The distinct elements and how often they occur."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False))


@numpy_function(np.unique_inverse, whole=True)
def unique_inverse(x: Any) -> Any:
    """The distinct elements and the inverse."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False))


@numpy_function(np.unique_all, whole=True)
def unique_all(x: Any) -> Any:
    """The distinct elements, where they are, the inverse and the counts."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False))


@numpy_function(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> ndarray:
    """Whether each element is one of the test elements."""
    if kind not in (None, "sort", "table"):
        raise ValueError(f"Invalid kind: '{kind}'. Please use None, 'sort' or 'table'.")
    a, tests = as_handle(element), as_handle(test_elements).ravel()
    if kind == "table" or a.dtype.hasobject or tests.dtype.hasobject:
        return by_numpy(np.isin, a, tests, assume_unique, invert, kind=kind)  # type: ignore[no-any-return]
    if tests.size == 0:
        return creation.full(a.shape, invert, bool)
    common = np.result_type(a.dtype, tests.dtype)
    line, a = sort(tests.astype(common)), a.astype(common)
    place = ufuncs.minimum(searchsorted(line, a), line.size - 1)
    found = line[place] == a
    return ~found if invert else found  # type: ignore[no-any-return]


@numpy_function(np.union1d)
def union1d(ar1: Any, ar2: Any) -> ndarray:
    """The distinct elements of both."""
    from spartan_ng.api import manipulation

    return unique(manipulation.concatenate((ar1, ar2), None))  # type: ignore[no-any-return]


@numpy_function(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that are in both."""
    kind = np.result_type(as_handle(ar1).dtype, as_handle(ar2).dtype)
    if not return_indices:
        a = unique(as_handle(ar1).astype(kind))
        return a[isin(a, ar2)]
    (a, first), (b, second) = (unique(as_handle(x).astype(kind), return_index=True) for x in (ar1, ar2))
    both = isin(a, b)
    return a[both], first[both], second[isin(b, a)]


@numpy_function(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The distinct elements of the first that are not in the second."""
    a = as_handle(ar1).ravel() if assume_unique else unique(ar1)
    return a[isin(a, ar2, invert=True)]  # type: ignore[no-any-return]


@numpy_function(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> ndarray:
    """The distinct elements that are in exactly one."""
    from spartan_ng.api import manipulation

    a, b = (as_handle(x).ravel() if assume_unique else unique(x) for x in (ar1, ar2))
    line, counts = unique(manipulation.concatenate((a, b)), return_counts=True)
    return line[counts == 1]  # type: ignore[no-any-return]


@numpy_function(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Flat indices as one array an axis."""
    lengths = creation.shape_tuple(shape)
    flat = as_handle(indices)
    known = ufuncs.small_values((flat,))
    if known is not None:
        return tuple(wrap(np.asarray(i)[()]) for i in np.unravel_index(known[0], lengths, order))  # type: ignore[call-overload]
    if bool(((flat < 0) | (flat >= prod(lengths))).any()):
        raise ValueError(f"an index is out of bounds for array with size {prod(lengths)} (shape {lengths})")
    ordered = lengths if order == "C" else lengths[::-1]
    strides = [prod(ordered[i + 1 :]) for i in range(len(ordered))]
    found = tuple((flat // s) % n for s, n in zip(strides, ordered, strict=True))
    return found if order == "C" else found[::-1]


@numpy_function(np.ravel_multi_index, eager=True)
def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> ndarray:
    """One array an axis as flat indices."""
    parts = [as_handle(i) for i in multi_index]
    lengths = creation.shape_tuple(dims)
    if len(parts) != len(lengths):
        raise ValueError(
            f"parameter multi_index must be a sequence of length {len(lengths)}, not {len(parts)}"
        )
    modes = [mode] * len(parts) if isinstance(mode, str) else list(mode)
    strides = [prod(lengths[i + 1 :] if order == "C" else lengths[:i]) for i in range(len(lengths))]
    total: Any = 0
    for part, n, stride, how in zip(parts, lengths, strides, modes, strict=True):
        if how == "wrap":
            part = part % n
        elif how == "clip":
            part = ufuncs.clip3(part, 0, n - 1)
        elif bool(((part < 0) | (part >= n)).any()):
            raise ValueError("invalid entry in coordinates array")
        total = total + part.astype(np.intp) * stride
    return total  # type: ignore[no-any-return]


def topk(a: Handle, k: int) -> ndarray:
    """The `k` greatest elements along the last axis, greatest first."""
    n = a.shape[-1]
    return sort(partition(a, n - k)[..., n - k :])[..., ::-1]  # type: ignore[no-any-return]


__all__ = [
    "argpartition",
    "argsort",
    "argwhere",
    "bincount",
    "digitize",
    "flatnonzero",
    "intersect1d",
    "isin",
    "lexsort",
    "nonzero",
    "partition",
    "ravel_multi_index",
    "searchsorted",
    "setdiff1d",
    "setxor1d",
    "sort",
    "sort_complex",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unravel_index",
]
