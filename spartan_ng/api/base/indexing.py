"""Indexing in all its forms, to read and to write.

Integers and slices are views. A single boolean mask is a filter that stays uncompacted as long as possible.
Integer arrays are a take: several are joined into one flat index, and their axes go where NumPy puts them.
Writes through arrays scatter to flat positions.
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants
from spartan_ng.api.core import keys
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.chains import basic_steps, is_stretched
from spartan_ng.api.core.conversion import as_handle, forced, is_array_like, numpys
from spartan_ng.api.core.dispatch import fresh
from spartan_ng.api.core.handle import (
    Handle,
    converted_node,
    copied,
    make,
    over_buffer,
    wrap,
    wrap_masked,
    wrap_node,
)
from spartan_ng.api.core.kinds import is_subclass, stays
from spartan_ng.api.core.layouts import lying_as_taken
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.views import Field, Reshape, Slice, Transpose, field
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.node import Node

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


# --- reading ---------------------------------------------------------------------------------------


def getitem(a: Handle, key: Any) -> ndarray:
    """`a[key]`."""
    value = a._peek()
    if keys.names_fields(key):
        return _field(a, key, value)
    if keys.is_simple(key):
        return _basic(a, key, value)
    if value is not None and isinstance(key, Handle) and key._cell.frozen and key.dtype.kind in "iu":
        return _basic(a, int(key._force()), value)
    given, key = key, keys.canonical(key)
    if keys.is_simple(key):
        shown: Any = _basic(a, key, value)
        if keys.has_array(given) and isinstance(shown, Handle) and not shown._cell.frozen:
            return copied(shown, "K")
        return shown  # type: ignore[no-any-return]
    if value is not None:
        plain = _small_key(key, value)
        if plain is not None:
            found = value[plain]
            return found if type(found) in NUMERIC else fresh(found)  # type: ignore[no-any-return]
    if keys.is_mask(key):
        return _filter(a, key)
    found = _fancy(a, keys.parse(key, a.shape))
    return found._force()[()] if not found.shape and a.dtype.kind in "USO" else found


def _basic(a: Handle, key: Any, value: Any) -> ndarray:
    """A view; a scalar where nothing is left of the axes, which is Python's for strings and objects."""
    if value is not None:
        shown = value[key]
        if type(shown) in NUMERIC:
            return shown if key != () else wrap(shown)
        if isinstance(shown, np.void):
            return _record(a, key, shown)  # type: ignore[no-any-return]
        if not isinstance(shown, np.ndarray) or is_subclass(shown):  # objects may be arrays of any class
            return wrap(shown)
        if value.dtype.kind == "O" and keys.is_element(key, value.ndim):
            return over_buffer(shown)  # an array that is an element
        if a._cell.frozen:
            return wrap(shown.copy())
        return a._seen(key, shown)
    if keys.is_element(key, a.ndim):
        if a.dtype.kind == "V":
            make(a._cell)._force()  # a record is a view of it
        a._cell.pick()
        if a._cell.value is not None:
            return _basic(a, key, a._peek())
    steps = basic_steps(key, a.shape)
    for step in steps:
        a = a._see(step)
    if not a.shape and not keys.keeps_axes(key):
        one = wrap_node(a._node())
        return one._force()[()] if a.dtype.kind in "USO" else one
    if a._cell.frozen:
        return copied(a)
    return a if steps else a._whole()  # type: ignore[attr-defined, return-value]


def _record(a: Handle, key: Any, record: np.void) -> Any:
    """An element of a structured array, NumPy's own: it shows the array's memory, which is written in place
    from now on, and setting its fields sets them in the array."""
    cell = a._cell
    if not cell.frozen and not cell.shared:
        if a._open() is None:
            cell.writable()
            record = a._peek()[key]
        cell.shared = True
    return record


def _field(a: Handle, key: Any, value: Any) -> ndarray:
    """A view of fields of a structured array; NumPy's error where there are none of that name."""
    is_here = type(value) is np.ndarray and type(key) is str and not a._cell.frozen
    view = field(value.dtype, key) if is_here else None
    if view is not None:
        return a._seen(view, value[key])
    of_one = value if isinstance(value, np.void) else np.zeros((), a.dtype)
    found = of_one[key]
    if isinstance(value, np.void):
        return wrap(found)
    if np.shape(found) or not found.itemsize:  # elements with axes of their own are NumPy's to lay out
        make(a._cell)._force()
    h = a._see(Field(key, found.dtype, bool(np.shape(found))))
    return wrap_node(h._node()) if a._cell.frozen else h


