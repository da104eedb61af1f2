"""What a key means: its parts as slices, new axes and index arrays, checked against a shape."""

from __future__ import annotations

import operator
from contextlib import suppress
from types import EllipsisType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from spartan_ng.api.core import door
from spartan_ng.api.core.chains import bounded, expanded
from spartan_ng.api.core.conversion import MOST_AXES, as_handle, is_array_like
from spartan_ng.api.core.handle import Handle, settle
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.arrays.sparse import is_sparse
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process
from spartan_ng.graph.ranges import range_of, remember, remembered
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_SIMPLE = frozenset({int, slice, NoneType, EllipsisType})


def is_element(key: Any, ndim: int) -> bool:
    """Whether a simple key names a single element."""
    items = key if key.__class__ is tuple else (key,)
    return len(items) == ndim and all(i.__class__ is int for i in items)


def has_integer(key: Any) -> bool:
    """Whether a simple key names one place along an axis: an element, or a line."""
    return key.__class__ is int or (key.__class__ is tuple and any(i.__class__ is int for i in key))


def is_simple(key: Any) -> bool:
    """Whether a key is made of Python integers, slices, None and an ellipsis."""
    kind = key.__class__
    if kind is tuple:
        return _SIMPLE.issuperset(map(type, key))
    return kind in _SIMPLE


def names_fields(key: Any) -> bool:
    """Whether a key is the name of a field, or a list of names."""
    return isinstance(key, str) or (
        isinstance(key, list) and bool(key) and all(isinstance(k, str) for k in key)
    )


def keeps_axes(key: Any) -> bool:
    """Whether NumPy gives an array, not a scalar, when no axis is left: with an ellipsis."""
    return key is Ellipsis or (isinstance(key, tuple) and any(k is Ellipsis for k in key))


def plain_key(key: Any) -> Any:
    """Integers of any kind as Python's, sequences and arrays as handles, in a key's parts."""
    if isinstance(key, tuple):
        parts = tuple(_canonical_part(k) for k in key)
        masks = [p for p in parts if isinstance(p, Handle)]
        return parts[0] if len(parts) == 1 and len(masks) == 1 and is_mask(parts[0]) else parts
    return _canonical_part(key)


def _canonical_part(k: Any) -> Any:
    if k.__class__ in _SIMPLE:
        return k
    if isinstance(k, bool | np.bool_):
        return as_handle(np.asarray(k))
    if isinstance(k, Handle | np.ndarray | list | tuple) or is_array_like(k) or is_sparse(k):
        h = as_handle(np.asarray(k) if isinstance(k, np.ndarray) else k)  # masked ones by their elements
        if h.format == "csr" and h.dtype != bool:  # a mask may stay sparse
            h = h.todense()
        if isinstance(k, list | tuple) and not h.size:
            return as_handle(np.zeros(h.shape, np.int64))
        if h.dtype.kind not in "biu":
            raise IndexError(
                "arrays used as indices must be of integer (or boolean) type, "
                f"not {h.dtype} (shape {h.shape})"
            )
        if h.dtype.kind != "b" and h.ndim == 0:
            known = h._peek()
            return h if known is None else int(known)
        return h
    with suppress(Exception):  # whatever is wrong with it, it is no index
        return operator.index(k)
    if _is_sequence(k):
        return _canonical_part([*k])
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean "
        f"arrays are valid indices, not {type(k).__name__}"
    )


def _is_sequence(k: Any) -> bool:
    """Whether NumPy takes an object for a list of its elements, as it does ranges."""
    with suppress(Exception):
        return not isinstance(k, str | bytes) and np.ndim(k) > 0
    return False


def names_element(key: Any, ndim: int) -> bool:
    """Whether a canonical key names a single element, by numbers that are known or still to be computed."""
    items = key if isinstance(key, tuple) else (key,)
    return len(items) == ndim and all(i.__class__ is int or _is_number(i) for i in items)


def of_known_numbers(key: Any) -> Any:
    """A canonical key of numbers and slices alone, its numbers computed: it names a view, into which is
    written. Any other key as it is."""
    parts = key if isinstance(key, tuple) else (key,)
    numbers = [p for p in parts if isinstance(p, Handle)]
    if not all(map(_is_number, numbers)):
        return key
    settle(*numbers)
    known = tuple(int(p._force()) if isinstance(p, Handle) else p for p in parts)
    return known if isinstance(key, tuple) else known[0]


def _is_number(part: Any) -> bool:
    """Whether a part of a canonical key is an integer that is not known yet: no array, even without axes."""
    return isinstance(part, Handle) and part._cell.frozen and part.dtype.kind != "b"


