"""Rearranging elements: repetition, rolling, and elements taken or put by their places."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import creation, indexing, logic, reductions, sorting, ufuncs
from spartan_ng.api.dispatch import gathered, numpy_function
from spartan_ng.api.handle import Handle, as_handle, copied, make, values, wrap, wrap_node
from spartan_ng.api.manipulation import (
    broadcast_to,
    concatenate,
    moveaxis,
    ravel,
    reshapes_without_copy,
    swapaxes,
)
from spartan_ng.api.views import Slice, bounded
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


class Flat:
    """`a.flat`: the elements in C order."""

    def __init__(self, array: Handle) -> None:
        self.base = array

    def __iter__(self) -> Iterator[Any]:
        return (wrap(v) for v in self.base._force().flat)

    def __len__(self) -> int:
        return self.base.size

    def __getitem__(self, key: Any) -> Any:
        found = ravel(self.base)[key]
        return found.copy() if found.ndim else found

    def __setitem__(self, key: Any, value: Any) -> None:
        if reshapes_without_copy(self.base, (self.base.size,)):
            indexing.reshaped(self.base, (self.base.size,))[key] = _cycled(self.base, key, value)
        else:
            flat = copied(self.base).reshape(-1)
            flat[key] = _cycled(self.base, key, value)
            self.base._write(flat.reshape(self.base.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(ravel(self.base), dtype)

    def copy(self) -> ndarray:
        """A flat copy."""
        return ravel(self.base).copy()


def _cycled(base: Handle, key: Any, value: Any) -> Any:
    """Values for a flat region, repeated as often as needed."""
    value = as_handle(value)
    if value.ndim == 0:
        return value
    wanted = len(range(*key.indices(base.size))) if isinstance(key, slice) else value.size
    flat = value.ravel()
    return flat if flat.size == wanted else resized(flat, (wanted,), True)


@numpy_function(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> ndarray:
    """Each element several times."""
    a = as_handle(a)
    value = a._peek()
    if value is not None and repeats.__class__ is int and 0 <= repeats * value.nbytes < config.small_bytes:
        return wrap(np.repeat(value, repeats, axis))
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, max(a.ndim, 1))
    a = a if a.ndim else ravel(a)
    if isinstance(repeats, Handle) and repeats.size > 1 and repeats._peek() is None:
        return _repeated(a, repeats, where)
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "biu":
        raise TypeError(
            f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    if (counts < 0).any():
        raise ValueError("repeats may not contain negative values.")
    known = ufuncs.small_values((a,))
    if known is not None and prod(a.shape) * max(counts.max(initial=0), 1) * a.itemsize <= config.small_bytes:
        return wrap(np.repeat(known[0], counts, where))
    if config.small_bytes and a._peek() is not None and in_process():  # nothing is gained by views of it
        return wrap(np.repeat(a._peek(), counts, where))
    if counts.size == 1:
        n = int(counts.reshape(()))
        shape = (*a.shape[: where + 1], n, *a.shape[where + 1 :])
        wide = build.broadcast(
            build.reshape(a._node(), (*a.shape[: where + 1], 1, *a.shape[where + 1 :])), shape
        )
        final = (*a.shape[:where], a.shape[where] * n, *a.shape[where + 1 :])
        return make(type(a._cell)(node=build.reshape(wide, final)))
    if counts.shape != (a.shape[where],):
        raise ShapeError(
            f"repeat: operands could not be broadcast together with shape {a.shape} and {counts.shape}"
        )
    return take(a, np.repeat(np.arange(a.shape[where]), counts), where)


def _repeated(a: ndarray, counts: Any, axis: int) -> ndarray:
    """Each slice as often as counts on the workers say: a search in their sums finds the slices."""
    if counts.dtype.kind not in "biu":
        raise TypeError(
            f"Cannot cast array data from {counts.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    if counts.shape != (a.shape[axis],):
        raise ShapeError(
            f"repeat: operands could not be broadcast together with shape {a.shape} and {counts.shape}"
        )
    if reductions.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    ends = reductions.cumsum(counts.astype(np.int64))
    places = sorting.searchsorted(ends, creation.arange(int(ends[-1])), "right")
    return take(a, places, axis)


@numpy_function(np.tile)
def tile(A: Any, reps: Any) -> ndarray:
    """An array repeated along its axes."""
    a = as_handle(A)
    counts = creation.shape_tuple(reps)
    ndim = max(a.ndim, len(counts))
    shape = (1,) * (ndim - a.ndim) + a.shape
    counts = (1,) * (ndim - len(counts)) + counts
    inner = [n for pair in zip((1,) * ndim, shape, strict=True) for n in pair]
    outer = [n for pair in zip(counts, shape, strict=True) for n in pair]
    final = tuple(c * n for c, n in zip(counts, shape, strict=True))
    known = ufuncs.small_values((a,))
    if known is not None and prod(final) * a.itemsize <= config.small_bytes:
        return wrap(np.tile(known[0], counts))
    node = build.broadcast(build.reshape(a._node(), tuple(inner)), tuple(outer))
    return make(type(a._cell)(node=build.reshape(node, final)))


@numpy_function(np.flip)
def flip(m: Any, axis: Any = None) -> ndarray:
    """Axes turned around, as a view."""
    m = as_handle(m)
    axes = build.axes_tuple(axis, m.ndim)
    return m[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(m.ndim))]  # type: ignore[no-any-return]


@numpy_function(np.fliplr)
def fliplr(m: Any) -> ndarray:
    """Columns turned around."""
    if as_handle(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(m, 1)


@numpy_function(np.flipud)
def flipud(m: Any) -> ndarray:
    """Rows turned around."""
    if as_handle(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(m, 0)


@numpy_function(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> ndarray:
    """A plane turned by quarter turns."""
    m = as_handle(m)
    first, second = (build.axis_index(a, m.ndim) for a in axes)
    if first == second:
        raise ValueError("Axes must be different.")
    k %= 4
    if k == 0:
        return m[...]  # type: ignore[no-any-return]
    if k == 2:
        return flip(flip(m, first), second)
    if k == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


@numpy_function(np.roll, folds=True)
def roll(a: Any, shift: Any, axis: Any = None) -> ndarray:
    """Elements moved around an axis, the last ones coming first."""
    a = as_handle(a)
    if axis is None:
        return roll(ravel(a), int(np.sum(shift)), 0).reshape(a.shape)
    shifts, axes = np.broadcast_arrays(shift, axis)
    node = a._node()
    for by, raw in zip(shifts.ravel().tolist(), axes.ravel().tolist(), strict=True):
        where = build.axis_index(raw, a.ndim)
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


@numpy_function(np.resize)
def resize(a: Any, new_shape: Any) -> ndarray:
    """Another size, the elements repeated as needed."""
    return resized(ravel(a), creation.shape_tuple(new_shape), True)


def resized(a: Handle, shape: Any, repeated: bool = False) -> ndarray:
    """Elements in another size: repeated, or followed by zeros (`ndarray.resize`)."""
    lengths = creation.shape_tuple(shape)
    size = prod(lengths)
    flat = ravel(a)
    if size <= flat.size:
        return flat[:size].reshape(lengths).copy()  # type: ignore[no-any-return]
    if repeated and flat.size:
        return tile(flat, -(-size // flat.size))[:size].reshape(lengths).copy()  # type: ignore[no-any-return]
    more = creation.zeros(size - flat.size, flat.dtype)
    return concatenate([flat, more]).reshape(lengths)


@numpy_function(np.insert, eager=True)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> ndarray:
    """Values put in before given places."""
    a = as_handle(arr)
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    places = np.arange(n)[obj] if isinstance(obj, slice) else np.asarray(obj)
    if places.dtype == bool:
        places = np.flatnonzero(places)
    scalar = places.ndim == 0 or places.size == 1
    places = places.astype(np.int64).reshape(-1)
    if places.size and ((places < -n) | (places > n)).any():
        raise IndexError(f"index {obj} is out of bounds for axis {where} with size {n}")
    places = np.where(places < 0, places + n, places)
    new = as_handle(values, a.dtype)
    if scalar and places.size == 1:
        if np.ndim(obj) == 0:
            new = moveaxis(new.reshape((1,) * (a.ndim - new.ndim) + new.shape), 0, where)
        length = new.shape[where] if new.ndim == a.ndim else 1
        places = np.repeat(places, length)
    shape = (*a.shape[:where], places.size, *a.shape[where + 1 :])
    new = broadcast_to(new, shape)
    if places.size and (places == places[0]).all():
        before = (slice(None),) * where
        at = int(places[0])
        return concatenate([a[(*before, slice(0, at))], new, a[(*before, slice(at, None))]], where)
    order = np.argsort(places, kind="mergesort")
    total = n + places.size
    is_new = creation.zeros(total, bool)
    is_new[places[order] + np.arange(places.size)] = True
    rank = reductions.cumsum(is_new)  # how many new slices there are up to each
    slots = logic.where(is_new, n + take(order, ufuncs.maximum(rank - 1, 0)), creation.arange(total) - rank)
    return take(concatenate([a, new], where), slots, where)


@numpy_function(np.delete, eager=True)
def delete(arr: Any, obj: Any, axis: Any = None) -> ndarray:
    """The slices that are left when some go."""
    a = as_handle(arr)
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    before = (slice(None),) * where
    if not isinstance(obj, Handle) and np.ndim(obj) == 0 and hasattr(obj, "__index__"):
        at = bounded(obj, n, where)
        return concatenate([a[(*before, slice(0, at))], a[(*before, slice(at + 1, None))]], where)
    kept = creation.ones(n, bool)
    if not (isinstance(obj, list | tuple) and not obj):
        kept[obj] = False
    return compress(kept, a, where)


@numpy_function(np.append)
def append(arr: Any, values: Any, axis: Any = None) -> ndarray:
    """Values at the end."""
    if axis is None:
        return concatenate((ravel(arr), ravel(values)), 0)
    return concatenate((arr, values), axis)


def _check_mode(mode: Any) -> None:
    """NumPy's names of what to do with indices out of bounds."""
    if mode not in ("raise", "wrap", "clip", 0, 1, 2):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")


