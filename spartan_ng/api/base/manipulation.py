"""Array manipulation: other shapes and orders of axes, as views wherever there is one."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from spartan_ng.api.base import indexing
from spartan_ng.api.core import door
from spartan_ng.api.core.cell import Cell, order_letter
from spartan_ng.api.core.chains import full_shape, without_copy
from spartan_ng.api.core.conversion import as_handle, shape_tuple
from spartan_ng.api.core.dispatch import fresh, numpy_function
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import NUMBERS
from spartan_ng.api.core.layouts import asked_of_tiny
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.quick import rolled_by, shown_by, turned_by
from spartan_ng.api.core.views import Broadcast, Diagonal, Reshape, Transpose, Windows
from spartan_ng.api.core.wrapping import make, wrap
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def reshapes_without_copy(a: Handle, shape: tuple[int, ...]) -> bool:
    """Whether NumPy reshapes to a view: always where the base is in C order and nothing was sliced."""
    if not a._views and a._cell.value is None and a._cell.order is None:
        return True
    return without_copy(a._layout(), shape)


_reshape = functools.lru_cache(1024)(Reshape)
_transpose = functools.lru_cache(1024)(Transpose)


def seen_as(a: Handle, shape: Any) -> ndarray | None:
    """NumPy's own view under another shape, where the elements are here and in order."""
    value = a._peek()
    if value is None or a._cell.frozen or not value.flags.c_contiguous:
        return None
    try:
        shown = value.reshape(shape)
    except (ValueError, TypeError):  # ours name the shapes
        return None
    return a._seen(_reshape(shown.shape), shown)


def copied_as(a: Handle, shape: Any, order: str) -> ndarray | None:
    """NumPy's copy under another shape, of few elements that are here and do not lie as `order` wants."""
    value = a._peek()
    nbytes = 0 if value is None or a._cell.frozen else value.nbytes
    if not (nbytes and door.is_sure(nbytes) and door.is_small(nbytes)):
        return None
    try:
        found = value.reshape(shape, order=order)
    except (ValueError, TypeError):  # ours name the shapes
        return None
    return None if np.may_share_memory(found, value) else fresh(found)


def turned_as(a: Handle, axes: tuple[int, ...]) -> ndarray | None:
    """NumPy's own view with the axes in another order, where the elements are here."""
    value = a._peek()
    if value is None or a._cell.frozen or len(axes) != value.ndim or not _are_places(axes):
        return None
    return a._seen(_transpose(axes), value.transpose(axes))


def _place(axis: Any) -> int:
    """An axis as a number; true and false are none."""
    if isinstance(axis, bool | np.bool):
        raise TypeError("an integer is required for the axis")
    return operator.index(axis)


def _are_places(axes: tuple[int, ...]) -> bool:
    """Whether each axis is named once, and as they are counted from the first."""
    return all(type(n) is int for n in axes) and sorted(axes) == list(range(len(axes)))


@numpy_function(np.reshape, front=shown_by(np.ndarray.reshape, 2))
def reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> ndarray:
    """The same elements under another shape; a view where NumPy gives one."""
    a = as_handle(a)
    order = order_letter(order) or "C"
    if order == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    seen = seen_as(a, shape) if order == "C" and not copy else None
    if seen is not None:
        return seen
    value = a._peek()
    if order == "F":
        if copy is None and (found := copied_as(a, shape, order)) is not None:
            return found
        new = full_shape(shape, a.size, a.shape)
        # Fortran's order is C's with the axes reversed, before and after.
        return transpose(reshape(transpose(a), new[::-1], copy=copy))
    if order == "A" and a.ndim > 1 and a._layout().flags.fnc:
        return reshape(a, shape, "F", copy=copy)
    new = full_shape(shape, a.size, a.shape)
    if a._cell.frozen and new == a.shape:
        return a  # type: ignore[no-any-return]
    if a._cell.frozen and value is not None:
        return indexing.reshaped(wrap(np.array(value)), new)
    if copy is not True and reshapes_without_copy(a, new):
        return indexing.reshaped(a, new)
    if copy is False:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    if value is not None and door.is_small(value.nbytes):
        return wrap(np.array(value, order="C").reshape(new))
    return make(Cell(node=build.reshape(a._node(), new)))


@numpy_function(np.ravel, front=shown_by(np.ndarray.ravel, 1))
def ravel(a: Any, order: str = "C") -> ndarray:
    """One axis, as a view where NumPy gives one; "K" takes the elements as they lie in memory."""
    a = as_handle(a)
    order = order_letter(order) or "C"
    if order == "A":
        order = "F" if a.ndim > 1 and a._layout().flags.fnc else "C"
    if order == "K":
        axes = asked_of_tiny([a], _as_iterated) if a.ndim > 1 else None
        a = a if axes is None else transpose(a, axes)
    elif order == "F" and a.ndim > 1:
        if (found := copied_as(a, -1, order)) is not None:
            return found
        a = transpose(a)
    value = a._peek()
    if value is not None and not a._cell.frozen and value.flags.c_contiguous:
        return a._seen(Reshape((value.size,)), value.ravel())  # type: ignore[no-any-return]
    return reshape(a, (a.size,), copy=None if a._layout().flags.c_contiguous else True)


