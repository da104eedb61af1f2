"""Indexing in all its forms, to read and to write.

Integers and slices are views. A single boolean mask is a filter that stays uncompacted as long as possible.
Integer arrays are a take: several are joined into one flat index, and their axes go where NumPy puts them.
Writes through arrays scatter to flat positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import EllipsisType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import creation
from spartan_ng.api.cell import Masked
from spartan_ng.api.forcing import known_count
from spartan_ng.api.handle import Handle, as_handle, make, settle, wrap, wrap_masked, wrap_node
from spartan_ng.api.views import Basic, Field, Reshape, Slice, Transpose, basic_steps, bounded, expanded
from spartan_ng.config import config
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import at_once_bytes
from spartan_ng.graph.node import Node, Op

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray

_SIMPLE = frozenset({int, slice, NoneType, EllipsisType})


# --- reading ---------------------------------------------------------------------------------------


def getitem(a: Handle, key: Any) -> ndarray:
    """`a[key]`."""
    value = a._peek()
    if _names_fields(key):
        return _field(a, key, value)
    if _is_simple(key):
        return _basic(a, key, value)
    key = _canonical(key)
    if _is_simple(key):
        return _basic(a, key, value)
    if value is not None:
        plain = _small_key(key, value)
        if plain is not None:
            result = value[plain]
            shared = isinstance(result, np.ndarray) and not result.flags.owndata
            return wrap(result.copy() if shared else result)
    if _is_mask(key):
        return _filter(a, key)
    return _fancy(a, _parse(key, a.shape))


def _is_element(key: Any, ndim: int) -> bool:
    """Whether a simple key names a single element."""
    items = key if key.__class__ is tuple else (key,)
    return len(items) == ndim and all(i.__class__ is int for i in items)


def _is_simple(key: Any) -> bool:
    """Whether a key is made of Python integers, slices, None and an ellipsis."""
    kind = key.__class__
    if kind is tuple:
        return _SIMPLE.issuperset(map(type, key))
    return kind in _SIMPLE


def _basic(a: Handle, key: Any, value: Any) -> ndarray:
    """A view; a scalar where nothing is left of the axes, which is Python's for strings and objects."""
    if value is not None:
        shown = value[key]
        if not isinstance(shown, np.ndarray):
            return _record(a, key, wrap(shown)) if isinstance(shown, np.void) else wrap(shown)
        if a._cell.frozen:
            return wrap(shown.copy())
        view = Basic()
        view.key = key
        return a._seen(view, shown)
    if _is_element(key, a.ndim):
        a._cell.pick()
        if a._cell.value is not None:
            return _basic(a, key, a._peek())
    whole, steps = a, basic_steps(key, a.shape)
    for step in steps:
        a = a._see(step)
    if not a.shape and not _keeps_axes(key):
        one = wrap_node(a._node())
        if a.dtype.kind == "V":
            return _record(whole, key, one)
        return one._force()[()] if a.dtype.kind in "USO" else one
    return a if steps else make(a._cell, a._views)  # type: ignore[return-value]


def _record(a: Handle, key: Any, record: ndarray) -> ndarray:
    """An element of a structured array; its fields may be set, which sets them in the array."""
    if not a._cell.frozen:
        record._cell.origin = (a, key)
    return record


def _names_fields(key: Any) -> bool:
    """Whether a key is the name of a field, or a list of names."""
    return isinstance(key, str) or (
        isinstance(key, list) and bool(key) and all(isinstance(k, str) for k in key)
    )


def _field(a: Handle, key: Any, value: Any) -> ndarray:
    """A view of fields of a structured array; NumPy's error where there are none of that name."""
    of_one = value if isinstance(value, np.void) else np.zeros((), a.dtype)
    field = of_one[key]
    if isinstance(value, np.void):
        return wrap(field)
    if np.shape(field):  # elements with axes of their own are NumPy's to lay out
        make(a._cell)._force()
    h = a._see(Field(key, field.dtype))
    return wrap_node(h._node()) if a._cell.frozen else h


def _keeps_axes(key: Any) -> bool:
    """Whether NumPy gives an array, not a scalar, when no axis is left: with an ellipsis."""
    return key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key))


