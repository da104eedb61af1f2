"""Sort a line of numbers by all threads, each of which has NumPy's vectorized sort for what fits its cache.

To sort values, threads cut what they have at common ranks and then sort a range of ranks each. To sort
indices, chunks are sorted first; ranges of values are then taken out of all of them and sorted again: NumPy's
own sort of indices reads the whole line in no order, these read the cache. Ties keep their order.

Blelloch et al., "A Comparison of Sorting Algorithms for the Connection Machine CM-2" (SPAA '91): sample sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

Each: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Calls a function for every item, by threads; results in order."""
Array: TypeAlias = np.ndarray[Any, Any]

_LEAST = 1 << 17
"""Shorter lines are sorted by one thread."""
_SAMPLES = 1 << 14
"""Elements that tell where ranks lie; a range is then about a hundredth longer or shorter than wanted."""
_BLOCK = 1 << 16
"""Elements that are counted at a time, in the cache."""
_CHUNK = 1 << 15
"""Elements whose indices are sorted at a time: with their values, they fit the cache of a core."""
_DIGITS = 1 << 16
"""Integers with a range below this are sorted by their digits, in two passes, which keeps ties in order."""
_LEAST_SAMPLES = 32
"""Samples for each range of values."""


def is_vectorized(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy sorts such elements by vectors; it sorts shorter integers by their digits, if stably."""
    return dtype.kind in "fiu" and dtype.itemsize in (4, 8)


def sorted_line(x: Array, threads: int, each: Each) -> Array:
    """A sorted copy of a vector, as `np.sort` makes it; takes the memory of one more."""
    n = len(x)
    if threads < 2 or n < _LEAST or x.dtype.kind not in "iufmM":
        return np.sort(x)
    if _ascends(x):
        return x.copy()
    bounds = [n * i // threads for i in range(threads + 1)]
    shares, ranks = list(pairwise(bounds)), bounds[1:-1]
    sample = _sample(x, _SAMPLES)
    pivots = [sample[len(sample) * i // threads] for i in range(1, threads)]
    work = np.empty(n, x.dtype)

    def copy(share: tuple[int, int]) -> list[tuple[int, int]]:
        part = work[slice(*share)]
        np.copyto(part, x[slice(*share)])
        return [_counted(part, p) for p in pivots]

    counted = each(copy, shares)
    cuts = [
        [0, *cut, b - a]
        for cut, (a, b) in zip(_cuts_at(ranks, np.array(counted)).tolist(), shares, strict=True)
    ]

    def split(i: int) -> None:
        a, b = shares[i]
        inner = sorted({k for k in cuts[i] if 0 < k < b - a})
        if inner:
            work[a:b].partition(inner)

    each(split, range(threads))
    out = np.empty(n, x.dtype)
    lengths = [sum(cut[j + 1] - cut[j] for cut in cuts) for j in range(threads)]

    def finish(j: int) -> None:
        first = sum(lengths[:j])
        part = out[first : first + lengths[j]]
        np.concatenate(
            [work[a + c[j] : a + c[j + 1]] for c, (a, _) in zip(cuts, shares, strict=True)], out=part
        )
        part.sort()

    each(finish, range(threads))
    return out


def argsorted_line(x: Array, each: Each) -> tuple[Array, Array]:
    """The sorted vector and the indices that sort it, equal elements in their order."""
    n = len(x)
    if n < _LEAST or x.dtype.kind not in "iufmM":
        order = np.argsort(x, kind="stable")
        return x[order], order
    if _ascends(x):
        return x.copy(), np.arange(n)
    chunks = [(a, min(a + _CHUNK, n)) for a in range(0, n, _CHUNK)]
    ranges = len(chunks)
    sample = _sample(x, max(_SAMPLES, _LEAST_SAMPLES * ranges))
    pivots = sample[[len(sample) * i // ranges for i in range(1, ranges)]]
    values, places = np.empty(n, x.dtype), np.empty(n, np.intp)

    def begin(chunk: tuple[int, int]) -> Array:
        a, b = chunk
        part, order = _in_order(x[a:b])
        values[a:b] = part
        np.add(order, a, out=places[a:b])
        return np.concatenate(([a], a + np.searchsorted(part, pivots), [b]))

    cuts = np.ascontiguousarray(np.array(each(begin, chunks)).T)  # a row for the beginning of each range
    ends = np.concatenate(([0], np.cumsum(np.diff(cuts, axis=0).sum(axis=1))))
    found, out = np.empty(n, x.dtype), np.empty(n, np.intp)

    def finish(j: int) -> None:
        lo, hi = ends[j], ends[j + 1]
        lengths = cuts[j + 1] - cuts[j]
        shifts = cuts[j] - (np.cumsum(lengths) - lengths)
        where = np.repeat(shifts, lengths) + np.arange(hi - lo)
        part, order = _in_order(values.take(where))
        found[lo:hi] = part
        out[lo:hi] = places.take(where).take(order)

    each(finish, range(ranges))
    return found, out


def _ascends(x: Array) -> bool:
    """Whether a vector is sorted already; the first elements tell of most that are not."""
    every = range(0, len(x) - 1, _BLOCK)
    return all((x[i : i + _BLOCK][: len(x) - 1 - i] <= x[i + 1 : i + 1 + _BLOCK]).all() for i in every)


def _sample(x: Array, count: int) -> Array:
    """Sorted elements from anywhere in a vector, the same ones each time."""
    return np.sort(x[np.random.default_rng(0).integers(0, len(x), count)])


def _counted(part: Array, pivot: Any) -> tuple[int, int]:
    """How many elements come before one, and how many do not come after it; what is no number comes last."""
    if pivot != pivot:
        return _count(part, lambda block: block == block), len(part)
    return _count(part, lambda block: block < pivot), _count(part, lambda block: block <= pivot)


def _count(part: Array, test: Callable[[Array], Any]) -> int:
    return sum(int(np.count_nonzero(test(part[i : i + _BLOCK]))) for i in range(0, len(part), _BLOCK))


def _cuts_at(ranks: Sequence[int], counted: Array) -> Array:
    """For every share and rank, where the share may be cut so that together so many elements come before, or
    as near to that as a pivot is; `counted` has both bounds of each. Equal elements go to either side."""
    before, upto = counted[..., 0], counted[..., 1]
    more = np.clip(np.array(ranks) - before.sum(axis=0), 0, None)
    room = upto - before
    earlier = np.cumsum(room, axis=0) - room
    cuts: Array = before + np.clip(more - earlier, 0, room)
    return cuts


def _in_order(x: Array) -> tuple[Array, Array]:
    """A vector's elements in their order, and where they were; equal elements stay in their order."""
    if not is_vectorized(x.dtype):
        order = np.argsort(x, kind="stable")
        return x[order], order
    if x.dtype.kind != "f" and len(x):
        low, high = x.min(), x.max()
        if int(high) - int(low) < _DIGITS:
            order = np.argsort((x - low).astype(np.uint16), kind="stable")
            return x[order], order
    order = np.argsort(x)
    found = x.take(order)
    is_number = found[:-1] == found[:-1]  # what is none comes last, as one tie
    differ = (found[1:] != found[:-1]) & is_number
    if not differ.all():
        base = np.concatenate(([0], np.cumsum(differ))) * len(x)
        order = np.sort(base + order) - base
        found = x[order]
    return found, order
