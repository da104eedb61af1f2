"""Array creation: constants are broadcasts of one element, ranges and grids are maps of the index."""

from __future__ import annotations

import operator
import sys
from datetime import date, timedelta
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell, Masked
from spartan_ng.api.core.conversion import MOST_AXES, as_handle, in_order, is_array_like, numbers_here
from spartan_ng.api.core.dispatch import by_numpy, fresh, numpy_function
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBER_KINDS, NUMBERS, PYTHONS, as_dtype, is_subclass, same_bytes, stays
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.quick import AS_COPY, AS_GIVEN, AS_ITSELF, AS_RANGE, are_of, shortened, shown_by
from spartan_ng.api.core.wrapping import converted_node, make, wrap, wrap_array, wrap_masked, wrap_node
from spartan_ng.arrays.copying import private_copy
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.callers import warn_user
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_REAL = frozenset({int, float})
_TEXTS = frozenset({str, bytes})
_LISTS: frozenset[type] = frozenset({list})
_WORDS = "USVOT"
"""The kinds of dtypes whose elements alone say what time they are."""


_SINGLE: frozenset[type] = NUMBERS | _TEXTS | {dict, set, frozenset, type(None)}
"""Classes of what is one element in a list, whatever the dtype."""


@numpy_function(np.array, front=shortened(np.array, 2, AS_COPY, frozenset({"dtype"})))
def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    ndmax: int = MOST_AXES,
    like: Any = None,
) -> ndarray:
    """An array of its own from anything array-like (scipy.sparse matrices become CSR arrays).

    `copy=False` takes the memory as it is, see `asarray`.
    """
    if copy is not True:
        copy = _copy_asked(copy)
    ndmin = operator.index(ndmin)
    if ndmin > MOST_AXES:
        raise ValueError(f"ndmin bigger than allowable number of dimensions ({MOST_AXES})")
    if copy is False:
        h = _shared(object, dtype, order)
        return h.reshape((1,) * (ndmin - h.ndim) + h.shape) if h.ndim < ndmin else h
    if copy is not None and is_array_like(object):
        object, copy = _asked(object, copy), None
    kind = object.__class__
    plainly = copy and dtype is None and order == "K" and not ndmin and ndmax == MOST_AXES
    if plainly and kind is np.ndarray and door.is_small(object.nbytes):
        return wrap(object.copy("K"))
    if ndmax != MOST_AXES:
        return by_numpy(np.array, object, dtype, copy=copy, order=order, ndmin=ndmin, ndmax=ndmax)  # type: ignore[no-any-return]
    if (kind is list or kind is tuple) and object and ndmin <= 1:
        if are_of(object, _SINGLE):
            return wrap(np.array(object, dtype, order=order))  # type: ignore[call-overload]
        if kind is list and are_of(object, _LISTS) and all(map(are_of, object, repeat(PYTHONS))):
            return wrap(np.array(object, dtype, order=order))  # type: ignore[call-overload]
        rows: list[Any] = [numbers_here(i) for i in object] if door.is_short(object) else [None]
        alike = all(r is not None and r.shape == rows[0].shape for r in rows)
        if alike and door.is_small(len(rows) * rows[0].nbytes):
            return wrap(np.array(rows, dtype, order=order))  # type: ignore[call-overload]
    if type(object) is Late.ndarray and dtype is None and order == "K" and not ndmin:
        value = numbers_here(object) if copy else None
        if value is not None:
            return wrap(value.copy("K"))
    if isinstance(object, Handle) and not is_sparse(object):
        value = object._peek() if dtype is not None else None
        if value is not None and (stays(value.dtype) or door.is_small(value.nbytes)):
            # lengths of text are NumPy's to find
            if not copy and same_bytes(value.dtype, as_dtype(dtype)):
                return object  # type: ignore[return-value]
            return wrap(np.array(value, dtype, order=order, ndmin=ndmin))  # type: ignore[call-overload]
        h = as_handle(object, dtype)
        if h._cell.frozen or (copy and h is object):
            h = copied(h, order)
    else:
        h = as_handle(object, dtype)
        if copy and isinstance(object, np.ndarray) and h._cell.borrowed:
            value = h._cell.value
            h = make(Cell(private_copy(value) if np.shares_memory(value, object) else value))
        elif h._cell.frozen or (copy and h._cell.shared):
            h = copied(h)
    if h.ndim < ndmin:
        h = h.reshape((1,) * (ndmin - h.ndim) + h.shape)
    return in_order(h, order)


