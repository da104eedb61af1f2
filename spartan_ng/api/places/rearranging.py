"""Rearranging elements: repeated, turned around, rolled, inserted and deleted; functions over axes."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Hashable, Iterable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation, cumulative, joining, manipulation, reductions
from spartan_ng.api.base.room import work_fits
from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.chains import bounded
from spartan_ng.api.core.conversion import as_handle, forced, values
from spartan_ng.api.core.dispatch import NUMPYS, by_numpy, fresh, gathered, numpy_function
from spartan_ng.api.core.door import few_values, is_plain, is_small
from spartan_ng.api.core.handle import Handle, copied, settle
from spartan_ng.api.core.kinds import is_subclass, stays
from spartan_ng.api.core.late import Late
from spartan_ng.api.core.layouts import lie
from spartan_ng.api.core.operands import converted, small_values
from spartan_ng.api.core.quick import AS_REPEATED, AS_TILED, shortened, told_by, turned_by
from spartan_ng.api.core.views import Slice, assigned
from spartan_ng.api.core.wrapping import make, wrap, wrap_node
from spartan_ng.api.elementwise import logic, operators, ufuncs
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.memory import copied_bytes
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.repeat, front=shortened(np.repeat, 3, AS_REPEATED))
def repeat(a: Any, repeats: Any, axis: Any = None) -> ndarray:
    """Each element several times."""
    a = as_handle(a)
    value = a._peek()
    few = value is not None and repeats.__class__ is int and repeats >= 0
    if few and (stays(value.dtype) or (door.is_open() and door.is_small(repeats * value.nbytes))):
        return wrap(np.repeat(value, repeats, axis))
    a, where = manipulation.along(a, axis)
    given = converted(repeats, np.int64)
    if given.size > 1 and given._peek() is None:
        return _repeated(a, given, where)
    counts = given._force()
    if counts.size == 1 and not a.shape[where]:  # NumPy asks not how often nothing is repeated
        counts = np.zeros_like(counts)
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    known = small_values((a,))
    if known is not None and door.is_small(prod(a.shape) * max(int(counts.max(initial=0)), 1) * a.itemsize):
        return wrap(np.repeat(known[0], counts, where))
    times = counts.item() if counts.size == 1 else int(counts.sum()) / max(a.shape[where], 1)
    here = a._peek() is not None and door.works_here()
    if here and times * a.nbytes <= copied_bytes():  # nothing is gained by views of it
        return wrap(np.repeat(a._peek(), counts, where))
    if counts.size == 1:
        n = int(counts.reshape(()))
        shape = (*a.shape[: where + 1], n, *a.shape[where + 1 :])
        wide = build.broadcast(
            build.reshape(a._node(), (*a.shape[: where + 1], 1, *a.shape[where + 1 :])), shape
        )
        final = (*a.shape[:where], a.shape[where] * n, *a.shape[where + 1 :])
        return make(Cell(node=build.reshape(wide, final)))
    if counts.shape != (a.shape[where],):
        raise ShapeError(
            f"repeat: operands could not be broadcast together with shape {a.shape} and {counts.shape}"
        )
    return a.take(np.repeat(np.arange(a.shape[where]), counts), where)  # type: ignore[no-any-return]


def _repeated(a: ndarray, counts: Any, axis: int) -> ndarray:
    """Each slice as often as counts on the workers say: a search in their sums finds the slices."""
    if counts.shape != (a.shape[axis],):
        raise ShapeError(
            f"repeat: operands could not be broadcast together with shape {a.shape} and {counts.shape}"
        )
    if reductions.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = cumulative.cumsum(counts)
    places = ends.searchsorted(creation.arange(int(ends[-1])), "right")
    return a.take(places, axis)


@numpy_function(np.tile, front=shortened(np.tile, 2, AS_TILED))
def tile(A: Any, reps: Any) -> ndarray:
    """An array repeated along its axes."""
    a = as_handle(A)
    given = tuple(reps) if np.iterable(reps) else (reps,)
    try:
        counts = tuple(1 if c == 1 else operator.index(c) for c in given)
    except TypeError:
        np.tile(np.zeros((int(a.size > 0),) * a.ndim), given)  # NumPy's error, where it has one
        raise
    if any(c < 0 for c in counts):
        raise ShapeError(f"negative dimensions are not allowed: {counts}")
    ndim = max(a.ndim, len(counts))
    shape = (1,) * (ndim - a.ndim) + a.shape
    counts = (1,) * (ndim - len(counts)) + counts
    inner = [n for pair in zip((1,) * ndim, shape, strict=True) for n in pair]
    outer = [n for pair in zip(counts, shape, strict=True) for n in pair]
    final = tuple(c * n for c, n in zip(counts, shape, strict=True))
    known = small_values((a,))
    if known is not None and door.is_small(prod(final) * a.itemsize):
        return wrap(np.tile(known[0], counts))
    node = build.broadcast(build.reshape(a._node(), tuple(inner)), tuple(outer))
    return make(Cell(node=build.reshape(node, final)))


_BACKWARDS = slice(None, None, -1)


@numpy_function(np.flip, front=turned_by(np.flip, 2))
def flip(m: Any, axis: Any = None) -> ndarray:
    """Axes turned around, as a view."""
    m = as_handle(m)
    if axis is None:
        return m[(_BACKWARDS,) * m.ndim]  # type: ignore[no-any-return]
    axes = build.axes_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]  # type: ignore[no-any-return]


@numpy_function(np.fliplr, front=turned_by(np.fliplr, 1))
def fliplr(m: Any) -> ndarray:
    """Columns turned around."""
    if as_handle(m).ndim < 2:
        raise ValueError(f"Input must be >= 2-d, not of shape {np.shape(m)}.")
    return flip(m, 1)


@numpy_function(np.flipud, front=turned_by(np.flipud, 1))
def flipud(m: Any) -> ndarray:
    """Rows turned around."""
    if as_handle(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@numpy_function(np.rot90, front=turned_by(np.rot90, 3))
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """A plane turned by quarter turns."""
    m = as_handle(m)
    first, second = (build.axis_index(a, m.ndim) for a in axes)
    if first == second:
        raise ValueError(f"Axes must be different, not {axes}.")
    k %= 4
    if k == 0:
        return m[...]  # type: ignore[no-any-return]
    if k == 2:
        return flip(flip(m, first), second)
    if k == 1:
        return manipulation.swapaxes(flip(m, second), first, second)
    return flip(manipulation.swapaxes(m, first, second), second)


@numpy_function(np.roll, eager=True)
def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """Elements moved around an axis, the last ones coming first."""
    a = as_handle(a)
    if axis is None:
        return roll(manipulation.ravel(a), shift, 0).reshape(a.shape)
    shifts, axes = np.broadcast_arrays(forced(shift), axis)
    places = [build.axis_index(i, a.ndim) for i in axes.ravel().tolist()]
    if shifts.ndim > 1:
        raise ValueError("'shift' and 'axis' should be scalars or 1D sequences")
    moved = dict.fromkeys(places, 0)
    for by, where in zip(shifts.ravel(), places, strict=True):
        moved[where] += int(by)  # each is cut to an integer
    node = a._node()
    for where, by in moved.items():
        n = a.shape[where]
        by = by % n if n else 0
        if by:
            tail, head = (_part(node, where, n - by, by), _part(node, where, 0, n - by))
            node = build.concatenate([tail, head], where)
    return wrap_node(node)


def _part(node: Any, axis: int, start: int, length: int) -> Any:
    shape = (*node.shape[:axis], length, *node.shape[axis + 1 :])
    return Slice(tuple(start if i == axis else 0 for i in range(node.ndim)), (1,) * node.ndim, shape).apply(
        node
    )


@numpy_function(np.insert, eager=True)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> ndarray:
    """Values put in before given places."""
    a = as_handle(arr)
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    places = np.arange(n)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    if places.ndim > 1:
        raise ValueError("index array argument obj to insert must be one dimensional or scalar")
    if places.dtype.kind not in "iu" and (places.size or isinstance(obj, Handle | np.ndarray)):
        raise IndexError(
            f"insert: arrays used as indices must be of integer (or boolean) type, not {places.dtype}"
        )
    scalar = places.ndim == 0 or places.size == 1
    places = places.astype(np.int64).reshape(-1)
    if places.size and ((places < -n) | (places > n)).any():
        raise IndexError(f"index {obj} is out of bounds for axis {where} with size {n}")
    places = np.where(places < 0, places + n, places)
    new = as_handle(values, a.dtype)
    if scalar and places.size == 1:
        new = new.reshape((1,) * (a.ndim - new.ndim) + new.shape)
        if np.ndim(obj) == 0:
            new = manipulation.moveaxis(new, 0, where)
        places = np.repeat(places, new.shape[where])
    new = wrap_node(assigned(new, (*a.shape[:where], places.size, *a.shape[where + 1 :])))
    if not places.size:
        return a.copy()
    if (places == places[0]).all():
        before = (slice(None),) * where
        at = int(places[0])
        return _joined([a[(*before, slice(0, at))], new, a[(*before, slice(at, None))]], where, a)
    order = np.argsort(places, kind="mergesort")
    total = n + places.size
    is_new = constants.zeros(total, bool)
    is_new[places[order] + np.arange(places.size)] = True
    rank = cumulative.cumsum(is_new)  # how many new slices there are up to each
    slots = logic.where(
        is_new, n + as_handle(order).take(ufuncs.maximum(rank - 1, 0)), creation.arange(total) - rank
    )
    return _joined([a, new], where, a).take(slots, where)


@numpy_function(np.delete, eager=True)
def delete(arr: Any, obj: Any, axis: Any = None) -> ndarray:
    """The slices that are left when some go."""
    a = as_handle(arr)
    if axis is None:
        a, axis = manipulation.ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    before = (slice(None),) * where
    if obj is None:
        raise IndexError("delete: None names no slices")
    if isinstance(obj, int | np.integer) and not isinstance(obj, bool):
        at = bounded(obj, n, where)
        return _joined([a[(*before, slice(0, at))], a[(*before, slice(at + 1, None))]], where, a)
    kept = constants.ones(n, bool)
    if isinstance(obj, slice):
        kept[obj] = False
    elif (gone := as_handle(obj)).size or not isinstance(obj, list | tuple):  # empty lists name none
        if gone.dtype == bool and gone.shape != (n,):
            raise ValueError(
                "boolean array argument obj to delete must be one dimensional and match the axis length of "
                f"{n}, not of shape {gone.shape}"
            )
        kept[gone] = False
    return a.compress(kept, where)


def _joined(parts: list[Any], axis: int, a: ndarray) -> ndarray:
    """Parts in one, in the byte order of the array that they are of, which joining alone does not keep."""
    return joining.concatenate(parts, axis).astype(a.dtype, copy=False)


@numpy_function(np.append, few=2)
def append(arr: Any, values: Any, axis: Any = None) -> ndarray:
    """Values at the end."""
    if axis is None:
        return joining.concatenate((manipulation.ravel(arr), manipulation.ravel(values)), 0)
    return joining.concatenate((arr, values), axis)


@numpy_function(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **keywords: Any) -> ndarray:
    """A function of each line, called before this returns: by NumPy on what lies here, on workers where the
    lines lie, the first line's here, to see what it gives."""
    here = arr._open() if type(arr) is Late.ndarray else None
    few = few_values(args) if here is not None and here.size and is_plain(here.nbytes) else None
    if few is not None and not keywords:  # to whose lines the function may write
        call: Any = np.apply_along_axis
        return fresh(call(_numpys_function(func1d, ()), axis, here, *few))  # type: ignore[no-any-return]
    arr, func1d = as_handle(arr), _numpys_function(func1d, keywords)
    where = build.axis_index(axis, arr.ndim)
    is_small = 0 in arr.shape or small_values((arr,)) is not None
    if not is_small and in_process() and work_fits((arr,), 2 * arr.nbytes):
        return _at_once(by_numpy, func1d, axis, arr, *args, **keywords)
    if is_small or arr.ndim < 2:
        return _at_once(gathered, func1d, axis, arr, *args, **keywords)
    before, after = arr.shape[:where], arr.shape[where + 1 :]
    arr = arr.todense()
    first = arr[(0,) * where + (slice(None),) + (0,) * len(after)]._force()
    sample = np.asanyarray(func1d(first.copy(), *args, **keywords))
    if is_subclass(sample):
        return _at_once(gathered, func1d, axis, arr, *args, **keywords)

    def lines(boxes: Any, tiles: Any) -> Any:
        data = np.apply_along_axis(func1d, where, tiles[0], *args, **keywords)
        ul = [lo for lo, _ in boxes[0]]
        return (*ul[:where], *(0,) * sample.ndim, *ul[where + 1 :]), data

    lines.__name__ = str(UserFunction(func1d, "apply_along_axis"))  # plans and logs say whose stage it is
    cut = 1 if where == 0 else 0
    shape = before + sample.shape + after
    joined = operators.join_update(lines, np.add, [arr], [cut], shape, sample.dtype)
    inner = range(where, where + sample.ndim)  # what the function gives lies innermost, as NumPy stores it
    joined = lie(joined, (*(i for i in range(len(shape)) if i not in inner), *inner))
    settle(joined)  # before anything changes that the function looks up
    return joined


