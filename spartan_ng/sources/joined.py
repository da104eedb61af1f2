"""Several sources as one, one behind the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.errors import ShapeError
from spartan_ng.sources.source import Source, read_box


class Joined(Source):
    """Sources of equal shapes, but for the first axis, along which they follow each other; of the dtype that
    `numpy.concatenate` gives.

    Raises
    ------
    ShapeError : a shape does not fit the first one's; TypeError : the dtypes have none in common
    """

    def __init__(self, parts: Sequence[Source]) -> None:
        first = parts[0]
        for part in parts:
            if not part.shape:
                raise ShapeError(f"{part} has no axis, along which files could follow each other")
            if part.shape[1:] != first.shape[1:]:
                raise ShapeError(
                    f"{part} has the shape {part.shape}, {first} has {first.shape}: "
                    "they differ in more than the first axis"
                )
        self.parts = list(parts)
        self.hold()  # as the map of one file alone is
        self._ends = [0, *accumulate(part.shape[0] for part in parts)]
        self.shape = (self._ends[-1], *first.shape[1:])
        self.dtype = _common(parts)

    @property
    def chunks(self) -> tuple[int, ...]:
        """Those of the first one."""
        return self.parts[0].chunks

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """The most of any."""
        return max(part.beside_bytes for part in self.parts)

    @property
    def whole_bytes(self) -> int:  # type: ignore[override]
        """The least of any: no more than that may be asked for."""
        return min(part.whole_bytes for part in self.parts)

    def hold(self) -> None:
        """Keep the maps of all."""
        for part in self.parts:
            part.hold()

    @property
    def is_held(self) -> bool:
        """Whether all are."""
        return all(part.is_held for part in self.parts)

    def likeness(self) -> Hashable:
        """That of all."""
        every = tuple(part.likeness() for part in self.parts)
        return None if None in every else every

    def goes_on(self, before: Source) -> bool:
        """Whether all do."""
        pairs = zip(self.parts, before.parts, strict=True) if isinstance(before, Joined) else ()
        return bool(self.parts) and all(part.goes_on(other) for part, other in pairs)

    def is_current(self) -> bool:
        """Whether all are."""
        return all(part.is_current() for part in self.parts)

    def is_written_to(self) -> bool:
        """Whether a file among them has."""
        return any(part.is_written_to() for part in self.parts)

    def is_spoiled(self) -> bool:
        """Whether a file among them is."""
        return any(part.is_spoiled() for part in self.parts)

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
            np.copyto(out[a - lo : b - lo], read_box(self.parts[k], own), "unsafe")
        return out

    def __str__(self) -> str:
        return f"{len(self.parts)} files from {self.parts[0]} on"


def _common(parts: Sequence[Source]) -> np.dtype[Any]:
    """What all elements fit; TypeError where there is no such dtype."""
    kinds = [part.dtype for part in parts]
    found = _fitting(*kinds)
    if found is not None:
        return found
    other = next((part for part in parts if _fitting(part.dtype, kinds[0]) is None), parts[-1])
    raise TypeError(
        f"{other} has elements of dtype {other.dtype}, {parts[0]} of {kinds[0]}: no dtype fits both"
    )


def _fitting(*kinds: np.dtype[Any]) -> np.dtype[Any] | None:
    """What `numpy.concatenate` makes of arrays of these dtypes; None where it refuses."""
    try:
        found: np.dtype[Any] = np.result_type(*kinds)
    except TypeError:
        return None
    return found if all(np.can_cast(kind, found, "same_kind") for kind in kinds) else None