@numpy_function(np.asarray, front=shortened(np.asarray, 2, AS_ITSELF))
def asarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> ndarray:
    """An array from anything array-like.

    A NumPy array's memory is read, not copied, by calls whose results are then computed at once. The array
    gets memory of its own when it is written to, when something larger is built on it, and when it has been
    read so often that a copy would have cost as much: what is written to the NumPy array afterwards is not
    seen any more. What was made of it before never changes.
    With `copy=False` it is never copied to be read: its owner must leave it as it is until what is built on
    it has been computed. A write to the array still goes to a copy.

    Raises
    ------
    ValueError : `copy=False` where the elements need memory of their own: another dtype or order, a list
    """
    if copy is not None:
        copy = _copy_asked(copy)
    if copy:
        return array(a, dtype, order=order or "K")
    if copy is False:
        return _shared(a, dtype, order)
    if isinstance(a, np.ndarray) and is_subclass(a):
        return fresh(np.asarray(a, dtype, order), (a,))  # type: ignore[no-any-return]
    h = as_handle(a, dtype)
    return copied(h) if h._cell.frozen else in_order(h, order)


def _asked(a: Any, copy: bool) -> Any:
    """What an object's `__array__` gives, a copy or none; `a` itself where it knows no copies."""
    try:
        made = a.__array__(copy=copy)
        if not isinstance(made, Handle | np.ndarray | np.generic):
            raise ValueError("object __array__ method not producing an array")
        return made
    except TypeError as error:
        if "copy" not in str(error):
            raise
    warn_user(
        "__array__ implementation doesn't accept a copy keyword, so passing copy=False failed. "
        "__array__ must implement 'dtype' and 'copy' keyword arguments.",
        DeprecationWarning,
    )
    return a.__array__() if not copy else array(as_handle(a))


_COPY_MODES = {np._CopyMode.ALWAYS: True, np._CopyMode.NEVER: False, np._CopyMode.IF_NEEDED: None}


def _copy_asked(copy: Any) -> bool | None:
    """A `copy=` argument: always, never, or only if one is needed."""
    if isinstance(copy, np._CopyMode):
        return _COPY_MODES[copy]
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    return None if copy is None else bool(copy)


def _shared(a: Any, dtype: Any, order: Any) -> ndarray:
    """An array that reads the memory of `a` and never copies it, or ValueError."""
    if isinstance(a, Handle):
        same = dtype is None or same_bytes(a.dtype, as_dtype(dtype))
        h = a if same and not a._cell.frozen else None
        if h is not None and in_order(h, order) is h:  # type: ignore[arg-type]
            return h
        raise ValueError("Unable to avoid copy while creating an array as requested")
    if is_sparse(a):
        raise ValueError("Unable to avoid copy while creating an array as requested")
    if isinstance(a, np.ndarray) and is_subclass(a):
        return as_handle(a, dtype)
    if is_array_like(a):
        return _shared(_asked(a, False), dtype, order)
    value = np.asarray(a, dtype, order, copy=False).view()
    value.flags.writeable = False  # a write goes to a copy
    return make(Cell(value))


@numpy_function(np.asanyarray, front=shortened(np.asanyarray, 2, AS_ITSELF))
def asanyarray(
    a: Any,
    dtype: Any = None,
    order: Any = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    like: Any = None,
) -> ndarray:
    """As `asarray`, but an array of a subclass of NumPy's passes through."""
    if isinstance(a, np.ndarray) and is_subclass(a):
        return np.asanyarray(a, dtype, order, copy=copy)  # type: ignore[return-value]
    return asarray(a, dtype, order, copy=copy)


@numpy_function(np.ascontiguousarray, front=shown_by(np.ascontiguousarray, 1))
def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """An array of at least one axis, in C order."""
    h = asarray(a, dtype, "C")
    return h.reshape(1) if h.ndim == 0 else h


@numpy_function(np.asfortranarray, front=shown_by(np.asfortranarray, 1))
def asfortranarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """As `asarray`, of at least one axis, in Fortran's order."""
    h = asarray(a, dtype, "F")
    return h.reshape(1) if h.ndim == 0 else h


@numpy_function(np.copy, front=shortened(np.copy, 1))
def copy(a: Any, order: str = "K", subok: bool = False) -> ndarray:
    """The same elements in an array of their own."""
    return array(a, copy=True, order=order, subok=subok)


