"""Sorting, searching and counting: sorts of whole lines, compressions, searches in sorted arrays."""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import joining, manipulation, reductions
from spartan_ng.api.core import door, keys
from spartan_ng.api.core.conversion import as_handle, forced, values
from spartan_ng.api.core.dispatch import gathered, numpy_function
from spartan_ng.api.core.forcing import counted
from spartan_ng.api.core.handle import settle
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.ordering import long_lines
from spartan_ng.api.places import taking
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.memory import copied_bytes
from spartan_ng.ops.joins import short_end

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_COMPLEX = dict.fromkeys("bhBH", np.complex64) | {"g": np.clongdouble}
"""What `sort_complex` makes of real numbers, where it is not complex128."""
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
        raise ValueError("`kind` and keyword parameters can't be provided at the same time: kind and stable")
    if kind is None:
        return _STABLE if stable else ()
    if not isinstance(kind, str | bytes):
        raise TypeError(f"sort kind must be str, not {type(kind).__name__}")
    first = (kind.decode() if isinstance(kind, bytes) else kind)[:1].lower()
    if first not in ("q", "h", "m", "s"):  # all that NumPy looks at
        raise ValueError(f"sort kind must be one of 'quick', 'heap', or 'stable' (got {kind!r})")
    return _STABLE if first in ("m", "s") else ()


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
    if long_lines.are_long(a, where, False):
        result = long_lines.line_by_line("sort", a, where, a.dtype)
    else:
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
    a, where = manipulation.along(as_handle(a), axis)
    a = _turned(a, where) if descending else a
    if long_lines.are_long(a, where, True):
        result = long_lines.line_by_line("argsort", a, where, build.INTP)
    else:
        keywords = _kind(kind, stable)
        result = wrap_node(
            build.along_axis("argsort", [a._node()], where, dtype=build.INTP, keywords=keywords)
        )
    return a.shape[where] - 1 - _turned(result, where) if descending else result


def are_lines(arrays: Any) -> bool:
    """Whether all are lines of numbers, which are sorted sooner here than by NumPy's functions that compare
    elements to do more than to sort them."""
    return all(a.ndim == 1 and a.dtype.kind in "biufmM" for a in map(np.asarray, arrays))


def _turned(a: ndarray, axis: int) -> ndarray:
    """The axis backwards."""
    return a[(slice(None),) * axis + (slice(None, None, -1),)]  # type: ignore[no-any-return]


def _needs_all(given: list[Any]) -> bool:
    """Whether no end of a partition is short: those of one line are found in a pass over it."""
    a, kth = np.asarray(given[0]), given[1]
    is_line = a.ndim == 1 and a.dtype.kind in "biuf" and type(kth) is int and -a.size <= kth < a.size
    return not is_line or short_end(a.size, kth % a.size) is None


@numpy_function(np.partition, whole=_needs_all)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """A copy whose element `kth` is where a sort would put it, smaller ones before it."""
    if order is not None or not len(np.atleast_1d(kth)):
        return gathered(np.partition, a, kth, axis, kind, order)  # type: ignore[no-any-return]
    a, where = _line(a, axis)
    keywords = (("kth", _kth(kth, a.shape[where] if a.size else 0, kind)),)
    if not a.size:
        return a.copy()  # type: ignore[no-any-return]
    if _is_long(a, a.dtype) or long_lines.are_long(a, where, False):
        return sort(a, where)
    return wrap_node(build.along_axis("partition", [a._node()], where, dtype=a.dtype, keywords=keywords))


@numpy_function(np.argpartition, whole=_needs_all)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> ndarray:
    """The indices that partition."""
    if order is not None or not len(np.atleast_1d(kth)):
        return gathered(np.argpartition, a, kth, axis, kind, order)  # type: ignore[no-any-return]
    a, where = manipulation.along(as_handle(a), axis)
    keywords = (("kth", _kth(kth, a.shape[where] if a.size else 0, kind)),)
    if not a.size:
        return wrap(np.empty(a.shape, build.INTP))
    if _is_long(a, build.INTP) or long_lines.are_long(a, where, True):
        return argsort(a, where)
    return wrap_node(
        build.along_axis("argpartition", [a._node()], where, dtype=build.INTP, keywords=keywords)
    )


