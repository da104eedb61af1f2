"""Values as frames: what has a structure in one msgpack text, what has bytes in buffers beside it.

msgpack has one kind of sequence, which stands for tuples here. Every other kind that it does not know, or
does not tell from another, is a map with one key, its tag:

    "l" list   "d" dict    "c" complex   "y" dtype   "s" NumPy scalar   "i" large int   "e" Ellipsis, slice
    "a" array  "r" CSR     "b" bytes     "k" registered record         "u" function      "o" source

A function is code, and a source may have one: `unpack` refuses it unless its caller says how functions are
loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

import msgspec
import numpy as np

from spartan_ng.arrays.sparse import csr_array, is_csr
from spartan_ng.compressed.groups import Coding, ColumnGroup
from spartan_ng.compressed.layouts import Codes, Offsets, Runs
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.ops.functions import UserFunction
from spartan_ng.sources.tile import SourceTile
from spartan_ng.wire.codec import Blob, dtype_of, dtype_text
from spartan_ng.wire.pieces import Buffer, Pieces, Whole, whole

Load = Callable[[str | None, Whole | None, object], Any]
"""Makes a function of its name or its pickle."""

Make = Callable[[tuple[int, ...], np.dtype[Any]], np.ndarray[Any, Any]]
"""An array to be filled."""

_LARGE_INT = 1 << 63
"""msgpack's integers have 64 bits."""

_T = TypeVar("_T", bound=msgspec.Struct)

_registered: dict[str, type[Any]] = {}
_fields: dict[type[Any], tuple[str, ...]] = {}


def register(cls: type[_T]) -> type[_T]:
    """Let instances of the record `cls` travel (but for fields `_…`, which have defaults); only registered
    classes are ever built by `unpack`."""
    assert cls.__name__ not in _registered, f"two wire classes are called {cls.__name__}"
    _registered[cls.__name__] = cls
    _fields[cls] = tuple(name for name in cls.__struct_fields__ if name[0] != "_")
    return cls


def pack(value: Any) -> Blob:
    """`value` as frames: its structure first, then the buffers that this refers to by position."""
    buffers: list[Buffer] = []
    tree = _plain(value, buffers)
    return Blob((msgspec.msgpack.encode(tree), *buffers))


def unpack(blob: Blob, load: Load | None = None, make: Make = np.empty) -> Any:
    """The value of `pack`. Arrays are read-only views of the frames; a value that is one whose frame came in
    pieces is written to what `make` gives for its shape and dtype. `load` runs foreign code: only for peers
    that may have some run here."""
    tree = msgspec.msgpack.decode(whole(blob.frames[0]))
    unpacking = _Unpacking(blob.frames[1:], load)
    if type(tree) is dict and "a" in tree:
        return unpacking.array(tree["a"], make)
    return unpacking.value(tree)


