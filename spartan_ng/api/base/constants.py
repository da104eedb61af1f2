"""Arrays of one value: zeros, ones, what is left as it is, and arrays like others."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell, order_letter
from spartan_ng.api.core.conversion import as_handle, forced, in_order, numbers_here, shape_tuple
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBERS, as_dtype, stays
from spartan_ng.api.core.layouts import lying_as_copy
from spartan_ng.api.core.quick import AS_LIKE, AS_SHAPE, shortened
from spartan_ng.api.core.views import assigned
from spartan_ng.api.core.wrapping import converted_node, make, wrap
from spartan_ng.graph import build
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_MADE = frozenset({"shape", "fill_value", "dtype", "order"})
"""Keywords of functions that make arrays, and say what is to be made."""
_LIKE = frozenset({"dtype"})


def _few(shape: Any) -> bool:
    """Whether an array of this shape is small, at sixteen bytes an element."""
    n = shape if type(shape) is int else prod(shape) if type(shape) is tuple else None
    return type(n) is int and door.is_open() and door.is_small(16 * n)


def _unpacked(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """A shape and a dtype, the axes of whose elements are the array's."""
    return (shape, dtype) if dtype.subdtype is None else (shape + dtype.shape, dtype.base)


def _zeros(shape: Any, dtype: Any, order: str) -> ndarray:
    """Zeros: NumPy's where they are small, and where programs run in this process and can write to them."""
    if _few(shape):
        return wrap(np.zeros(shape, dtype, order))  # type: ignore[call-overload]
    lengths, dtype = _unpacked(shape_tuple(shape), as_dtype(dtype))
    if door.is_blank(prod(lengths) * dtype.itemsize):
        h = wrap(np.zeros(lengths, dtype))
        h._cell.blank = True
    else:
        h = _constant(0, lengths, dtype)
    return in_order(h, order)


def _constant(value: Any, shape: Any, dtype: np.dtype[Any]) -> ndarray:
    """One value everywhere."""
    lengths, dtype = _unpacked(shape_tuple(shape), dtype)
    if stays(dtype) or (door.is_open() and door.is_small(prod(lengths) * dtype.itemsize)):
        value = forced(value)
        return wrap(
            np.full(lengths, value if dtype.kind in "biufc" else _scalar_of(np.asarray(value), dtype), dtype)
        )
    one = value._node() if isinstance(value, Handle) else np.asarray(value)
    node = (
        build.cast(one, dtype)
        if isinstance(one, Node)
        else build.constant(_scalar_of(one, dtype) if one.ndim == 0 else one.astype(dtype))
    )
    return make(Cell(node=build.broadcast(node, lengths)))


def _scalar_of(one: Any, dtype: np.dtype[Any]) -> Any:
    """A value as an array without axes; 0 is what NumPy's zeros hold, also of strings and records."""
    return np.full((), one, dtype) if dtype.kind in "biufcmM" or one != 0 else np.zeros((), dtype)