@numpy_function(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements (or sub-arrays) at indices along an axis."""
    a = as_handle(a)
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    index = (
        as_handle(indices, None if np.size(indices) else np.int64)
        if not isinstance(indices, Handle)
        else indices
    )
    if index.dtype.kind not in "biu":
        raise TypeError(
            f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    index = index.astype(np.int64) if index.dtype.kind == "b" else index  # type: ignore[attr-defined]
    n = a.shape[where]
    _check_mode(mode)
    if mode == "wrap" and n:
        index = index % n
    elif mode == "clip" and n:
        index = ufuncs.clip3(index, 0, n - 1)
    result = a[(*(slice(None),) * where, index)] if where else a[index]
    if not result.ndim == a.ndim - 1 + index.ndim:
        raise ShapeError(f"take: indices of shape {index.shape} from shape {a.shape}")
    result = result.copy() if result._views else result
    return result if out is None else ufuncs.stored("take", result, out, True)  # type: ignore[no-any-return]


@numpy_function(np.put)
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Set flat elements at indices, in place."""
    if not isinstance(a, Handle):
        raise TypeError(f"argument 1 must be an array, not {type(a).__name__}")
    _check_mode(mode)
    index = as_handle(ind).ravel()
    values = as_handle(v).ravel()
    if index.size == 0 or values.size == 0:
        return
    if index.dtype.kind not in "biu":
        raise TypeError(
            f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    index = index.astype(np.int64)  # true and false are places, too
    if mode in ("wrap", "clip"):
        index = index % a.size if mode == "wrap" else ufuncs.clip3(index, 0, a.size - 1)
    Flat(a)[index] = values[:1].reshape(()) if values.size == 1 else resize(values, (index.size,))


@numpy_function(np.compress)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> ndarray:
    """Slices along an axis where a condition holds."""
    a = as_handle(a)
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    mask = as_handle(condition, bool)
    if mask.ndim != 1:
        raise ValueError(f"condition must be a 1-d array, not of shape {mask.shape}")
    n = a.shape[where]
    if mask.shape[0] < n:
        a = a[(*(slice(None),) * where, slice(0, mask.shape[0]))]
    result = a[(*(slice(None),) * where, mask)] if where else a[mask]
    return result if out is None else ufuncs.stored("compress", result, out, True)  # type: ignore[no-any-return]


@numpy_function(np.extract)
def extract(condition: Any, arr: Any) -> ndarray:
    """The elements where a condition is true."""
    return compress(ravel(as_handle(condition).astype(bool)), ravel(arr), 0)


@numpy_function(np.place)
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Set the elements where a mask is true to values in turn."""
    if not isinstance(arr, Handle):
        raise TypeError(f"argument 1 must be numpy.ndarray, not {type(arr).__name__}")
    flags = as_handle(mask, bool)
    values = as_handle(vals).ravel()
    count = int(flags.sum())
    if values.size == 0 and count:
        raise ValueError("Cannot insert from an empty array!")
    if not count:
        return
    indexing.setitem(arr, flags, as_handle(resize(values, (count,)), arr.dtype))


@numpy_function(np.putmask)
def putmask(a: Any, mask: Any, values: Any) -> None:
    """Set the elements where a mask is true to the values at their places."""
    new = resize(as_handle(values).ravel(), (a.size,)).reshape(a.shape).astype(a.dtype)
    a[...] = wrap_node(build.map_("where", as_handle(mask, bool)._node(), new._node(), a._node()))


@numpy_function(np.choose)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
    """Elements from the choice that each index names."""
    index = as_handle(a)
    options = [as_handle(c) for c in choices]
    n = len(options)
    if mode == "wrap":
        index = index % n
    elif mode == "clip":
        index = ufuncs.clip3(index, 0, n - 1)
    elif index.size and bool(((index < 0) | (index >= n)).any()):
        raise ValueError("invalid entry in choice array")
    kind = np.result_type(*(o.dtype for o in options))
    shape = build.broadcast_shapes("choose", index.shape, *(o.shape for o in options))
    node = build.broadcast(build.cast(options[0]._node(), kind), shape)
    for i, option in enumerate(options[1:], 1):
        node = build.map_("where", (index == i)._node(), build.cast(option._node(), kind), node)
    result = wrap_node(node)
    return result if out is None else ufuncs.stored("choose", result, out, True, "unsafe")


@numpy_function(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> ndarray:
    """Elements of each line at indices of their own."""
    a, index = as_handle(arr), as_handle(indices)
    if index.dtype.kind not in "iu":
        raise IndexError("`indices` must be an integer array")
    if axis is None:
        a, axis = ravel(a), 0
    where = build.axis_index(axis, a.ndim)
    if index.ndim != a.ndim:
        raise ShapeError(
            f"`indices` (shape {index.shape}) and `arr` (shape {a.shape}) must have the same number "
            "of dimensions"
        )
    return a[_along(a, index, where)]  # type: ignore[no-any-return]


@numpy_function(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Set elements of each line at indices of their own."""
    a = ravel(arr) if axis is None else arr
    where = 0 if axis is None else build.axis_index(axis, a.ndim)
    if as_handle(indices).ndim != a.ndim:
        raise ShapeError(
            f"`indices` (shape {as_handle(indices).shape}) and `arr` (shape {a.shape}) must have the same "
            "number of dimensions"
        )
    a[_along(a, as_handle(indices), where)] = values


def _along(a: Handle, index: Handle, axis: int) -> tuple[Any, ...]:
    """The index of whole lines, with `index` for its axis."""
    grid = (
        index if i == axis else creation.arange(n).reshape((1,) * i + (-1,) + (1,) * (a.ndim - i - 1))
        for i, n in enumerate(a.shape)
    )
    return tuple(grid)


@numpy_function(np.apply_along_axis)
def apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **keywords: Any) -> ndarray:
    """A function of each line; the first line is evaluated at once, to see what the function gives."""
    arr = as_handle(arr)
    where = build.axis_index(axis, arr.ndim)
    if arr.ndim < 2 or 0 in arr.shape:
        return gathered(np.apply_along_axis, func1d, axis, arr, *args, **keywords)  # type: ignore[no-any-return]
    before, after = arr.shape[:where], arr.shape[where + 1 :]
    first = arr[(0,) * where + (slice(None),) + (0,) * len(after)]._force()
    sample = np.asanyarray(func1d(first.copy(), *args, **keywords))

    def lines(boxes: Any, tiles: Any) -> Any:
        data = np.apply_along_axis(func1d, where, tiles[0], *args, **keywords)
        ul = [lo for lo, _ in boxes[0]]
        return (*ul[:where], *(0,) * sample.ndim, *ul[where + 1 :]), data

    from spartan_ng.api.operators import join_update

    cut = 1 if where == 0 else 0
    return join_update(lines, np.add, [arr], [cut], before + sample.shape + after, sample.dtype)


@numpy_function(np.apply_over_axes)
def apply_over_axes(func: Any, a: Any, axes: Any) -> ndarray:
    """A function of an array and an axis, over one axis after the other, each kept with length 1."""
    found = as_handle(a)
    ndim = found.ndim
    for axis in np.atleast_1d(axes).tolist():
        where = build.axis_index(axis, ndim)
        result = as_handle(func(found, where))
        if result.ndim != ndim:
            result = result.reshape((*result.shape[:where], 1, *result.shape[where:]))
            if result.ndim != ndim:
                raise ValueError("function is not returning an array of the correct shape")
        found = result
    return found


def nonzero_ends(a: ndarray) -> tuple[int, int]:
    """Where the non-zero elements of a vector begin and end; (n, 0) if there are none."""
    n = a.shape[0]
    there = a if a.dtype == bool else ufuncs.not_equal(a, 0)
    places = as_handle(creation.arange(n))
    first, last = values(
        reductions.min(places, initial=n, where=there), reductions.max(places, initial=-1, where=there)
    )
    return int(first), int(last) + 1


@numpy_function(np.trim_zeros, eager=True)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """A view without the zeros at the front ("f"), at the back ("b"), or both, of the axes."""
    trim = trim.lower()
    if trim not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    a = as_handle(filt)
    axes = build.axes_tuple(axis, a.ndim)
    key = [slice(None)] * a.ndim
    for where in axes:
        rest = tuple(i for i in range(a.ndim) if i != where)
        first, last = nonzero_ends(reductions.any(ufuncs.not_equal(a, 0), rest) if rest else a)
        key[where] = (
            slice(first if "f" in trim else None, last if "b" in trim else None) if last else slice(0, 0)
        )
    return a[tuple(key)]


@numpy_function(np.copyto)
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy elements into an array under a casting rule."""
    if isinstance(dst, np.ndarray):
        np.copyto(dst, as_handle(src)._force(), casting=casting, where=where)  # type: ignore[arg-type]
        return
    new = as_handle(src) if isinstance(src, Handle | np.ndarray) else as_handle(np.asarray(src, dst.dtype))
    if not np.can_cast(new.dtype, dst.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {new.dtype!r} to {dst.dtype!r} according to the rule {casting!r}"
        )
    ufuncs.stored("copyto", broadcast_to(new, dst.shape), dst, where, casting)


def shape(a: Any) -> tuple[int, ...]:
    """An array's shape."""
    return as_handle(a).shape


def ndim(a: Any) -> int:
    """An array's number of axes."""
    return as_handle(a).ndim


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or along an axis."""
    a = as_handle(a)
    return a.size if axis is None else prod(a.shape[i] for i in build.axes_tuple(axis, a.ndim))


for _numpys, _ours in ((np.shape, shape), (np.ndim, ndim), (np.size, size)):
    numpy_function(_numpys)(_ours)
