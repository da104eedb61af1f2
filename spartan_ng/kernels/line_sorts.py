"""Sort a line of numbers by all threads, with NumPy's vectorized sort of values.

To sort values, they are spread over as many ranges as there are threads, block by block in the cache, and
each range is sorted where it lies: nothing is merged. To sort indices, each one is put behind the first
digits of its value, in one integer: sorting these reads memory in order, where a sort of indices reads the
whole line in none. What has the same digits is put in order at the end, in the cache. Ties keep their order.

Blelloch et al., "A Comparison of Sorting Algorithms for the Connection Machine CM-2" (SPAA '91): sample sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias

import numpy as np

from spartan_ng.costs.choices import FIRST_KEYS, PACKED_ELEMENTS, PACKED_LINE, PACKED_TOGETHER, SORT_ELEMENTS
from spartan_ng.ops.joins import AXIS_FUNCTIONS, sort

Each: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Calls a function for every item, by threads; results in order."""
Array: TypeAlias = np.ndarray[Any, Any]
Make: TypeAlias = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
"""Makes an array without elements."""

_SAMPLES = 1 << 14
"""Elements that tell where ranges end; one is then about a hundredth longer or shorter than wanted."""
_BLOCK = 1 << 16
"""Elements that are worked on at a time, in the cache."""
_RADIX_BYTES = 2
"""Bytes of integers that NumPy sorts stably by their digits."""
_LONGEST = np.iinfo(np.int64).max