def has_array(key: Any) -> bool:
    """Whether an array is among a key's parts: NumPy copies what it selects, also if it has no axes."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(p, np.ndarray) or (isinstance(p, Handle) and not p._cell.frozen) for p in parts)


def is_mask(key: Any) -> bool:
    """Whether a key is a single boolean array with axes."""
    return isinstance(key, Handle) and key.dtype.kind == "b" and key.ndim > 0


def fitting(a_shape: tuple[int, ...], mask: Handle) -> Handle:
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


class KeyEntry(Struct, frozen=True):
    """One part of a key: a slice of a base axis, a new axis, or an index array.

    `axis` is the base axis (-1 for a new one); `index` the non-negative array, or None for a slice.
    """

    axis: int
    start: int = 0
    step: int = 1
    length: int = 1
    index: Any = None


class Key(Struct, frozen=True):
    """A key with arrays, and whether something stands between its arrays."""

    entries: tuple[KeyEntry, ...]
    separated: bool


def parse(key: Any, shape: tuple[int, ...]) -> Key:
    """Work out a key with at least one array in it."""

    def consumed(item: Any) -> int:
        if item is None:
            return 0
        return item.ndim if isinstance(item, Handle) and item.dtype.kind == "b" else 1

    entries: list[KeyEntry] = []
    runs = 0
    inside = False
    axis = 0
    items = list(key) if isinstance(key, tuple) else [key]
    full = expanded(key, len(shape), consumed)
    place = next((i for i, k in enumerate(items) if k is Ellipsis), -1)
    gap = place if len(full) == len(items) - 1 else -1
    takes_nothing = any(isinstance(i, Handle) and i.dtype.kind != "b" and i.size == 0 for i in full)
    for position, item in enumerate(full):
        if position == gap:
            inside = False
        if item is None:
            entries.append(KeyEntry(-1))
            inside = False
        elif isinstance(item, slice):
            start, stop, step = item.indices(shape[axis])
            entries.append(KeyEntry(axis, start, step, len(range(start, stop, step))))
            inside = False
            axis += 1
        else:
            runs += not inside
            inside = True
            found = _index_entries(item, axis, shape, takes_nothing)
            entries.extend(found)
            axis += sum(e.axis >= 0 for e in found)
    _check_count(entries)
    return Key(tuple(entries), runs > 1)


def _check_count(entries: list[KeyEntry]) -> None:
    """NumPy's limits of indices at once, and of the axes that are left."""
    shapes = [e.index.shape for e in entries if e.index is not None]
    rest = len(entries) - len(shapes)
    if len(shapes) >= MOST_AXES:
        raise IndexError(
            f"too many advanced (array) indices: {len(shapes)}, and not more than {MOST_AXES - 1}"
        )
    ndim = rest + max(map(len, shapes), default=0)
    if ndim > MOST_AXES:
        raise IndexError(
            f"number of dimensions must be within [0, {MOST_AXES}], indexing result would have {ndim}"
        )


def _index_entries(item: Any, axis: int, shape: tuple[int, ...], takes_nothing: bool) -> list[KeyEntry]:
    """The index arrays an integer, an integer array or a mask stands for.

    Of one beside an array without elements only the shape is asked for.
    """
    if not isinstance(item, Handle):
        return [KeyEntry(axis, index=wrap(np.asarray(bounded(item, shape[axis], axis), np.int64)))]
    if item.dtype.kind != "b" and takes_nothing:
        return [KeyEntry(axis, index=wrap(np.zeros(item.shape, np.int64)))]
    if item.dtype.kind != "b":
        return [KeyEntry(axis, index=checked_index(item, shape[axis], axis))]
    if item.ndim == 0:
        kept = np.zeros(1 if bool(item) else 0, np.int64)
        return [KeyEntry(-1, index=wrap(kept))]
    item = fitting(shape[axis:], item)
    return [KeyEntry(axis + i, index=h) for i, h in enumerate(item.nonzero())]


def checked_index(index: Any, n: int, axis: int) -> ndarray:
    """Index arrays as int64 in [0, n); raises NumPy's IndexError where one is out of bounds."""
    # memory has no room for them, as the program's and as places: they are made, or read, again, in parts
    is_much = (in_process() or index._peek() is not None) and index.nbytes > copied_bytes()
    least = 0
    if index.size:
        least, most = _ends(index, n, is_much)
        bounded(least, n, axis)
        bounded(most, n, axis)
    h = wrap_node(build.cast(index._node(), np.dtype(np.int64)))  # narrower ones become places block by block
    if least >= 0:
        return h
    known = None if is_much else index._peek()
    if known is not None and door.is_small(known.nbytes) and known.nbytes <= copied_bytes():
        return wrap(np.where(known < 0, known + np.int64(n), known))
    return wrap_node(build.map_("where", as_handle(h < 0)._node(), as_handle(h + n)._node(), h._node()))


def _ends(index: Any, n: int, is_much: bool) -> tuple[int, int]:
    """The least and the greatest index, or a range in [-n, n) where they lie by the way they are made."""
    found = None if index._peek() is not None else range_of(index._node())
    return found if found is not None and -n <= found[0] and found[1] < n else least_and_most(index, is_much)


def least_and_most(x: Any, is_much: bool = False) -> tuple[int, int]:
    """The least and the greatest of an array's integers, which are looked at once as long as nobody writes;
    the array is computed with them where that is not too much."""
    found = remembered(x._node())
    if found is None:
        known = None if is_much else x._peek()
        least, most = (known if known is not None else x).min(), (known if known is not None else x).max()
        settle(*(() if is_much else (x,)), least, most)
        found = int(least), int(most)
        remember(x._node(), found)
    return found


def placed(key: Key) -> tuple[list[int], list[int], int]:
    """Entries with arrays, those without, and the position of the arrays' axes in the result."""
    arrays = [i for i, e in enumerate(key.entries) if e.index is not None]
    rest = [i for i, e in enumerate(key.entries) if e.index is None]
    first = 0 if key.separated or not arrays else sum(i < arrays[0] for i in rest)
    return arrays, rest, first


def index_shape(key: Key, arrays: list[int]) -> tuple[int, ...]:
    """The shape that a key's index arrays broadcast to."""
    shapes = [key.entries[i].index.shape for i in arrays]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        if "too large" in str(error):
            raise
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            + " ".join(map(str, shapes))
        ) from None