def _small_key(key: Any, value: Any) -> Any:
    """The key for NumPy's own indexing, if it is on the driver and what it selects is small."""
    parts = key if isinstance(key, tuple) else (key,)
    plain = []
    elements = 1
    here = stays(value.dtype)
    for p in parts:
        if isinstance(p, Handle):
            known = p._force() if here else p._peek()
            if known is None:
                return None
            elements *= known.size
            p = known
        plain.append(p)
    small = config.small_bytes
    few = here or (small and elements * value.nbytes <= small)  # or they are counted
    if not few and (not small or most_selected(plain, value.shape) * value.itemsize > small):
        return None
    return tuple(plain) if isinstance(key, tuple) else plain[0]


def most_selected(key: list[Any], shape: tuple[int, ...]) -> int:
    """How many elements a key of NumPy's arrays, integers, slices and new axes selects, at most."""
    taken = sum(p.ndim if _is_mask(p) else 1 for p in key if p is not None and p is not ...)
    if taken > len(shape):  # NumPy says so
        return 0
    axis, size = 0, 1
    indices: list[tuple[int, ...]] = []
    for p in key:
        if p is None:
            continue
        ahead = len(shape) - taken if p is ... else p.ndim if _is_mask(p) else 1
        if p is ...:
            size *= prod(shape[axis : axis + ahead])
        elif isinstance(p, slice):
            size *= len(range(*p.indices(shape[axis])))
        elif _is_mask(p):
            size *= p.size
        elif isinstance(p, np.ndarray):
            indices.append(p.shape[::-1])
        axis += ahead
    return size * prod(map(max, zip_longest(*indices, fillvalue=1))) * prod(shape[axis:])


def _is_mask(p: Any) -> bool:
    return isinstance(p, np.ndarray) and p.dtype.kind == "b"


def _filter(a: Handle, mask: Handle) -> ndarray:
    """`a[mask]`, not compacted before its elements or its shape are asked for."""
    mask = keys.fitting(a.shape, mask)
    kept = wrap_masked(Masked(a._node(), mask._node()))
    return lying_as_taken(kept, a, [*range(mask.ndim, a.ndim)], 0)


# --- reading by arrays ------------------------------------------------------------------------------


def _fancy(a: Handle, key: keys.Key) -> ndarray:
    """Take through index arrays, after the slices and new axes."""
    arrays, rest, first = keys.placed(key)
    on_base = [e for e in key.entries if e.axis >= 0]
    sliced = Slice(
        tuple(e.start if e.index is None and e.length else 0 for e in on_base),
        tuple(e.step if e.index is None else 1 for e in on_base),
        tuple(e.length if e.index is None else a.shape[e.axis] for e in on_base),
    )
    node = sliced.apply(a._node())
    lengths = tuple(a.shape[e.axis] if e.axis >= 0 and e.index is not None else e.length for e in key.entries)
    node = build.reshape(node, lengths)
    from_axes = [key.entries[i].axis for i in rest]
    if len(arrays) == 1:
        index = key.entries[arrays[0]].index
        return lying_as_taken(wrap_node(build.take(node, index._node(), arrays[0])), a, from_axes, first)
    index = _joined(key, arrays, lengths)
    node = build.transpose(node, (*arrays, *rest))
    kept = node.shape[len(arrays) :]
    node = build.reshape(node, (prod(lengths[i] for i in arrays), *kept))
    node = build.take(node, index._node(), 0)
    back = list(range(index.ndim, node.ndim))
    back[first:first] = range(index.ndim)
    return lying_as_taken(wrap_node(build.transpose(node, back)), a, from_axes, first)


def _joined(key: keys.Key, arrays: list[int], lengths: tuple[int, ...]) -> ndarray:
    """Several index arrays as one flat index over their axes."""
    indices = [key.entries[i].index for i in arrays]
    keys.index_shape(key, arrays)
    flat = indices[0]
    for position, index in zip(arrays[1:], indices[1:], strict=True):
        flat = flat * lengths[position] + index
    return flat  # type: ignore[no-any-return]


# --- writing ---------------------------------------------------------------------------------------


