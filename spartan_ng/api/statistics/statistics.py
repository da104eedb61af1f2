"""Moments, made of folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from spartan_ng.api.base import manipulation, reductions
from spartan_ng.api.core.conversion import as_handle, numbers_here
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.layouts import lying_as_copy, lying_as_folded
from spartan_ng.api.core.operands import as_axes, check_cast, mask_of, stored
from spartan_ng.api.core.overlaps import along_lines
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.statistics.few_values import freedom_of, warned_of_empty
from spartan_ng.callers import warn_user
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NONE: Any = np._NoValue


def _at_once(name: str, a: Any, is_plain: bool, axis: Any, keepdims: Any, **keywords: Any) -> ndarray | None:
    """NumPy's method of a small array of numbers, where no more is asked for; or None."""
    value = numbers_here(a) if is_plain else None
    if value is None:
        return None
    return wrap(getattr(value, name)(axis, keepdims=False if keepdims is _NONE else keepdims, **keywords))


def _now(name: str, a: ndarray, axis: Any, keepdims: Any, where: Any, **keywords: Any) -> Any:
    """NumPy's function of a small array, or of windows that lie over each other, of which the plan makes all
    deviations; or None."""
    value = reductions.promptly(a)
    flags = where if where is True else where._peek()
    if value is None or flags is None:
        return None
    if not reductions.is_prompt(value):
        is_plain = name == "var" and flags is True and keywords["dtype"] is None and keywords["mean"] is _NONE
        axes = reductions.folded_axes(axis, value.ndim)
        if not is_plain or len(axes) != 1:
            return None
        over = along_lines(np.var, value, axes[0], _plain_keepdims(keepdims), ddof=keywords["ddof"])
        return None if over is None else wrap(over)
    more = {k: v for k, v in keywords.items() if v is not None and v is not _NONE}
    if flags is not True:
        more["where"] = flags
    if any(isinstance(v, Handle) for v in more.values()):
        return None
    result = getattr(np, name)(
        value, axis=axis, keepdims=bool(keepdims) if keepdims is not _NONE else False, **more
    )
    return wrap(result)


def _plain_keepdims(keepdims: Any) -> bool:
    return False if keepdims is _NONE else bool(keepdims)


# --- moments ---------------------------------------------------------------------------------------


@numpy_function(np.mean, few=2)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> ndarray:
    """The arithmetic mean; integers are summed as float64, float16 as float32."""
    found = _at_once("mean", a, dtype is out is None and where is True, axis, keepdims)
    if found is not None:
        return found
    a = as_handle(a)
    if _of_objects(a, dtype) or _counts(where):
        return by_numpy(np.mean, a, axis, dtype, out=out, keepdims=_plain_keepdims(keepdims), where=where)  # type: ignore[no-any-return]
    where = _elements_where(a, where, axis)
    now = _now("mean", a, axis, keepdims, where, dtype=dtype)
    if now is not None:
        return stored("mean", now, out, casting="unsafe")
    if where is True:
        build.axes_tuple(axis, a.ndim)  # its error where a sum takes an array without axes as one of one axis
    kind, half = _summed_as(a, dtype)
    total = reductions.reduce("add", a, axis, kind, None, _plain_keepdims(keepdims), _NONE, where)
    count = reductions.count_of(a, axis, where)
    if where is not True:
        count = warned_of_empty(count)
    if isinstance(count, Handle) and not _plain_keepdims(keepdims):
        count = count.reshape(total.shape) if count.ndim else count  # type: ignore[attr-defined]
    result = _divided(total, count)
    return stored("mean", result.astype(np.float16) if half else result, out, casting="unsafe")


def _summed_as(a: ndarray, dtype: Any) -> tuple[np.dtype[Any] | None, bool]:
    """The dtype to sum in, None for the array's own; and whether the result is to be of half precision."""
    if dtype is not None:
        return np.dtype(dtype), False
    half = a.dtype.type is np.float16  # in either byte order
    return np.dtype(np.float32) if half else np.dtype(np.float64) if a.dtype.kind in "biu" else None, half


def _counts(where: Any) -> bool:
    """Whether a `where` is a number that is no truth: NumPy takes it for how often each element counts."""
    return isinstance(where, int | float | complex | np.number) and not isinstance(where, bool)


