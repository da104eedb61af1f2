"""Sort a line of numbers by all threads, with NumPy's vectorized sort of values.

To sort values, they are spread over as many ranges as there are threads, block by block in the cache, and
each range is sorted where it lies: nothing is merged. To sort indices, each one is put behind the first
digits of its value, in one integer: sorting these reads memory in order, where a sort of indices reads the
whole line in none. What has the same digits is put in order at the end, in the cache. Ties keep their order.

Blelloch et al., "A Comparison of Sorting Algorithms for the Connection Machine CM-2" (SPAA '91): sample sort.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from spartan_ng.costs.choices import PACKED_ELEMENTS, PACKED_LINE, PACKED_TOGETHER, SORT_ELEMENTS
from spartan_ng.kernels.sorts import (
    Array,
    Each,
    Packing,
    by_this_thread,
    is_by_digits,
    is_packed,
    key_ends,
    put_sorted,
    sorted_lines,
)
from spartan_ng.ops.joins import AXIS_FUNCTIONS, sort

Make: TypeAlias = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
"""Makes an array without elements."""

_SAMPLES = 1 << 14
"""Elements that tell where ranges end; one is then about a hundredth longer or shorter than wanted."""
_BLOCK = 1 << 16
"""Elements that are worked on at a time, in the cache."""
_RADIX_BYTES = 2
"""Bytes of integers that NumPy sorts stably by their digits."""


def line_function(name: str) -> Callable[..., Any]:
    """What blocks call for a function of whole lines: a row of `AXIS_FUNCTIONS`, or what makes the same of
    them sooner."""
    return _SOONER.get(name) or AXIS_FUNCTIONS[name].function


# --- values ----------------------------------------------------------------------------------------


def sorted_line(x: Array, threads: int, each: Each, make: Make = np.empty, in_order: int = 0) -> Array:
    """A sorted copy of a vector, as `np.sort` makes it; it is in the order of so many of its last bits."""
    n = len(x)
    if is_by_digits(x.dtype, n):
        out = make((n,), x.dtype)
        put_sorted(x, out, threads, each, in_order)
        return out
    if threads < 2 or n < SORT_ELEMENTS or x.dtype.kind not in "biufmM":
        return np.asarray(sort(x))
    if _ascends(x):
        return x.copy()
    if x.itemsize == 1:
        return _repeated(x, each)
    pivots = _pivots(x, threads)
    shares = list(pairwise(n * i // threads for i in range(threads + 1)))
    counts = each(lambda share: _counted(x, share, pivots), shares)
    found = np.array([c.sum(axis=0) for c in counts])  # a row for each share, a column for each range
    ends = np.cumsum(found.sum(axis=0))
    starts = ends - found.sum(axis=0) + np.cumsum(found, axis=0) - found
    out = make((n,), x.dtype)
    each(lambda i: _spread(x, shares[i], counts[i], starts[i], out), range(threads))
    each(lambda j: out[ends[j] - found[:, j].sum() : ends[j]].sort(), range(len(ends)))
    return out


def _repeated(x: Array, each: Each) -> Array:
    """Sorted elements of a byte each: as many of all values as there are."""
    found = each(
        lambda block: np.bincount(x[slice(*block)].view(np.uint8), minlength=256), _blocks((0, len(x)))
    )
    values = np.arange(256, dtype=np.uint8).view(x.dtype)
    if x.dtype.kind == "i":
        values = np.roll(values, len(values) // 2)
        found = [np.roll(counts, len(values) // 2) for counts in found]
    return np.repeat(values, np.sum(found, axis=0))


def _pivots(x: Array, ranges: int) -> list[Any]:
    """Elements that cut a vector into ranges of about the same length, as far as equal elements let them."""
    sample = np.sort(x[np.random.default_rng(0).integers(0, len(x), _SAMPLES)])  # the same ones each time
    sample = sample[: np.count_nonzero(sample == sample)]  # nothing comes before what is no number
    found: list[Any] = []
    for i in range(1, ranges):
        rank = _SAMPLES * i // ranges
        if rank >= len(sample):
            break
        first, after = (np.searchsorted(sample, sample[rank], side) for side in ("left", "right"))
        pivot = sample[first if rank - first <= after - rank or after == len(sample) else after]
        if not found or pivot > found[-1]:
            found.append(pivot)
    return found


def _blocks(share: tuple[int, int]) -> list[tuple[int, int]]:
    return [(i, min(i + _BLOCK, share[1])) for i in range(share[0], share[1], _BLOCK)]


def _counted(x: Array, share: tuple[int, int], pivots: list[Any]) -> Array:
    """How many elements of each block of a share are in each range, a row a block."""
    blocks = _blocks(share)
    ends = np.empty((len(blocks), len(pivots) + 1), np.intp)
    for row, (lo, hi) in zip(ends, blocks, strict=True):
        row[:] = [*(int(np.count_nonzero(x[lo:hi] < p)) for p in pivots), hi - lo]
    return np.diff(ends, axis=1, prepend=0)


def _spread(x: Array, share: tuple[int, int], counts: Array, starts: Array, out: Array) -> None:
    """Copy each block's elements to their ranges, of which the share has its places from `starts` on."""
    room, places = np.empty(min(_BLOCK, share[1] - share[0]), x.dtype), starts.tolist()
    for (lo, hi), lengths in zip(_blocks(share), counts.tolist(), strict=True):
        block = room[: hi - lo]
        np.copyto(block, x[lo:hi])
        cuts = np.cumsum(lengths).tolist()
        inner = sorted({k for k in cuts if 0 < k < hi - lo})
        if inner:
            block.partition(inner)
        for j, (cut, length) in enumerate(zip(cuts, lengths, strict=True)):
            out[places[j] : places[j] + length] = block[cut - length : cut]
            places[j] += length


