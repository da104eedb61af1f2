"""The five operators for programs with functions of their own: map, filter, fold, scan, join_update.

Spartan (ATC '15), section 3.1 and Fig. 5. Functions must be free of side effects and deterministic. They
get NumPy arrays (blocks or tiles) and return NumPy arrays; the layout must not change what they compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, reductions
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.conversion import as_handle, shape_tuple
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.wrapping import wrap_masked, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.errors import NotAssociative, ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.functions import UserFunction, require_function
from spartan_ng.ops.scans import SCANS

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_TRIPLES = 64
"""Triples of lines that a check for associativity looks at."""


def map(function: Callable[..., Any], *arrays: Any, dtype: Any = None, extent: bool = False) -> ndarray:
    """Apply a function to arrays of one shape (after broadcasting), block by block.

    Parameters
    ----------
    function : called with one block of each array; returns a block of their common shape. Blocks may
        have any size, so the function must be elementwise (it may use the place of a block, see `extent`)
    dtype : of the result; found out by calling the function with blocks of one element if left out
    extent : also pass the block's place as the keyword `extent`, one `(lower, upper)` pair of global
        indices an axis
    """
    require_function("map(function, x)", function)
    found = [as_handle(a) for a in arrays]
    if not found:
        raise TypeError("map: at least one array is needed")
    if isinstance(function, ufuncs.ufunc | np.ufunc) and dtype is None and not extent:
        ufunc = ufuncs.of_name(function.__name__)
        if ufunc is not None:
            return ufunc(*found)  # type: ignore[no-any-return]
    shape = build.broadcast_shapes("map", *(a.shape for a in found))
    if dtype is None:
        keywords = {"extent": tuple((0, 1) for _ in shape)} if extent else {}
        ones = [np.ones((1,) * len(shape), a.dtype) for a in found]
        dtype = np.asarray(function(*ones, **keywords)).dtype
    params = ("extent",) if extent else ()
    node = build.map_(
        UserFunction(function), *(a._node() for a in found), dtype=np.dtype(dtype), params=params
    )
    return wrap_node(node)


def filter(predicate: Any, a: Any) -> ndarray:
    """The elements of `a` that a boolean array (or a function giving one) selects.

    The result is one-dimensional for a mask of all axes. It stays in place: folds and maps over it never
    bring its elements together; asking for its shape or its elements does.
    """
    if callable(a):
        require_function("filter(predicate, x)", predicate)
    a = as_handle(a)
    mask = (
        map(predicate, a, dtype=bool)
        if callable(predicate) and not isinstance(predicate, Handle)
        else predicate
    )
    mask = as_handle(mask)
    if mask.dtype != bool:
        raise TypeError(f"filter: a mask must be boolean, not {mask.dtype} (shape {mask.shape})")
    if mask.ndim == 0 or mask.shape != a.shape[: mask.ndim]:
        raise ShapeError(
            f"filter: a mask of shape {mask.shape} does not cover the leading axes of shape {a.shape}"
        )
    return wrap_masked(Masked(a._node(), mask._node()))


def fold(function: Any, a: Any, axis: Any = None, dtype: Any = None) -> ndarray:
    """Aggregate along axes with a commutative, associative function of two arrays of one shape.

    Parameters
    ----------
    function : a ufunc, or `f(x, y)` that combines two arrays element by element
    axis : an axis, several, or None for all
    """
    name = _table_name(function, FOLDS)
    if name is None:
        require_function("fold(function, x)", function)
    a = as_handle(a)
    if name is not None:
        return reductions.reduce(name, a, axis, dtype)
    axes = build.axes_tuple(axis, a.ndim)
    if not axes:
        return a.copy()  # type: ignore[no-any-return]
    if any(a.shape[i] == 0 for i in axes):
        raise ValueError(
            f"fold: shape {a.shape} has no elements along axes {axes}, and the function no identity"
        )
    return wrap_node(
        build.fold(UserFunction(function), a._node(), axes, dtype=_binary_dtype(function, a, dtype))
    )


def scan(function: Any, a: Any, axis: int = 0, dtype: Any = None, check: bool = False) -> ndarray:
    """Cumulative aggregates along an axis with an associative function of two arrays of one shape.

    With `check`, triples of lines are tried first; NotAssociative names one that breaks the rule.
    """
    name = _table_name(function, SCANS)
    if name is None:
        require_function("scan(function, x)", function)
    a = as_handle(a)
    if name is not None:
        return cumulative.accumulate(name, a, axis, dtype)
    where = build.axis_index(axis, a.ndim)
    if check:
        _check_associative(function, a, where)
    return wrap_node(build.scan(UserFunction(function), a._node(), where, _binary_dtype(function, a, dtype)))


def _table_name(function: Any, table: Any) -> str | None:
    """The row of a ufunc, where the table has one."""
    name = getattr(function, "__name__", "")
    return name if isinstance(function, ufuncs.ufunc | np.ufunc) and name in table else None


def _binary_dtype(function: Any, a: Handle, dtype: Any) -> np.dtype[Any]:
    if dtype is not None:
        return np.dtype(dtype)  # type: ignore[no-any-return]
    one = np.ones((1,) * max(a.ndim, 1), a.dtype)
    return np.asarray(function(one, one)).dtype


def _check_associative(function: Callable[[Any, Any], Any], a: Any, axis: int) -> None:
    """Try f(f(x, y), z) = f(x, f(y, z)) on lines of `a`; NotAssociative names a triple that breaks it."""
    n = a.shape[axis]
    if a.size == 0:
        return
    chosen = np.random.default_rng(0).integers(n, size=(3, _TRIPLES))
    x, y, z = (np.asarray(a.take(row, axis)) for row in chosen)
    left, right = function(function(x, y), z), function(x, function(y, z))
    close = np.isclose(left, right, rtol=1e-6, atol=1e-9, equal_nan=True)
    if not close.all():
        at = tuple(np.argwhere(~close)[0])
        name = getattr(function, "__name__", "function")
        p, q, r = (t[at].item() for t in (x, y, z))
        raise NotAssociative(
            f"scan: {name} is not associative: {name}({name}({p}, {q}), {r}) is {left[at]}, "
            f"but {name}({p}, {name}({q}, {r})) is {right[at]}"
        )


def join_update(
    f_join: Callable[..., Any],
    f_accum: Any,
    arrays: Sequence[Any],
    axes: Sequence[int],
    shape: Any,
    dtype: Any = None,
) -> ndarray:
    """Join pieces of arrays along axes, and accumulate what a function makes of them.

    Parameters
    ----------
    f_join : `f_join(extents, tiles)` gets the places and the data of one piece of each array, and gives a
        `(location, data)` pair, or a list or generator of them; `location` is the upper left index of `data`
        in the result
    f_accum : a ufunc (as `np.add`), or `f(x, y)`, that combines what arrives at one place; the result
        starts with its identity
    arrays, axes : each array is cut along its axis, all in step; with -1 every piece gets all of it
    shape, dtype : of the result; dtype is the inputs' common one if left out
    """
    found = [as_handle(a) for a in arrays]
    if len(found) != len(axes):
        raise ValueError(f"join_update: {len(found)} arrays and {len(axes)} axes")
    for a, axis in zip(found, axes, strict=True):
        if axis != -1 and not 0 <= axis < a.ndim:
            raise np.exceptions.AxisError(axis, a.ndim)
    kind = np.result_type(*(a.dtype for a in found)) if dtype is None else np.dtype(dtype)
    name = getattr(f_accum, "__name__", "") if isinstance(f_accum, ufuncs.ufunc | np.ufunc) else ""
    accumulate: str | UserFunction = name or UserFunction(f_accum)
    node = build.join_update(
        UserFunction(f_join), [a._node() for a in found], tuple(axes), shape_tuple(shape), kind, accumulate
    )
    return wrap_node(node)


__all__ = [
    "filter",
    "fold",
    "join_update",
    "map",
    "scan",
]
