"""Folds by place: a ufunc's `at` adds into places, its `reduceat` folds segments."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import indexing, reductions
from spartan_ng.api.base.room import work_fits
from spartan_ng.api.core import door, keys
from spartan_ng.api.core.chains import may_overlap
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, gathered
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.layouts import asked_of_tiny, lie
from spartan_ng.api.core.operands import check_output, small_values, stored
from spartan_ng.api.core.outputs import folds_in, is_other
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.graph import build
from spartan_ng.graph.node import Node
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.scans import SCANS, SEGMENTED
from spartan_ng.scratch import zeros

if TYPE_CHECKING:
    from spartan_ng.api.elementwise.universal import ufunc
    from spartan_ng.api.ndarray.array import ndarray

_GROUPED = 1 << 12
"""Rows with known indices from which sums into few places are a pass of their own."""


def accumulate_at(name: str, a: ndarray, indices: Any, b: Any) -> None:
    """`ufunc.at`: an update for every index, repeated ones one after the other."""
    updates = as_handle(b)
    if may_overlap(a):  # an index names several elements of the array
        getattr(np, name).at(a._in_place(), forced(indices), forced(b))
        return
    fits = _fits(name, a, updates)
    if fits and _is_grouped_sum(name, a, indices):
        a._write_node((a + _grouped_sum(a, indices, updates))._node())
        return
    target = a._peek()
    plain_indices = _plain_key(indices)
    if target is not None and plain_indices is not None and not (isinstance(b, Handle) and b._peek() is None):
        here = a._in_place()
        if here is not None:
            getattr(np, name).at(here, plain_indices, forced(b))
            return
    if not fits:
        a._write(gathered(_applied(name), a, indices, b))
        return
    positions = indexing.flat_positions(a.shape, indices)
    flat = build.reshape(a._node(), (a.size,))
    values = build.broadcast(build.cast(updates._node(), a.dtype), positions.shape)
    node = build.scatter(flat, positions.reshape(-1)._node(), build.reshape(values, (positions.size,)), name)
    a._write_node(build.reshape(node, a.shape))


def repeat_at(function: ufunc, a: ndarray, indices: Any) -> None:
    """`ufunc.at` of a function of one operand: as often for an element as its index occurs."""
    plain_indices = forced(indices) if may_overlap(a) else _plain_key(indices)
    here = a._in_place() if a._peek() is not None and plain_indices is not None else None
    if here is not None:
        function.np.at(here, plain_indices)
        return
    zeros = build.broadcast(build.constant(np.int64(0)), a.shape)
    times = wrap_node(zeros)
    accumulate_at("add", times, indices, np.int64(1))
    for n in range(int(times.max()) if times.size else 0):
        once = build.cast(function(a)._node(), a.dtype)  # as NumPy does, whatever the dtypes
        a._write_node(build.map_("where", (times > n)._node(), once, a._node()))


_MODULAR = {"add", "subtract", "multiply", "bitwise_and", "bitwise_or", "bitwise_xor"}
"""Functions of integers that may be taken modulo the array's dtype before or after."""


def _fits(name: str, a: ndarray, b: ndarray) -> bool:
    """Whether updates may be cast to the array's dtype first; NumPy computes in the dtype of both, and casts
    each result by force, which for integers of 64 bits and either sign is a number of floating point."""
    try:
        _, second, dtype = getattr(np, name).resolve_dtypes((a.dtype, b.dtype, None))
    except TypeError:  # `at` allows more, or says so itself
        return False
    if dtype == a.dtype:
        return bool(second == dtype)  # to a date durations are added; so `ldexp`, comparisons
    if a.dtype.kind in "iu":
        return name in _MODULAR and dtype.kind in "iu"
    return dtype.kind in "fc" and np.can_cast(dtype, a.dtype, "same_kind")


def _applied(name: str) -> Any:
    """`ufunc.at` as a function that leaves its operand as it is."""

    def at(a: Any, key: Any, b: Any) -> Any:
        out = np.array(a)
        getattr(np, name).at(out, key, b)
        return out

    at.__module__, at.__name__ = "numpy", f"{name}.at"
    return at


def _is_grouped_sum(name: str, a: ndarray, indices: Any) -> bool:
    """Whether rows are added into few places of a float array: each worker sums its own rows."""
    if name != "add" or not isinstance(indices, Handle) or a.ndim == 0:
        return False
    rows = indices.size if indices.ndim == 1 and indices.dtype.kind in "iu" else 0
    few = rows < _GROUPED and indices._peek() is not None
    return rows >= a.shape[0] and not few and a.dtype in (np.float32, np.float64)


def _grouped_sum(a: ndarray, indices: Handle, b: ndarray) -> ndarray:
    """What `add.at` adds to `a`: for each row of it the sum of the rows of `b` with its index."""
    rows = build.broadcast(build.cast(b._node(), a.dtype), (indices.size, *a.shape[1:]))
    places = keys.checked_index(indices, a.shape[0], 0)._node()
    return wrap_node(build.bincount(places, a.shape[0], rows, a.dtype))


def _plain_key(key: Any) -> Any:
    """An index without lazy arrays in it, or None."""
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(p, Handle) and p._peek() is None for p in parts):
        return None
    plain = tuple(forced(p) for p in parts)
    return plain if isinstance(key, tuple) else plain[0]