def _canonical(key: Any) -> Any:
    """Integers of any kind as Python's, sequences and arrays as handles, in a key's parts."""
    if isinstance(key, tuple):
        parts = tuple(_canonical_part(k) for k in key)
        masks = [p for p in parts if isinstance(p, Handle)]
        return parts[0] if len(parts) == 1 and len(masks) == 1 and _is_mask(parts[0]) else parts
    return _canonical_part(key)


def _canonical_part(k: Any) -> Any:
    if k.__class__ in _SIMPLE:
        return k
    if isinstance(k, bool | np.bool_):
        return as_handle(np.asarray(k))
    if isinstance(k, Handle | np.ndarray | list | tuple):
        if isinstance(k, list | tuple) and len(k) == 0:
            return as_handle(np.zeros(0, np.int64))
        h = as_handle(k)
        if h.dtype.kind not in "biu":
            raise IndexError(
                "arrays used as indices must be of integer (or boolean) type, "
                f"not {h.dtype} (shape {h.shape})"
            )
        if h.dtype.kind != "b" and h.ndim == 0:
            known = h._peek()
            return h if known is None else int(known)
        return h
    if hasattr(k, "__index__"):
        return int(k.__index__())
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
        f"arrays are valid indices, not {type(k).__name__}"
    )


def _is_mask(key: Any) -> bool:
    return isinstance(key, Handle) and key.dtype.kind == "b" and key.ndim > 0


def _small_key(key: Any, value: Any) -> Any:
    """The key for NumPy's own indexing, if it is on the driver and what it selects is small."""
    parts = key if isinstance(key, tuple) else (key,)
    plain = []
    elements = 1
    for p in parts:
        if isinstance(p, Handle):
            known = p._peek()
            if known is None:
                return None
            elements = max(elements, known.size)
            p = known
        plain.append(p)
    if value.nbytes > config.small_bytes:
        rest = prod(sorted(value.shape)[1:]) if value.ndim > 1 else 1
        if elements * rest * value.itemsize > at_once_bytes(config.small_bytes):
            return None
    elif elements * value.nbytes > 16 * max(config.small_bytes, 0) and elements > value.size:
        return None
    if config.small_bytes == 0:
        return None
    return tuple(plain) if isinstance(key, tuple) else plain[0]


def _fitting(a_shape: tuple[int, ...], mask: Handle) -> Handle:
    """A mask for the leading axes; as in NumPy, one that is empty along any axis keeps nothing.

    Raises IndexError for one that does not fit.
    """
    shape = mask.shape
    if len(shape) > len(a_shape):
        raise IndexError(
            f"too many indices for array: array is {len(a_shape)}-dimensional, but {len(shape)} were indexed"
        )
    for axis, (n, m) in enumerate(zip(a_shape, shape, strict=False)):
        if m not in (n, 0):
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {n} "
                f"but size of corresponding boolean axis is {m} (shapes {a_shape} and {shape})"
            )
    if shape == a_shape[: len(shape)]:
        return mask
    return wrap_node(build.broadcast(build.constant(np.zeros((), bool)), a_shape[: len(shape)]))


def _filter(a: Handle, mask: Handle) -> ndarray:
    """`a[mask]`, not compacted before its elements or its shape are asked for."""
    mask = _fitting(a.shape, mask)
    return wrap_masked(Masked(a._node(), mask._node()))


