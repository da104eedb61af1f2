"""Choices, rounding and comparisons of whole arrays: maps of several rows."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation, reductions
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.layouts import lie, lying_as
from spartan_ng.api.core.operands import WEAK, common_dtype, kind_of, operand, small_values, stored
from spartan_ng.api.core.quick import AS_BROADCAST, AS_GIVEN, shortened, shown_by
from spartan_ng.api.core.views import COMPLEX, assigned
from spartan_ng.api.core.wrapping import wrap, wrap_array, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.callers import warn_user
from spartan_ng.errors import alone
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_NONE: Any = np._NoValue


@numpy_function(np.where, few=3)
def where(condition: Any, x: Any = _NONE, y: Any = _NONE, /) -> Any:
    """Elements of `x` where the condition is true, of `y` elsewhere; or its non-zero indices."""
    if (x is _NONE) != (y is _NONE):
        raise ValueError("either both or neither of x and y should be given")
    if x is _NONE:
        return as_handle(condition).nonzero()
    known = small_values((condition, x, y))
    if known is not None:
        try:
            return wrap(np.asarray(np.where(*known)))
        except ValueError:
            with alone():
                build.broadcast_shapes("where", *(np.shape(k) for k in known))
            raise
    flags = as_handle(condition)
    options = [operand(o) for o in (x, y)]
    kinds = [kind_of(o) for o in options]
    kind = build.elementwise_dtypes("where", np.dtype(bool), *kinds)[-1]
    nodes = [
        build.cast(o._node(), kind) if isinstance(o, Handle) else build.constant(np.asarray(o).astype(kind))
        for o in options
    ]
    mask = reductions.truth(flags)
    return wrap_array(build.map_("where", mask._node(), *nodes, dtype=kind))


@numpy_function(np.select, front=shortened(np.select, 3, AS_BROADCAST, frozenset({"default"})))
def select(condlist: Any, choicelist: Any, default: Any = 0) -> ndarray:
    """Elements of the first choice whose condition is true."""
    condlist, choicelist = list(condlist), list(choicelist)
    if len(condlist) != len(choicelist):
        raise ValueError("list of cases must be same length as list of conditions")
    if not condlist:
        raise ValueError("select with an empty condition list is not possible")
    kind = common_dtype(*choicelist, default)
    for choice in choicelist:
        if type(choice) in WEAK and not np.can_cast(np.asarray(choice).dtype, kind, "same_kind"):
            raise TypeError(f"Cannot cast {choice!r} to {kind!r} according to the rule 'same_kind'")
    result: Any = as_handle(default).astype(kind)
    for i, condition in enumerate(condlist):
        if as_handle(condition).dtype != bool:
            raise TypeError(f"invalid entry {i} in condlist: should be boolean ndarray")
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = where(condition, as_handle(choice).astype(kind, copy=False), result)
    return lie(result, None) if result.ndim > 1 else result


@numpy_function(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> ndarray:
    """Functions of the parts of an array where their conditions hold."""
    x = as_handle(x)
    given = condlist
    if isscalar(condlist) or (x.ndim and not np.ndim(condlist[0])):  # one condition, not a list of them
        given = [condlist]
    conditions = [as_handle(c, bool) for c in given]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    if len(funclist) == len(conditions) + 1:
        rest = conditions[0]
        for c in conditions[1:]:
            rest = rest | c
        conditions.append(~rest)
    out = constants.zeros_like(x)
    for condition, function in zip(conditions, funclist, strict=True):
        if not callable(function):
            out[condition] = function
        elif (chosen := x[condition]).size:  # NumPy calls no function for nothing
            out[condition] = function(chosen, *args, **keywords)
    return out


@numpy_function(np.clip, few=3)
def clip(
    a: Any,
    a_min: Any = _NONE,
    a_max: Any = _NONE,
    out: Any = None,
    *,
    min: Any = _NONE,
    max: Any = _NONE,
    **keywords: Any,
) -> ndarray:
    """Elements limited to a range."""
    if a_min is _NONE and a_max is _NONE:
        low, high = (None if v is _NONE else v for v in (min, max))
    elif a_min is _NONE or a_max is _NONE:
        raise TypeError(
            f"clip() missing 1 required positional argument: '{'a_min' if a_min is _NONE else 'a_max'}'"
        )
    elif min is not _NONE or max is not _NONE:
        raise ValueError(
            "Passing `min` or `max` keyword argument when `a_min` and `a_max` are provided is forbidden."
        )
    else:
        low, high = a_min, a_max
    if isinstance(low, int) or isinstance(
        high, int
    ):  # of Python: beyond the dtype's range they limit nothing
        kind = as_handle(a).dtype
        if kind.kind in "iu":
            low = None if type(low) is int and low <= np.iinfo(kind).min else low
            high = None if type(high) is int and high >= np.iinfo(kind).max else high
    if low is None and high is None:
        return ufuncs.positive(a, out=out, **keywords)  # type: ignore[no-any-return]
    if low is None:
        return ufuncs.minimum(a, high, out=out, **keywords)  # type: ignore[no-any-return]
    if high is None:
        return ufuncs.maximum(a, low, out=out, **keywords)  # type: ignore[no-any-return]
    if out is None and not keywords:
        return ufuncs.clip3(a, low, high)  # type: ignore[no-any-return]
    return ufuncs.clip3(a, low, high, out=out, **keywords)  # type: ignore[no-any-return]


@numpy_function(np.round, np.around, few=2)
def round(a: Any, decimals: int = 0, out: Any = None) -> ndarray:
    """Elements rounded to decimals, halves to even, computed as NumPy does."""
    a, decimals = as_handle(a), operator.index(decimals)
    value = small_values((a,))
    kind = a.dtype.kind
    if value is not None:
        result = wrap(np.round(value[0], decimals))
    elif kind == "b":
        np.round(np.zeros((), bool), decimals)  # NumPy's error, where there are decimals
        result = wrap_node(build.cast(a._node(), np.dtype(np.float16)))
    elif kind == "c":
        parts = [round(p, decimals) for p in (a.real, a.imag)]
        result = wrap_node(build.map_(COMPLEX, *(as_handle(p)._node() for p in parts), dtype=a.dtype))
    elif kind in "iu":
        result = copied(a) if decimals >= 0 else _rounded(a, decimals).astype(a.dtype)
        result = result if result.ndim else result[()]
    else:
        result = ufuncs.rint(a) if decimals == 0 else _rounded(a, decimals).astype(a.dtype, copy=False)
    return stored("round", result, out)


def _rounded(a: ndarray, decimals: int) -> Any:
    scale = 10.0 ** abs(decimals)
    if decimals > 0:
        return ufuncs.rint(a * scale) / scale
    return ufuncs.rint(a / scale) * scale


@numpy_function(np.fix, few=1)
def fix(x: Any, out: Any = None) -> ndarray:
    """Elements rounded towards zero."""
    return ufuncs.trunc(x, out=out)  # type: ignore[no-any-return]


@numpy_function(np.isclose, few=4)
def isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> ndarray:
    """Whether elements are equal within a tolerance."""
    known = small_values((a, b, rtol, atol))
    if known is not None:
        return wrap(np.isclose(*known, equal_nan))  # type: ignore[call-overload]
    x, y = operand(a), operand(b)
    if isinstance(b, int):  # which unsigned integers may not hold
        y = float(b)
    elif isinstance(y, np.generic) and y.dtype.kind not in "fcm":  # dates and floats have no common dtype
        y = y.astype(np.result_type(y.dtype, 1.0))
    elif isinstance(y, Handle) and y.dtype.kind not in "fcm":
        y = as_handle(y, np.result_type(y.dtype, 1.0))
    _check_tolerances(forced(atol), forced(rtol))
    with np.errstate(invalid="ignore"):
        far = ufuncs.absolute(ufuncs.subtract(x, y))
        size = ufuncs.absolute(y) if isinstance(y, Handle | np.generic) else abs(y)  # Python's stay weak
        near = (far <= atol + rtol * size) & ufuncs.isfinite(y) | ufuncs.equal(x, y)
        if equal_nan:
            near = near | (ufuncs.isnan(x) & ufuncs.isnan(y))
        return near  # type: ignore[no-any-return]


def _check_tolerances(atol: Any, rtol: Any) -> None:
    """NumPy's warning, or error, for tolerances that are not finite."""
    if np.all(np.isfinite(atol)) and np.all(np.isfinite(rtol)):
        return
    said = f"One of rtol or atol is not valid, atol: {atol}, rtol: {rtol}"
    asked = np.geterr()["invalid"]
    if asked == "raise":
        raise FloatingPointError(said)
    if asked == "warn":
        warn_user(said, RuntimeWarning)
    elif asked == "print":
        print(said)