def _at_once(
    call: Callable[..., Any], func1d: Any, axis: int, arr: Handle, *args: Any, **keywords: Any
) -> ndarray:
    """NumPy's own answer. The function may write to its lines: a part of what lies outside is read alone, and
    goes back where that has happened, as all of it would be in memory else."""
    own = copied(arr) if arr._views and arr._lies_outside() else arr
    found: ndarray = call(np.apply_along_axis, func1d, axis, own, *args, **keywords)
    if own is not arr and not np.array_equal(*(a._force().reshape(-1).view(np.uint8) for a in (own, arr))):
        arr._write(own)  # other bytes: NaN is written to, too
    return found


def _numpys_function(function: Any, keywords: Iterable[str]) -> Any:
    """NumPy's function for one of ours for NumPy's arrays; without one that knows the keywords, itself."""
    numpys: Any = NUMPYS.get(function) if isinstance(function, Hashable) else None  # type: ignore[call-overload]
    known = numpys is not None and (not keywords or _parameters(numpys).issuperset(keywords))
    return numpys if known else function


@functools.lru_cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


@numpy_function(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> ndarray:
    """A function of an array and an axis, over one axis after the other, each kept with length 1."""
    ndim = a.ndim  # of lists and of Python's numbers there is none
    found = as_handle(a)
    for axis in np.atleast_1d(axes).tolist():
        where = axis + ndim if axis < 0 else axis
        result = as_handle(func(found, where))
        if result.ndim != ndim:
            result = manipulation.expand_dims(result, where)
            if result.ndim != ndim:
                raise ValueError("function is not returning an array of the correct shape")
        found = result
    return found


def nonzero_ends(a: ndarray) -> tuple[int, int]:
    """Where the non-zero elements of a vector begin and end; (n, 0) if there are none."""
    n = a.shape[0]
    here = a._peek()
    if here is not None and here.ndim == 1 and is_small(here.nbytes):
        found = np.flatnonzero(here)
        return (int(found[0]), int(found[-1]) + 1) if found.size else (n, 0)
    there = a if a.dtype == bool else ufuncs.not_equal(a, 0)
    places = as_handle(creation.arange(n))
    first, last = values(
        reductions.min(places, initial=n, where=there), reductions.max(places, initial=-1, where=there)
    )
    return int(first), int(last) + 1


@numpy_function(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """A view without the zeros at the front ("f"), at the back ("b"), or both, of the axes."""
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    a = as_handle(filt)
    there = ufuncs.not_equal(a, 0) if a.dtype.hasobject else reductions.truth(a)
    if isinstance(filt, list | tuple) and a.ndim == 1:
        first, last = nonzero_ends(there)
        return filt[first if "f" in trim else None : last if "b" in trim else None] if last else filt[:0]
    axes = build.axes_tuple(axis, a.ndim)
    key = [slice(None)] * a.ndim
    for where in axes:
        rest = tuple(i for i in range(a.ndim) if i != where)
        first, last = nonzero_ends(reductions.any(there, rest) if rest else there)
        key[where] = (
            slice(first if "f" in trim else None, last if "b" in trim else None) if last else slice(0, 0)
        )
    return a if a._cell.frozen or not axes else a[(*key, ...)]


@numpy_function(np.shape, front=told_by(np.shape, 1))
def shape(a: Any) -> tuple[int, ...]:
    """An array's shape."""
    return as_handle(a).shape


@numpy_function(np.ndim, front=told_by(np.ndim, 1))
def ndim(a: Any) -> int:
    """An array's number of axes."""
    return as_handle(a).ndim


@numpy_function(np.size, front=told_by(np.size, 2))
def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or along an axis."""
    a = as_handle(a)
    return a.size if axis is None else prod(a.shape[i] for i in build.axes_tuple(axis, a.ndim))


__all__ = [
    "append",
    "apply_along_axis",
    "apply_over_axes",
    "delete",
    "flip",
    "fliplr",
    "flipud",
    "insert",
    "ndim",
    "repeat",
    "roll",
    "rot90",
    "shape",
    "size",
    "tile",
    "trim_zeros",
]