def setitem(a: Handle, key: Any, value: Any) -> None:
    """`a[key] = value`."""
    a._check_writable()
    if keys.names_fields(key):
        setitem(_field(a, key, a._peek()), ..., value)
        return
    if stays(a.dtype) and not a._cell.frozen:
        make(a._cell)._force()
    if not keys.is_simple(key):
        key = keys.canonical(key)
    if isinstance(value, np.ndarray) and is_subclass(value):
        value = _of_subclass(value, a.dtype, keys.is_simple(key) and keys.is_element(key, a.ndim))
    if isinstance(value, np.generic) and (
        keys.is_simple(key) or a.dtype.kind in "SU" or value.dtype.kind in _TEXTS
    ):
        value = _held(value, a.dtype)
    known = forced(value) if stays(a.dtype) or not isinstance(value, Handle) else value._peek()
    plain = key if keys.is_simple(key) else _plain_key(key)
    if (known is None or plain is None or a._cell.value is None) and _is_part(a, key):
        parts = key if isinstance(key, tuple) else (key,)
        if a._have_here(value, *parts):
            known, plain = forced(value), _plain_key(key)
    if known is not None and plain is not None and a._cell.value is not None:
        target = a._in_place()
        if target is not None:
            _set_value(target, plain, known)
            return
    if a.dtype.char == "c" and isinstance(value, str | bytes):  # a character an element
        value = np.array(value, "c")
    is_array = isinstance(value, Handle | np.ndarray | np.generic) or is_sparse(value) or is_array_like(value)
    if (a.dtype.hasobject or not is_array) and keys.is_simple(key) and keys.is_element(key, a.ndim):
        value = _one(numpys(value), a.dtype, a.ndim)
    new = as_handle(value, None if is_array else a.dtype)
    if keys.is_simple(key):
        if new.ndim and keys.is_element(key, a.ndim):
            _check_element(a.dtype, new)
        _view(a, key)._write(new)
    elif keys.is_mask(key):
        _set_masked(a, key, new)
    else:
        _set_scattered(a, key, new)


_TEXTS = "SUV"
"""Kinds of dtypes whose elements may be no numbers: an error that a cast would find when it is computed."""


def _of_subclass(value: Any, dtype: np.dtype[Any], is_element: bool) -> Any:
    """The elements of an array of a class derived from NumPy's; what it is besides stays behind, but one
    element is asked for its number, as a masked one refuses to tell it, and an object is the array itself."""
    if not is_element:
        return np.asarray(value)
    return value if dtype.hasobject else _as_element(value, dtype)


def _held(number: Any, dtype: np.dtype[Any]) -> Any:
    """A scalar as NumPy sets elements to it, where that is no cast: a number that integers may not hold is
    computed now, for NumPy's error, times become texts or no numbers, and texts and records are read now."""
    beyond = dtype.kind in "iu" and number.dtype.kind in "iufc" and not np.can_cast(number.dtype, dtype)
    times = number.dtype.kind in "mM" and dtype.kind in "biufcSU"
    read = number.dtype.kind in _TEXTS and dtype.kind not in _TEXTS
    if not (beyond or times or read or (stays(number.dtype) and not stays(dtype))):
        return number
    return _as_element(numpys(number), dtype)


def _as_element(value: Any, dtype: np.dtype[Any]) -> Any:
    """What an element becomes that is set to a value, or NumPy's error."""
    return _one(value, dtype, 0)[()]


def _one(value: Any, dtype: np.dtype[Any], ndim: int) -> Any:
    """An array without axes of the element; a list of one is a number for NumPy only where there are none."""
    one = np.zeros((1,) * ndim, dtype)
    one[(0,) * ndim] = value
    return one.reshape(())


def _is_part(a: Handle, key: Any) -> bool:
    """Whether `key` names a part of the array's memory; masks choose among all elements, in one pass."""
    if keys.is_simple(key):
        return bool(a._views or basic_steps(key, a.shape))
    return not keys.is_mask(key) or is_stretched(a._views)


def _check_element(dtype: np.dtype[Any], value: Handle) -> None:
    """NumPy's error where an element takes no array, even of one element; asked of an array of zeros."""
    np.zeros(1, dtype)[0] = np.broadcast_to(np.zeros((), value.dtype), value.shape)


def _set_value(target: Any, key: Any, value: Any) -> None:
    """NumPy's own assignment, its error for shapes as ours."""
    try:
        target[key] = value
    except ValueError as error:
        if "could not broadcast" in str(error) or "shape mismatch" in str(error):
            raise ShapeError(str(error)) from None
        raise