# --- keys with arrays ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """One part of a key: a slice of a base axis, a new axis, or an index array.

    `axis` is the base axis (-1 for a new one); `index` the non-negative array, or None for a slice.
    """

    axis: int
    start: int = 0
    step: int = 1
    length: int = 1
    index: Any = None


@dataclass(frozen=True, slots=True)
class _Key:
    """A key with arrays, and whether something stands between its arrays."""

    entries: tuple[_Entry, ...]
    separated: bool


def _parse(key: Any, shape: tuple[int, ...]) -> _Key:
    """Work out a key with at least one array in it."""

    def consumed(item: Any) -> int:
        if item is None:
            return 0
        return item.ndim if isinstance(item, Handle) and item.dtype.kind == "b" else 1

    entries: list[_Entry] = []
    runs = 0
    inside = False
    axis = 0
    items = list(key) if isinstance(key, tuple) else [key]
    full = expanded(key, len(shape), consumed)
    place = next((i for i, k in enumerate(items) if k is Ellipsis), -1)
    gap = place if len(full) == len(items) - 1 else -1
    for position, item in enumerate(full):
        if position == gap:
            inside = False
        if item is None:
            entries.append(_Entry(-1))
            inside = False
        elif isinstance(item, slice):
            start, stop, step = item.indices(shape[axis])
            entries.append(_Entry(axis, start, step, len(range(start, stop, step))))
            inside = False
            axis += 1
        else:
            runs += not inside
            inside = True
            found = _index_entries(item, axis, shape)
            entries.extend(found)
            axis += sum(e.axis >= 0 for e in found)
    return _Key(tuple(entries), runs > 1)


def _index_entries(item: Any, axis: int, shape: tuple[int, ...]) -> list[_Entry]:
    """The index arrays an integer, an integer array or a mask stands for."""
    if not isinstance(item, Handle):
        return [_Entry(axis, index=wrap(np.asarray(bounded(item, shape[axis], axis), np.int64)))]
    if item.dtype.kind != "b":
        return [_Entry(axis, index=checked_index(item, shape[axis], axis))]
    if item.ndim == 0:
        kept = np.zeros(1 if bool(item) else 0, np.int64)
        return [_Entry(-1, index=wrap(kept))]
    item = _fitting(shape[axis:], item)
    from spartan_ng.api.sorting import nonzero

    return [_Entry(axis + i, index=h) for i, h in enumerate(nonzero(item))]


def checked_index(index: Handle, n: int, axis: int) -> ndarray:
    """Index arrays as int64 in [0, n); raises NumPy's IndexError where one is out of bounds."""
    node = None if index._peek() is not None else index._node()
    if node is not None and node.size and not _in_range(node, n):
        from spartan_ng.api import reductions

        low, high = reductions.min(index), reductions.max(index)
        settle(index, low, high)
        bounded(int(low), n, axis)
        bounded(int(high), n, axis)
        node = None if index._peek() is not None and config.small_bytes else index._node()
    if node is None:
        known = np.asarray(index._peek())
        if known.size:
            bounded(known.min(), n, axis)
            bounded(known.max(), n, axis)
        known = known.astype(np.int64)
        return wrap(np.where(known < 0, known + n, known))
    h = wrap_node(build.cast(node, np.dtype(np.int64)))
    if node.size == 0 or _in_range(node, n):
        return h
    return wrap_node(build.map_("where", (h < 0)._node(), (h + n)._node(), h._node()))


def _in_range(node: Node, n: int) -> bool:
    """Whether a node's elements lie in [0, n) by the way they were made."""
    while node.op in (Op.SLICE, Op.TRANSPOSE, Op.RESHAPE, Op.BROADCAST) or node.fn == "cast":
        if node.fn == "cast" and node.inputs[0].dtype.kind not in "iu":
            return False
        node = node.inputs[0]
    if node.op is Op.INDEX:
        return node.shape[0] <= n
    if node.op is Op.FILTER:
        return _in_range(node.inputs[0], n)
    if node.op is Op.FOLD and node.fn in ("argmin", "argmax"):
        return node.inputs[0].shape[node.params[0][0]] <= n  # type: ignore[no-any-return]
    if (
        node.op is Op.JOIN_UPDATE
        and node.fn == "along_axis"
        and node.params[0] in ("argsort", "argpartition")
    ):
        return node.inputs[0].shape[node.params[1]] <= n  # type: ignore[no-any-return]
    return False


def _placed(key: _Key) -> tuple[list[int], list[int], int]:
    """Entries with arrays, those without, and the position of the arrays' axes in the result."""
    arrays = [i for i, e in enumerate(key.entries) if e.index is not None]
    rest = [i for i, e in enumerate(key.entries) if e.index is None]
    first = 0 if key.separated or not arrays else sum(i < arrays[0] for i in rest)
    return arrays, rest, first


def _fancy(a: Handle, key: _Key) -> ndarray:
    """Take through index arrays, after the slices and new axes."""
    arrays, rest, first = _placed(key)
    on_base = [e for e in key.entries if e.axis >= 0]
    sliced = Slice(
        tuple(e.start if e.index is None and e.length else 0 for e in on_base),
        tuple(e.step if e.index is None else 1 for e in on_base),
        tuple(e.length if e.index is None else a.shape[e.axis] for e in on_base),
    )
    node = sliced.apply(a._node())
    lengths = tuple(a.shape[e.axis] if e.axis >= 0 and e.index is not None else e.length for e in key.entries)
    node = build.reshape(node, lengths)
    if len(arrays) == 1:
        index = key.entries[arrays[0]].index
        return wrap_node(build.take(node, index._node(), arrays[0]))
    index = _joined(key, arrays, lengths)
    node = build.transpose(node, (*arrays, *rest))
    kept = node.shape[len(arrays) :]
    node = build.reshape(node, (prod(lengths[i] for i in arrays), *kept))
    node = build.take(node, index._node(), 0)
    back = list(range(index.ndim, node.ndim))
    back[first:first] = range(index.ndim)
    return wrap_node(build.transpose(node, back))