@numpy_function(np.allclose, few=4)
def allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal within a tolerance."""
    return bool(reductions.all(isclose(a, b, rtol, atol, equal_nan)))


@numpy_function(np.array_equal, few=2)
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Whether shapes and elements are equal."""
    x, y = as_handle(a1), as_handle(a2)
    if x.shape != y.shape:
        return False
    if equal_nan and not {x.dtype.kind, y.dtype.kind} <= set("biufc"):
        return bool(by_numpy(np.array_equal, x, y, equal_nan=True))
    same = x == y
    if equal_nan and x.dtype.kind in "fc" and y.dtype.kind in "fc":
        same = same | (ufuncs.isnan(x) & ufuncs.isnan(y))
    return bool(reductions.all(same))


@numpy_function(np.array_equiv, few=2)
def array_equiv(a1: Any, a2: Any) -> bool:
    """Whether elements are equal after broadcasting."""
    x, y = as_handle(a1), as_handle(a2)
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(reductions.all(x == y))


@numpy_function(np.real, front=shown_by(np.real, 1))
def real(val: Any) -> ndarray:
    """The real part; of a number, a number."""
    if isinstance(val, int | float | complex):
        return val.real  # type: ignore[return-value]
    return as_handle(val).real


@numpy_function(np.imag, front=shown_by(np.imag, 1))
def imag(val: Any) -> ndarray:
    """The imaginary part; of a number, a number."""
    if isinstance(val, int | float | complex):
        return val.imag  # type: ignore[return-value]
    return as_handle(val).imag


