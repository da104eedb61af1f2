"""Array manipulation: other shapes and orders as views, joins and splits, repetition, padding."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from spartan_ng.api import creation, indexing
from spartan_ng.api.cell import order_of
from spartan_ng.api.dispatch import numpy_function
from spartan_ng.api.handle import Handle, as_handle, make, shape_tuple, wrap, wrap_node
from spartan_ng.api.operands import stored
from spartan_ng.api.views import Broadcast, Reshape, full_shape, without_copy
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


# --- shape -----------------------------------------------------------------------------------------


def reshapes_without_copy(a: Handle, shape: tuple[int, ...]) -> bool:
    """Whether NumPy reshapes to a view: always where the base is in C order and nothing was sliced."""
    if not a._views and a._cell.value is None and a._cell.order is None:
        return True
    return without_copy(a._layout(), shape)


@numpy_function(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """The same elements under another shape; a view where NumPy gives one."""
    a = as_handle(a)
    order = str(order).upper()
    value = a._peek()
    if value is not None and order == "C" and not copy and not a._cell.frozen and value.flags.c_contiguous:
        try:
            shown = value.reshape(shape)
            return a._seen(Reshape(shown.shape), shown)  # type: ignore[no-any-return]
        except (ValueError, TypeError):  # ours name the shapes
            pass
    if order == "F":
        new = full_shape(shape, a.size, a.shape)
        return transpose(reshape(transpose(a), new[::-1], copy=copy))
    if order == "A" and a.ndim > 1 and a._layout().flags.fnc:
        return reshape(a, shape, "F", copy=copy)
    if order not in ("C", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    new = full_shape(shape, a.size, a.shape)
    if a._cell.frozen and value is not None:
        return wrap(np.array(value).reshape(new))
    if copy is not True and reshapes_without_copy(a, new):
        return indexing.reshaped(a, new)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    if value is not None and value.nbytes <= config.small_bytes:
        return wrap(np.array(value, order="C").reshape(new))
    return make(type(a._cell)(node=build.reshape(a._node(), new)))


@numpy_function(np.ravel)
def ravel(a: Any, order: str = "C") -> ndarray:
    """One axis, as a view where NumPy gives one; "K" takes the elements as they lie in memory."""
    a = as_handle(a)
    order = str(order).upper()
    if order == "K" and a.ndim > 1:
        axes = order_of(a._layout())
        a = a if axes is None else transpose(a, axes)
    return reshape(a, (-1,), order) if a.size else reshape(a, (0,), order)


@numpy_function(np.transpose, np.permute_dims)
def transpose(a: Any, axes: Any = None) -> ndarray:
    """The axes in another order (reversed, if none is given), as a view."""
    a = as_handle(a)
    if axes is None:
        order = tuple(range(a.ndim))[::-1]
    else:
        order = normalize_axis_tuple([operator.index(n) for n in axes], a.ndim)
        if len(order) != a.ndim:
            raise ValueError(f"axes don't match array: axes {tuple(axes)} and shape {a.shape}")
    return indexing.transposed(a, order)


permute_dims = transpose


@numpy_function(np.matrix_transpose)
def matrix_transpose(x: Any, /) -> ndarray:
    """The last two axes exchanged."""
    x = as_handle(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


@numpy_function(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Two axes exchanged, as a view."""
    a = as_handle(a)
    order = list(range(a.ndim))
    i, j = build.axis_index(axis1, a.ndim), build.axis_index(axis2, a.ndim)
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


