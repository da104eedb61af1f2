"""Statistics of what is not NaN: folds over a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, reductions
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import Handle, settle
from spartan_ng.api.core.layouts import lying_as_copy
from spartan_ng.api.core.operands import mask_of, stored
from spartan_ng.api.core.outputs import folds_in
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.statistics.few_values import mean_of, middle_of, variance_of, warned_of_nan
from spartan_ng.api.statistics.statistics import mean, one_of, squared, var
from spartan_ng.errors import ShapeError
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NONE: Any = np._NoValue


def _extreme(name: str, a: ndarray, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> ndarray:
    """`fmin` or `fmax`, with NumPy's warning."""
    if not has_holes(a):
        plain = {"fmin": "minimum", "fmax": "maximum"}[name]
        return reductions.reduce(plain, a, axis, None, out, keepdims, initial, where)
    if isinstance(out, Handle | np.ndarray) and folds_in(name, a.dtype, out.dtype) is None:
        given = {} if initial is _NONE else {"initial": initial}
        given |= {} if where is True else {"where": where}
        numpys: Any = {"fmin": np.nanmin, "fmax": np.nanmax}[name]
        return by_numpy(numpys, a, axis, out=out, keepdims=keepdims, **given)  # type: ignore[no-any-return]
    result = as_handle(reductions.reduce(name, a, axis, None, None, keepdims, initial, where))
    result = warned_of_nan(result) if result._peek() is None else result
    if out is not None and out.shape != result.shape:
        raise ShapeError(
            f"output parameter for reduction operation {name} has shape {out.shape}, "
            f"but the result {result.shape}"
        )
    return stored(f"nan{name[1:]}", result, out, casting="unsafe")


# --- folds -------------------------------------------------------------------------------------------


def has_nan(a: ndarray) -> bool:
    """Whether the dtype has a NaN."""
    return a.dtype.kind in "fc"


def has_holes(a: ndarray) -> bool:
    """Whether the dtype has a NaN or a NaT: extremes and order skip both, sums NaN only."""
    return a.dtype.kind in "fcmM"


def _filled(given: Any, fill: Any) -> ndarray:
    a = as_handle(given)
    if not has_nan(a):
        return a
    return lying_as_copy(logic.where(ufuncs.isnan(a), a.dtype.type(fill), a), a)


@numpy_function(np.nansum, eager=True)
def nansum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The sum of what is not NaN."""
    return reductions.reduce("add", _filled(a, 0), axis, dtype, out, keepdims, initial, where)


@numpy_function(np.nanprod, eager=True)
def nanprod(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = _NONE,
    where: Any = True,
) -> ndarray:
    """The product of what is not NaN."""
    return reductions.reduce("multiply", _filled(a, 1), axis, dtype, out, keepdims, initial, where)


@numpy_function(np.nancumsum, few=2)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative sums, NaN as 0."""
    return cumulative.cumsum(_filled(a, 0), axis, dtype, out)


@numpy_function(np.nancumprod, few=2)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> ndarray:
    """Cumulative products, NaN as 1."""
    return cumulative.cumprod(_filled(a, 1), axis, dtype, out)


@numpy_function(np.nanmin, eager=True)
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NONE, where: Any = True
) -> ndarray:
    """The least of what is not NaN."""
    return _extreme("fmin", as_handle(a), axis, out, keepdims, initial, where)


@numpy_function(np.nanmax, eager=True)
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _NONE, where: Any = True
) -> ndarray:
    """The greatest of what is not NaN."""
    return _extreme("fmax", as_handle(a), axis, out, keepdims, initial, where)


def _check_inexact(dtype: Any, out: Any) -> None:
    """A mean of floats needs a dtype of floats."""
    if dtype is not None and not np.issubdtype(dtype, np.inexact):
        raise TypeError(f"If a is inexact, then dtype must be inexact, not {dtype}")
    if out is not None and not np.issubdtype(out.dtype, np.inexact):
        raise TypeError(f"If a is inexact, then out must be inexact, not {out.dtype}")


def _there(a: ndarray, where: Any, axis: Any) -> ndarray:
    """What is no NaN and chosen; NumPy looks at axes behind the mask's dtype, and before its shape."""
    mask = mask_of(where)
    reductions.folded_axes(axis, a.ndim)
    return ~ufuncs.isnan(a) & mask  # type: ignore[no-any-return]


@numpy_function(np.nanmean, eager=True)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> ndarray:
    """The mean of what is not NaN."""
    a = as_handle(a)
    if not has_nan(a):
        return mean(a, axis, dtype, out, keepdims, where=where)
    _check_inexact(dtype, out)
    there = _there(a, where, axis)
    total = reductions.reduce("add", _filled(a, 0), axis, dtype, None, keepdims, _NONE, there)
    count = reductions.sum(there, axis, np.intp, None, keepdims)
    return stored("nanmean", mean_of(total, count), out, casting="unsafe")


@numpy_function(np.nanvar, eager=True)
def nanvar(
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
    """The variance of what is not NaN."""
    a = as_handle(a)
    ddof = one_of(ddof, correction)
    if not has_nan(a):
        return var(a, axis, dtype, out, ddof, keepdims, where=where)
    _check_inexact(dtype, out)
    if a.dtype.type is np.float16 and dtype is None:  # as `var`, which counts in single precision
        single = nanvar(a.astype(np.float32), axis, None, None, ddof, keepdims, where=where)
        return stored("nanvar", single.astype(np.float16), out, casting="unsafe")
    there = _there(a, where, axis)
    count = reductions.sum(there, axis, np.intp, None, True)
    filled = _filled(a, 0)
    total = reductions.reduce("add", filled, axis, dtype, None, True, _NONE, there)
    middle = middle_of(total, count)
    distance = lying_as_copy(logic.where(there, filled - middle, 0), filled)
    total = reductions.sum(squared(distance, a.dtype.kind), axis, None, None, keepdims)
    free = (count - ddof).reshape(total.shape)
    found = variance_of(total, free, middle.reshape(total.shape))
    if dtype is not None and out is None:
        found = found.astype(dtype)
    return stored("nanvar", found, out, casting="unsafe")


@numpy_function(np.nanstd, eager=True)
def nanstd(
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
    """The standard deviation of what is not NaN."""
    if has_nan(as_handle(a)):
        _check_inexact(dtype, out)
    return stored(
        "nanstd",
        ufuncs.sqrt(nanvar(a, axis, dtype, None, one_of(ddof, correction), keepdims, where=where)),
        out,
        casting="unsafe",
    )


def _nanarg(name: str, a: Any, axis: Any, out: Any, keepdims: Any) -> ndarray:
    a = as_handle(a)
    find: Callable[..., ndarray] = getattr(reductions, name)
    if not has_nan(a) or not a.size:
        return find(a, axis, out, keepdims=keepdims)
    bad = reductions.any(reductions.all(ufuncs.isnan(a), axis))
    filled = _filled(a, np.inf if name == "argmin" else -np.inf)
    found = find(filled, axis, keepdims=keepdims)
    if found.nbytes <= copied_bytes():
        settle(bad, found)  # both in one pass over the elements
    if bool(bad):
        raise ValueError("All-NaN slice encountered")
    return stored(name, found, out)


@numpy_function(np.nanargmin, few=2)
def nanargmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the least of what is not NaN."""
    return _nanarg("argmin", a, axis, out, keepdims)


@numpy_function(np.nanargmax, few=2)
def nanargmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> ndarray:
    """The index of the greatest of what is not NaN."""
    return _nanarg("argmax", a, axis, out, keepdims)


__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]