@numpy_function(np.angle, few=2)
def angle(z: Any, deg: bool = False) -> ndarray:
    """The argument of complex elements."""
    z = as_handle(z)
    result = ufuncs.arctan2(z.imag if z.dtype.kind == "c" else 0, z.real)
    return result * (180 / np.pi) if deg else result  # type: ignore[no-any-return]


@numpy_function(np.isreal, few=1)
def isreal(x: Any) -> ndarray:
    """Whether elements have no imaginary part."""
    return as_handle(x).imag == 0


@numpy_function(np.iscomplex, few=1)
def iscomplex(x: Any) -> ndarray:
    """Whether elements have an imaginary part."""
    x = as_handle(x)
    found = x.imag != 0 if iscomplexobj(x) else constants.zeros(x.shape, bool)
    return found if x.ndim else found[()]


@numpy_function(np.isrealobj, front=shortened(np.isrealobj, 1, AS_GIVEN))
def isrealobj(x: Any) -> bool:
    """Whether the dtype is real."""
    return not iscomplexobj(x)


@numpy_function(np.iscomplexobj, front=shortened(np.iscomplexobj, 1, AS_GIVEN))
def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    kind = getattr(getattr(x, "dtype", None), "type", None)
    return issubclass(as_handle(x).dtype.type if kind is None else kind, np.complexfloating)


@numpy_function(np.real_if_close)
def real_if_close(a: Any, tol: float = 100) -> ndarray:
    """The real part, if all imaginary parts are within `tol` (machine epsilons, if above 1) of zero."""
    a = creation.asanyarray(a)
    if a.dtype.kind != "c":
        return a  # type: ignore[no-any-return]
    near = tol * np.finfo(a.dtype).eps if tol > 1 else tol
    return a.real if bool(reductions.all(ufuncs.absolute(a.imag) < near)) else a  # type: ignore[no-any-return]


@numpy_function(np.isposinf, few=1)
def isposinf(x: Any, out: Any = None) -> ndarray:
    """Whether elements are positive infinity."""
    return ufuncs.logical_and(ufuncs.isinf(x), ~ufuncs.signbit(x), out=out)  # type: ignore[no-any-return]


@numpy_function(np.isneginf, few=1)
def isneginf(x: Any, out: Any = None) -> ndarray:
    """Whether elements are negative infinity."""
    return ufuncs.logical_and(ufuncs.isinf(x), ufuncs.signbit(x), out=out)  # type: ignore[no-any-return]