def _plain_key(key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    plain = tuple(p._peek() if isinstance(p, Handle) else p for p in parts)
    if any(isinstance(p, Handle) and v is None for p, v in zip(parts, plain, strict=True)):
        return None
    return plain if isinstance(key, tuple) else plain[0]


def _view(a: Handle, key: Any) -> Handle:
    """The view to write into, also where reading would give a scalar."""
    for step in basic_steps(key, a.shape):
        a = a._see(step)
    return a


def _set_masked(a: Handle, mask: Handle, value: Handle) -> None:
    """A choice between old and new for a scalar or a row; a scatter for one value an element."""
    mask = keys.fitting(a.shape, mask)
    node = a._node()
    m = mask._node()
    masked = value._masked()
    rest = a.shape[mask.ndim :]
    wide = build.reshape(m, m.shape + (1,) * len(rest))
    if masked is not None and masked.mask is m and masked.a.shape == a.shape:
        a._write_node(build.map_("where", wide, converted_node(masked.a, node.dtype), node))
        return
    if value.ndim > 1 and not rest:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, "
            f"input has {value.ndim} dimensions"
        )
    while value.ndim > 1 + len(rest) and value.shape[0] == 1:  # as in other assignments
        value = wrap_node(build.reshape(value._node(), value.shape[1:]))
    if value.ndim == 0 or (value.ndim <= len(rest) and value.shape == rest[len(rest) - value.ndim :]):
        new = converted_node(value._node(), node.dtype)
        a._write_node(build.map_("where", wide, new, node))
        return
    count = Masked(node, m).count()
    shape = (count, *rest)
    try:
        fits = np.broadcast_shapes(shape, value.shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"NumPy boolean array indexing assignment cannot assign {value.shape} input values to "
            f"the {shape} output values where the mask is true"
        )
    row = prod(rest)
    kept = build.nonzero(m, count)
    flat = wrap_node(kept).reshape(-1, 1) * row + wrap_node(build.iota(row))
    _scatter(a, flat, build.broadcast(value._node(), shape))


def flat_positions(shape: tuple[int, ...], key: Any) -> ndarray:
    """The flat C-order position in an array of `shape` of each element that `key` selects."""
    key = keys.canonical(key)
    if keys.is_mask(key):
        key = keys.fitting(shape, key)
    parsed = keys.parse(key, shape)
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    arrays, rest, first = keys.placed(parsed)
    lines = keys.index_shape(parsed, arrays)
    ndim = len(rest) + len(lines)
    total = constants.zeros((*lines, *(1,) * (len(rest) - first)), np.int64)
    for i in arrays:
        e = parsed.entries[i]
        if e.axis >= 0:
            total = total + (e.index * strides[e.axis]).reshape(e.index.shape + (1,) * (len(rest) - first))
    for place, i in enumerate(rest):
        e = parsed.entries[i]
        axis = place if place < first else place + len(lines)
        line = wrap(np.zeros(1, np.int64))
        if e.axis >= 0:
            line = wrap_node(build.iota(e.length)) * (e.step * strides[e.axis]) + e.start * strides[e.axis]
        total = total + line.reshape((1,) * axis + (line.size,) + (1,) * (ndim - axis - 1))
    return total


def _set_scattered(a: Handle, key: Any, value: Handle) -> None:
    """Write through index arrays: where an element is named twice, the last one wins."""
    positions = flat_positions(a.shape, key)
    there = value.shape
    node = value._node()
    while len(there) > positions.ndim and there[0] == 1:
        there = there[1:]
        node = build.reshape(node, there)
    try:
        fits = np.broadcast_shapes(there, positions.shape) == positions.shape
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(
            f"shape mismatch: value array of shape {value.shape} could not be broadcast to indexing "
            f"result of shape {str(positions.shape).replace(' ', '')}"
        )
    _scatter(a, positions, build.broadcast(node, positions.shape))


def _scatter(a: Handle, positions: Handle, node: Node) -> None:
    """Put a node's elements at flat positions."""
    count = positions.size
    if count == 0:
        return
    base = a._node()
    flat = build.scatter(
        build.reshape(base, (base.size,)),
        build.reshape(positions._node(), (count,)),
        build.reshape(converted_node(node, base.dtype), (count,)),
    )
    a._write_node(build.reshape(flat, base.shape))


def transposed(a: Handle, axes: tuple[int, ...]) -> ndarray:
    """The transposed view; a number is its own."""
    if a._cell.frozen and not axes:
        return a  # type: ignore[return-value]
    return a._see(Transpose(axes))


def reshaped(a: Handle, shape: tuple[int, ...]) -> ndarray:
    """The reshaped view (of a layout that allows one)."""
    return a._see(Reshape(shape))
