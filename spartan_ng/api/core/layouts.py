"""The order of axes in memory that NumPy gives a result: its own rule, asked of tiny arrays.

What is computed here lies in C order, and in NumPy as its operands do ("K"). Whether `ravel` and `reshape`
are views or copies depends on it, so a result notes the order, and its value is laid out that way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.cell import Cell, laid_out, order_of
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.views import Broadcast, Diagonal, Transpose, Windows
from spartan_ng.api.core.wrapping import make, wrap
from spartan_ng.graph import build
from spartan_ng.scratch import own_copy

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_TURNING = frozenset({Broadcast, Diagonal, Transpose, Windows})


def _may_be_turned(a: Any) -> bool:
    """Whether an array's axes may lie in another order than C's; a list of numbers has no such order."""
    if not isinstance(a, Handle):
        return False
    shown = a._peek()
    if shown is not None:
        return shown.ndim > 1 and not shown.flags.c_contiguous
    return a._cell.order is not None or not _TURNING.isdisjoint(map(type, a._views))


def lying_as(result: ndarray, *operands: Any) -> ndarray:
    """A new result of operands, element by element or line by line, in the order that NumPy gives it."""
    if result.ndim > 1:
        arrays = [o for o in operands if isinstance(o, Handle)]
        if any(map(_may_be_turned, arrays)):
            result._cell.order = _common_order(tuple(map(_described, arrays)))
    return result


def lying_as_copy(result: ndarray, a: Any) -> ndarray:
    """A new array that NumPy makes as a copy, or an empty one like another: stretched axes lie innermost."""
    if _may_be_turned(a):
        layout = a._layout()
        # Fortran's, whatever the strides of axes of length one: the result's may be longer.
        lie(result, tuple(range(a.ndim))[::-1] if layout.flags.fnc else order_of(layout))
    return result


def lying_as_any(result: ndarray, a: Any, *_: Any) -> ndarray:
    """A new array in NumPy's order "A": Fortran's for an operand that lies in that order only, else C's."""
    turned = _may_be_turned(a) and a._layout().flags.fnc
    return lie(result, tuple(range(result.ndim))[::-1] if turned else None)


def lying_as_taken(result: ndarray, a: Any, kept: list[int], first: int) -> ndarray:
    """Elements taken through arrays: their axes, at `first`, lie before those kept of `a` (-1: new)."""
    if result._masked() is None and 0 in result.shape:  # of nothing, NumPy makes no order of axes
        return lie(result, None)
    strides = a._layout().strides if _may_be_turned(a) else ()
    inner = [strides[axis] if strides and axis >= 0 else 0 for axis in kept]
    by = [-abs(s) for s in inner] if strides else [0] * len(kept)
    places = [*range(first), *range(result.ndim - len(kept) + first, result.ndim)]
    order = [*range(first, first + result.ndim - len(kept))]
    order += [places[i] for i in sorted(range(len(kept)), key=by.__getitem__)]
    lie(result, None if order == sorted(order) else tuple(order))
    return result


def asked_of_tiny(operands: list[Any], function: Callable[..., Any]) -> tuple[int, ...] | None:
    """The order of the axes of what a NumPy function gives for arrays that are like these, but tiny."""
    layouts = [a._layout() if isinstance(a, Handle) else np.asarray(a) for a in operands]
    lengths = ([min(n, 2) for n in a.shape] for a in layouts)
    return order_of(function(*map(np.broadcast_to, map(_miniature_of, layouts), lengths)))


def lie(result: ndarray, order: tuple[int, ...] | None) -> ndarray:
    """A new array with its axes in this order of memory, from the outermost; None for C's."""
    if result.ndim < 2:
        return result
    cell = result._cell
    if cell.value is not None:
        cell.value = laid_out(cell.value, order)
        result._state = None
    else:
        cell.order = order
    return result


def _as_operands(result: ndarray, *operands: Any) -> None:
    """Element by element."""
    lying_as(result, *operands)


def _as_first(result: ndarray, a: Any, *_: Any) -> None:
    """A copy of the first operand, written to."""
    lying_as_copy(result, a)


