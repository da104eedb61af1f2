"""Several sources as one, one behind the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.errors import ShapeError
from spartan_ng.sources.source import Source, read_box


class Joined(Source):
    """Sources of one dtype and equal shapes, but for the first axis, along which they follow each other."""

    def __init__(self, parts: Sequence[Source]) -> None:
        first = parts[0]
        for part in parts:
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype or not part.shape:
                raise ShapeError(
                    f"{part} has {part.dtype} {part.shape}, {first} has {first.dtype} {first.shape}: "
                    "they differ in more than the first axis"
                )
        self.parts = list(parts)
        self._ends = [0, *accumulate(part.shape[0] for part in parts)]
        self.shape = (self._ends[-1], *first.shape[1:])
        self.dtype = first.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """Those of the first one."""
        return self.parts[0].chunks

    def is_current(self) -> bool:
        """Whether all are."""
        return all(part.is_current() for part in self.parts)

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What each has of the box."""
        (lo, hi), *rest = box
        out = np.empty(box_shape(box), self.dtype)
        for k in range(bisect_right(self._ends, lo) - 1, len(self.parts)):
            a, b = max(lo, self._ends[k]), min(hi, self._ends[k + 1])
            if a >= b:
                if self._ends[k] >= hi:
                    break
                continue
            own = ((a - self._ends[k], b - self._ends[k]), *rest)
            out[a - lo : b - lo] = read_box(self.parts[k], own)
        return out

    def __str__(self) -> str:
        return f"{len(self.parts)} files from {self.parts[0]} on"
