"""The order of axes in memory that NumPy gives a result: its own rule, asked of tiny arrays.

What is computed here lies in C order, and in NumPy as its operands do ("K"). Whether `ravel` and `reshape`
are views or copies depends on it, so a result notes the order, and its value is laid out that way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.cell import order_of
from spartan_ng.api.handle import Handle
from spartan_ng.api.views import Transpose, layout_of
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


def _may_be_turned(a: Handle) -> bool:
    """Whether an array's axes may lie in another order than C's."""
    cell = a._cell
    if cell.value is not None and not a._views:
        return cell.value.ndim > 1 and not cell.value.flags.c_contiguous
    return cell.order is not None or any(v.__class__ is Transpose for v in a._views)


def lying_as(result: ndarray, *operands: Any) -> ndarray:
    """A new result of operands, element by element or line by line, in the order that NumPy gives it."""
    arrays = [o for o in operands if isinstance(o, Handle)]
    if any(map(_may_be_turned, arrays)):
        result._cell.order = _common_order(tuple(map(_described, arrays)))
    return result


def _described(a: Handle) -> Any:
    """What decides an array's layout: its strides, or how it is seen."""
    shown = a._peek()
    if shown is not None:
        return shown.shape, getattr(shown, "strides", ())
    return a._cell.shape, a._views, a._cell.order


@lru_cache(maxsize=1024)
def _common_order(described: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The order of the axes of a result of such arrays, or None for C's."""
    small = [_miniature(*d) if len(d) == 2 else _miniature_of(layout_of(*d)) for d in described]
    flags: Any = [["readonly"]] * len(small) + [["writeonly", "allocate"]]
    made = np.nditer([*small, None], ["zerosize_ok"], flags, [bool] * len(flags)).operands[-1]
    return order_of(made)


def lying_as_folded(result: ndarray, a: Handle, axis: Any) -> ndarray:
    """A new fold of an array, in the order that NumPy gives it."""
    if result.ndim > 1 and _may_be_turned(a):
        axes = build.axes_tuple(axis, a.ndim)
        fold: Any = np.logical_or.reduce
        made = fold(_miniature_of(a._layout()), axes, keepdims=result.ndim == a.ndim)
        result._cell.order = order_of(made)
    return result


def _miniature_of(layout: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A tiny array with a layout's order of strides."""
    return _miniature(layout.shape, layout.strides)


def _miniature(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of at most two elements an axis, with the order that strides have."""
    order = np.argsort([-abs(s) for s in strides], kind="stable")
    lengths = [min(n, 2) if s else min(n, 1) for n, s in zip(shape, strides, strict=True)]
    return np.empty([lengths[i] for i in order], bool).transpose(np.argsort(order))


__all__ = ["lying_as", "lying_as_folded"]
