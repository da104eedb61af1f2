"""Some indices along an axis of a source, in their order, as a source: what lies between is not read."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.sources.source import Source, read_box


class Picked(Source):
    """The elements of `of` at increasing indices along an axis.

    Indices that lie in one chunk of `of` are read together, as far as they are asked for together.
    """

    def __init__(self, of: Source, axis: int, indices: np.ndarray[Any, Any]) -> None:
        self.of, self.axis, self.indices = of, axis, indices
        self.shape = (*of.shape[:axis], len(indices), *of.shape[axis + 1 :])
        self.dtype = of.dtype
        self.waits_for_loop = of.waits_for_loop

    @property
    def chunks(self) -> tuple[int, ...]:
        """Those of what it picks from."""
        return self.of.chunks

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """That of what it picks from."""
        return self.of.beside_bytes

    @property
    def whole_bytes(self) -> int:  # type: ignore[override]
        """That of what it picks from."""
        return self.of.whole_bytes

    def is_current(self) -> bool:
        """Whether what it picks from is."""
        return self.of.is_current()

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """The indices of each chunk, one chunk after the other."""
        lo, hi = box[self.axis]
        places = self.indices[lo:hi]
        chunk = max(self.of.chunks[self.axis], 1)
        ends = np.flatnonzero((np.diff(places) > 1) & (np.diff(places // chunk) > 0)) + 1
        out = np.empty(box_shape(box), self.dtype)
        before: Any = (slice(None),) * self.axis
        for first, last in zip([0, *ends.tolist()], [*ends.tolist(), len(places)], strict=True):
            start = int(places[first])
            own = (*box[: self.axis], (start, int(places[last - 1]) + 1), *box[self.axis + 1 :])
            found = read_box(self.of, own)
            out[(*before, slice(first, last))] = found[(*before, places[first:last] - start)]
        return out

    def __str__(self) -> str:
        return f"{len(self.indices)} indices of {self.of}"