def _elements_where(a: ndarray, where: Any, axis: Any) -> Any:
    """A mask of elements; as NumPy counts them first, shapes and axes have their errors before dtypes."""
    if where is True:
        return True
    shape = np.shape(where)
    if shape and build.broadcast_shapes("where", shape, a.shape) != a.shape:
        raise ShapeError(f"where: a mask of shape {shape} does not broadcast to elements of shape {a.shape}")
    reductions.folded_axes(axis, a.ndim)
    return mask_of(where)


def _divisor(count: float, kind: np.dtype[Any]) -> Any:
    """A count, as what a sum of a dtype is divided by: short dtypes do not hold it."""
    if kind.kind == "m":
        return count
    return kind.type(count) if kind.kind in "fc" and kind.itemsize > 2 else np.float64(count)


def _divided(total: ndarray, count: Any) -> ndarray:
    """A sum over a count, in the sum's dtype; an empty one warns as NumPy does."""
    if not isinstance(count, Handle):
        if count == 0:
            warn_user("Mean of empty slice", RuntimeWarning)
        count = _divisor(count, total.dtype)
    result = lying_as_copy(ufuncs.divide(total, count), total)
    return result if result.dtype == total.dtype else result.astype(total.dtype)


@numpy_function(np.var, few=2)
def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> ndarray:
    """The variance: the mean of squared distances from the mean."""
    is_plain = dtype is out is None and where is True and mean is correction is _NONE
    found = _at_once("var", a, is_plain, axis, keepdims, ddof=ddof)
    if found is not None:
        return found
    a, axis = as_handle(a), as_axes(axis)
    if _of_objects(a, dtype) or _counts(where):
        found = by_numpy(
            np.var, a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
        return found if out is None else stored("var", as_handle(found), out, casting="unsafe")
    where = _elements_where(a, where, axis)
    ddof = one_of(ddof, correction)
    now = _now("var", a, axis, keepdims, where, dtype=dtype, ddof=ddof, mean=mean)
    if now is not None:
        return stored("var", now, out, casting="unsafe")
    kind, half = _summed_as(a, dtype)
    if where is True and mean is _NONE and _plain_floats(a, kind):
        total = _squared_deviations(a, axis, kind, _plain_keepdims(keepdims))
        result = ufuncs.divide(total, _minus(reductions.count_of(a, axis, True), ddof, total, where))
        return stored("var", result.astype(np.float16) if half else result, out, casting="unsafe")
    count = reductions.count_of(a, axis, where)
    middle = mean
    if middle is _NONE:
        total = reductions.reduce("add", a, axis, kind, None, True, _NONE, where)
        number = count if isinstance(count, Handle) else _divisor(count, total.dtype)
        middle = lying_as_copy(ufuncs.divide(total, number), total)
        if middle.dtype != total.dtype:
            middle = middle.astype(total.dtype)
    masked = a._masked()
    distance = ufuncs.subtract(
        a, middle.reshape(()) if masked is not None and masked.a.ndim == masked.mask.ndim else middle
    )
    keep = _plain_keepdims(keepdims)
    total = reductions.reduce(
        "add",
        squared(distance, a.dtype.kind),
        axis,
        dtype if a.dtype.kind == "c" else kind,
        None,
        keep,
        _NONE,
        where,
    )
    rest = _minus(count, ddof, total, where)
    if isinstance(rest, Handle) and not keep and rest.ndim:
        rest = rest.reshape(total.shape)  # type: ignore[attr-defined]
    result = lying_as_copy(ufuncs.divide(total, rest), total)
    target = np.dtype(np.float16) if half else total.dtype
    return stored("var", result if result.dtype == target else result.astype(target), out, casting="unsafe")


def _of_objects(a: ndarray, dtype: Any) -> bool:
    """Whether elements are objects, or are to be."""
    return bool(a.dtype.hasobject or (dtype is not None and np.dtype(dtype).hasobject))


def squared(distance: ndarray, kind: str) -> Any:
    """Squares of the distances of elements of a kind, which are real also of complex ones."""
    if kind == "c":
        return ufuncs.square(distance.real) + ufuncs.square(distance.imag)
    return ufuncs.square(distance)


def one_of(ddof: float, correction: Any) -> float:
    """The degrees of freedom to leave out, which have two names."""
    if correction is _NONE:
        return ddof
    if ddof != 0:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction  # type: ignore[no-any-return]


def _plain_floats(a: ndarray, kind: Any) -> bool:
    """Whether all elements of a dense array count, as floats."""
    dense = a.size > 0 and a.dtype.kind in "biuf" and a._masked() is None and a._node().format == "dense"
    return dense and (kind or a.dtype) in (np.float32, np.float64)


def _squared_deviations(a: ndarray, axis: Any, kind: Any, keepdims: bool) -> ndarray:
    """The sum of squared distances from the mean, in one pass."""
    axes = build.axes_tuple(axis, a.ndim)
    node = build.cast(a._node(), kind or a.dtype)
    total = build.fold("squared deviations", node, axes) if axes else build.map_("subtract", node, node)
    return lying_as_folded(wrap_node(reductions.keep(total, a.shape, axes) if keepdims else total), a, axis)


def _minus(count: Any, ddof: float, total: ndarray, where: Any) -> Any:
    """Degrees of freedom, not less than zero."""
    if where is not True:
        return freedom_of(count - ddof)
    if isinstance(count, Handle):
        return ufuncs.maximum(count - ddof, 0)  # type: ignore[operator]
    if count - ddof <= 0:
        warn_user("Degrees of freedom <= 0 for slice", RuntimeWarning)
    return _divisor(max(count - ddof, 0), total.dtype)


@numpy_function(np.std, few=2)
def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: Any = False,
    *,
    where: Any = True,
    mean: Any = _NONE,
    correction: Any = _NONE,
) -> ndarray:
    """The standard deviation."""
    is_plain = dtype is out is None and where is True and mean is correction is _NONE
    found = _at_once("std", a, is_plain, axis, keepdims, ddof=ddof)
    if found is not None:
        return found
    a = as_handle(a)
    if _of_objects(a, dtype):  # whose root is their own
        found = by_numpy(
            np.std, a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction
        )
        return found if out is None else stored("std", as_handle(found), out, casting="unsafe")
    squared: Any = var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    result = ufuncs.sqrt(squared)
    if result.dtype != squared.dtype:  # integers that were asked for: NumPy takes roots where they lie
        if np.ndim(squared):
            check_cast("sqrt", result.dtype, squared.dtype, "same_kind")
        result = result.astype(squared.dtype)
    return stored("std", result, out, casting="unsafe")


