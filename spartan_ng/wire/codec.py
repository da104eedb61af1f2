"""Values as JSON text and raw buffers: no pickle for anything but users' own functions.

JSON holds what has a structure, buffers hold what has bytes: an array costs no copy on either side.
Tuples are JSON lists; every other kind that JSON does not know is an object with one key, its tag:

    "l" list   "d" dict    "c" complex   "y" dtype   "s" NumPy scalar   "i" large int   "e" Ellipsis, slice
    "a" array  "r" CSR     "b" bytes     "f" frames  "k" registered dataclass           "u" function
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_array

from spartan_ng.compressed.groups import Coding, Group
from spartan_ng.compressed.layouts import Codes, Offsets, Runs
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.ops.functions import UserFunction
from spartan_ng.wire.functions import dump_function, load_function

Buffer = bytes | memoryview
"""One raw frame: bytes-like and contiguous."""

_LARGE_INT = 1 << 4096
"""Decimal text of larger ints is slow, and limited by Python."""


@dataclasses.dataclass(frozen=True, slots=True)
class Blob:
    """Frames that a message carries on as they are: whoever relays them never decodes them."""

    frames: tuple[Buffer, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.frames)


NOTHING = Blob()

_T = TypeVar("_T")

_registered: dict[str, type[Any]] = {}
_fields: dict[type[Any], tuple[str, ...]] = {}


def register(cls: type[_T]) -> type[_T]:
    """Let instances of the dataclass `cls` travel (but for fields `_…`, which have defaults); only registered
    classes are ever built by `decode`."""
    assert cls.__name__ not in _registered, f"two wire classes are called {cls.__name__}"
    _registered[cls.__name__] = cls
    _fields[cls] = tuple(f.name for f in dataclasses.fields(cls) if f.name[0] != "_")  # type: ignore[arg-type]
    return cls


def encode(value: Any) -> list[Buffer]:
    """`value` as frames: the JSON header first, then the buffers it refers to by position."""
    buffers: list[Buffer] = []
    tree = _encode(value, buffers)
    return [json.dumps(tree, separators=(",", ":")).encode(), *buffers]


def decode(frames: Sequence[Buffer]) -> Any:
    """The value that `encode` made `frames` of; arrays are read-only views of the frames."""
    return _decode(json.loads(bytes(frames[0])), frames[1:])


def dtype_text(dtype: np.dtype[Any]) -> Any:
    """A dtype as JSON data; TypeError for dtypes whose elements are Python objects."""
    if dtype.hasobject:
        raise TypeError(f"dtype {dtype} has Python objects in it; these cannot leave the process")
    return dtype.str if dtype.names is None and dtype.subdtype is None else npy.dtype_to_descr(dtype)


def dtype_of(text: Any) -> np.dtype[Any]:
    """The dtype of `dtype_text`."""
    return np.dtype(text) if isinstance(text, str) else npy.descr_to_dtype(_descr(text))


def _descr(tree: Any) -> Any:
    """NumPy wants tuples for the fields of a structured dtype and their shapes; JSON made them lists."""
    if not isinstance(tree, list):
        return tree
    return [(name, _descr(kind), *map(tuple, shape)) for name, kind, *shape in tree]


def raw(array: np.ndarray[Any, Any]) -> memoryview:
    """The bytes of an array in C order; copies only where its elements do not lie so already."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _encode(value: Any, buffers: list[Buffer]) -> Any:
    kind = type(value)
    if kind is str or kind is bool or value is None or kind is float:
        return value
    if kind is int:
        return value if -_LARGE_INT < value < _LARGE_INT else {"i": hex(value)}
    if kind is tuple:
        return [_encode(v, buffers) for v in value]
    if kind is CompressedMatrix:
        value = value.cut_out()
    names = _fields.get(kind)
    if names is not None:
        return {"k": [kind.__name__, *[_encode(getattr(value, n), buffers) for n in names]]}
    return _encode_tagged(value, buffers)


def _encode_tagged(value: Any, buffers: list[Buffer]) -> Any:
    for kind, encoder in _ENCODERS:
        if isinstance(value, kind):
            return encoder(value, buffers)
    raise TypeError(f"a {type(value).__name__} cannot travel between processes")