def _as_iterated(tiny: Any) -> Any:
    """An array that lies as NumPy goes over one: a stretched axis has no stride, and stays in its place."""
    return np.nditer([tiny, None], ["zerosize_ok"]).operands[1]


@numpy_function(np.transpose, np.permute_dims, front=turned_by(np.ndarray.transpose, 2))
def transpose(a: Any, axes: Any = None) -> ndarray:
    """The axes in another order (reversed, if none is given), as a view."""
    a = as_handle(a)
    if axes is None:
        order = tuple(range(a.ndim))[::-1]
    else:
        given = tuple(_place(n) for n in (axes if np.iterable(axes) else (axes,)))
        if len(given) != a.ndim:
            raise ValueError(f"axes don't match array: axes {given} and shape {a.shape}")
        order = normalize_axis_tuple(given, a.ndim)
    seen = turned_as(a, order)
    return indexing.transposed(a, order) if seen is None else seen


permute_dims = transpose


@numpy_function(np.matrix_transpose, front=turned_by(np.matrix_transpose, 1))
def matrix_transpose(x: Any, /) -> ndarray:
    """The last two axes exchanged."""
    x = as_handle(x)
    if x.ndim < 2:
        raise ValueError(f"Input array must be at least 2-dimensional, but it is {x.ndim}")
    return swapaxes(x, -1, -2)


@numpy_function(np.swapaxes, front=turned_by(np.ndarray.swapaxes, 3))
def swapaxes(a: Any, axis1: int, axis2: int) -> ndarray:
    """Two axes exchanged, as a view."""
    a = as_handle(a)
    i, j = build.axis_index(axis1, a.ndim), build.axis_index(axis2, a.ndim)
    if i == j:
        return a.view()  # type: ignore[no-any-return]
    order = list(range(a.ndim))
    order[i], order[j] = j, i
    seen = turned_as(a, tuple(order))
    return indexing.transposed(a, tuple(order)) if seen is None else seen


@numpy_function(np.moveaxis, front=turned_by(np.moveaxis, 3))
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
    # In the order of their places, so that each finds those before it where they stay.
    for target, origin in sorted(zip(new, old, strict=True)):
        order.insert(target, origin)
    return transpose(a, tuple(order))


@numpy_function(np.rollaxis, front=rolled_by(np.rollaxis, 3))
def rollaxis(a: Any, axis: int, start: int = 0) -> ndarray:
    """An axis moved back until it is before another."""
    n = a.ndim  # NumPy, too, takes nothing that is no array yet
    a = as_handle(a)
    axis = build.axis_index(axis, n)
    if start < 0:
        start += n
    if not 0 <= start <= n:
        raise np.exceptions.AxisError(
            f"'start' arg requires {-n} <= start < {n + 1}, but {start} was passed in"
        )
    return moveaxis(a, axis, start - 1 if axis < start else start)


@numpy_function(np.expand_dims, front=turned_by(np.expand_dims, 2))
def expand_dims(a: Any, axis: Any) -> ndarray:
    """New axes of length 1, as a view."""
    a = as_handle(a)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    ndim = a.ndim + len(axes)
    places = normalize_axis_tuple(axes, ndim)
    lengths = iter(a.shape)
    return indexing.reshaped(a, tuple(1 if i in places else next(lengths) for i in range(ndim)))


@numpy_function(np.squeeze, front=shown_by(np.ndarray.squeeze, 2))
def squeeze(a: Any, axis: Any = None) -> ndarray:
    """Axes of length 1 removed, as a view."""
    a = as_handle(a)
    if axis is None:
        gone: tuple[int, ...] = tuple(i for i, n in enumerate(a.shape) if n == 1)
    elif a.ndim == 0 and not isinstance(axis, tuple) and operator.index(axis) in (0, -1):
        gone = ()  # as NumPy lets them slip through for scalars
    else:
        gone = normalize_axis_tuple(axis if isinstance(axis, tuple) else operator.index(axis), a.ndim)
        if any(a.shape[i] != 1 for i in gone):
            raise ShapeError(
                "cannot select an axis to squeeze out which has size not equal to one "
                f"(axis {axis}, shape {a.shape})"
            )
    if not gone:
        return a  # type: ignore[no-any-return]
    return indexing.reshaped(a, tuple(n for i, n in enumerate(a.shape) if i not in gone))


@numpy_function(np.atleast_1d, front=shown_by(np.atleast_1d, 1))
def atleast_1d(*arys: Any) -> Any:
    """Arrays of one axis or more."""
    return _at_least(arys, lambda a: a.reshape(1) if a.ndim == 0 else a)


@numpy_function(np.atleast_2d, front=shown_by(np.atleast_2d, 1))
def atleast_2d(*arys: Any) -> Any:
    """Arrays of two axes or more."""
    return _at_least(arys, lambda a: _with_new_axes(a, (None, ...), 2) if a.ndim < 2 else a)


