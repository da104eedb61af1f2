"""Merge sorted vectors by ranges of values that fit the cache.

Samples of all parts tell where to cut, each part is cut there, and what lies between two cuts is brought
together and sorted in the cache. NumPy's sort by vectors takes less for that than any merge that compares
elements one by one, and memory is read and written once.

Shi and Schaeffer, "Parallel sorting by regular sampling" (Journal of Parallel and Distributed Computing 14,
1992), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from spartan_ng.costs.choices import MERGED_PARTS
from spartan_ng.kernels.line_sorts import is_vectorized

Array: TypeAlias = np.ndarray[Any, Any]

_RANGE_BYTES = 1 << 20
"""What is sorted at a time: with its parts, it stays in the cache."""
_SAMPLES = 32
"""Of a range; one is then a tenth longer or shorter than wanted."""


def merged_ranges(parts: Sequence[Array]) -> Iterator[Array]:
    """All elements of sorted vectors of one dtype in order, as a stable sort of all of them gives numbers,
    some at a time: to read, in memory that the next ones may take.

    Ranges end before a value, so that equal elements are in one, whatever memory that takes.
    """
    parts = [part for part in parts if len(part)]
    if len(parts) < 2:
        yield from parts
        return
    room = np.empty(0, parts[0].dtype)
    for ends in pairwise(_cuts(parts)):
        found = [part[a:b] for part, a, b in zip(parts, *ends, strict=True) if a < b]
        n = sum(map(len, found))
        if len(room) < n:
            room = np.empty(n, room.dtype)
        some = room[:n]
        np.concatenate(found, out=some)
        if len(found) > 1:
            some.sort(kind="stable" if len(found) <= MERGED_PARTS or not is_vectorized(some.dtype) else None)
        yield some


def _cuts(parts: Sequence[Array]) -> list[list[int]]:
    """Where all parts begin, are cut, and end: a place in each."""
    n = sum(map(len, parts))
    ranges = n * parts[0].itemsize // _RANGE_BYTES
    first, last = [0] * len(parts), [len(part) for part in parts]
    if ranges < 2:
        return [first, last]
    step = max(n // (ranges * _SAMPLES), 1)
    samples = np.sort(np.concatenate([part[step // 2 :: step] for part in parts]))
    values = np.unique(samples[::_SAMPLES][1:])
    found = np.array([np.searchsorted(part, values) for part in parts]).T.tolist()
    return [first, *(cut for cut in found if any(cut)), last]