def _append(buffer: Buffer, buffers: list[Buffer]) -> int:
    buffers.append(buffer)
    return len(buffers) - 1


def _encode_array(value: Any, buffers: list[Buffer]) -> Any:
    return {"a": [dtype_text(value.dtype), list(value.shape), _append(raw(value), buffers)]}


def _encode_csr(value: Any, buffers: list[Buffer]) -> Any:
    parts = [_encode_array(p, buffers)["a"] for p in (value.data, value.indices, value.indptr)]
    return {"r": [list(value.shape), *parts]}


def _encode_function(value: UserFunction, buffers: list[Buffer]) -> Any:
    named, pickled = dump_function(value.function)
    return {"u": [named, value.origin, -1 if pickled is None else _append(pickled, buffers)]}


def _encode_scalar(value: Any, buffers: list[Buffer]) -> Any:
    return {"s": [dtype_text(value.dtype), _append(value.tobytes(), buffers)]}


def _encode_slice(value: slice, buffers: list[Buffer]) -> Any:
    return {"e": [_encode(v, buffers) for v in (value.start, value.stop, value.step)]}


_ENCODERS: tuple[tuple[Any, Callable[[Any, list[Buffer]], Any]], ...] = (
    (np.ndarray, _encode_array),
    (list, lambda v, b: {"l": [_encode(x, b) for x in v]}),
    (dict, lambda v, b: {"d": [[_encode(k, b), _encode(x, b)] for k, x in v.items()]}),
    (np.dtype, lambda v, b: {"y": dtype_text(v)}),
    (np.generic, _encode_scalar),
    (complex, lambda v, b: {"c": [v.real, v.imag]}),
    (UserFunction, _encode_function),
    (csr_array, _encode_csr),
    (Blob, lambda v, b: {"f": [_append(f, b) for f in v.frames]}),
    (bytes, lambda v, b: {"b": _append(v, b)}),
    (slice, _encode_slice),
    (type(Ellipsis), lambda v, b: {"e": 0}),
)


def _decode(tree: Any, buffers: Sequence[Buffer]) -> Any:
    if type(tree) is list:
        return tuple([_decode(v, buffers) for v in tree])
    if type(tree) is not dict:
        return tree
    ((tag, body),) = tree.items()
    if tag == "k":
        return _registered[body[0]](*[_decode(v, buffers) for v in body[1:]])
    return _DECODERS[tag](body, buffers)


def _decode_array(body: Any, buffers: Sequence[Buffer]) -> np.ndarray[Any, Any]:
    text, shape, position = body
    dtype = dtype_of(text)
    if dtype.itemsize == 0 or 0 in shape:
        return np.empty(shape, dtype)
    return np.frombuffer(buffers[position], dtype).reshape(shape)


def _decode_csr(body: Any, buffers: Sequence[Buffer]) -> csr_array:
    data, indices, indptr = (_decode_array(p, buffers) for p in body[1:])
    return csr_array((data, indices, indptr), shape=tuple(body[0]))


def _decode_function(body: Any, buffers: Sequence[Buffer]) -> UserFunction:
    named, origin, position = body
    return UserFunction(load_function(named, None if position < 0 else buffers[position]), origin)


_DECODERS: dict[str, Callable[[Any, Sequence[Buffer]], Any]] = {
    "l": lambda body, b: [_decode(v, b) for v in body],
    "d": lambda body, b: {_decode(k, b): _decode(v, b) for k, v in body},
    "c": lambda body, b: complex(*body),
    "y": lambda body, b: dtype_of(body),
    "s": lambda body, b: np.frombuffer(b[body[1]], dtype_of(body[0]))[0],
    "i": lambda body, b: int(body, 16),
    "e": lambda body, b: Ellipsis if body == 0 else slice(*[_decode(v, b) for v in body]),
    "a": _decode_array,
    "r": _decode_csr,
    "b": lambda body, b: bytes(b[body]),
    "f": lambda body, b: Blob(tuple([b[i] for i in body])),
    "u": _decode_function,
}

for _kind in (CompressedMatrix, Coding, Group, Codes, Offsets, Runs):
    register(_kind)