@numpy_function(np.ptp, few=2)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> ndarray:
    """Greatest minus least."""
    a = as_handle(a)
    high = reductions.max(a, axis, None, keepdims)
    return stored("ptp", ufuncs.subtract(high, reductions.min(a, axis, None, keepdims)), out)


def weights_like(a: ndarray, weights: Any, axis: Any) -> ndarray:
    """Weights in the shape of `a`; they may be given for the lengths of `axis` only."""
    w = as_handle(weights)
    if w.shape == a.shape:
        return w
    if axis is None:
        raise TypeError(
            f"Axis must be specified when shapes of a and weights differ: {a.shape} and {w.shape}"
        )
    axes = normalize_axis_tuple(axis, a.ndim, argname="axis")
    if w.shape != tuple(a.shape[i] for i in axes):
        raise ValueError(
            "Shape of weights must be consistent with shape of a along specified axis: "
            f"{w.shape} and {a.shape}, axis {axis}"
        )
    order = sorted(range(len(axes)), key=lambda i: axes[i])
    w = manipulation.transpose(w, order)
    w = w.reshape(tuple(n if i in axes else 1 for i, n in enumerate(a.shape)))
    return manipulation.broadcast_to(w, a.shape)


@numpy_function(np.average, eager=True)
def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False
) -> Any:
    """The weighted mean."""
    a = as_handle(a)
    keepdims = _plain_keepdims(keepdims)
    if axis is not None:  # no axis of a number is one, as it is for a sum
        axis = normalize_axis_tuple(axis, a.ndim, argname="axis")
    if weights is None:
        result = mean(a, axis, None, None, keepdims)
        total: Any = wrap(np.asarray(result.dtype.type(a.size / result.size)))
    else:
        w = weights_like(a, weights, axis)
        kind = np.result_type(a.dtype, w.dtype, np.float64 if a.dtype.kind in "biu" else a.dtype)
        total = reductions.sum(w, axis, kind, None, keepdims)
        if bool((total == 0).any()):
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        result = reductions.sum(ufuncs.multiply(a, w, dtype=kind), axis, kind, None, keepdims) / total
    if returned:
        return result, manipulation.broadcast_to(total, result.shape).copy()
    return result


__all__ = [
    "average",
    "mean",
    "ptp",
    "std",
    "var",
]
