"""Anything with a shape, a dtype and `__getitem__` as a source."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_slices
from spartan_ng.sources.source import Serial, Source, checked_dtype


class Indexed(Source):
    """An object that gives a part of its elements for a tuple of slices.

    Parameters
    ----------
    of : the object; its `chunks` are used if they are a tuple of lengths
    serial : whether it is asked by one thread at a time
    """

    def __init__(self, of: Any, serial: bool = False) -> None:
        self.of = of
        self.shape = tuple(int(n) for n in of.shape)
        self.dtype = checked_dtype(of.dtype, "from_source")
        self.waits_for_loop = getattr(of, "waits_for_loop", False)
        self._serial = Serial() if serial else nullcontext()

    @property
    def chunks(self) -> tuple[int, ...]:
        """The object's own."""
        found: Any = getattr(self.of, "chunks", None)
        if not isinstance(found, tuple) or len(found) != len(self.shape):
            return super().chunks
        return found if all(isinstance(n, int) and n > 0 for n in found) else super().chunks

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What the object has at the box."""
        with self._serial:
            return np.asarray(self.of[box_slices(box)])

    def __str__(self) -> str:
        return f"from_source: {type(self.of).__name__}"