_FEW_SEGMENTS, _MOST_SEGMENTS = 16, 1 << 10
"""Segments up to so few are folded one by one, more of them in one scan where they ascend; else up to so many
are folded one by one, and NumPy folds more of them on the driver."""


_CHANGES_ONE = ("gcd", "hypot")
"""Folds whose first step changes an element; a segment begins with it as it is."""


def reduceat(name: str, array: Any, indices: Any, axis: Any, dtype: Any, out: Any) -> ndarray:
    """`ufunc.reduceat`: NumPy's of what is here, or has room; else one scan that starts anew with every
    segment, or few segments one by one."""
    a = as_handle(array)
    given = forced(indices)
    is_array = isinstance(given, np.ndarray)  # numbers in lists may be cut off
    at = given.astype(np.intp, casting="safe", copy=False) if is_array else np.asarray(given, np.intp)
    if not a.ndim and axis in (0, -1):
        raise TypeError("cannot reduceat on a scalar")
    if axis is None and a.ndim > 1:
        raise ValueError("reduceat does not allow multiple axes")
    where = build.axis_index(0 if axis is None else axis, a.ndim)
    n = a.shape[where]
    if at.ndim != 1:
        raise ValueError(f"{name}.reduceat: indices have one axis, not {at.ndim}")
    if at.size and not 0 <= at.min() <= at.max() < n:
        outside = at[(at < 0) | (at >= n)]
        raise IndexError(
            f"{name}.reduceat: index {outside[0]} is out of bounds for axis {where} with size {n}"
        )
    if out is not None:
        check_output(out)
    if out is not None and dtype is None and is_other(a.dtype, out.dtype):
        dtype = folds_in(name, a.dtype, out.dtype)
        if dtype is None:
            return by_numpy(getattr(np, name).reduceat, a, at, where, out=out)  # type: ignore[no-any-return]
    here = door.works_here() and a._peek() is not None and work_fits((a,), 2 * _cast_bytes(name, a, dtype))
    if here or small_values((a,)) is not None or not at.size or a.dtype.hasobject:
        return by_numpy(getattr(np, name).reduceat, a, at, axis, dtype, out)  # type: ignore[no-any-return]
    ascends = bool(np.all(at[:-1] < at[1:])) and name in SCANS and a.dtype.kind in "biufc"
    one_by_one = len(at) <= _MOST_SEGMENTS and name in FOLDS and name not in _CHANGES_ONE
    in_one_scan = ascends and (len(at) > _FEW_SEGMENTS or not one_by_one)
    if in_one_scan and door.is_made_here(a.nbytes + 2 * _cast_bytes(name, a, dtype)):
        return by_numpy(getattr(np, name).reduceat, a, at, axis, dtype, out)  # type: ignore[no-any-return]
    if not (in_one_scan or one_by_one):
        cast = wrap_node(build.cast(a._node(), _folded_as(name, a, dtype)))  # no copy in NumPy's memory
        return gathered(getattr(np, name).reduceat, cast, at, axis, dtype, out)  # type: ignore[no-any-return]
    if in_one_scan:
        result = segments(name, build.cast(a._node(), _folded_as(name, a, dtype)), at.tolist(), where)
        return stored(name, _lying(result, a, where), out, casting="unsafe")
    before = (slice(None),) * where
    parts = []
    for lo, hi in pairwise([*at.tolist(), n]):
        part = a[(*before, slice(lo, max(hi, lo + 1)))]
        parts.append(reductions.reduce(name, part, where, dtype, None, True)._node())
    result = wrap_node(build.concatenate(parts, where))
    return stored(name, _lying(result, a, where), out, casting="unsafe")


def _folded_as(name: str, a: Handle, dtype: Any) -> np.dtype[Any]:
    """The dtype of the folds of an array, which NumPy casts it to first."""
    return getattr(np, name).reduceat(np.ones(1, a.dtype), [0], dtype=dtype).dtype  # type: ignore[no-any-return]


def _cast_bytes(name: str, a: Handle, dtype: Any) -> int:
    """What NumPy copies to fold segments. It goes over the elements once, at the memory's speed, but over all
    of them as the folds' dtype, in this machine's order of bytes."""
    if a.dtype.hasobject or door.is_small(a.nbytes):
        return 0
    kind = _folded_as(name, a, dtype)
    return 0 if kind == a.dtype else a.size * kind.itemsize


def _lying(result: ndarray, a: Handle, axis: int) -> ndarray:
    """The folds of segments in the order that NumPy gives them."""
    order = asked_of_tiny([a], lambda tiny: np.logical_or.reduceat(tiny, [0, 0], axis))
    return lie(result, order)


def segments(name: str, a: Node, starts: Sequence[int], axis: int) -> ndarray:
    """The fold of each segment of `axis` that begins at the ascending `starts`: its scan's last value."""
    n = a.shape[axis]
    begins = zeros(n, a.dtype)
    begins[list(starts)] = 1
    along = tuple(n if d == axis else 1 for d in range(a.ndim))
    flags = build.broadcast(wrap(begins.reshape(along))._node(), a.shape)
    scanned = wrap_node(build.recurrence(f"{SEGMENTED}{name}", a, flags, axis))
    last: Any = np.append(np.asarray(starts, np.int64)[1:], n) - 1
    found: ndarray = scanned.take(last, axis)
    return found
