"""A source under another shape, with its elements in C order: a run of them lies in some of its rows."""

from __future__ import annotations

from collections.abc import Hashable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape, box_size, cover, slices_within
from spartan_ng.sources.kept import kept_bytes
from spartan_ng.sources.source import Source, read_box

_RUN_BYTES = 1 << 12
"""Runs that are shorter are read together, with what is between them."""


class InOrder(Source):
    """The elements of `of` in C order, under a shape of as many."""

    def __init__(self, of: Source, shape: tuple[int, ...]) -> None:
        self.of, self.shape, self.dtype = of, shape, of.dtype
        self.waits_for_loop = of.waits_for_loop

    @property
    def chunks(self) -> tuple[int, ...]:
        """What lies together of its rows of chunks: whole rows, as who reads columns reads all."""
        run = max(_run(self.of), _RUN_BYTES // self.dtype.itemsize, *self.shape[1:][-1:])
        lines = [prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        return tuple(max(min(run // line, n), 1) for line, n in zip(lines, self.shape, strict=True))

    @property
    def beside_bytes(self) -> int:  # type: ignore[override]
        """That of what is read, and the rows at both ends, of which a part is asked for."""
        return self.of.beside_bytes + 2 * prod(self.of.shape[1:]) * self.dtype.itemsize

    @property
    def whole_bytes(self) -> int:  # type: ignore[override]
        """That of what is read."""
        return self.of.whole_bytes

    def is_current(self) -> bool:
        """Whether what is read is."""
        return self.of.is_current()

    def likeness(self) -> Hashable:
        """That of what is read, under a shape."""
        found = self.of.likeness()
        return None if found is None else ("in order", found, self.shape)

    def goes_on(self, before: Source) -> bool:
        """Whether what is read does."""
        return isinstance(before, InOrder) and self.of.goes_on(before.of)

    def read(self, box: Box) -> np.ndarray[Any, Any]:
        """What lies together of the box, one run after the other; with what is between runs where these are
        short, no more at a time than can be kept."""
        inner = max((i for i, n in enumerate(self.shape) if box[i] != (0, n)), default=0)
        run = box_size(box[inner:])
        if run == box_size(box):
            return self._around(box)
        out = np.empty(box_shape(box), self.dtype)
        if run * self.dtype.itemsize >= _RUN_BYTES:
            for index in np.ndindex(*box_shape(box[:inner])):
                at = tuple((lo + i, lo + i + 1) for i, (lo, _) in zip(index, box, strict=False))
                out[index] = self._around((*at, *box[inner:]))[(0,) * inner]
            return out
        (lo, hi), *others = box
        step = max(kept_bytes() // (prod(self.shape[1:]) * self.dtype.itemsize), 1)
        for first in range(lo, hi, step):
            last = min(first + step, hi)
            out[first - lo : last - lo] = self._around(((first, last), *others))
        return out

    def _around(self, box: Box) -> np.ndarray[Any, Any]:
        """The box, of the rows that have all from its first element to its last."""
        around = tuple(cover(self.shape, _first(box, self.shape), _last(box, self.shape)))
        first, last = _first(around, self.shape), _last(around, self.shape)
        own = tuple(cover(self.of.shape, first, last))
        start = first - _first(own, self.of.shape)
        found = read_box(self.of, own).reshape(-1)[start : start + last - first + 1]
        return found.reshape(box_shape(around))[slices_within(box, around)]

    def __str__(self) -> str:
        return f"{self.of} in another shape"


def shaped_source(of: Source, shape: tuple[int, ...]) -> Source | None:
    """A source under another shape; None where a run of its elements takes more to read than can be kept."""
    if not of.shape or not prod(shape):
        return None
    if (found := of.reshaped(shape)) is not None:
        return found
    return InOrder(of, shape) if _run(of) * of.dtype.itemsize <= kept_bytes() else None


def _run(of: Source) -> int:
    """Elements that are read together in C order: a row of chunks has them, or a part of one."""
    several = (axis for axis, chunk in enumerate(of.chunks) if min(chunk, of.shape[axis]) > 1)
    axis = next(several, len(of.shape) - 1)
    return int(min(of.chunks[axis], of.shape[axis]) * prod(of.shape[axis + 1 :]))


def _first(box: Box, shape: tuple[int, ...]) -> int:
    """Where the first element of a box lies in C order."""
    return int(np.ravel_multi_index([lo for lo, _ in box], shape))


def _last(box: Box, shape: tuple[int, ...]) -> int:
    """Where the last one does."""
    return int(np.ravel_multi_index([hi - 1 for _, hi in box], shape))