@numpy_function(np.zeros, front=shortened(np.zeros, 3, AS_SHAPE, _MADE))
def zeros(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> ndarray:
    """Zeros."""
    return _zeros(shape, dtype, order)


@numpy_function(np.ones, front=shortened(np.ones, 3, AS_SHAPE, _MADE))
def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> ndarray:
    """Ones."""
    if _few(shape):
        return wrap(np.ones(shape, dtype, order))  # type: ignore[call-overload]
    return in_order(_constant(1, shape, as_dtype(dtype)), order)


@numpy_function(np.empty, front=shortened(np.zeros, 3, AS_SHAPE, _MADE))
def empty(
    shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> ndarray:
    """An array to be written to; it starts with zeros, or None for objects."""
    if (type(dtype) is not type or dtype not in NUMBERS) and as_dtype(dtype).hasobject:
        return wrap(np.empty(shape_tuple(shape), as_dtype(dtype), order))  # type: ignore[call-overload]
    return _zeros(shape, dtype, order)


@numpy_function(np.full, front=shortened(np.full, 3, AS_SHAPE, _MADE))
def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> ndarray:
    """One value everywhere."""
    if type(fill_value) in NUMBERS and _few(shape):
        return wrap(np.full(shape, fill_value, dtype, order))  # type: ignore[call-overload]
    lengths = shape_tuple(shape)
    if dtype is not None:
        lengths, dtype = _unpacked(lengths, as_dtype(dtype))
    if isinstance(fill_value, Handle):
        known = fill_value._peek()
        if known is None or (
            not (door.is_open() and door.is_small(known.nbytes)) and _are_numbers(known.dtype, dtype)
        ):
            node = converted_node(assigned(fill_value, lengths), fill_value.dtype if dtype is None else dtype)
            return in_order(make(Cell(node=node)), order)
        fill_value = known
    one = np.full(np.shape(fill_value), fill_value, dtype)  # with NumPy's casts and errors
    if stays(one.dtype) or (door.is_open() and door.is_small(prod(lengths) * one.itemsize)):
        return wrap(np.full(lengths, one, one.dtype, order))  # type: ignore[call-overload]
    return in_order(make(Cell(node=assigned(make(Cell(one)), lengths))), order)


def _are_numbers(*dtypes: np.dtype[Any] | None) -> bool:
    return all(dtype is None or dtype.kind in "biufc" for dtype in dtypes)


def _like(a: Any, dtype: Any, shape: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    a = as_handle(a)
    kind = a.dtype if dtype is None else as_dtype(dtype)
    return _unpacked(a.shape if shape is None else shape_tuple(shape), kind)


def _numbers_like(a: Any, dtype: Any, order: str, shape: Any) -> Any:
    """The value of a small array of numbers on the driver, where another is to be as it is; or None."""
    return numbers_here(a) if dtype is None and shape is None and order == "K" else None


def _lying_like(result: ndarray, a: Any, order: str, shape: Any) -> ndarray:
    """An array made like `a`, in its order where nothing else is asked for."""
    letter = order_letter(order)
    if letter in ("C", "F"):
        return in_order(result, letter)
    a = as_handle(a)
    if letter == "A":
        return in_order(result, "F" if a._layout().flags.fnc else "C")
    return result if result.ndim != a.ndim or a.ndim < 2 else lying_as_copy(result, a)


@numpy_function(np.zeros_like, front=shortened(np.zeros_like, 2, AS_LIKE, _LIKE))
def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Zeros with another array's shape and dtype."""
    known = _numbers_like(a, dtype, order, shape)
    if known is not None:
        return wrap(np.zeros_like(known))
    return _lying_like(_constant(0, *_like(a, dtype, shape)), a, order, shape)


@numpy_function(np.ones_like, front=shortened(np.ones_like, 2, AS_LIKE, _LIKE))
def ones_like(
    a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
) -> ndarray:
    """Ones with another array's shape and dtype."""
    known = _numbers_like(a, dtype, order, shape)
    if known is not None:
        return wrap(np.ones_like(known))
    return _lying_like(_constant(1, *_like(a, dtype, shape)), a, order, shape)


@numpy_function(np.empty_like, front=shortened(np.zeros_like, 2, AS_LIKE, _LIKE))
def empty_like(
    prototype: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """An array to be written to, with another's shape and dtype."""
    known = _numbers_like(prototype, dtype, order, shape)
    if known is not None:
        return wrap(np.zeros_like(known))
    lengths, kind = _like(prototype, dtype, shape)
    new = empty(lengths, kind) if kind.hasobject else _constant(0, lengths, kind)
    return _lying_like(new, prototype, order, shape)


@numpy_function(np.full_like, front=shortened(np.full_like, 3, AS_LIKE, _LIKE))
def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> ndarray:
    """One value everywhere, with another array's shape and dtype."""
    known = _numbers_like(a, dtype, order, shape) if type(fill_value) in NUMBERS else None
    if known is not None:
        return wrap(np.full_like(known, fill_value))
    lengths, kind = _like(a, dtype, shape)
    return _lying_like(full(lengths, fill_value, kind), a, order, shape)


__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]