def _is_long(a: Any, made: np.dtype[Any]) -> bool:
    """Whether a line is one that is sorted part by part: a partition of it would need all of it, and all of
    what is made of it, at once."""
    each = max(a.dtype.itemsize, made.itemsize)
    return bool(a.ndim == 1 and a.size * each > copied_bytes() and not a.dtype.hasobject)


def _kth(kth: Any, n: int, kind: Any) -> Any:
    """Positions in [0, n), as an int or a tuple of ints; a line of an array without elements has any."""
    if not isinstance(kind, str):
        raise TypeError(f"select kind must be str, not {type(kind).__name__}")
    if kind != "introselect":
        raise ValueError(f"select kind must be 'introselect' (got {kind!r})")
    given = np.atleast_1d(forced(kth))
    if given.dtype.kind not in "iu":
        raise TypeError("Partition index must be integer")
    if n == 0:
        return 0
    places = given.tolist()
    for k in places:
        if not -n <= k < n:
            raise ValueError(f"kth(={k}) out of bounds ({n})")
    places = [k % n for k in places]
    return places[0] if len(places) == 1 else tuple(places)


def _of_other_keys(given: list[Any]) -> bool:
    return not are_lines(given[0])


@numpy_function(np.lexsort, whole=_of_other_keys)
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
    order = argsort(keys[0], axis, kind="stable")
    for key in keys[1:]:
        order = taking.take_along_axis(
            order, argsort(taking.take_along_axis(key, order, axis), axis, kind="stable"), axis
        )
    return order


@numpy_function(np.sort_complex, few=1)
def sort_complex(a: Any) -> ndarray:
    """A sorted copy as complex numbers."""
    a = as_handle(a)
    kind = _COMPLEX.get(a.dtype.char, np.complex128)
    return sort(a) if a.dtype.kind == "c" else sort(a).astype(kind)


# --- searching -------------------------------------------------------------------------------------


