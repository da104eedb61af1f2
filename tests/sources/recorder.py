"""The reference source: a function of a box over an array at hand, which notes what it was asked for."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.sources import Source


class Recorder(Source):
    """The elements of `value`; `asked` has the boxes that were read, in their order.

    What it gives is a copy of its own each time, and is filled with rubbish once the next box is asked for in
    the same thread: who keeps it has kept too much.
    """

    def __init__(self, value: Any, chunks: tuple[int, ...] | None = None) -> None:
        self.value = np.asarray(value)
        self.shape, self.dtype = self.value.shape, self.value.dtype
        self.asked: list[Box] = []
        self._chunks = chunks
        self._last = threading.local()

    @property
    def chunks(self) -> tuple[int, ...]:
        """As given."""
        return super().chunks if self._chunks is None else self._chunks

    def read(self, box: Box) -> Any:
        """A copy."""
        assert len(box) == len(self.shape), f"{box} has other axes than {self.shape}"
        for (lo, hi), n in zip(box, self.shape, strict=True):
            assert 0 <= lo < hi <= n, f"{box} is empty, or leaves {self.shape}"
        self.asked.append(box)
        if (before := getattr(self._last, "given", None)) is not None:
            before.view(np.uint8)[...] = 0xA5
        self._last.given = self.value[tuple(slice(lo, hi) for lo, hi in box)].copy()
        return self._last.given

    def __reduce__(self) -> Any:
        """What has been asked stays here."""
        return Recorder, (self.value, self._chunks)

    @property
    def times(self) -> Any:
        """How often each element was read."""
        count = np.zeros(self.shape, int)
        for box in self.asked:
            count[tuple(slice(lo, hi) for lo, hi in box)] += 1
        return count

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest box."""
        return max(prod(hi - lo for lo, hi in box) for box in self.asked) * self.dtype.itemsize
