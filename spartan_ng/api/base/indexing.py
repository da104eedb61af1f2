"""Indexing in all its forms, to read; `assigning` writes.

Integers and slices are views. A single boolean mask is a filter that stays uncompacted as long as possible.
Integer arrays are a take: several are joined into one flat index, and their axes go where NumPy puts them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants
from spartan_ng.api.core import door, keys
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.chains import basic_steps
from spartan_ng.api.core.conversion import as_handle, over_buffer
from spartan_ng.api.core.dispatch import fresh
from spartan_ng.api.core.handle import Handle, copied
from spartan_ng.api.core.kinds import is_subclass, stays
from spartan_ng.api.core.layouts import lying_as_taken
from spartan_ng.api.core.loans import by_key
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.quick import selected
from spartan_ng.api.core.views import Field, Reshape, Slice, Transpose, field
from spartan_ng.api.core.wrapping import make, wrap, wrap_masked, wrap_node
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def getitem(a: Handle, key: Any) -> ndarray:
    """`a[key]`."""
    value = a._peek()
    if keys.names_fields(key):
        return fields(a, key, value)
    if keys.is_simple(key):
        return _basic(a, key, value)
    return by_key(_selected, a, key)  # type: ignore[no-any-return]


def _selected(a: Handle, key: Any) -> ndarray:
    """`a[key]` of a key with arrays in it."""
    value, given, key = a._peek(), key, keys.plain_key(key)
    if value is not None or not keys.names_element(key, a.ndim):  # an element may wait for its place
        key = keys.of_known_numbers(key)
    if keys.is_simple(key):
        shown: Any = _basic(a, key, value)
        if keys.has_array(given) and isinstance(shown, Handle) and not shown._cell.frozen:
            return copied(shown, "K")
        return shown  # type: ignore[no-any-return]
    if value is not None:
        plain = _small_key(key, value)
        if plain is not None:
            found = selected(value, plain) if type(value) is type(plain) is np.ndarray else value[plain]
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
    if keys.has_integer(key):
        if a.dtype.kind == "V" and keys.is_element(key, a.ndim):
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
    if not cell.frozen:
        if not cell.shared and a._open() is None:
            cell.writable()
            record = a._peek()[key]
        cell.share_for_good()
    return record


def fields(a: Handle, key: Any, value: Any) -> ndarray:
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
    here = stays(value.dtype)
    for p in parts:
        if isinstance(p, Handle):
            p = p._force() if here else p._peek()
            if p is None:
                return None
        plain.append(p)
    if not here and not (door.is_open() and selects_little(plain, value, door.is_small)):
        return None
    return tuple(plain) if isinstance(key, tuple) else plain[0]


def selects_little(key: Sequence[Any], value: Any, fits: Callable[[int], bool]) -> bool:
    """Whether what a key of NumPy's arrays, integers, slices and new axes selects takes bytes that fit.

    It is counted only where the arrays' elements do not tell.
    """
    few = door.is_small(prod(p.size for p in key if isinstance(p, np.ndarray)) * value.nbytes)
    return few or fits(_most_selected(key, value) * value.itemsize)


def _most_selected(key: Sequence[Any], value: Any) -> int:
    """How many elements a key of NumPy's arrays, integers, slices and new axes selects, at most: masks are
    counted where they keep few lines."""
    shape: tuple[int, ...] = value.shape
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
            size *= door.most_lines_kept(p, value.nbytes)
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
    index = as_handle(_joined(key, arrays, lengths))  # of numbers alone, it may be one
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


def flat_positions(shape: tuple[int, ...], key: Any) -> ndarray:
    """The flat C-order position in an array of `shape` of each element that `key` selects."""
    key = keys.plain_key(key)
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


def transposed(a: Handle, axes: tuple[int, ...]) -> ndarray:
    """The transposed view; a number is its own."""
    if a._cell.frozen and not axes:
        return a  # type: ignore[return-value]
    return a._see(Transpose(axes))


def reshaped(a: Handle, shape: tuple[int, ...]) -> ndarray:
    """The reshaped view (of a layout that allows one)."""
    return a._see(Reshape(shape))
