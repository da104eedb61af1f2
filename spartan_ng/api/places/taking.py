"""Elements taken and put by their places: NumPy's indexing routines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import assigning, constants, creation, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.chains import may_overlap
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, fresh, numpy_function
from spartan_ng.api.core.door import few_values
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBERS, PLAIN_OR_NUMERIC, PYTHONS
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import lie
from spartan_ng.api.core.operands import WEAK, check_output, converted, mask_of, small_values, stored
from spartan_ng.api.core.quick import AS_BROADCAST, AS_WRITTEN, shortened
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.places import resizing
from spartan_ng.api.places.flat import (
    MOST_AXES_OF_FLAT,
    Flat,
    elements_of,
    is_at_hand,
    set_in_copy,
)
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_MOST_OPERANDS = 64
"""NumPy iterates over so many arrays together."""


def _check_mode(mode: Any) -> None:
    """NumPy's names of what to do with indices out of bounds."""
    if mode not in ("raise", "wrap", "clip", 0, 1, 2):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


@numpy_function(np.take, few=3)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements (or sub-arrays) at indices along an axis."""
    a, where = manipulation.along(as_handle(a), axis)
    index = converted(indices, np.int64, "same_kind")
    n = a.shape[where]
    _check_mode(mode)
    if prod(a.shape[:where]):
        index = _moved(index, n, mode) if n else index
        result = a[(*(slice(None),) * where, index)] if where else a[index]
    else:
        result = _nothing(a, where, index.shape)
    element = a.ndim == 1 and not index.ndim and a.dtype.hasobject
    if out is None and (element or not isinstance(result, Handle)):  # an object, maybe an array, or a text
        record: Any = result
        return record.copy() if isinstance(result, np.void) else record  # type: ignore[no-any-return]
    result = as_handle(result)
    if not result.ndim == a.ndim - 1 + index.ndim:
        raise ShapeError(f"take: indices of shape {index.shape} from shape {a.shape}")
    result = result.copy() if result._views else result
    return _collected("take", lie(result, None) if result.ndim > 1 else result, out, a.dtype)


def _nothing(a: ndarray, axis: int, shape: tuple[int, ...]) -> ndarray:
    """What indices take of an array without elements before `axis`: NumPy looks at none of them."""
    return constants.zeros((*a.shape[:axis], *shape, *a.shape[axis + 1 :]), a.dtype)


def _moved(index: ndarray, n: int, mode: Any) -> ndarray:
    """Indices brought into [0, n) where the mode says how."""
    if mode in ("wrap", 1):
        return as_handle(index % n)
    return as_handle(ufuncs.clip3(index, 0, n - 1)) if mode in ("clip", 2) else index


_PLAIN_OR_LISTS = PLAIN_OR_NUMERIC | {list}


def _has_numbers(a: Any) -> bool:
    """Whether an argument is no list, or a short one of Python's numbers."""
    return type(a) is not list or (door.is_short(a) and PYTHONS.issuperset(map(type, a)))


