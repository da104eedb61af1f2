"""Sorts by digits are NumPy's: of all numbers, all sizes and orders; each element keeps its bits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.kernels import sorts
from spartan_ng.kernels.sorts import by_this_thread, put_sorted, sort_in_place, sorted_lines
from tests.sampling import Some, examples

Array = np.ndarray[Any, Any]
compiled = pytest.mark.skipif(not sorts.IS_COMPILED, reason="nothing is compiled here")
DTYPES = ["?", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8", "M8[s]", "m8[ns]"]
SHORT, FEW, LONG, SAMPLED = 24, 1024, 4096, 128
SIZES = [
    *range(60),
    *range(60, 301, 7),
    *(n + d for n in (SHORT, SAMPLED, FEW, 2 * FEW, LONG) for d in (-1, 0, 1)),
    9999,
]
ORDERS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "all bits": lambda rng, n: rng.integers(0, 1 << 64, n, np.uint64),
    "few values": lambda rng, n: rng.integers(0, 1 << 64, 5, np.uint64)[rng.integers(0, 5, n)],
    "few and others": lambda rng, n: np.where(
        np.arange(n) == n - 9,
        np.uint64(1 << 63),
        rng.integers(0, 1 << 64, 8, np.uint64)[rng.integers(0, 8, n)],
    ),
    "equal": lambda rng, n: np.full(n, rng.integers(0, 1 << 64, dtype=np.uint64)),
    "near": lambda rng, n: (1 << 62) + rng.integers(0, 9, n).astype(np.uint64),
    "alike up to the last bits": lambda rng, n: (
        rng.integers(0, 1 << 64, 3, np.uint64)[rng.integers(0, 3, n)]
        ^ rng.integers(0, 99, n).astype(np.uint64)
    ),
    "of all sizes": lambda rng, n: (
        rng.integers(0, 1 << 64, n, np.uint64) >> rng.integers(0, 64, n).astype(np.uint64)
    ),
}
FIRST: dict[str, Callable[[Array], Array]] = {
    "as it comes": lambda x: x,
    "sorted": np.sort,
    "reversed": lambda x: np.sort(x)[::-1],
    "pipe": lambda x: np.concatenate([np.sort(x[::2]), np.sort(x[1::2])[::-1]]),
}
NO_TIME = [1 << 63, 0, (1 << 64) - 1, (1 << 63) - 1, (1 << 63) + 1]
SPECIAL = {
    "f8": [x << 48 for x in (0x7FF8, 0xFFF8, 0, 1 << 15, 0x7FF0, 0xFFF0)] + [0x7FF << 52 | 1, (1 << 64) - 1],
    "f4": [x << 16 for x in (0x7FC0, 0xFFC0, 0, 1 << 15, 0x7F80, 0xFF80)] + [0x7F80_0001, (1 << 32) - 1],
    "f2": [0x7E00, 0xFE00, 0, 1 << 15, 0x7C00, 0xFC00, 0x7C01, 0xFFFF],
    "M8[s]": NO_TIME,
    "m8[ns]": NO_TIME,
}
"""Bits of what is no number, of zeros of both signs, of infinities, of no time, and of the ends of times."""


def of_bits(bits: Array, dtype: str) -> Array:
    """Elements of some of the bits; a truth has one."""
    if dtype == "?":
        return (bits & np.uint64(1)).astype("?")
    size = np.dtype(dtype).itemsize
    return (bits if size == 8 else bits >> np.uint64(64 - 8 * size)).astype(f"u{size}").view(dtype)


def elements(rng: np.random.Generator, n: int, dtype: str, order: str, first: str) -> Array:
    x = of_bits(ORDERS[order](rng, n), dtype)
    if dtype in SPECIAL:
        some = rng.random(n) < 0.2
        x.view(f"u{x.itemsize}")[some] = rng.choice(np.array(SPECIAL[dtype], np.uint64), n)[some]
    return np.ascontiguousarray(FIRST[first](x))


def check(found: Array, x: Array) -> None:
    """The same elements, bit by bit, in NumPy's order."""
    np.testing.assert_array_equal(found, np.sort(x, kind="stable"), strict=True)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(np.sort(found.view(bits)), np.sort(x.view(bits)))


