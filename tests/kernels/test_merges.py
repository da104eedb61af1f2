"""Sorted vectors that are merged some at a time give what NumPy's sort of all of them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.kernels import merges
from spartan_ng.kernels.merges import merged_range, value_ranges
from tests.sampling import examples

KINDS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "doubles": lambda rng, n: rng.standard_normal(n),
    "singles": lambda rng, n: rng.random(n, "f4"),
    "integers": lambda rng, n: rng.integers(-99, 99, n),
    "short": lambda rng, n: rng.integers(-9999, 9999, n).astype("i2"),
    "one": lambda rng, n: np.full(n, 3.5),
    "two": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "truth": lambda rng, n: rng.random(n) < 0.5,
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, -0.0),
    "no numbers": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, rng.random(n)),
    "all no numbers": lambda rng, n: np.full(n, np.nan),
    "complex": lambda rng, n: rng.random(n) + 1j * rng.integers(0, 2, n),
    "times": lambda rng, n: np.where(
        rng.random(n) < 0.1, np.datetime64("NaT", "s"), rng.integers(0, 99, n).astype("M8[s]")
    ),
    "texts": lambda rng, n: rng.integers(0, 99, n).astype("U2"),
    "turned": lambda rng, n: rng.standard_normal(n).astype(">f8"),
}


def all_of(parts: list[Any], places: list[Any] | None = None) -> Any:
    at, found = 0, list[Any]()
    for own in value_ranges(parts, places or ()):
        assert own.first == at
        found += merged_range(parts, own, places)
        at += sum(own.stops) - sum(own.starts)
    first = (parts if places is None else places)[0]
    return np.concatenate([first[:0], *found], dtype=first.dtype)


@pytest.mark.parametrize("kind", KINDS)
@examples(25)
@given(
    sizes=st.lists(st.sampled_from([0, 1, 2, 7, 40, 333, 2000]), min_size=1, max_size=12),
    range_bytes=st.sampled_from([8, 64, 1000, 1 << 20]),
    seed=st.integers(0, 99),
)
def test_as_a_sort(kind: str, sizes: list[int], range_bytes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [np.sort(KINDS[kind](rng, n), kind="stable") for n in sizes]
    every = np.concatenate(parts, dtype=parts[0].dtype)
    with patch.object(merges, "_RANGE_BYTES", range_bytes):
        found = all_of(parts)
        places = all_of(parts, np.array_split(np.arange(len(every)), np.cumsum(sizes)[:-1]))
    assert found.dtype == parts[0].dtype
    np.testing.assert_array_equal(found, np.sort(every, kind="stable"))
    np.testing.assert_array_equal(places, np.argsort(every, kind="stable"))


@pytest.mark.parametrize("parts", [2, 5, 96])
@pytest.mark.parametrize("kind", ["doubles", "singles", "skewed"])
def test_what_is_sorted_at_a_time_fits_the_cache(parts: int, kind: str) -> None:
    make = KINDS.get(kind, lambda rng, n: np.exp(9 * rng.standard_normal(n)))
    rng = np.random.default_rng(0)
    every = [np.sort(make(rng, int(n))) for n in rng.integers(2_000, 9_000, parts)]
    with patch.object(merges, "_RANGE_BYTES", 1 << 13):
        lengths = [some.nbytes for own in value_ranges(every) for some in merged_range(every, own)]
    assert max(lengths) < 2 << 13
    assert sorted(lengths)[len(lengths) // 2] > 1 << 12


@pytest.mark.parametrize("share", [0.2, 0.9, 1.0])
def test_what_has_one_value_is_not_brought_together(share: float) -> None:
    rng = np.random.default_rng(0)
    parts = [np.sort(np.where(rng.random(5000) < share, 0.5, rng.random(5000))) for _ in range(9)]
    with patch.object(merges, "_RANGE_BYTES", 1 << 13):
        found = [some for own in value_ranges(parts) for some in merged_range(parts, own)]
    assert all(some.nbytes < 2 << 13 or any(np.shares_memory(some, part) for part in parts) for some in found)
    assert sum(any(np.shares_memory(some, part) for part in parts) for some in found) == len(parts)