@numpy_function(np.atleast_3d, front=shown_by(np.atleast_3d, 1))
def atleast_3d(*arys: Any) -> Any:
    """Arrays of three axes or more."""
    keys = (None, (None, ..., None), (..., None))
    return _at_least(arys, lambda a: _with_new_axes(a, keys[a.ndim], 3) if a.ndim < 3 else a)


def _with_new_axes(a: ndarray, key: Any, ndim: int) -> ndarray:
    """An array seen by a key with new axes, which have no stride; of one without axes they have."""
    return a[key] if a.ndim else a.reshape((1,) * ndim)


def _at_least(arys: tuple[Any, ...], grow: Any) -> Any:
    found = tuple(grow(wrap(np.array(a)) if type(a) in _NUMBERS else as_handle(a)) for a in arys)
    return found[0] if len(found) == 1 else found


_NUMBERS = NUMBERS | NUMERIC


@numpy_function(np.broadcast_to, front=shown_by(np.broadcast_to, 2))
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> ndarray:
    """A read-only view with repeated elements."""
    a = as_handle(array)
    lengths = shape_tuple(shape)
    if build.broadcast_shapes("broadcast_to", a.shape, lengths) != lengths:
        raise ShapeError(f"broadcast_to: shape {a.shape} does not broadcast to {lengths}")
    return _broadcast(a, Broadcast(lengths))


def _broadcast(a: ndarray, view: Broadcast) -> ndarray:
    """A broadcast view; of a number, one of an array of its own."""
    return a._see(view)


@numpy_function(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ndarray:
    """The windows of a shape at all places, as a read-only view; `window_shape` goes with `axis`."""
    a = as_handle(x)
    if writeable:
        from spartan_ng.api.base import strides

        return strides.windows_to_write(a, window_shape, axis)
    lengths = tuple(window_shape) if np.iterable(window_shape) else (window_shape,)
    lengths = tuple(operator.index(n) for n in lengths)
    if any(n < 0 for n in lengths):
        raise ValueError(f"`window_shape` cannot contain negative values, as {lengths} does")
    axes = tuple(range(a.ndim)) if axis is None else normalize_axis_tuple(axis, a.ndim, allow_duplicate=True)
    if len(axes) != len(lengths):
        needed = "must provide window_shape for all dimensions of `x`"
        if axis is not None:
            needed = "Must provide matching length window_shape and axis"
        raise ValueError(f"{needed}, not lengths {lengths} for axes {axes}")
    left = list(a.shape)
    for n, i in zip(lengths, axes, strict=True):
        if left[i] < n:
            raise ValueError(f"window shape cannot be larger than input array shape: {lengths}, {a.shape}")
        left[i] -= n - 1
    if a._cell.frozen:
        a = copied(a)
    return make(a._cell, (*a._views, Windows(lengths, axes)))


@numpy_function(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> tuple[ndarray, ...]:
    """Arrays broadcast against each other: themselves where all have one shape.

    Views of others may be written to; on a cluster only those with as many elements as the array.
    """
    found = [copied(a) if a._cell.frozen else a for a in map(as_handle, args)]
    shape = build.broadcast_shapes("broadcast_arrays", *(a.shape for a in found)) if found else ()
    if all(a.shape == shape for a in found):
        return tuple(found)
    return tuple(_broadcast(a, Broadcast(shape, writeable=True, warns=True)) for a in found)


def broadcast_shapes(*args: Any) -> tuple[int, ...]:
    """The shape several shapes broadcast to."""
    return build.broadcast_shapes("broadcast_shapes", *(shape_tuple(s) for s in args)) if args else ()


@numpy_function(np.diagonal, front=shown_by(np.ndarray.diagonal, 4))
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """The diagonal of the planes of two axes, last; a read-only view."""
    return diagonal_view(as_handle(a), offset, axis1, axis2, writeable=False)


def diagonal_view(a: ndarray, offset: int, axis1: int, axis2: int, writeable: bool) -> ndarray:
    """The diagonal, through which `einsum` also writes."""
    if a.ndim < 2:
        raise ValueError(f"diag requires an array of at least two dimensions, not of shape {a.shape}")
    i, j = build.axis_index(axis1, a.ndim), build.axis_index(axis2, a.ndim)
    offset = operator.index(offset)  # a number without a sign has no negative
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [n for k, n in enumerate(a.shape) if k not in (i, j)]
    length: int = max(0, min(a.shape[i] - max(-offset, 0), a.shape[j] - max(offset, 0)))
    return a._see(Diagonal(offset, (i, j), (*rest, length), writeable))


def along(a: Handle, axis: Any) -> tuple[ndarray, int]:
    """An array and its axis; flat for None. One without axes has one for 0 and -1, as in NumPy's C code."""
    if axis is None or (a.ndim == 0 and operator.index(axis) in (0, -1)):
        return ravel(a), 0
    return a, build.axis_index(axis, a.ndim)  # type: ignore[return-value]


__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "diagonal",
    "expand_dims",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "squeeze",
    "swapaxes",
    "transpose",
]