def _as_rolled(result: ndarray, a: Any, shift: Any = 0, axis: Any = None) -> None:
    """A copy of the first operand, or of its elements in C order."""
    if axis is not None:
        lying_as_copy(result, a)


def _as_tiled(result: ndarray, a: Any, reps: Any) -> None:
    """A copy of the first operand, if nothing is repeated."""
    if np.size(reps) == np.sum(reps):
        lying_as_copy(result, a)


def _as_deleted(result: ndarray, a: Any, obj: Any = None, axis: Any = None) -> None:
    """What a slice or a number leaves is copied to a new array; what a mask leaves is taken."""
    if axis is None or isinstance(obj, slice) or np.ndim(obj) == 0 or _is_one_index(obj):
        lying_as_any(result, a)
    else:
        where = build.axis_index(axis, result.ndim)
        lying_as_taken(result, a, [i for i in range(result.ndim) if i != where], where)


def _is_one_index(obj: Any) -> bool:
    """Whether NumPy takes an array or a list for the number that it holds."""
    return np.size(obj) == 1 and np.asarray(obj).dtype.kind in "ui"


def _as_rounded(result: ndarray, a: Any, decimals: Any = 0, *_: Any) -> None:
    """To integers as by a universal function, else in an array made for it; others are copied."""
    kind = getattr(a, "dtype", np.dtype(float)).kind
    if kind == "c" or (kind in "biu" and decimals >= 0):
        lying_as_copy(result, a)
        return
    (lying_as_any if decimals else _as_operands)(result, a)


def _as_close(result: ndarray, a: Any, b: Any, *tolerances: Any) -> None:
    """Element by element; of what is no floating number, the second operand is made one first."""
    if isinstance(b, Handle) and b.dtype.kind not in "fc" and any(map(_may_be_turned, (a, b))):
        lie(result, asked_of_tiny([as_handle(a), b], np.isclose))
    else:
        lying_as(result, a, b, *tolerances)


def _as_median(result: ndarray, a: Any, axis: Any = None, *_: Any) -> None:
    """The mean of what is in the middle of a copy."""
    if _may_be_turned(a):
        keepdims = result.ndim == a.ndim
        lie(result, asked_of_tiny([a], lambda tiny: np.median(tiny, axis, keepdims=keepdims)))


def _as_folded(result: ndarray, a: Any, axis: Any = None, *_: Any) -> None:
    """A fold of the first operand."""
    if isinstance(a, Handle):
        lying_as_folded(result, a, axis)


def _as_triangle(result: ndarray, a: Any, *_: Any) -> None:
    """Chosen by a matrix that lies in C order."""
    if _may_be_turned(a):
        lie(result, asked_of_tiny([a], np.tril))


def _as_joined(result: ndarray, arrays: Any, axis: Any = 0, *_: Any) -> None:
    """Joined along an axis."""
    one: Any = arrays
    parts = [as_handle(a) for a in ([one[0]] if isinstance(arrays, Handle) else arrays)]
    if axis is not None and any(map(_may_be_turned, parts)):
        lie(result, asked_of_tiny(parts, lambda *tiny: np.concatenate(tiny, axis)))


def _as_indices(result: ndarray, a: Any, indices: Any, *_: Any) -> None:
    """Taken at as many indices as there are results."""
    lying_as(result, indices)


def _as_new(result: ndarray, *_: Any) -> None:
    """In C order, and no view of anything."""
    lie(result, None)


def _as_columns(result: ndarray, *_: Any) -> None:
    """The columns lie one after the other."""
    lie(result, (1, 0))


RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys((np.where, np.clip), _as_operands),
    np.isclose: _as_close,
    **dict.fromkeys((np.round, np.around), _as_rounded),
    **dict.fromkeys((np.tril, np.triu), _as_triangle),
    **dict.fromkeys((np.sort, np.partition, np.nan_to_num, np.astype, np.gradient, np.unwrap), _as_first),
    **dict.fromkeys((np.pad, np.insert, np.packbits, np.unpackbits), lying_as_any),
    **dict.fromkeys((np.take, np.compress, np.select, np.quantile, np.percentile), _as_new),
    **dict.fromkeys((np.linalg.det, np.linalg.inv), _as_new),
    np.median: _as_median,
    np.nanmedian: _as_folded,
    np.roll: _as_rolled,
    np.tile: _as_tiled,
    np.delete: _as_deleted,
    np.concatenate: _as_joined,
    np.take_along_axis: _as_indices,
    np.argwhere: _as_columns,
}
"""How a function's results lie. Those of functions that are not here lie in C order, or as do those of the
functions that they call: of universal functions like their operands, of folds like what is left of one."""


