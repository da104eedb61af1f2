"""How many read at a time: what is unpacked besides what readers are given takes a part of the memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_of, box_slices
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.memory import band_bytes, budget_bytes, copied_bytes, too_large, unpacked_bytes
from spartan_ng.scratch import copy_fits, on_disk, put
from spartan_ng.sources.source import Source, read_box
from spartan_ng.system.heap import give_back
from spartan_ng.system.processes import after_fork

_FREED_SHARE = 16
"""Free memory goes back to the system each time that one part in so many of what arrays may take has been
unpacked: what each thread has of it lies scattered, and is not used for the next."""


class RoomToUnpack:
    """Who reads now, and what all of them have besides what they give."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Nobody reads: also in a fork, where threads that did are not."""
        self._changed = threading.Condition()
        self._nbytes = self._freed = 0

    @contextmanager
    def room(self, nbytes: int) -> Iterator[None]:
        """While something of so many bytes is unpacked; it waits for others, where it is not alone."""
        with self._changed:
            while self._nbytes and nbytes and self._nbytes + nbytes > unpacked_bytes():
                self._changed.wait()
            self._nbytes += nbytes
        try:
            yield
        finally:
            with self._changed:
                self._nbytes -= nbytes
                self._changed.notify_all()

    def gave(self, nbytes: int) -> None:
        """So many bytes have been unpacked for somebody: the allocator has what that took, and gives it back
        before it is more than a part of the memory."""
        with self._changed:
            self._freed += nbytes
            is_much = self._freed > budget_bytes() // _FREED_SHARE
            if is_much:
                self._freed = 0
        if is_much:
            give_back()


_ROOM = RoomToUnpack()
after_fork(_ROOM.begin_anew)


def read_in_turn(source: Source, box: Box) -> np.ndarray[Any, Any]:
    """What `read_box` gives, as soon as there is room for what is unpacked besides.

    Raises
    ------
    MemoryBudgetError : there never is
    """
    if source.whole_bytes > budget_bytes():
        raise MemoryBudgetError(too_large(str(source), source.whole_bytes, budget_bytes()))
    beside = source.beside_bytes
    with _ROOM.room(beside):
        found = read_box(source, box)
    if beside:
        _ROOM.gave(found.nbytes)
    return found


def read_whole(source: Source) -> np.ndarray[Any, Any]:
    """All elements; where memory has no room for them, on disk, read some chunks at a time."""
    nbytes = prod(source.shape) * source.dtype.itemsize
    if not nbytes:
        return np.empty(source.shape, source.dtype)
    if copy_fits(nbytes):
        return read_in_turn(source, box_of(source.shape))
    found = on_disk(source.shape, source.dtype, "an array")
    for box in _pieces(source):
        put(found[box_slices(box)], read_in_turn(source, box))
    return found


def _pieces(source: Source) -> Iterator[Box]:
    """Boxes of whole chunks, one after the other in C order, or of parts that memory has room for."""
    sizes = [min(c, n) for c, n in zip(source.chunks, source.shape, strict=True)]
    for axis in range(len(sizes)):
        others = prod(sizes) // sizes[axis] * source.dtype.itemsize
        sizes[axis] = max(min(sizes[axis], copied_bytes() // others), 1)
    for axis in reversed(range(len(sizes))):
        more = band_bytes() // (prod(sizes) * source.dtype.itemsize)
        sizes[axis] = min(sizes[axis] * max(more, 1), source.shape[axis])
    spans = ([(i, min(i + m, n)) for i in range(0, n, m)] for m, n in zip(sizes, source.shape, strict=True))
    return product(*spans)
