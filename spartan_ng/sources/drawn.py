"""Random numbers as a source: each box is drawn when it is asked for."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.ops.random import RUN_DRAWS, draw, drawn_blocks, in_turn
from spartan_ng.sources.kept import kept_bytes
from spartan_ng.sources.source import Source

_KEPT = 4
"""Chunks that are kept at a time, at least."""


class Drawn(Source):
    """The array of random numbers that a key names (`ops.random`)."""

    def __init__(
        self,
        distribution: str,
        key: tuple[Any, ...],
        parameters: tuple[Any, ...],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> None:
        self.distribution, self.key, self.parameters = distribution, key, parameters
        self.shape, self.dtype = shape, dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """What is drawn well, and of a stream so little that some can be kept."""
        most = kept_bytes() // (_KEPT * self.dtype.itemsize)
        return drawn_blocks(self.key, self.shape, max(min(RUN_DRAWS, most), 1))

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The numbers inside a box: of whole chunks, which are kept as those that are unpacked are, so that a
        column takes no walk through all columns."""
        return self.by_chunks(self.chunks).read(box, self._whole)

    def _whole(self, box: Box) -> np.ndarray[Any, Any]:
        """Drawn: who reads ahead goes on where the others have stopped."""
        with in_turn(self.key, self.shape, box):
            return draw(self.distribution, self.key, self.parameters, self.shape, self.dtype, box)

    def reshaped(self, shape: tuple[int, ...]) -> Drawn | None:
        """The same numbers of a stream, which has no shape."""
        if self.key[0] not in ("stream", "walk") or not prod(shape):
            return None
        return Drawn(self.distribution, self.key, self.parameters, shape, self.dtype)

    def likeness(self) -> Hashable:
        """One key names one array."""
        return "drawn", self.distribution, self.key, self.parameters, self.shape, self.dtype

    def __str__(self) -> str:
        return f"random numbers ({self.distribution})"