def _writing(numpys: Callable[..., None]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Enter a function that writes into its first operand; what is NumPy's own array, NumPy writes into."""

    def enter(ours: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(ours)
        def call(*args: Any, **keywords: Any) -> None:
            if args and not keywords and type(args[0]) is Late.ndarray:
                target, known = args[0]._open(), few_values(args[1:], _PLAIN_OR_LISTS)
                takes = known is not None and (list not in map(type, known) or all(map(_has_numbers, known)))
                if target is not None and known is not None and takes and door.is_small(target.nbytes):
                    try:
                        numpys(target, *known)
                        return
                    except ValueError:  # ours name the shapes; read-only memory is copied
                        pass
            given = (*args, *keywords.values())
            if given and isinstance(given[0], np.ndarray):
                by_numpy(numpys, *args, **keywords)
            else:
                ours(*args, **keywords)

        return numpy_function(numpys, front=shortened(numpys, 4, AS_WRITTEN, frozenset({"mode", "axis"})))(
            call
        )

    return enter


def _few_numbers(given: Any) -> Any:
    """A number, a list of few, or a small array as NumPy takes it; else None."""
    if type(given) is list:
        return given if given and door.is_short(given) and NUMBERS.issuperset(map(type, given)) else None
    few = few_values((given,))
    return (
        None
        if few is None or (few[0].__class__ is np.ndarray and few[0].dtype.kind not in "biufc")
        else few[0]
    )


def _is_put_at_once(a: Any, ind: Any, v: Any, mode: Any) -> bool:
    """Whether NumPy has set elements of a small array that is here, where nobody else has a claim on it."""
    target = a._open() if type(a) is Late.ndarray else None
    if target is None or not is_at_hand(target):
        return False
    places, values = _few_numbers(ind), _few_numbers(v)
    if places is None or values is None:
        return False
    try:
        np.put(target, places, values, mode)
    except (IndexError, TypeError, ValueError):  # ours say so after them
        return False
    return True


@_writing(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Set flat elements at indices, in place."""
    if _is_put_at_once(a, ind, v, mode):
        return
    if isinstance(a, np.generic):  # NumPy puts elements into a copy
        a = copied(as_handle(a))
    check_is_target(a)
    _check_mode(mode)
    index = converted(ind, np.int64).ravel()  # true and false are places, too
    values = elements_of(v, a.dtype).ravel()
    if index.size == 0:
        return
    if a.size == 0:
        raise IndexError("cannot replace elements of an empty array")
    if values.size == 0:
        return
    index = _moved(index, a.size, mode)
    new = values[:1].reshape(()) if values.size == 1 else resizing.resize(values, (index.size,))
    if may_overlap(a) and not a.flags.c_contiguous:  # NumPy does so of what is no line
        set_in_copy(a, index, new)
        return
    try:
        Flat(a)[index] = new
    except IndexError:  # NumPy has written what comes before, but where it writes to a copy first
        inside = forced((index >= -a.size) & (index < a.size))
        if a.flags.c_contiguous:
            put(a, index[: int(np.argmin(inside))], values)
        raise


@numpy_function(np.compress, few=2)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Slices along an axis where a condition holds."""
    a, where = manipulation.along(as_handle(a), axis)
    mask = as_handle(condition, bool)
    if mask.ndim != 1:
        raise ValueError(f"condition must be a 1-d array, not of shape {mask.shape}")
    n = a.shape[where]
    if mask.shape[0] < n:
        a = a[(*(slice(None),) * where, slice(0, mask.shape[0]))]
    elif mask.shape[0] > n:
        if prod(a.shape[:where]) and mask[n:].any():
            raise IndexError(f"index {n} or more is out of bounds for axis {where} with size {n}")
        mask = mask[:n] if prod(a.shape[:where]) else mask
    if prod(a.shape[:where]):
        result = a[(*(slice(None),) * where, mask)] if where else a[mask]
    else:
        result = _nothing(a, where, (int(mask.sum()),))
    if result.ndim > 1:
        lie(result, None)
    return _collected("compress", result, out, a.dtype)


def _collected(name: str, result: ndarray, out: Any, dtype: np.dtype[Any]) -> ndarray:
    """As `stored`, by NumPy's rule for elements (of `dtype`) that are collected in a copy of `out` first."""
    if out is None:
        return result
    check_output(out)
    if not np.can_cast(out.dtype, dtype, "safe"):
        raise TypeError(f"{name}: cannot cast {out.dtype!r} to {dtype!r} by the rule 'safe'")
    return stored(name, result, out, casting="unsafe")


@numpy_function(np.extract, few=2)
def extract(condition: Any, arr: Any) -> ndarray:
    """The elements where a condition is true."""
    return compress(manipulation.ravel(as_handle(condition).astype(bool)), manipulation.ravel(arr), 0)


def check_is_target(a: Any) -> None:
    """TypeError for what is no array with elements to set; ValueError for a read-only one."""
    if not isinstance(a, Handle) or isinstance(a, np.generic):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type(a).__name__}")
    check_output(a)


@_writing(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Set the elements where a mask is true to values in turn."""
    check_is_target(arr)
    if may_overlap(arr):  # one element after the other
        np.place(arr._in_place(), forced(mask), forced(vals))
        return
    flags = _like(arr, mask, "place")
    values = converted(vals, arr.dtype).ravel()
    count = int(flags.sum())
    if values.size == 0 and count:
        raise ValueError("Cannot insert from an empty array!")
    if not count:
        return
    assigning.setitem(arr, flags, as_handle(resizing.resize(values, (count,)), arr.dtype))


@_writing(np.putmask)
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Set the elements where a mask is true to the values at their places."""
    check_is_target(a)
    if may_overlap(a):
        np.putmask(a._in_place(), forced(mask), forced(values))
        return
    flags = _like(a, mask, "putmask")
    new = converted(values, a.dtype).ravel()
    if new.size:
        new = as_handle(resizing.resize(new, (a.size,)).reshape(a.shape))
        assigning.setitem(a, ..., wrap_node(build.map_("where", flags._node(), new._node(), a._node())))


def _like(a: Handle, mask: Any, name: str) -> ndarray:
    """A mask with an array's shape: its elements are counted in C order, whatever its own shape."""
    flags = as_handle(mask, bool).todense()
    if flags.size != a.size:
        raise ValueError(
            f"{name}: mask and data must be the same size, not of shapes {flags.shape} and {a.shape}"
        )
    return as_handle(flags.reshape(a.shape))


@numpy_function(np.choose, front=shortened(np.choose, 2, AS_BROADCAST, frozenset({"mode"})))
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements from the choice that each index names."""
    choices = list(choices)
    known = few_values((a, *choices)) if out is None else None
    if known is not None:
        try:
            return fresh(np.choose(known[0], known[1:], mode=mode))  # type: ignore[call-overload,no-any-return]
        except (ValueError, TypeError):  # ours name the shapes
            pass
    options = [as_handle(c) for c in choices]
    n = len(options)
    if not n:
        raise ValueError("0-length sequence.")
    if np.ndim(a) > MOST_AXES_OF_FLAT:
        raise RuntimeError(
            f"choose: only up to {MOST_AXES_OF_FLAT} dimensions but the array has {np.ndim(a)}"
        )
    if n >= _MOST_OPERANDS:
        raise ValueError(f"Need at least 0 and at most {_MOST_OPERANDS} array objects.")
    index = converted(as_handle(a), np.int64)
    _check_mode(mode)
    if out is None and small_values((index, *options)) is not None:
        return by_numpy(np.choose, a, choices, mode=mode)  # type: ignore[no-any-return]
    index = _moved(index, n, mode)
    if index.size and bool(((index < 0) | (index >= n)).any()):
        raise ValueError("invalid entry in choice array")
    kind = np.result_type(*(c if type(c) in WEAK else o.dtype for c, o in zip(choices, options, strict=True)))
    shape = build.broadcast_shapes("choose", index.shape, *(o.shape for o in options))
    node = build.broadcast(build.cast(options[0]._node(), kind), shape)
    for i, option in enumerate(options[1:], 1):
        node = build.map_("where", as_handle(index == i)._node(), build.cast(option._node(), kind), node)
    if out is not None and out.shape != shape:
        raise TypeError(f"choose: invalid shape for output array. It is {out.shape}, not {shape}")
    result = wrap_node(node)
    return stored("choose", result, out, casting="unsafe")


@numpy_function(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> ndarray:
    """Elements of each line at indices of their own."""
    for given in (arr, indices):
        if not hasattr(given, "ndim"):  # it takes no lists
            raise AttributeError(f"{type(given).__name__!r} object has no attribute 'ndim'")
    a = as_handle(arr)
    lines = manipulation.ravel(a) if axis is None else a
    return lines[_along(lines, as_handle(indices), axis)]  # type: ignore[no-any-return]


@_writing(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Set elements of each line at indices of their own."""
    lines = manipulation.ravel(arr) if axis is None else arr
    key = _along(lines, as_handle(indices), axis)
    if axis is None and not arr.flags.c_contiguous:  # the one line is a copy
        raise ValueError("assignment destination is read-only: the elements do not lie in one line")
    lines[key] = values


def _along(a: Handle, index: Handle, axis: Any) -> tuple[Any, ...]:
    """The index of whole lines, with `index` for its axis; None is the one axis there is."""
    if axis is None and index.ndim != 1:
        raise ShapeError(
            f"when axis=None, `indices` must have a single dimension. They are of shape {index.shape}"
        )
    where = build.axis_index(0 if axis is None else axis, a.ndim)
    if index.dtype.kind not in "iu":
        raise IndexError(f"`indices` must be an integer array, not of {index.dtype}")
    if index.ndim != a.ndim:
        raise ShapeError(
            f"`indices` and `arr` must have the same number of dimensions: shapes {index.shape}, {a.shape}"
        )
    grid = (
        index if i == where else creation.arange(n).reshape((1,) * i + (-1,) + (1,) * (a.ndim - i - 1))
        for i, n in enumerate(a.shape)
    )
    return tuple(grid)


def _is_copied_at_once(dst: Any, src: Any, casting: Any, where: Any) -> bool:
    """Whether NumPy has copied a number or a small array into one that is here, see `_is_put_at_once`."""
    target = dst._open() if type(dst) is Late.ndarray else None
    if target is None or not is_at_hand(target):
        return False
    few = few_values((src, where))
    if few is None:
        return False
    try:
        np.copyto(target, few[0], casting, few[1])
    except (TypeError, ValueError):
        return False
    return True


@numpy_function(np.copyto, front=shortened(np.copyto, 2, AS_WRITTEN, frozenset({"where", "casting"})))
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy elements into an array under a casting rule."""
    if isinstance(dst, np.ndarray):
        by_numpy(np.copyto, dst, src, casting=casting, where=where)
        return
    if src is not dst and _is_copied_at_once(dst, src, casting, where):
        return
    if not isinstance(dst, Handle) or (not dst.ndim and dst._cell.frozen):
        raise TypeError(f"copyto() argument 1 must be numpy.ndarray, not {type(dst).__name__}")
    where = mask_of(where)
    if src is dst:  # before NumPy looks at the mask's shape, and whether it may be written to
        return
    if not dst.flags.writeable:  # type: ignore[attr-defined]
        raise ValueError("copyto: the destination is read-only")
    if not isinstance(src, Handle | np.ndarray):  # numbers of Python's have rules of their own
        cast = np.empty(np.shape(src), dst.dtype)
        np.copyto(cast, src, casting=casting)  # type: ignore[arg-type]
        src = cast
    new = as_handle(src)
    if not np.can_cast(new.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {new.dtype!r} to {dst.dtype!r} according to the rule {casting!r}"
        )
    target, plain = dst._open(), new._peek()
    if target is not None and plain is not None and door.is_small(target.nbytes):
        np.copyto(target, plain, casting=casting, where=forced(where))  # type: ignore[arg-type]
        return
    if np.ndim(where) > dst.ndim:
        raise ShapeError(f"could not broadcast where mask of shape {np.shape(where)} into shape {dst.shape}")
    while new.ndim > dst.ndim and new.shape[0] == 1:
        new = new[0]
    stored("copyto", manipulation.broadcast_to(new, dst.shape), dst, where, casting)


__all__ = [
    "choose",
    "compress",
    "copyto",
    "extract",
    "place",
    "put",
    "put_along_axis",
    "putmask",
    "take",
    "take_along_axis",
]