def piece(x: Array, to: Array) -> Array:
    sorts._sort_piece(x, to, np.empty_like(to))
    return to


@compiled
@pytest.mark.some(40)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pieces(dtype: str, order: str, some: Some) -> None:
    rng = np.random.default_rng(7)
    for n in some(SIZES, 20):
        for first in FIRST:
            x = elements(rng, n, dtype, order, first)
            kept = x.copy()
            check(piece(x, np.empty_like(x)), x)
            np.testing.assert_array_equal(x.view(f"u{x.itemsize}"), kept.view(f"u{x.itemsize}"))
            check(piece(x, x), kept)


@compiled
@pytest.mark.some(40)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_spread_first(dtype: str, order: str, some: Some) -> None:
    rng = np.random.default_rng(8)
    small = patch.multiple(
        sorts,
        DIGIT_ALONE=0,
        DIGIT_LINE=0,
        DIGIT_PIECE=some([64, 500, 9000], 1)[0],
        _BLOCK=some([77, 1 << 20], 1)[0],
    )
    with small, patch.object(sorts, "_wins", lambda dtype, n: True), ThreadPoolExecutor(2) as pool:

        def each(one: Any, items: Any) -> list[Any]:
            return list(pool.map(one, items))

        for n in some([1, 2, 3, 30, 300, 5000, 20_000], 3):
            for first in FIRST:
                x = elements(rng, n, dtype, order, first)
                to = np.empty(n + 1, x.dtype)[1:]  # behind the beginning of a line of the cache
                put_sorted(x, to, 3, each)
                check(to, x)
                kept = x.copy()
                sort_in_place(x)
                check(x, kept)


@compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_both_ways_are_tried(dtype: str) -> None:
    """Of all types, whichever is sooner here."""
    assert sorts._wins.__wrapped__(np.dtype(dtype).str, 1024) in (True, False)


@compiled
def test_ranges_are_as_long_as_wanted() -> None:
    """Whatever the elements are, as long as no value fills one."""
    rng = np.random.default_rng(0)
    for x in (rng.random(200_000), rng.standard_normal(200_000), np.exp(99 * rng.standard_normal(200_000))):
        with patch.object(sorts, "DIGIT_PIECE", 8000):
            least, most, *_ = sorts._module.ends(*sorts._told(x), False)
            ends = sorts._put_in_ranges(x, np.empty_like(x), least, most, 1, by_this_thread)
        lengths = np.diff(ends, prepend=0)
        assert lengths.max() < 4000
        assert len(ends) < 4 * 200


@examples(200)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=3).map(tuple),
    st.sampled_from([*DTYPES, ">f8", "g", "c16"]),
    st.data(),
    st.sampled_from(["C", "F"]),
    st.sampled_from([1, 100, 1 << 20]),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_lines(shape: tuple[int, ...], dtype: str, data: Any, order: Any, piece: int, alone: int) -> None:
    x = np.random.default_rng(len(shape)).integers(-3, 4, shape).astype(np.dtype(dtype).newbyteorder("="))
    x = np.asarray(x.astype(dtype), order=order)[
        tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2]))) for _ in shape)
    ]
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wins = patch.object(sorts, "_wins", lambda dtype, n: True)
    with wins, patch.multiple(sorts, DIGIT_LINE=0, DIGIT_PIECE=piece, DIGIT_ALONE=alone):
        found = sorted_lines(x, axis)
    np.testing.assert_array_equal(found, np.sort(x, axis), strict=True)
    assert found.flags.c_contiguous == np.sort(x, axis).flags.c_contiguous