def _is_new(result: Handle, operands: list[Any]) -> bool:
    """Whether an array is no operand's."""
    return result._cell not in [a._cell for a in operands if isinstance(a, Handle)]


def by_rule(numpys: Any, ours: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results lie as its rule says, where they are new and not computed yet."""
    rule, in_order = RULES[numpys], _in_order(ours)

    def lying(result: Any, given: tuple[Any, ...]) -> Any:
        if isinstance(result, list | tuple):
            return type(result)(lying(r, given) for r in result)
        operands = [as_handle(a) if isinstance(a, np.ndarray) else a for a in given]
        if not isinstance(result, Handle) or not _is_new(result, operands):
            return result
        if result._cell.value is not None:
            return wrap(own_copy(result._peek())) if result._views else result
        new = make(Cell(node=result._node())) if result._views else result
        if new.ndim > 1:
            rule(new, *operands)
        return new

    @functools.wraps(ours)
    def call(*args: Any, **keywords: Any) -> Any:
        result = ours(*args, **keywords)
        is_whole = isinstance(result, Handle) and not result._views
        if is_whole and (result._cell.value is not None or result.ndim < 2):
            return result
        return lying(result, in_order(*args, **keywords))

    return call


def _in_order(function: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """What gives the arguments of a call that the function has taken, in the order of its parameters; sooner
    than `Signature.bind`, which takes longer than most functions that are kept for later."""
    parameters = inspect.signature(function).parameters.values()
    in_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    before = [(p.name, p.default) for p in parameters if p.kind in in_place]
    alone = [(p.name, p.default) for p in parameters if p.kind is p.KEYWORD_ONLY]

    def given(*args: Any, **keywords: Any) -> tuple[Any, ...]:
        rest = [keywords.pop(name, default) for name, default in (*before[len(args) :], *alone)]
        return (*args, *rest, *keywords.values())

    return given


def _described(a: Handle) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What decides an array's layout; sparse arrays have no strides."""
    shown = a._peek()
    shown = a._layout() if shown is None else shown
    return shown.shape, getattr(shown, "strides", ())


@functools.lru_cache(maxsize=1024)
def _common_order(described: tuple[Any, ...]) -> tuple[int, ...] | None:
    """The order of the axes of a result of such arrays, or None for C's."""
    small = [_miniature(*d) for d in described]
    flags: Any = [["readonly"]] * len(small) + [["writeonly", "allocate"]]
    made = np.nditer([*small, None], ["zerosize_ok"], flags, [bool] * len(flags)).operands[-1]
    return order_of(made)


def lying_as_folded(result: ndarray, a: Handle, axis: Any) -> ndarray:
    """A new fold of an array, in the order that NumPy gives it."""
    if result.ndim > 1 and _may_be_turned(a):
        axes = build.axes_tuple(axis, a.ndim)
        fold: Any = np.logical_or.reduce
        shape, strides = _described(a)
        some = _miniature(tuple(n or 2 for n in shape), strides)  # of nothing, NumPy makes no order of axes
        made = fold(some, axes, keepdims=result.ndim == a.ndim)
        result._cell.order = order_of(made)
    return result


def _miniature_of(layout: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A tiny array with a layout's order of strides."""
    return _miniature(layout.shape, layout.strides)


def _miniature(shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of at most two elements an axis, one where it is stretched, in the order that strides have."""
    order = np.argsort([-abs(s) for s in strides], kind="stable")
    lengths = [min(n, 2 if s else 1) for n, s in zip(shape, strides, strict=True)]
    return np.empty([lengths[i] for i in order], bool).transpose(np.argsort(order))


__all__ = [
    "RULES",
    "asked_of_tiny",
    "by_rule",
    "lie",
    "lying_as",
    "lying_as_any",
    "lying_as_copy",
    "lying_as_folded",
    "lying_as_taken",
]