@numpy_function(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> ndarray:
    """Axes moved to other positions, as a view."""
    a = as_handle(a)
    old = normalize_axis_tuple(source, a.ndim, "source")
    new = normalize_axis_tuple(destination, a.ndim, "destination")
    if len(old) != len(new):
        raise ValueError(
            "`source` and `destination` arguments must have the same number of elements, "
            f"which {source} and {destination} have not"
        )
    order = [n for n in range(a.ndim) if n not in old]
    for target, origin in sorted(zip(new, old, strict=True)):
        order.insert(target, origin)
    return transpose(a, order)


@numpy_function(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """An axis moved back until it is before another."""
    a = as_handle(a)
    n = a.ndim
    axis = build.axis_index(axis, n)
    if start < 0:
        start += n
    if not 0 <= start <= n:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in"
        )
    return moveaxis(a, axis, start - 1 if axis < start else start)


@numpy_function(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> ndarray:
    """New axes of length 1, as a view."""
    a = as_handle(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = a.ndim + len(axes)
    places = normalize_axis_tuple(axes, ndim)
    lengths = iter(a.shape)
    return indexing.reshaped(a, tuple(1 if i in places else next(lengths) for i in range(ndim)))


@numpy_function(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> ndarray:
    """Axes of length 1 removed, as a view."""
    a = as_handle(a)
    if axis is None:
        gone: tuple[int, ...] = tuple(i for i, n in enumerate(a.shape) if n == 1)
    else:
        gone = normalize_axis_tuple(axis, a.ndim)
        if any(a.shape[i] != 1 for i in gone):
            raise ShapeError(
                "cannot select an axis to squeeze out which has size not equal to one "
                f"(axis {axis}, shape {a.shape})"
            )
    if not gone:
        return a[...] if not a._cell.frozen else a  # type: ignore[no-any-return]
    return indexing.reshaped(a, tuple(n for i, n in enumerate(a.shape) if i not in gone))


@numpy_function(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Arrays of one axis or more."""
    return _at_least(arys, lambda a: a.reshape(1) if a.ndim == 0 else a)


@numpy_function(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Arrays of two axes or more."""
    return _at_least(arys, lambda a: a.reshape(1, -1 if a.size else 0) if a.ndim < 2 else a)


@numpy_function(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Arrays of three axes or more."""
    shapes = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return _at_least(arys, lambda a: a.reshape(shapes[a.ndim](a.shape)) if a.ndim < 3 else a)  # type: ignore[no-untyped-call]


def _at_least(arys: tuple[Any, ...], grow: Any) -> Any:
    found = tuple(grow(as_handle(a)) for a in arys)
    return found[0] if len(found) == 1 else found


@numpy_function(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> ndarray:
    """A read-only view with repeated elements."""
    a = as_handle(array)
    lengths = shape_tuple(shape)
    if a.shape == lengths:
        return a[...]  # type: ignore[no-any-return]
    if build.broadcast_shapes("broadcast_to", a.shape, lengths) != lengths:
        raise ShapeError(f"broadcast_to: shape {a.shape} does not broadcast to {lengths}")
    if a._cell.frozen:
        a = a.copy()
    return make(a._cell, (*a._views, Broadcast(lengths)))


@numpy_function(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ndarray, ...]:
    """Arrays broadcast against each other."""
    found = [as_handle(a) for a in args]
    shape = build.broadcast_shapes("broadcast_arrays", *(a.shape for a in found)) if found else ()
    return tuple(broadcast_to(a, shape) for a in found)


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape several shapes broadcast to."""
    return build.broadcast_shapes("broadcast_shapes", *(shape_tuple(s) for s in args)) if args else ()


# --- joining and splitting -------------------------------------------------------------------------


@numpy_function(np.concatenate, eager=True)
def concatenate(
    arrays: Any, /, axis: int | None = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Arrays one after the other along an axis."""
    parts = [as_handle(a) for a in arrays]
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    ndim = parts[0].ndim
    if ndim == 0:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    for i, p in enumerate(parts):
        if p.ndim != ndim:
            raise ShapeError(
                "all the input array dimensions must match: the array at index 0 has shape "
                f"{parts[0].shape} and the array at index {i} has shape {p.shape}"
            )
    where = build.axis_index(axis, ndim)
    if out is not None and dtype is not None:
        raise TypeError("concatenate() only takes `out` or `dtype` as an argument, but both were provided.")
    given = dtype if out is None else out.dtype
    kind = np.dtype(given) if given is not None else np.result_type(*(p.dtype for p in parts))
    if given is not None and kind.kind in "SU" and not kind.itemsize:  # as long as the longest text
        kind = np.result_type(*(np.zeros(0, p.dtype).astype(kind).dtype for p in parts))
    for p in parts:
        if not np.can_cast(p.dtype, kind, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {p.dtype!r} to {kind!r} according to the rule {casting!r}"
            )
    result = wrap_node(build.concatenate([build.cast(p._node(), kind) for p in parts], where))
    if out is None:
        return result
    if out.shape != result.shape:
        raise ShapeError(f"Output array is the wrong shape: {out.shape}, not {result.shape}")
    return stored("concatenate", result, out)


concat = concatenate


def _to_join(arrays: Any) -> Any:
    """Arrays to be joined, which no generator may give, as NumPy has it."""
    if not hasattr(arrays, "__getitem__"):
        raise TypeError('arrays to stack must be passed as a "sequence" type such as list or tuple.')
    return arrays


@numpy_function(np.stack, eager=True)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Arrays of one shape along a new axis."""
    parts = [as_handle(a) for a in _to_join(arrays)]
    if not parts:
        raise ValueError("need at least one array to stack")
    if len({p.shape for p in parts}) > 1:
        raise ShapeError(f"all input arrays must have the same shape, not {[p.shape for p in parts]}")
    where = build.axis_index(axis, parts[0].ndim + 1)
    return concatenate([expand_dims(p, where) for p in parts], where, out, dtype=dtype, casting=casting)


@numpy_function(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays as rows, one below the other."""
    return concatenate([atleast_2d(a) for a in _to_join(tup)], 0, dtype=dtype, casting=casting)


row_stack = vstack


@numpy_function(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> ndarray:
    """Arrays side by side."""
    parts = [atleast_1d(a) for a in _to_join(tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype=dtype, casting=casting)


@numpy_function(np.dstack)
def dstack(tup: Any) -> ndarray:
    """Arrays along the third axis."""
    return concatenate([atleast_3d(a) for a in _to_join(tup)], 2)


@numpy_function(np.column_stack)
def column_stack(tup: Any) -> ndarray:
    """1-d arrays as the columns of a matrix."""
    return concatenate([a if a.ndim > 1 else a.reshape(-1, 1) for a in map(as_handle, _to_join(tup))], 1)


@numpy_function(np.block)
def block(arrays: Any) -> ndarray:
    """An array from nested lists of blocks; TypeError for tuples, ValueError for lists of unequal depth."""

    def depth(a: Any) -> int:
        if isinstance(a, tuple):
            raise TypeError(
                "np.block: only lists can be used to arrange blocks, and np.block does not take tuples"
            )
        if not isinstance(a, list):
            return 0
        if not a:
            raise ValueError("List depths are mismatched or a list is empty")
        depths = set(map(depth, a))
        if len(depths) > 1:
            raise ValueError(
                f"List depths are mismatched: lists of depths {sorted(depths)} stand side by side"
            )
        return 1 + depths.pop()

    def build_up(a: Any, level: int, ndim: int) -> Any:
        if not isinstance(a, list):
            h = creation.array(a)
            return h.reshape((1,) * (ndim - h.ndim) + h.shape)
        return concatenate([build_up(b, level - 1, ndim) for b in a], -level)

    def deepest(a: Any) -> int:
        return max(map(deepest, a)) if isinstance(a, list) else as_handle(a).ndim

    levels = depth(arrays)
    return build_up(arrays, levels, max(levels, deepest(arrays)))  # type: ignore[no-any-return]


@numpy_function(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Views of the parts of an axis, as equal as can be."""
    a = as_handle(ary)
    where = build.axis_index(axis, a.ndim)
    n = a.shape[where]
    try:
        cuts = [int(i) for i in indices_or_sections]
        bounds = [0, *cuts, n]
    except TypeError:
        parts = operator.index(indices_or_sections)
        if parts <= 0:
            raise ValueError("number sections must be larger than 0.") from None
        each, extra = divmod(n, parts)
        bounds = [i * each + min(i, extra) for i in range(parts + 1)]
    before = (slice(None),) * where
    return [a[(*before, slice(lo, hi))] for lo, hi in pairwise(bounds)]


@numpy_function(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[ndarray]:
    """Views of equal parts of an axis."""
    a = as_handle(ary)
    if not hasattr(indices_or_sections, "__len__"):
        n = a.shape[build.axis_index(axis, a.ndim)]
        if n % operator.index(indices_or_sections):
            raise ShapeError(
                f"array split does not result in an equal division: {n} into {indices_or_sections}"
            )
    return array_split(a, indices_or_sections, axis)


@numpy_function(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts side by side."""
    a = as_handle(ary)
    if a.ndim == 0:
        raise ValueError("hsplit only works on arrays of 1 or more dimensions")
    return split(a, indices_or_sections, 1 if a.ndim > 1 else 0)


@numpy_function(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts one below the other."""
    if as_handle(ary).ndim < 2:
        raise ValueError("vsplit only works on arrays of 2 or more dimensions")
    return split(ary, indices_or_sections, 0)


@numpy_function(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[ndarray]:
    """Parts along the third axis."""
    if as_handle(ary).ndim < 3:
        raise ValueError("dsplit only works on arrays of 3 or more dimensions")
    return split(ary, indices_or_sections, 2)


@numpy_function(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[ndarray, ...]:
    """The sub-arrays along an axis."""
    x = as_handle(x)
    if x.ndim == 0:
        raise ValueError("Input array must be at least 1-d.")
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


__all__ = [
    "array_split",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "expand_dims",
    "hsplit",
    "hstack",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "row_stack",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "transpose",
    "unstack",
    "vsplit",
    "vstack",
]