# --- indices ---------------------------------------------------------------------------------------


def argsorted_line(x: Array, threads: int, each: Each, make: Make = np.empty) -> tuple[Array, Array]:
    """The sorted vector and the indices that sort it, equal elements in their order."""
    return _argsorted(x, threads, each, make, SORT_ELEMENTS)


def argsorted(x: Array) -> tuple[Array, Array]:
    """The same by this thread alone, of shorter vectors, too."""
    return _argsorted(x, 1, by_this_thread, np.empty, PACKED_ELEMENTS)


def _argsorted(x: Array, threads: int, each: Each, make: Make, least: int) -> tuple[Array, Array]:
    n = len(x)
    if n < least or not is_packed(x.dtype):
        order = np.argsort(x, kind="stable")
        return x[order], order
    values, order = make((n,), x.dtype), make((n,), np.dtype(np.intp))
    _put_order(x, order, values, threads, each)
    return values, order


def _put_order(x: Array, order: Array, values: Array | None, threads: int, each: Each) -> None:
    """Fill `order` with the indices that sort a vector, and `values`, where they are wanted, with the sorted
    one."""
    blocks = _blocks((0, len(x)))
    found = each(lambda block: key_ends(x[block[0] : block[1] + 1]), blocks)
    keys = Packing.of(found, len(x))
    if all(goes_up for *_, goes_up in found):
        order[:] = np.arange(len(x))
        if values is not None:
            values[:] = x
        return
    x = np.require(x, x.dtype.newbyteorder("="), ["C", "A"])
    packed = np.empty(len(x), np.uint64)
    each(lambda block: keys.pack(x[slice(*block)], block[0], packed[slice(*block)]), blocks)
    packed = sorted_line(packed, threads, each, lambda *_: order.view(np.uint64), keys.digits)

    def unpack(part: tuple[int, int]) -> None:
        keys.unpack(x, packed[slice(*part)], order[slice(*part)])
        if values is not None:
            values[slice(*part)] = x.take(order[slice(*part)])

    each(unpack, _parts(packed, keys.digits) if keys.without else blocks)


def argsorted_lines(a: Array, axis: int, kind: str = "stable") -> Array:
    """The indices that sort lines along an axis, equal elements in their order, whatever `kind` is asked for:
    some lines at a time, each index behind the first digits of its value."""
    n, is_radix = a.shape[axis], a.dtype.kind in "iu" and a.dtype.itemsize <= _RADIX_BYTES
    if n < PACKED_LINE or is_radix or not is_packed(a.dtype):
        return np.argsort(a, axis=axis, kind="stable")
    out = np.empty(a.shape, np.intp)
    axis %= a.ndim
    around = prod(a.shape[:axis]), n, prod(a.shape[axis + 1 :])
    lines, places = (np.moveaxis(x.reshape(around), 1, -1) for x in (a, out))
    before, after = lines.shape[:2]
    if n > PACKED_TOGETHER:
        for at in np.ndindex(before, after):
            order = np.ascontiguousarray(places[at])
            _put_order(lines[at], order, None, 1, by_this_thread)
            places[at] = order
        return out
    few = max(_BLOCK // n, 1)
    step = max(few // max(after, 1), 1)
    for i in range(0, before, step):
        for j in range(0, after, few):
            some = np.s_[i : i + step, j : j + few]
            places[some] = _order_together(np.ascontiguousarray(lines[some]))
    return out


_SOONER: dict[str, Callable[..., Any]] = {"sort": sorted_lines, "argsort": argsorted_lines}


def _order_together(lines: Array) -> Array:
    """The indices that sort lines along their last axis, all of which have room in the cache."""
    keys = Packing.of([key_ends(lines)], lines.shape[-1])
    packed = np.empty(lines.shape, np.uint64)
    keys.pack(lines, 0, packed)
    packed = sorted_lines(packed, -1, keys.digits)
    places = packed.view(np.intp)
    keys.unpack(lines, packed, places)
    return places


def _parts(packed: Array, digits: int) -> list[tuple[int, int]]:
    """Parts of a sorted line that fit the cache, without what has the same first digits in two of them."""
    firsts = packed[::_BLOCK] >> digits << digits
    return list(pairwise(sorted({*packed.searchsorted(firsts).tolist(), len(packed)})))


def _ascends(x: Array) -> bool:
    """Whether a vector is sorted already; the first elements tell of most that are not."""
    every = range(0, len(x) - 1, _BLOCK)
    return all((x[i : i + _BLOCK][: len(x) - 1 - i] <= x[i + 1 : i + 1 + _BLOCK]).all() for i in every)