def _joined(key: _Key, arrays: list[int], lengths: tuple[int, ...]) -> ndarray:
    """Several index arrays as one flat index over their axes."""
    indices = [key.entries[i].index for i in arrays]
    _index_shape(key, arrays)
    flat = indices[0]
    for position, index in zip(arrays[1:], indices[1:], strict=True):
        flat = flat * lengths[position] + index
    return flat  # type: ignore[no-any-return]


def _index_shape(key: _Key, arrays: list[int]) -> tuple[int, ...]:
    """The shape that a key's index arrays broadcast to."""
    shapes = [key.entries[i].index.shape for i in arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            + " ".join(map(str, shapes))
        ) from None


# --- writing ---------------------------------------------------------------------------------------


def setitem(a: Handle, key: Any, value: Any) -> None:
    """`a[key] = value`."""
    if a._cell.origin is not None:
        array, place = a._cell.origin
        names = a.dtype.names or ()
        field = names[key] if isinstance(key, int) else key
        array[field][place] = value
        a._cell = array[place]._cell
        return
    if _names_fields(key):
        a._check_writable()
        setitem(_field(a, key, a._peek()), ..., value)
        return
    known = value._peek() if isinstance(value, Handle) else value
    if not _is_simple(key):
        key = _canonical(key)
    if a._cell.value is None and _is_simple(key) and _is_element(key, a.ndim):
        a._cell.pick()
    if known is not None and a._cell.value is not None:
        plain = key if _is_simple(key) else _plain_key(key)
        if plain is not None:
            target = a._in_place()
            if target is not None:
                _set_value(target, plain, known)
                return
    a._check_writable()
    new = as_handle(value, a.dtype if isinstance(value, list | tuple | int | float | complex) else None)
    if _is_simple(key):
        _view(a, key)._write(new)
    elif _is_mask(key):
        _set_masked(a, key, new)
    else:
        _set_scattered(a, key, new)


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
    mask = _fitting(a.shape, mask)
    node = a._node()
    m = mask._node()
    masked = value._masked()
    rest = a.shape[mask.ndim :]
    wide = build.reshape(m, m.shape + (1,) * len(rest))
    if masked is not None and masked.mask is m and masked.a.shape == a.shape:
        a._write_node(build.map_("where", wide, build.cast(masked.a, node.dtype), node))
        return
    if value.ndim == 0 or (value.ndim <= len(rest) and value.shape == rest[len(rest) - value.ndim :]):
        new = build.cast(value._node(), node.dtype)
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
    kept = build.compress(build.iota(m.size), build.reshape(m, (m.size,)), count)
    flat = wrap_node(kept).reshape(-1, 1) * row + wrap_node(build.iota(row))
    _scatter(a, flat, build.broadcast(value._node(), shape))


def flat_positions(shape: tuple[int, ...], key: Any) -> ndarray:
    """The flat C-order position in an array of `shape` of each element that `key` selects."""
    key = _canonical(key)
    if _is_mask(key):
        key = _fitting(shape, key)
    parsed = _parse(key, shape)
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]
    arrays, rest, first = _placed(parsed)
    lines = _index_shape(parsed, arrays)
    ndim = len(rest) + len(lines)
    total = creation.zeros((*lines, *(1,) * (len(rest) - first)), np.int64)
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
            f"result of shape {positions.shape}"
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
        build.reshape(build.cast(node, base.dtype), (count,)),
    )
    a._write_node(build.reshape(flat, base.shape))


def known_length(mask: Handle) -> int | None:
    """The number of true elements, where it is known without evaluation."""
    return known_count(mask._node())


def transposed(a: Handle, axes: tuple[int, ...]) -> ndarray:
    """The transposed view."""
    return a._see(Transpose(axes))


def reshaped(a: Handle, shape: tuple[int, ...]) -> ndarray:
    """The reshaped view (of a layout that allows one)."""
    return a._see(Reshape(shape))