@numpy_function(np.nonzero, few=1)
def nonzero(a: Any) -> tuple[ndarray, ...]:
    """The indices of the elements that are not zero, one array an axis; counts them now."""
    a = as_handle(a)
    if a.ndim == 0:
        raise ValueError(
            "Calling nonzero on 0d arrays is not allowed. Use np.atleast_1d(scalar).nonzero() instead."
        )
    known = small_values((a,))
    if known is not None:
        return tuple(wrap(i) for i in np.nonzero(known[0]))
    marks = _marks_here(a)
    if marks is not None:
        return tuple(wrap(i) for i in np.nonzero(marks))
    flat = flatnonzero(a)
    if a.ndim == 1:
        return (flat,)
    if flat.nbytes <= copied_bytes():
        settle(flat)  # each axis asks for it
    strides = [prod(a.shape[i + 1 :]) for i in range(a.ndim)]
    return tuple((flat // s) % n for s, n in zip(strides, a.shape, strict=True))


@numpy_function(np.flatnonzero, few=1)
def flatnonzero(a: Any) -> ndarray:
    """The flat indices of the elements that are not zero."""
    a = as_handle(a)
    marks = _marks_here(a)
    if marks is not None:
        return wrap(np.flatnonzero(marks))
    return wrap_node(build.nonzero(*counted(reductions.truth(a)._node())))


def _marks_here(a: ndarray) -> Any:
    """The truth values of an array that is here, if NumPy finds their places: it counts them on the way. A
    plan has to be told before how many there are, and counts each part once more."""
    marks = a._found() if a.dtype == bool else None
    return (
        marks if type(marks) is np.ndarray and door.fits_here(a.size * np.intp().itemsize * a.ndim) else None
    )


@numpy_function(np.argwhere, few=1)
def argwhere(a: Any) -> ndarray:
    """The indices of the elements that are not zero, one row an element."""
    a = as_handle(a)
    if a.ndim == 0:
        return wrap(np.argwhere(a._force()))
    return joining.stack(nonzero(a)).T  # so they lie in memory, as NumPy's do


@numpy_function(np.searchsorted, whole=True)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> ndarray:
    """Where values belong in a sorted 1-d array."""
    a, v = as_handle(a), as_handle(v)
    if side not in ("left", "right"):
        raise ValueError(f"search side must be 'left' or 'right' (got {side!r})")
    if a.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: shape {a.shape} is not 1-d")
    if sorter is not None:
        a = _sorted(a, as_handle(sorter))
    known = small_values((a, v))
    if known is not None:
        return wrap(np.searchsorted(known[0], known[1], side))  # type: ignore[call-overload]
    kind = np.result_type(a.dtype, v.dtype)
    return wrap_node(build.search(build.cast(a._node(), kind), build.cast(v._node(), kind), side))


def _sorted(a: ndarray, sorter: ndarray) -> ndarray:
    """An array in the order that a sorter names."""
    if sorter.dtype.kind not in "iu":
        raise TypeError("sorter must only contain integers")
    if sorter.shape != a.shape:
        raise ValueError(f"sorter.size must equal a.size: shapes {sorter.shape} and {a.shape}")
    if bool(reductions.any((sorter < 0) | (sorter >= a.size))):
        raise ValueError("Sorter index out of range.")
    return a[sorter]  # type: ignore[no-any-return]


@numpy_function(np.digitize, few=2)
def digitize(x: Any, bins: Any, right: bool = False) -> ndarray:
    """The bin each value falls into."""
    x, bins = as_handle(x), as_handle(bins)
    if "c" in (x.dtype.kind, bins.dtype.kind):
        raise TypeError(f"digitize: x and bins may not be complex, as {x.dtype} and {bins.dtype} are")
    if not {x.dtype.kind, bins.dtype.kind} <= set("biuf"):  # of which NumPy says what they are
        return gathered(np.digitize, x, bins, right)  # type: ignore[no-any-return]
    if bins.ndim != 1:
        raise ShapeError(
            f"object of too small depth for desired array: bins of shape {bins.shape} are not 1-d"
        )
    side = "left" if right else "right"
    if _ascend(bins):
        return searchsorted(bins, x, side)
    return bins.shape[0] - searchsorted(bins[::-1], x, side)  # type: ignore[no-any-return]


def _ascend(bins: ndarray) -> bool:
    """Whether edges go up (or stay), not down; NaN, which does neither, may be among them as in NumPy.

    The first two edges that differ decide, and none of the rest may go the other way.
    """
    before, after = bins[:-1], bins[1:]
    differ = before != after
    rises, falls, differs = values(
        reductions.any(after > before), reductions.any(after < before), reductions.any(differ)
    )
    if not differs:
        return True
    first = int(reductions.argmax(differ))
    ascend = bool(after[first] > before[first])
    if falls if ascend else rises:
        raise ValueError("bins must be monotonically increasing or decreasing")
    return ascend


# --- counting --------------------------------------------------------------------------------------


@numpy_function(np.bincount, whole=True)
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> ndarray:
    """How often each non-negative integer stands in `x`, or its summed weights."""
    x = as_handle(x)
    if x.ndim != 1:
        raise ValueError(f"object of too small depth for desired array: shape {x.shape} is not 1-d")
    if x.dtype.kind != "u" and not np.can_cast(x.dtype, np.int64, "safe"):
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    length = operator.index(minlength)
    if length < 0:
        raise ValueError("'minlength' must not be negative")
    if x.size:
        low, high = keys.least_and_most(x, is_much=True)
        if low < 0 or high > np.iinfo(np.int64).max:  # which would be negative as an int64
            raise ValueError("'list' argument must have no negative elements")
        length = max(length, high + 1)
    w = None
    if weights is not None:
        given = as_handle(weights)
        if given.ndim == 1 and not np.can_cast(given.dtype, np.float64):
            raise TypeError(f"bincount: weights of {given.dtype} cannot be cast to float64 safely")
        if given.shape != x.shape:
            raise ValueError(
                f"The weights and list don't have the same length: shapes {given.shape} and {x.shape}"
            )
        w = given.astype(np.float64)._node()
    return wrap_node(build.bincount(build.cast(x._node(), np.dtype(np.int64)), length, w))


# --- sets ------------------------------------------------------------------------------------------


__all__ = [
    "argpartition",
    "argsort",
    "argwhere",
    "bincount",
    "digitize",
    "flatnonzero",
    "lexsort",
    "nonzero",
    "partition",
    "searchsorted",
    "sort",
    "sort_complex",
]
