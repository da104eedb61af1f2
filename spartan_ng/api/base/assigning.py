"""Assignment to what a key selects.

Views are written into. A mask is a choice between old and new; writes through arrays scatter to flat
positions.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.api.base.indexing import fields, flat_positions
from spartan_ng.api.core import keys
from spartan_ng.api.core.cell import Masked
from spartan_ng.api.core.chains import basic_steps, is_read_only, may_overlap
from spartan_ng.api.core.conversion import as_handle, forced, is_array_like, numpys, with_elements
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBER_KINDS, is_subclass, stays
from spartan_ng.api.core.loans import by_key
from spartan_ng.api.core.wrapping import converted_node, make, wrap_node
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.likeness import surely_alike
from spartan_ng.graph.node import Node


def setitem(a: Handle, key: Any, value: Any) -> None:
    """`a[key] = value`."""
    a._check_writable()
    if a._views and is_read_only(a._views):  # whatever the key
        raise ValueError("assignment destination is read-only")
    is_simple = keys.is_simple(key)
    if not is_simple and keys.names_fields(key):
        setitem(fields(a, key, a._peek()), ..., value)
        return
    if stays(a.dtype) and not a._cell.frozen:
        make(a._cell)._force()
    if is_simple:
        _set(a, key, value)
    else:
        by_key(_set, a, key, value)


def _set(a: Handle, key: Any, value: Any) -> None:
    """`a[key] = value` of what has no fields."""
    is_simple = keys.is_simple(key)
    if not is_simple:
        key = keys.plain_key(key)
        is_simple = keys.is_simple(key)
    if isinstance(value, np.ndarray) and is_subclass(value):
        value = _of_subclass(value, a.dtype, is_simple and keys.is_element(key, a.ndim))
    if isinstance(value, np.generic) and (is_simple or a.dtype.kind in "SU" or value.dtype.kind in _TEXTS):
        value = _held(value, a.dtype)
    known = forced(value) if not isinstance(value, Handle) or stays(a.dtype) else value._peek()
    plain = key if is_simple else _plain_key(key)
    is_lazy = known is None or plain is None or a._cell.value is None
    if is_lazy and (a._views or basic_steps(key, a.shape) if is_simple else _is_part(a, key)):
        parts = () if is_simple else key if isinstance(key, tuple) else (key,)
        if a._have_here(value, *parts):
            known, plain = forced(value), plain if is_simple else _plain_key(key)
    if known is not None and plain is not None and a._cell.value is not None:
        target = a._in_place()
        if target is not None:
            _set_value(target, plain, known)
            return
    if a.dtype.char == "c" and isinstance(value, str | bytes):  # a character an element
        value = np.array(value, "c")
    is_array = isinstance(value, Handle | np.ndarray | np.generic) or is_sparse(value) or is_array_like(value)
    if (a.dtype.hasobject or not is_array) and is_simple and keys.is_element(key, a.ndim):
        value = _one(numpys(value), a.dtype, a.ndim)
    new = as_handle(value, None if is_array else a.dtype)
    if is_simple:
        if new.ndim and keys.is_element(key, a.ndim):
            _check_element(a.dtype, new)
        part = _view(a, key)
        if isinstance(value, list | tuple):
            _check_depth(part, new.ndim)
        part._write(new)
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
    """Whether a key of arrays names a part of the array's memory; masks choose among all elements, in one
    pass."""
    return not keys.is_mask(key) or may_overlap(a)


def _check_element(dtype: np.dtype[Any], value: Handle) -> None:
    """NumPy's error where an element takes no array, even of one element; asked of an array of zeros."""
    np.zeros(1, dtype)[0] = np.broadcast_to(np.zeros((), value.dtype), value.shape)


def _check_depth(part: Handle, depth: int) -> None:
    """NumPy's error where lists are deeper than the axes that they are written to: of an array, first axes of
    one element would be left out."""
    if depth > part.ndim and part.dtype.kind in NUMBER_KINDS:
        np.zeros((1,) * part.ndim, part.dtype)[...] = np.zeros((1,) * depth).tolist()


def _set_value(target: Any, key: Any, value: Any) -> None:
    """NumPy's own assignment, its error for shapes as ours."""
    try:
        target[key] = value
    except ValueError as error:
        if is_array_like(value):
            target[key] = with_elements(error, value)
            return
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
    if masked is not None and masked.a.shape == a.shape and surely_alike(masked.mask, m):
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
    if a._have_here(mask):  # which the mask is mostly made of: computed once for the count, values and places
        known, plain = forced(value), forced(mask)
        target = a._in_place()
        if target is not None:
            _set_value(target, plain, known)
            return
        node, m = a._node(), mask._node()
    count = Masked(node, m).count()
    shape = (count, *rest)
    if not _fits(value.shape, shape):
        raise ShapeError(
            f"NumPy boolean array indexing assignment cannot assign {value.shape} input values to "
            f"the {shape} output values where the mask is true"
        )
    row = prod(rest)
    kept = build.nonzero(m, count)
    flat = wrap_node(kept).reshape(-1, 1) * row + wrap_node(build.iota(row))
    _scatter(a, flat, build.broadcast(value._node(), shape))


def _set_scattered(a: Handle, key: Any, value: Handle) -> None:
    """Write through index arrays: where an element is named twice, the last one wins."""
    positions = flat_positions(a.shape, key)
    there = value.shape
    node = value._node()
    while len(there) > positions.ndim and there[0] == 1:
        there = there[1:]
        node = build.reshape(node, there)
    if not _fits(there, positions.shape):
        raise ShapeError(
            f"shape mismatch: value array of shape {value.shape} could not be broadcast to indexing "
            f"result of shape {str(positions.shape).replace(' ', '')}"
        )
    _scatter(a, positions, build.broadcast(node, positions.shape))


def _fits(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array is stretched to a shape, and no further."""
    try:
        return np.broadcast_shapes(given, shape) == shape
    except ValueError:
        return False


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
