"""A long frame as it has arrived: its bytes lie in pieces, and are copied once, to where they are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


class Pieces:
    """The bytes of one frame, in order."""

    __slots__ = ("_parts", "_size")

    def __init__(self, parts: Sequence[Whole]) -> None:
        self._parts = parts
        self._size = sum([len(p) for p in parts])

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self._parts)

    def fill(self, array: np.ndarray[Any, Any]) -> None:
        """Make these the bytes of an array in C order; ValueError where it has not as many."""
        if array.nbytes != self._size:
            raise ValueError(f"{self._size} bytes are no array of {array.nbytes}")
        target = array.reshape(-1).view(np.uint8)
        at = 0
        for part in self._parts:
            target[at : at + len(part)] = np.frombuffer(part, np.uint8)
            at += len(part)


Whole = bytes | memoryview
"""A frame's bytes in one piece."""
Buffer = Whole | Pieces
"""One raw frame; in pieces if it is a long one that has arrived."""


def whole(buffer: Buffer) -> Whole:
    """A frame's bytes in one piece."""
    if not isinstance(buffer, Pieces):
        return buffer
    array = np.empty(len(buffer), np.uint8)  # a bytearray would be zeros first
    buffer.fill(array)
    return array.data
