"""Sort numbers by their digits, as is compiled (`_sorts.c`), or by NumPy, where that is sooner.

A vector that the cache holds is sorted there. A longer one is first spread over ranges of values that are as
long: a table of the first bits of keys says which range an element is in, or how many more bits say it, where
a sample has many such elements. So doubles of all sizes come into ranges of about the same length, without a
comparison. What no table could tell apart is looked at again.

Everybody who sorts numbers asks here, and nobody else chooses. Only the order of zeros of both signs, and of
what is no number, may differ from what NumPy makes of the same elements.

Axtmann, Witt, Ferizovic and Sanders, "In-Place Parallel Super Scalar Samplesort" (ESA '17); Knuth, "The Art
of Computer Programming", volume 3, section 5.2.5.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct

from spartan_ng.config import PURE_VARIABLE
from spartan_ng.costs.choices import DIGIT_ALONE, DIGIT_LINE, DIGIT_PIECE, MERGED_PARTS, SORT_ELEMENTS
from spartan_ng.costs.contests import is_sooner
from spartan_ng.ops.joins import sort
from spartan_ng.system.built import built

Array: TypeAlias = np.ndarray[Any, Any]
Each: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]
"""Calls a function for every item, by threads; results in order."""

_KINDS = {"b": "u", "u": "u", "i": "i", "f": "f", "m": "m", "M": "m"}
_TRIED = (1 << 14, 1 << 12, DIGIT_LINE)
"""Elements that both ways are tried with, of as many or more."""
_BLOCK = 1 << 20
"""Elements of a vector that are copied at a time where they do not lie side by side."""
_FIRST_BITS, _MOST_BITS = 12, 10
"""Of a key, those that a table has entries for, and those that an entry may add."""
_SAMPLES = 32
"""Of a range."""
_TASKS = 8
"""Of each thread, when ranges are sorted: one has more to do than another."""

_is_wanted = os.environ.get(PURE_VARIABLE, "0") == "0"
_module: Any = built("spartan_ng.kernels._sorts", __file__, "_sorts.c", "_sorts.h") if _is_wanted else None
IS_COMPILED = _module is not None
"""Whether there are sorts of ours."""


def is_by_digits(dtype: np.dtype[Any], n: int) -> bool:
    """Whether lines of n such elements are sorted here, and not by NumPy."""
    if n < DIGIT_LINE or not dtype.isnative or not _has_keys(dtype):
        return False
    return _wins(dtype.str, next((tried for tried in _TRIED if tried <= n), n))


def _has_keys(dtype: np.dtype[Any]) -> bool:
    return IS_COMPILED and dtype.kind in _KINDS and dtype.itemsize <= 8


@cache
def _wins(dtype: str, n: int) -> bool:
    """Whether n such elements take less time here than NumPy's sort of them takes, on this machine, be they
    many values or few."""
    rng, bits = np.random.default_rng(0), 1 if dtype[1] == "b" else 8 * np.dtype(dtype).itemsize - 1
    many = rng.random(n) if dtype[1] == "f" else rng.integers(0, 1 << bits, n)
    many = many.astype("i8").view(dtype) if dtype[1] in "mM" else many.astype(dtype)
    to, spare = np.empty_like(many), np.empty_like(many)
    lines = (many, rng.choice(many[:5], n))
    return all(is_sooner(partial(_sort_piece, line, to, spare), partial(sort, line)) for line in lines)


def by_this_thread(one: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Calls a function for every item, by this thread."""
    return [one(item) for item in items]


