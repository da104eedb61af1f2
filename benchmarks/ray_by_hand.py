"""The cumulative sums of `benchmarks.engines` as a user of Ray writes them: what Ray itself takes for them.

A task for each part of the array, and two passes, as ours has: the sums of the parts, then each part from the
sum of those before it on. The second works in blocks that stay in the processor's cache, into one buffer that
its process keeps, so that nothing but Ray's copy into its store comes to a pass over the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy
import ray

_BLOCK = 1 << 16
_buffer = numpy.empty(0)
_tasks = 0


@dataclass(frozen=True, slots=True)
class Parts:
    """An array of Ray's, along its only axis."""

    refs: Sequence[Any]

    def persist(self) -> Parts:
        """The same, once it is there."""
        ray.wait([*self.refs], num_returns=len(self.refs), fetch_local=False)
        return self


@dataclass(frozen=True, slots=True)
class Sums:
    """The cumulative sums of an array, before somebody divides them."""

    parts: Parts

    def __truediv__(self, by: float) -> Parts:
        global _tasks
        _tasks += 2 * len(self.parts.refs)
        totals = ray.get([_TOTAL.remote(ref) for ref in self.parts.refs])
        before = numpy.cumsum([0.0, *totals])
        return Parts([_SUMS.remote(ref, at, by) for ref, at in zip(self.parts.refs, before, strict=False)])


def cumsum(x: Parts, axis: int) -> Sums:
    """As NumPy's."""
    assert axis == 0, axis
    return Sums(x)


def tasks() -> int:
    """How many such sums have been submitted as."""
    return _tasks


def arange(stop: int, parts: int) -> Parts:
    """The numbers below `stop`, as doubles, in so many parts."""
    cuts = [stop * i // parts for i in range(parts + 1)]
    return Parts([_RANGE.remote(*ends) for ends in pairwise(cuts)]).persist()


def _range(start: int, stop: int) -> Any:
    return numpy.arange(float(start), float(stop))


def _total(x: Any) -> Any:
    return x.sum()


def _sums(x: Any, before: float, by: float) -> Any:
    global _buffer
    if len(_buffer) != len(x):
        _buffer = numpy.empty_like(x)
    for at in range(0, len(x), _BLOCK):
        block = _buffer[at : at + _BLOCK]
        numpy.cumsum(x[at : at + _BLOCK], out=block)
        block += before
        before = block[-1]
        block /= by
    return _buffer


_RANGE, _TOTAL, _SUMS = ray.remote(_range), ray.remote(_total), ray.remote(_sums)
