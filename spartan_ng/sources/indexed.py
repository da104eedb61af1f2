"""Anything with a shape, a dtype and `__getitem__` as a source.

What says that it has chunks is asked for whole ones, which are kept for a while: nobody knows what it does to
make them, and xarray's have to be read, unpacked and decoded.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.sources.kept import one_go_bytes
from spartan_ng.sources.source import Serial, Source, checked_dtype, part_in_order, said_of, unmasked

_SEVERAL = 4
"""So many chunks, at the least, are kept."""
_OURS = 2
"""References to an array that nobody else has: a name, and the argument of who counts."""


class Indexed(Source):
    """An object that gives a part of its elements for a tuple of slices.

    Parameters
    ----------
    of : the object; its `chunks` are used if they are a tuple of lengths
    serial : whether it is asked by one thread at a time; it may give one buffer again and again
    """

    def __init__(self, of: Any, serial: bool = False) -> None:
        self.of = of
        self.shape = tuple(int(n) for n in of.shape)
        self.dtype = checked_dtype(of.dtype, "from_source")
        self.waits_for_loop = getattr(of, "waits_for_loop", False)
        self._is_serial, self._serial = serial, Serial() if serial else nullcontext()

    @property
    def chunks(self) -> tuple[int, ...]:
        """The object's own; what is behind the first axis where it says nothing: most have their elements in
        C's order."""
        rows = (1, *self.shape[1:])[: len(self.shape)]
        return self._said or part_in_order(rows, self.dtype.itemsize)

    @property
    def _said(self) -> tuple[int, ...] | None:
        """What the object says of chunks; None where it says nothing, or what nobody can go by."""
        found: Any = getattr(self.of, "chunks", None)
        fits = isinstance(found, tuple) and len(found) == len(self.shape)
        return found if fits and all(isinstance(n, int) and n > 0 for n in found) else None

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What the object has at the box: of whole chunks, where some can be kept."""
        chunk = self._said
        if chunk is None or prod(chunk) * self.dtype.itemsize > one_go_bytes() // _SEVERAL:
            return self._at(box)
        return self.by_chunks(chunk).read(box, self._at)

    def _at(self, box: Box) -> np.ndarray[Any, Any]:
        with self._serial, said_of(self):
            found = np.asarray(unmasked(self.of[box_slices(box)], self))
            if self._is_serial and (found.base is not None or sys.getrefcount(found) > _OURS):
                found = found.copy()  # of a buffer, which the next call may fill again
            return found

    def __str__(self) -> str:
        return f"from_source: {type(self.of).__name__}"