def is_vectorized(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy sorts such elements by vectors; it sorts shorter integers by their digits, if stably."""
    return dtype.kind in "fiu" and dtype.itemsize in (4, 8)


def sort_in_place(x: Array, runs: int = 0) -> None:
    """Sort a contiguous vector, which may be of so many sorted parts, one behind the other."""
    if is_by_digits(x.dtype, len(x)):
        put_sorted(x, x)
    else:
        x.sort(kind="stable" if 0 < runs <= MERGED_PARTS or not is_vectorized(x.dtype) else None)


def put_sorted(x: Array, to: Array, threads: int = 1, each: Each = by_this_thread, in_order: int = 0) -> None:
    """Fill a contiguous vector with the sorted elements of one, which may be itself; by threads only where
    `is_by_digits`. What has no sign may be in the order of so many last bits."""
    if not is_by_digits(x.dtype, len(x)):
        np.copyto(to, x)
        sort_in_place(to)
        return
    n = len(x)
    if x.nbytes <= DIGIT_ALONE and (threads < 2 or n < SORT_ELEMENTS):
        _sort_piece(x, to, np.empty_like(to), in_order)
        return
    blocks = [(i, min(i + _BLOCK, n)) for i in range(0, n, _BLOCK)]
    found = each(lambda block: _module.ends(*_told(x[block[0] : block[1] + 1]), False), blocks)
    least, most = min(least for least, *_ in found), max(most for _, most, *_ in found)
    if all(goes_up for *_, goes_up in found):
        np.copyto(to, x)
        return
    if np.may_share_memory(x, to):
        x = x.copy()
    _sort_ranges(to, _put_in_ranges(x, to, least, most, threads, each), threads, each, in_order)


def _told(x: Array) -> tuple[str, int, Array]:
    """What is compiled is told of elements, which lie side by side then."""
    if not (x.flags.c_contiguous and x.flags.aligned and x.dtype.isnative):
        x = x.astype(x.dtype.newbyteorder("="), "C")
    return _KINDS[x.dtype.kind], x.itemsize, x.view(f"u{x.itemsize}")


# --- indices ---------------------------------------------------------------------------------------


def is_packed(dtype: np.dtype[Any]) -> bool:
    """Whether indices find room behind the digits of such elements."""
    return _has_keys(dtype) and dtype.kind != "b"


def key_ends(x: Array) -> tuple[int, int, int, bool]:
    """The least and the greatest key of elements, equal ones of equal elements; the bits in which some
    differ, and whether they go up, side by side."""
    return _module.ends(*_told(x), True)  # type: ignore[no-any-return]


class Packing(Struct, frozen=True):
    """How the keys of elements stand in front of these elements' places, in one integer."""

    less: int
    without: int
    """Last bits of keys that find no room, and tell some apart."""
    shift: int
    """Last bits of keys that are not there."""
    digits: int
    """Bits of a place."""

    @classmethod
    def of(cls, ends: Sequence[tuple[int, int, int, bool]], n: int) -> Packing:
        """That of elements whose keys have such ends, in lines of n."""
        least, digits = min(least for least, *_ in ends), (n - 1).bit_length()
        shift = max(0, (max(most for _, most, *_ in ends) - least).bit_length() + digits - 64)
        apart = any(bits & ((1 << shift) - 1) for _, _, bits, _ in ends)
        return cls(least, shift if apart else 0, shift, digits)

    def pack(self, x: Array, place: int, to: Array) -> None:
        """Pack elements and their places in lines, from one on."""
        _module.pack(*_told(x), self.less, self.shift, self.digits, place, x.shape[-1], to)

    def unpack(self, x: Array, packed: Array, places: Array) -> None:
        """The places that are packed in sorted lines, in the order of all bits of the keys of `x`."""
        if self.without:
            kind, _, bits = _told(x)
            _module.unpack(
                kind,
                bits,
                self.less,
                packed,
                self.digits,
                self.without,
                packed.shape[-1],
                places.view(np.uint64),
            )
        else:
            np.bitwise_and(packed, (1 << self.digits) - 1, out=places.view(np.uint64))


# --- values ----------------------------------------------------------------------------------------


def _sort_piece(x: Array, to: Array, spare: Array, in_order: int = 0) -> None:
    """Sort lines along the last axis, which the cache holds, into others or themselves."""
    _module.sort(*_told(x), *(a.view(f"u{a.itemsize}") for a in (to, spare)), x.shape[-1], in_order)


def sorted_lines(a: Array, axis: int = -1, in_order: int = 0) -> Array:
    """A copy with sorted lines along an axis, as `np.sort` makes it, of elements as `put_sorted` takes
    them."""
    n = a.shape[axis]
    if not is_by_digits(a.dtype, n):
        return np.asarray(sort(a, axis))
    out = np.empty_like(a)
    lines, to = np.moveaxis(a, axis, -1), np.moveaxis(out, axis, -1)
    if n * a.itemsize > DIGIT_ALONE:
        for at in np.ndindex(lines.shape[:-1]):
            line = np.ascontiguousarray(to[at])
            put_sorted(lines[at], line, in_order=in_order)
            to[at] = line
        return out
    spare = np.empty(n, a.dtype)
    if to.flags.c_contiguous:
        _sort_piece(lines, to, spare, in_order)
        return out
    few = max(DIGIT_PIECE // (n * a.itemsize), 1)
    for at in np.ndindex(lines.shape[:-2]):
        for i in range(0, lines.shape[-2], few):
            some = np.ascontiguousarray(lines[at][i : i + few])
            _sort_piece(some, some, spare, in_order)
            to[at][i : i + few] = some
    return out


def _put_in_ranges(x: Array, to: Array, least: int, most: int, threads: int, each: Each) -> Array:
    """Copy elements to the ranges that they are in; where those end."""
    n, ranges = len(x), max(x.nbytes // DIGIT_PIECE, 2)
    some = x[np.random.default_rng(0).integers(0, n, _SAMPLES * ranges)]  # the same ones each time
    keys = np.empty(len(some), np.uint64)
    _module.keys(*_told(some), least, keys)
    table, rest, ranges = _table(keys, most - least, ranges)
    shares = list(pairwise(n * i // threads for i in range(threads + 1)))

    def by_blocks(function: Any, share: tuple[int, int], *others: Array) -> None:
        for lo in range(*share, _BLOCK):
            function(*_told(x[lo : min(lo + _BLOCK, share[1])]), least, table, rest, *others)

    counts = np.zeros((threads, ranges), np.int64)
    each(lambda i: by_blocks(_module.count, shares[i], counts[i]), range(threads))
    ends = np.cumsum(counts.sum(axis=0))
    places = ends - counts.sum(axis=0) + np.cumsum(counts, axis=0) - counts
    bits = to.view(f"u{to.itemsize}")
    each(lambda i: by_blocks(_module.spread, shares[i], places[i], bits), range(threads))
    return ends


def _table(keys: Array, span: int, ranges: int) -> tuple[Array, int, int]:
    """Which range keys from 0 to `span` are in, so that about as many of a sample are in each; the bits
    behind those that the table has entries for; how many ranges there are."""
    rest = max(span.bit_length() - _FIRST_BITS, 0)
    counts = np.bincount((keys >> np.uint64(rest)).astype(np.intp), minlength=(span >> rest) + 1)
    full = counts * ranges / len(keys)
    added = np.ceil(np.log2(np.maximum(full, 1))).astype(int).clip(0, min(rest, _MOST_BITS))
    before = (np.cumsum(counts) - counts) * ranges // len(keys)
    begins = (full >= 1) | (np.diff(before, prepend=-1) > 0)
    begins[1:] |= full[:-1] >= 1  # so that the least key and the greatest are never in one range
    sizes = 1 << added
    ends = np.cumsum(begins * sizes)
    return ((ends - sizes) << 8 | (rest - added)).astype(np.uint32), rest, int(ends[-1])


def _sort_ranges(to: Array, ends: Array, threads: int, each: Each, in_order: int) -> None:
    """Sort each range where it lies."""
    wanted = np.linspace(0, len(to), threads * _TASKS + 1)[1:]
    tasks = pairwise([0, *(np.searchsorted(ends, wanted) + 1).tolist()])
    longest = 4 * DIGIT_PIECE // to.itemsize

    def sort_some(task: tuple[int, int]) -> None:
        first, last = task[0], min(task[1], len(ends))
        cuts = [0 if first == 0 else int(ends[first - 1]), *ends[first:last].tolist()]
        lengths = [b - a for a, b in pairwise(cuts)]
        spare = np.empty(max([n for n in lengths if n <= longest], default=0), to.dtype)
        for lo, hi in pairwise(cuts):
            if hi - lo > longest:
                put_sorted(to[lo:hi], to[lo:hi], in_order=in_order)
            elif hi > lo:
                _sort_piece(to[lo:hi], to[lo:hi], spare, in_order)

    each(sort_some, list(tasks))
