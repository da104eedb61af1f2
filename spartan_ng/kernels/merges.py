"""Merge sorted vectors by ranges of values that fit the cache.

Samples of all parts tell where to cut, each part is cut there, and what lies between two cuts is brought
together and sorted in the cache. A sort by digits, or by vectors, takes less for that than any merge that
compares elements one by one, and memory is read and written once. Where one value fills several ranges, its
elements are there in order.

Shi and Schaeffer, "Parallel sorting by regular sampling" (Journal of Parallel and Distributed Computing 14,
1992), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from spartan_ng.kernels.line_sorts import argsorted
from spartan_ng.kernels.sorts import sort_in_place
from spartan_ng.memory import block_bytes

Array: TypeAlias = np.ndarray[Any, Any]

_RANGE_BYTES = 1 << 20
"""What is sorted at a time: with its parts, it stays in the cache."""
_COPIES = 4
"""Of what is sorted at a time a thread has so many, which take no more than a block may."""
_SAMPLES = 32
"""Of a range; one is then a tenth longer or shorter than wanted."""


class Range(Struct, frozen=True):
    """Where a range begins and ends in each part, and whether it has one value only."""

    starts: list[int]
    stops: list[int]
    is_alike: bool

    @property
    def first(self) -> int:
        """How many elements are in ranges before it."""
        return sum(self.starts)


def value_ranges(parts: Sequence[Array], places: Sequence[Array] = ()) -> list[Range]:
    """Ranges that fit the cache, with what belongs to them of `places`, in ascending order, of sorted vectors
    of one dtype; only those of one value are longer."""
    n, each = sum(map(len, parts)), sum(every[0].itemsize for every in (parts, places) if len(every))
    ranges = n * each // max(min(_RANGE_BYTES, block_bytes() // _COPIES), each)
    ends = [len(part) for part in parts]
    cuts, alike = [[0] * len(parts)], []
    if ranges > 1:
        step = max(n // (ranges * _SAMPLES), 1)
        samples = np.sort(np.concatenate([part[step // 2 :: step] for part in parts]))
        values, counts = np.unique(samples[_SAMPLES::_SAMPLES], return_counts=True)
        is_frequent = counts > 1
        before = np.array([np.searchsorted(part, values) for part in parts]).T.tolist()
        after = np.array([np.searchsorted(part, values[is_frequent], "right") for part in parts]).T
        ends_of_frequent = iter(after.tolist())
        for cut, fills in zip(before, is_frequent.tolist(), strict=True):
            cuts += [cut, next(ends_of_frequent)] if fills else [cut]
            alike += [False, True] if fills else [False]
    every = zip(pairwise([*cuts, ends]), [*alike, False], strict=True)
    return [Range(a, b, is_one) for (a, b), is_one in every if a != b]


def merged_range(
    parts: Sequence[Array], own: Range, places: Sequence[Array] | None = None
) -> Iterator[Array]:
    """The elements of sorted vectors in a range in order, as a stable sort gives them, or of `places` those
    that belong to them; in one vector or, if they have one value, as they lie in one part after the other."""
    found = _of(parts, own)
    if own.is_alike or len(found) == 1:
        yield from found if places is None else _of(places, own)
        return
    values = np.concatenate(found, dtype=found[0].dtype)
    if places is not None:
        _, order = argsorted(values)
        yield np.concatenate(_of(places, own)).take(order)
        return
    sort_in_place(values, len(found))
    yield values


def _of(parts: Sequence[Array], own: Range) -> list[Array]:
    """What parts have in a range."""
    return [part[a:b] for part, a, b in zip(parts, own.starts, own.stops, strict=True) if a < b]