def _instead(number: Any, a: Any) -> Any:
    """What elements of `a` become, cast and broadcast as NumPy copies it there."""
    if isinstance(number, Handle):
        np.copyto(np.zeros((), a.dtype), np.zeros((), number.dtype))  # the error of its cast
        return wrap_node(build.cast(assigned(number, a.shape), a.dtype))
    one = np.empty(np.shape(number), a.dtype)
    np.copyto(one, number)
    return wrap_node(assigned(as_handle(one), a.shape)) if one.ndim else one[()]


@numpy_function(np.nan_to_num, few=1)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> ndarray:
    """NaN and infinities replaced by numbers."""
    a = as_handle(x)
    if not copy and (a._cell.frozen or not isinstance(x, Handle | np.ndarray)):
        raise ValueError(f"nan_to_num: {x!r} is no array whose elements could be replaced; use copy=True")
    if not a.ndim and not a._cell.frozen and copy and a.dtype.kind in "fc":
        return nan_to_num(a[()], copy, nan, posinf, neginf)
    if a.dtype.kind == "c":
        parts = [as_handle(nan_to_num(p, True, nan, posinf, neginf))._node() for p in (a.real, a.imag)]
        result = wrap_node(build.map_(COMPLEX, *parts, dtype=a.dtype))
        return result if copy else _put(a, result)
    if a.dtype.kind != "f":
        return (a.copy("K") if copy else a) if a.ndim else a[()]
    known = small_values((a, nan, posinf, neginf)) if copy and a.ndim else None
    if known is not None:
        return wrap(np.nan_to_num(known[0], True, *known[1:]))
    info = np.finfo(a.dtype)
    high = info.max if posinf is None else posinf
    low = info.min if neginf is None else neginf
    result = where(ufuncs.isnan(a), _instead(nan, a), a)
    result = where(isposinf(a), _instead(high, a), result)
    result = where(isneginf(a), _instead(low, a), result)
    if not copy:
        return _put(a, result)
    result = result.astype(a.dtype, copy=False)
    return result if a.ndim else result[()]  # type: ignore[no-any-return]


def _put(a: ndarray, result: ndarray) -> ndarray:
    """The array with new elements; without axes, its element."""
    a[...] = result
    return a if a.ndim else a[()]


@numpy_function(np.sinc, few=1)
def sinc(x: Any) -> ndarray:
    """sin(pi x) / (pi x)."""
    x = np.pi * as_handle(x)
    least = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 1.0e-20
    y = where(x, x, least)
    return ufuncs.sin(y) / y  # type: ignore[no-any-return]


@numpy_function(np.i0)
def i0(x: Any) -> ndarray:
    """The modified Bessel function of the first kind, order 0."""
    x = as_handle(x)
    known = small_values((x,))
    if known is not None:
        return wrap(np.i0(known[0]))
    kind = np.i0(np.zeros(1, x.dtype)).dtype
    x = x if x.dtype.kind == "f" else x.astype(kind)
    result = wrap_node(build.map_(UserFunction(np.i0, origin="i0"), x._node(), dtype=kind))
    return lying_as(result, x) if x.ndim else copied(result)


@numpy_function(np.isscalar, front=shortened(np.isscalar, 1, AS_GIVEN))
def isscalar(element: Any) -> bool:
    """Whether an object is a scalar (NumPy's or Python's)."""
    return bool(np.isscalar(element)) or (isinstance(element, Handle) and element._cell.frozen)


around = round


@numpy_function(np.asarray_chkfinite)
def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> ndarray:
    """As `asarray`; ValueError if an element is infinite or NaN."""
    h = creation.asarray(a, dtype, order)
    if h.dtype.kind in "fc" and not bool(ufuncs.isfinite(h).all()):
        raise ValueError("array must not contain infs or NaNs")
    return h


__all__ = [
    "allclose",
    "angle",
    "around",
    "array_equal",
    "array_equiv",
    "asarray_chkfinite",
    "clip",
    "fix",
    "i0",
    "imag",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
    "nan_to_num",
    "piecewise",
    "real",
    "real_if_close",
    "round",
    "select",
    "sinc",
    "where",
]
