"""Many blocks, or steps along a dimension, that are told when they are asked for: a list of them would take
more memory than what is computed from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise, product
from math import prod
from typing import Any, overload

import numpy as np

from spartan_ng.arrays import Box

MANY = 1 << 14
"""More are not listed."""
Span = tuple[int, int]
Edges = np.ndarray[Any, np.dtype[np.int64]]


class Steps(Sequence[Span]):
    """The parts of `[lo, hi)`, cut at the multiples of `size`."""

    __slots__ = ("_first", "_hi", "_len", "_lo", "_size")

    def __init__(self, lo: int, hi: int, size: int) -> None:
        self._lo, self._hi, self._size = lo, hi, size
        self._first = lo // size
        self._len = -(-hi // size) - self._first if hi > lo else 0

    def __len__(self) -> int:
        return self._len

    @overload
    def __getitem__(self, i: int) -> Span: ...

    @overload
    def __getitem__(self, i: slice) -> Sequence[Span]: ...

    def __getitem__(self, i: int | slice) -> Span | Sequence[Span]:
        """A part, or some that follow each other."""
        if isinstance(i, slice):
            start, stop, step = i.indices(self._len)
            assert step == 1, "parts are taken in order"
            if stop <= start:
                return ()
            return Steps(self[start][0], self[stop - 1][1], self._size)
        k = self._first + range(self._len)[i]
        return max(k * self._size, self._lo), min((k + 1) * self._size, self._hi)


class Blocks(Sequence[Box]):
    """Some of the boxes that spans of each dimension make, in C order; the same object is the same blocks."""

    __slots__ = ("_spans", "_start", "_stop")

    def __init__(self, spans: Sequence[Sequence[Span]], start: int, stop: int) -> None:
        self._spans, self._start, self._stop = spans, start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def __iter__(self) -> Iterator[Box]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, i: int) -> Box: ...

    @overload
    def __getitem__(self, i: slice) -> Blocks: ...

    def __getitem__(self, i: int | slice) -> Box | Blocks:
        """A block, or some that follow each other."""
        if isinstance(i, slice):
            start, stop, step = i.indices(len(self))
            assert step == 1, "blocks are taken in order"
            return Blocks(self._spans, self._start + start, self._start + max(start, stop))
        at = self._start + range(len(self))[i]
        box: list[Span] = []
        for spans in reversed(self._spans):
            at, k = divmod(at, len(spans))
            box.append(spans[k])
        return tuple(reversed(box))

    def edges(self) -> Edges:
        """See `edges_of`."""
        at = np.arange(self._start, self._stop)
        found = np.empty((len(self), len(self._spans), 2), np.int64)
        for d, spans in reversed([*enumerate(self._spans)]):
            at, k = np.divmod(at, len(spans))
            lo = int(k.min(initial=len(spans)))
            some = spans[lo : int(k.max(initial=0)) + 1]
            found[:, d] = np.array(some, np.int64).reshape(-1, 2)[k - lo]
        return found


Run = tuple[Box, ...] | Blocks
"""Blocks that one thread works on, one after the other."""


def edges_of(run: Run, ndim: int) -> Edges:
    """For each block the first index along each of so many dimensions, and the one behind the last."""
    if isinstance(run, Blocks):
        return run.edges()
    every = chain.from_iterable(chain.from_iterable(run))
    return np.fromiter(every, np.int64, 2 * ndim * len(run)).reshape(len(run), ndim, 2)


def cut_at_multiples(lo: int, hi: int, size: int) -> Sequence[Span]:
    """The parts of `[lo, hi)`, cut at the multiples of `size`."""
    if hi - lo > MANY * size:
        return Steps(lo, hi, size)
    bounds = [lo, *range((lo // size + 1) * size, hi, size), hi] if hi > lo else []
    return list(pairwise(bounds))


def blocks(spans: Sequence[Sequence[Span]]) -> Run:
    """The boxes that spans of each dimension make, in C order."""
    count = prod(map(len, spans))
    return Blocks(spans, 0, count) if count > MANY else tuple(product(*spans))