@numpy_function(np.astype, front=shortened(np.astype, 2, AS_GIVEN))
def astype(
    x: Any, dtype: Any, /, *, casting: str = "unsafe", copy: Any = True, device: Any = None
) -> ndarray:
    """The elements as another dtype."""
    if not isinstance(x, Handle | np.ndarray | np.generic):
        kind = AttributeError if np.isscalar(x) else TypeError  # as NumPy, which asks Python's numbers
        raise kind(f"astype: Input should be a NumPy array or one of its elements, not a {type(x).__name__}")
    if isinstance(copy, np._CopyMode):
        raise ValueError("_CopyMode enum is not allowed for astype function. Use true/false instead.")
    x = as_handle(x)
    if isinstance(dtype, type) and issubclass(dtype, np.dtype):  # only the values tell which of them
        return wrap(x._force().astype(dtype, casting=casting))
    dtype = np.dtype(dtype)
    if casting == "same_value":  # only the values tell
        return wrap(x._force().astype(dtype, casting=casting))
    if casting != "unsafe" and not np.can_cast(x.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to {dtype!r} according to the rule {casting!r}"
        )
    if _is_open(dtype):  # as long, or as fine, as the other dtype asks for; of objects and words values tell
        told = x.dtype.kind in (_WORDS if dtype.kind in "mM" else "OT")
        dtype = dtype if told else np.empty(0, x.dtype).astype(dtype).dtype
    if stays(dtype) and not stays(x.dtype):
        return wrap(x._force().astype(dtype))
    if same_bytes(x.dtype, dtype):
        return x.copy("K") if copy and not x._cell.frozen else x  # type: ignore[no-any-return]
    value = x._peek()
    if value is not None and door.is_small(value.nbytes):
        return wrap(value.astype(dtype))
    large = max(x.nbytes, x.size * dtype.itemsize) > copied_bytes()
    at_once = in_process() and not (large or _is_sure(x.dtype, dtype))  # whose errors come with the call
    if _is_open(dtype) or stays(x.dtype) or at_once:
        return wrap(x._force().astype(dtype))
    masked = x._masked()
    if masked is not None:
        return wrap_masked(Masked(converted_node(masked.a, dtype), masked.mask), True)
    return (wrap_node if x._cell.frozen else wrap_array)(converted_node(x._node(), dtype))


def _is_open(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype lets what is converted say how long its texts, or how fine its times are."""
    if dtype.kind in "mM":
        return np.datetime_data(dtype)[0] == "generic"
    return dtype.kind in "USV" and not dtype.itemsize


def _is_sure(one: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether any element of one dtype is one of the other, without an error."""
    kinds = {one.kind, other.kind}
    return kinds <= {*NUMBER_KINDS} or kinds <= {*"biufmM"}


# --- constants -------------------------------------------------------------------------------------


# --- ranges ----------------------------------------------------------------------------------------

_WHOLE = (str, list, tuple, date, timedelta, np.datetime64, np.timedelta64, complex, np.complexfloating)
"""What NumPy finds a range of, or its error for."""


@numpy_function(np.arange, front=shortened(np.arange, 3, AS_RANGE, frozenset()))
def arange(
    start: Any = None,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    like: Any = None,
    **keywords: Any,
) -> ndarray:
    """Evenly spaced numbers in a half-open interval, element i being `start + i * delta` as in NumPy."""
    if dtype is None and not keywords and type(start) in _REAL and type(step) in _REAL and step:
        stop_at: Any = start if stop is None else stop
        first: Any = 0 if stop is None else start
        if type(stop_at) in _REAL and door.is_counted(first, stop_at, step):
            return wrap(np.arange(first, stop_at, step))
    if "start" in keywords and stop is None:
        raise TypeError("arange() requires stop to be specified.")
    start = keywords.pop("start", start)
    if keywords:
        raise TypeError(f"arange() got an unexpected keyword argument {next(iter(keywords))!r}")
    if stop is None:
        start, stop = None, start
    given = {"start": start, "stop": stop, "step": step}
    numbers = {k: v._force()[()] if isinstance(v, Handle) else v for k, v in given.items() if v is not None}
    start, stop, step = numbers.get("start", 0), numbers.get("stop"), numbers.get("step", 1)
    if stop is None:
        raise TypeError("arange() requires stop to be specified.")
    kind = None if dtype is None else np.dtype(dtype).kind
    if kind in ("m", "M") or any(isinstance(n, _WHOLE) for n in (start, stop, step)):
        ends = (start, stop) if "start" in numbers else (stop,)  # dates have no first one
        return wrap(np.arange(*ends, step=step, dtype=dtype))  # type: ignore[call-overload]
    few: Any = np.arange(type(start)(0), type(stop)(0), type(step)(1), dtype=dtype)
    if not step:
        raise ZeroDivisionError("division by zero")
    steps = (stop - start) / step
    if not np.isfinite(steps):
        raise ValueError(f"arange: cannot compute length: maximum allowed size exceeded ({steps} elements)")
    length = int(max(0, np.ceil(steps)))
    if not steps and stop != start:  # the steps are too large to be told from infinite ones
        length = int(not np.signbit(steps))
    if length > sys.maxsize:
        raise ValueError(f"Maximum allowed size exceeded: {length} elements")
    small = door.is_open() and door.is_small(length * few.dtype.itemsize)
    if few.dtype.kind not in "iuf" or small:
        return wrap(np.arange(start, stop, step, dtype=dtype))
    if few.dtype.kind == "f" and few.dtype.itemsize not in (4, 8):
        return wrap(np.arange(start, stop, step, dtype=dtype))
    first = few.dtype.type(start)
    delta = few.dtype.type(start + step) - first if length > 1 else few.dtype.type(0)
    node = build.cast(build.iota(length), few.dtype)
    if delta != 1:
        node = build.map_("multiply", node, build.constant(delta), dtype=few.dtype)
    if first != 0:
        node = build.map_("add", build.constant(first), node, dtype=few.dtype)
    return wrap_node(node)


__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "copy",
]
