"""Messages as frames: a msgpack header that is checked against its type, then raw buffers.

Every message is a `Message`, a msgspec structure. A `Reader` builds those it was made for, and raises for
anything else: another kind, another number of fields, a field of another type, a frame too many. What a
message only carries (values, plans) lies in `Blob`s, whose frames follow the header in the order of the
fields: whoever relays them never decodes them, and an array costs no copy on either side.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import Any

import msgspec
import numpy as np
from numpy.lib import format as npy

from spartan_ng.wire.pieces import Buffer, whole


class Message(msgspec.Struct, frozen=True, array_like=True, tag=True, forbid_unknown_fields=True):
    """What travels between processes; a field per element of an array, behind the name of its class."""


class Blob:
    """Frames that a message carries on as they are."""

    __slots__ = ("frames",)

    def __init__(self, frames: Sequence[Buffer] = ()) -> None:
        self.frames = tuple(frames)

    def __bool__(self) -> bool:
        return bool(self.frames)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and self.frames == other.frames

    def __hash__(self) -> int:
        return hash(self.frames)

    def __repr__(self) -> str:
        return f"Blob({len(self.frames)} frames, {sum(len(f) for f in self.frames)} bytes)"


NOTHING = Blob()


class _Context(threading.local):
    """The frames behind the header that this thread is writing or reading."""

    def __init__(self) -> None:
        self.written: list[Buffer] = []
        self.unread: Iterator[Buffer] = iter(())


_context = _Context()


def _to_header(value: Any) -> Any:
    if isinstance(value, Blob):
        _context.written.extend(value.frames)
        return len(value.frames)
    if isinstance(value, np.dtype):
        return dtype_text(value)
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not part of any message")


def _from_header(kind: type, header: Any) -> Any:
    if kind is Blob:
        if type(header) is not int or header < 0:
            raise ValueError("a number of frames was expected")
        frames = tuple(islice(_context.unread, header))
        if len(frames) != header:
            raise ValueError(f"{header} frames were expected, there are {len(frames)}")
        return Blob(frames) if header else NOTHING
    return dtype_of(header)


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_header)


def encode(message: Message) -> list[Buffer]:
    """A message as frames: the header first, then the buffers that it carries."""
    written = _context.written = []
    header = _encoder.encode(message)
    _context.written = []
    return [header, *written]


class Reader:
    """Builds messages of the `kinds`, and nothing else, from their frames."""

    def __init__(self, *kinds: type[Message]) -> None:
        self._decoder = msgspec.msgpack.Decoder(reduce(or_, kinds), dec_hook=_from_header)

    def __call__(self, frames: Sequence[Buffer]) -> Any:
        """The message in `frames`; ValueError, or a kin of it, where there is none of our kinds."""
        unread = _context.unread = iter(frames)
        message = self._decoder.decode(whole(next(unread, b"")))
        if next(unread, None) is not None:
            raise ValueError(f"a {type(message).__name__} has frames that it does not speak of")
        return message


def dtype_text(dtype: np.dtype[Any]) -> Any:
    """A dtype as plain data; TypeError for dtypes whose elements are Python objects."""
    if dtype.hasobject:
        raise TypeError(f"dtype {dtype} has Python objects in it; these cannot leave the process")
    return dtype.str if dtype.names is None and dtype.subdtype is None else npy.dtype_to_descr(dtype)


def dtype_of(text: Any) -> np.dtype[Any]:
    """The dtype of `dtype_text`; TypeError where its elements would be Python objects."""
    dtype = np.dtype(text) if isinstance(text, str) else npy.descr_to_dtype(_descr(text))
    if dtype.hasobject:
        raise TypeError(f"dtype {dtype} has Python objects in it; these never come from another process")
    return dtype


def _descr(tree: Any) -> Any:
    """NumPy wants tuples for the fields of a structured dtype and their shapes; msgpack made them lists."""
    if not isinstance(tree, list):
        return tree
    return [(name, _descr(kind), *map(tuple, shape)) for name, kind, *shape in tree]