def is_vectorized(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy sorts such elements by vectors; it sorts shorter integers by their digits, if stably."""
    return dtype.kind in "fiu" and dtype.itemsize in (4, 8)


def _is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether indices find room behind the digits of such elements."""
    return dtype.kind in "iufmM" and dtype.itemsize <= 8


def line_function(name: str) -> Callable[..., Any]:
    """What blocks call for a function of whole lines: a row of `AXIS_FUNCTIONS`, or what makes the same of
    them sooner."""
    return argsorted_lines if name == "argsort" else AXIS_FUNCTIONS[name].function


# --- values ----------------------------------------------------------------------------------------


def sorted_line(x: Array, threads: int, each: Each, make: Make = np.empty) -> Array:
    """A sorted copy of a vector, as `np.sort` makes it."""
    n = len(x)
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
    return _argsorted(x, 1, _one_by_one, np.empty, PACKED_ELEMENTS)


def _one_by_one(one: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [one(item) for item in items]


def _argsorted(x: Array, threads: int, each: Each, make: Make, least: int) -> tuple[Array, Array]:
    n = len(x)
    if n < least or not _is_packed(x.dtype):
        order = np.argsort(x, kind="stable")
        return x[order], order
    values, order = make((n,), x.dtype), make((n,), np.dtype(np.intp))
    _put_order(x, order, values, threads, each)
    return values, order


def _put_order(x: Array, order: Array, values: Array | None, threads: int, each: Each) -> None:
    """Fill `order` with the indices that sort a vector, and `values`, where they are wanted, with the sorted
    one."""
    n = len(x)
    if _ascends(x):
        order[:] = np.arange(n)
        if values is not None:
            values[:] = x
        return
    x = np.ascontiguousarray(x)
    blocks = _blocks((0, n))
    lows, highs = zip(*each(lambda block: _ranged_keys(x[slice(*block)])[1:], blocks), strict=True)
    low, digits = min(lows), (n - 1).bit_length()
    without = _without(low, max(highs), digits)
    first = _keys(x[:1])[0]
    hides = not all(_end_alike(_keys(x[slice(*block)]), first, without) for block in blocks)
    packed = np.empty(n, np.uint64)

    def pack(block: tuple[int, int]) -> None:
        keys = np.subtract(_keys(x[slice(*block)]), low).view(np.uint64)
        packed[slice(*block)] = keys >> without << digits | np.arange(*block, dtype=np.uint64)

    each(pack, blocks)
    if threads > 1:
        packed = sorted_line(packed, threads, each)
    else:
        packed.sort()

    def unpack(part: tuple[int, int]) -> None:
        both = packed[slice(*part)]
        places = _places(x, both, digits, hides)
        order[slice(*part)] = places
        if values is not None:
            values[slice(*part)] = x.take(places)

    each(unpack, _parts(packed, digits) if hides else blocks)


def _without(low: int, high: int, digits: int) -> int:
    """How many last digits of keys find no room before an index."""
    return max(0, (high - low).bit_length() + digits - 64)


def _end_alike(keys: Array, first: Any, without: int) -> bool:
    """Whether the last digits of keys, which find no room, are those of another key: then they hide nothing.
    Those of whole numbers are zeros."""
    digits = (1 << without) - 1
    some = keys.reshape(-1)[:FIRST_KEYS]  # tell of most
    return not without or not (((some ^ first) & digits).any() or ((keys ^ first) & digits).any())


def _places(x: Array, packed: Array, digits: int, hides: bool) -> Array:
    """The indices among elements `x` behind sorted first digits of these, which may hide others."""
    places: Array = (packed & ((1 << digits) - 1)).view(np.intp)
    if hides and _repeat(packed, digits):
        keys = _keys(x.take(places))
        if (keys[1:] < keys[:-1]).any():
            _put_in_order(places, keys, packed >> digits)
    return places


def argsorted_lines(a: Array, axis: int, kind: str = "stable") -> Array:
    """The indices that sort lines along an axis, equal elements in their order, whatever `kind` is asked for:
    some lines at a time, each index behind the first digits of its value."""
    n, is_radix = a.shape[axis], a.dtype.kind in "iu" and a.dtype.itemsize <= _RADIX_BYTES
    if n < PACKED_LINE or is_radix or not _is_packed(a.dtype):
        return np.argsort(a, axis=axis, kind="stable")
    out = np.empty(a.shape, np.intp)
    axis %= a.ndim
    around = prod(a.shape[:axis]), n, prod(a.shape[axis + 1 :])
    lines, places = (np.moveaxis(x.reshape(around), 1, -1) for x in (a, out))
    before, after = lines.shape[:2]
    if n > PACKED_TOGETHER:
        for at in np.ndindex(before, after):
            _put_order(lines[at], places[at], None, 1, _one_by_one)
        return out
    few = max(_BLOCK // n, 1)
    step = max(few // max(after, 1), 1)
    for i in range(0, before, step):
        for j in range(0, after, few):
            some = np.s_[i : i + step, j : j + few]
            _order_together(lines[some], places[some])
    return out


def _order_together(lines: Array, places: Array) -> None:
    """Fill `places` with the indices that sort lines along their last axis, all of which have room in the
    cache."""
    n = lines.shape[-1]
    (keys, low, high), digits = _ranged_keys(lines), (n - 1).bit_length()
    without = _without(low, high, digits)
    hides = not _end_alike(keys, keys.flat[0], without)
    packed = np.subtract(keys, low, out=keys).view(np.uint64)
    packed >>= without
    packed <<= digits
    packed |= np.arange(n, dtype=np.uint64)
    packed.sort()
    np.bitwise_and(packed, (1 << digits) - 1, out=places.view(np.uint64))
    if hides and _repeat(packed, digits):
        firsts = packed >> digits
        for at in map(tuple, np.argwhere((firsts[..., 1:] == firsts[..., :-1]).any(axis=-1))):
            places[at] = _places(lines[at], packed[at], digits, hides)


def _repeat(packed: Array, digits: int) -> bool:
    """Whether neighbours in sorted lines have the same first digits."""
    apart = packed[..., 1:] ^ packed[..., :-1]
    return bool(apart.size and apart.min() < 1 << digits)


def _keys(x: Array) -> Array:
    """Integers of 64 bits in the order of elements: all zeros are one, what is no number comes last."""
    return _ranged_keys(x)[0]


def _ranged_keys(x: Array) -> tuple[Array, int, int]:
    """The keys of elements, in the order of C, and the least and greatest of them."""
    kind = x.dtype.kind
    if kind == "f":
        keys = _bits(x)
        most, infinite = np.iinfo(keys.dtype).max, int(_bits(np.array(np.inf, x.dtype)))
        sign = keys >> (8 * keys.itemsize - 1)
        sign &= most
        keys ^= sign
        low, high = _ends(keys)
        if low < -infinite - 1 or high > infinite:
            keys[np.isnan(x)] = most
            low, high = _ends(keys)
        return keys.astype(np.int64, copy=False), low, high
    if kind in "mM":
        keys = x.astype(x.dtype.newbyteorder("="), "C").view(np.int64) - 1  # NaT is the least one
    elif kind == "u" and x.dtype.itemsize == 8:
        keys = x.astype(np.uint64, "C").view(np.int64) ^ ~_LONGEST
    else:
        keys = x.astype(np.int64, "C")
    return keys, *_ends(keys)


def _bits(x: Array) -> Array:
    """The bits of floating-point numbers as integers, of zeros those of the positive one."""
    wide = np.result_type(x.dtype, np.float32)
    with np.errstate(invalid="ignore"):
        return np.add(x, 0, dtype=wide, order="C").view(f"i{wide.itemsize}")


def _ends(keys: Array) -> tuple[int, int]:
    return int(keys.min()), int(keys.max())


def _parts(packed: Array, digits: int) -> list[tuple[int, int]]:
    """Parts of a sorted line that fit the cache, without what has the same first digits in two of them."""
    firsts = packed[::_BLOCK] >> digits << digits
    return list(pairwise(sorted({*np.searchsorted(packed, firsts).tolist(), len(packed)})))


def _put_in_order(places: Array, keys: Array, first_digits: Array) -> None:
    """Put the places of elements with the same first digits in the order of their keys."""
    same = first_digits[1:] == first_digits[:-1]
    alike = np.append(same, False)
    alike[1:] |= same
    places[alike] = places[alike][np.argsort(keys[alike], kind="stable")]


def _ascends(x: Array) -> bool:
    """Whether a vector is sorted already; the first elements tell of most that are not."""
    every = range(0, len(x) - 1, _BLOCK)
    return all((x[i : i + _BLOCK][: len(x) - 1 - i] <= x[i + 1 : i + 1 + _BLOCK]).all() for i in every)