@compiled
@pytest.mark.parametrize("step", [2, -1])
def test_elements_may_lie_anywhere(step: int) -> None:
    rng = np.random.default_rng(0)
    room = np.frombuffer(rng.bytes(8 * 6000 + 1), np.uint8)
    for x in (room[1:].view(np.int64)[::step], room[:-1].view(np.int64)[::step], room[1:].view(np.float32)):
        with patch.object(sorts, "_wins", lambda dtype, n: True):
            check(sorted_lines(x), x)
            to = np.empty_like(x)
            put_sorted(x, to, 1, by_this_thread)
            check(to, x)


@compiled
def test_what_does_not_fit_is_refused() -> None:
    line, short = np.zeros(10, np.uint64), np.zeros(9, np.uint64)
    table, parts = np.zeros(4, np.uint32), np.zeros(1, np.int64)
    odd = np.zeros(81, np.uint8)[1:]
    module = sorts._module
    for error, call, arguments in (
        (TypeError, "sort", ("f", 1, line, line, line, 10, 0)),
        (TypeError, "sort", ("c", 8, line, line, line, 10, 0)),
        (TypeError, "sort", ("u", 3, line, line, line, 10, 0)),
        (ValueError, "sort", ("u", 8, line, short, line, 10, 0)),
        (ValueError, "sort", ("u", 8, line, line, short, 10, 0)),
        (ValueError, "sort", ("u", 8, line, line, line, 3, 0)),
        (ValueError, "sort", ("u", 8, line, line, line, 0, 0)),
        (ValueError, "sort", ("u", 8, odd, line, line, 10, 0)),
        (ValueError, "sort", ("u", 8, line, line, odd, 10, 0)),
        (ValueError, "sort", ("u", 8, odd[:-1], odd[:-1], line, 10, 0)),
        (ValueError, "ends", ("u", 8, short[:0], False)),
        (ValueError, "keys", ("u", 8, line, 0, short)),
        (ValueError, "pack", ("u", 8, line, 0, 0, 0, 0, 10, short)),
        (ValueError, "pack", ("u", 8, line, 0, 64, 0, 0, 10, line)),
        (ValueError, "pack", ("u", 8, line, 0, 0, 4, 0, 3, line)),
        (ValueError, "pack", ("u", 8, line, 0, 0, 4, -1, 10, line)),
        (ValueError, "unpack", ("u", line, 0, short, 4, 4, 9, line)),
        (ValueError, "unpack", ("u", line, 0, line, 4, 4, 3, line)),
        (ValueError, "unpack", ("u", line[:0], 0, line, 4, 4, 10, line)),
        (ValueError, "unpack", ("u", line, 0, line, 4, 64, 10, line)),
        (ValueError, "count", ("u", 8, line, 0, table[:0], 3, parts)),
        (ValueError, "count", ("u", 8, line, 0, table, 64, parts)),
        (ValueError, "count", ("u", 8, line, 0, table + 256 + 3, 3, parts)),
        (ValueError, "spread", ("u", 8, line, 0, table + 2, 3, parts, line)),
        (ValueError, "spread", ("u", 8, line, 0, table, 3, parts[:0], line)),
    ):
        with pytest.raises(error):
            getattr(module, call)(*arguments)


@compiled
def test_elements_that_others_write_meanwhile_go_nowhere_else() -> None:
    """What was counted is no more what is spread: nothing is written outside the room for it."""
    room = np.full(300, 77, np.uint64)
    counts = np.zeros(2, np.int64)
    table = np.array([3, 1 << 8 | 3], np.uint32)
    x = np.arange(100, dtype=np.uint64) % 8
    sorts._module.count("u", 8, x, 0, table, 3, counts)
    assert counts.tolist() == [100, 0]
    for others in (x + 8, x + (1 << 60)):
        sorts._module.spread("u", 8, others, 0, table, 3, np.array([0, 60]), room[100:200])
        assert (room[:100] == 77).all()
        assert (room[200:] == 77).all()