def raw(array: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of an array in C order; copies only where its elements do not lie so already."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _plain(value: Any, buffers: list[Buffer]) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None or kind is float:
        return value
    if kind is int:
        return value if -_LARGE_INT <= value < _LARGE_INT else {"i": hex(value)}
    if kind is tuple:
        return [_plain(v, buffers) for v in value]
    if kind is CompressedMatrix:
        value = value.cut_out()
    names = _fields.get(kind)
    if names is not None:
        return {"k": [kind.__name__, *[_plain(getattr(value, n), buffers) for n in names]]}
    return _tagged(value, buffers)


def _tagged(value: Any, buffers: list[Buffer]) -> Any:
    for kind, encoder in _ENCODERS:
        if isinstance(value, kind):
            return encoder(value, buffers)
    if is_csr(value):
        return _csr(value, buffers)
    raise TypeError(f"a {type(value).__name__} cannot travel between processes")


def _append(buffer: Buffer, buffers: list[Buffer]) -> int:
    buffers.append(buffer)
    return len(buffers) - 1


def _array(value: Any, buffers: list[Buffer]) -> list[Any]:
    return [dtype_text(value.dtype), list(value.shape), _append(raw(value), buffers)]


def _csr(value: Any, buffers: list[Buffer]) -> Any:
    return {
        "r": [list(value.shape), *[_array(p, buffers) for p in (value.data, value.indices, value.indptr)]]
    }


def _function(value: UserFunction, buffers: list[Buffer]) -> Any:
    from spartan_ng.wire.functions import dump_function

    named, pickled = dump_function(value.function, f"{value} (at {value.origin})")
    return {"u": [named, value.origin, None if pickled is None else _append(pickled, buffers)]}


def _source(value: SourceTile, buffers: list[Buffer]) -> Any:
    from spartan_ng.wire.functions import dump_function

    _, pickled = dump_function(value.source, value.source)
    assert pickled is not None, "a source travels by value"
    return {"o": _append(pickled, buffers)}


_ENCODERS: tuple[tuple[Any, Callable[[Any, list[Buffer]], Any]], ...] = (
    (np.ndarray, lambda v, b: {"a": _array(v, b)}),
    (list, lambda v, b: {"l": [_plain(x, b) for x in v]}),
    (dict, lambda v, b: {"d": [[_plain(k, b), _plain(x, b)] for k, x in v.items()]}),
    (np.dtype, lambda v, b: {"y": dtype_text(v)}),
    (np.generic, lambda v, b: {"s": [dtype_text(v.dtype), v.tobytes()]}),
    (complex, lambda v, b: {"c": [v.real, v.imag]}),
    (UserFunction, _function),
    (SourceTile, _source),
    (bytes, lambda v, b: {"b": _append(v, b)}),
    (slice, lambda v, b: {"e": [_plain(x, b) for x in (v.start, v.stop, v.step)]}),
    (type(Ellipsis), lambda v, b: {"e": None}),
)


class _Unpacking:
    """One value on its way out of its frames."""

    def __init__(self, buffers: Sequence[Buffer], load: Load | None) -> None:
        self._buffers = buffers
        self._load = load

    def value(self, tree: Any) -> Any:
        if type(tree) is list:
            return tuple([self.value(v) for v in tree])
        if type(tree) is not dict:
            return tree
        ((tag, body),) = tree.items()
        return _DECODERS[tag](self, body)

    def buffer(self, position: int) -> Whole:
        return whole(self._frame(position))

    def _frame(self, position: int) -> Buffer:
        if position < 0:
            raise IndexError(f"there is no buffer {position}")
        return self._buffers[position]

    def array(self, body: Any, make: Make = np.empty) -> np.ndarray[Any, Any]:
        text, shape, position = body
        dtype = dtype_of(text)
        if dtype.itemsize == 0 or 0 in shape:
            return np.empty(shape, dtype)
        buffer = self._frame(position)
        if not isinstance(buffer, Pieces):
            return np.frombuffer(buffer, dtype).reshape(shape)
        if prod(shape) * dtype.itemsize != len(buffer):
            raise ValueError(f"{len(buffer)} bytes are no array of shape {shape} and dtype {dtype}")
        array = make(tuple(shape), dtype)
        buffer.fill(array)
        return array

    def csr(self, body: Any) -> Any:
        shape, *parts = body
        data, indices, indptr = (self.array(p) for p in parts)
        return csr_array((data, indices, indptr), shape=tuple(shape))

    def function(self, body: Any) -> UserFunction:
        named, origin, position = body
        if self._load is None:
            raise TypeError("a function came where only data may come")
        pickled = None if position is None else self.buffer(position)
        return UserFunction(self._load(named, pickled, f"The function (at {origin})"), origin)

    def source(self, body: Any) -> Any:
        """Of a source that is mapped the array itself."""
        if self._load is None:
            raise TypeError("a source came where only data may come")
        source = self._load(None, self.buffer(body), "A source")
        source.hold()
        mapped = source.mapped()
        return SourceTile(source) if mapped is None else mapped


_DECODERS: dict[str, Callable[[_Unpacking, Any], Any]] = {
    "l": lambda u, body: [u.value(v) for v in body],
    "d": lambda u, body: {u.value(k): u.value(v) for k, v in body},
    "c": lambda u, body: complex(*body),
    "y": lambda u, body: dtype_of(body),
    "s": lambda u, body: np.frombuffer(body[1], dtype_of(body[0]))[0],
    "i": lambda u, body: int(body, 16),
    "e": lambda u, body: Ellipsis if body is None else slice(*[u.value(v) for v in body]),
    "a": _Unpacking.array,
    "r": _Unpacking.csr,
    "b": lambda u, body: bytes(u.buffer(body)),
    "u": _Unpacking.function,
    "o": _Unpacking.source,
    "k": lambda u, body: _registered[body[0]](*[u.value(v) for v in body[1:]]),
}

for _kind in (CompressedMatrix, Coding, ColumnGroup, Codes, Offsets, Runs):
    register(_kind)
