"""Elements of given ranks out of sorted parts: those of the whole line, for few bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spartan_ng.ops.line_sorts import SHORT_END, pick_bytes
from spartan_ng.worker.stages.picking import Asked, pick
from tests.sampling import examples

_ROUNDS = 40
"""Reads that a line of 200,000 elements takes at most. With the ranks among the few elements before one that
is most of a line there was a round for each."""


class Parts:
    """Sorted parts, and how many elements have been read of them."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = [np.sort(p) for p in parts]
        self.read_elements = self.rounds = 0

    def read(self, asked: Sequence[Asked]) -> list[Any]:
        found = []
        for part, at in asked:
            assert 0 <= at.start <= at.stop <= len(self.parts[part])
            found.append(self.parts[part][at.start : at.stop : at.step])
        self.read_elements += sum(map(len, found))
        self.rounds += 1
        assert self.rounds <= _ROUNDS, "windows get smaller too slowly"
        return found

    def pick(self, lo: int, hi: int) -> Any:
        return pick(self.read, [len(p) for p in self.parts], lo, hi)


def drawn(seed: int, n: int, kind: str) -> Any:
    rng = np.random.default_rng(seed)
    match kind:
        case "distinct":
            return rng.permutation(n).astype(float)
        case "few":
            return rng.integers(0, 4, n)
        case "mostly one":
            return np.where(rng.random(n) < 0.9, 5.0, rng.random(n) * 10)
        case "in order":
            return np.arange(n)
        case "complex":
            return rng.choice([np.nan, np.inf, 0.0, 1.0], (n, 2), p=[0.4, 0.1, 0.2, 0.3]).view(complex)[:, 0]
        case "skewed":
            return np.floor(rng.exponential(2, n) ** 3)
        case _:
            return np.where(rng.random(n) < 0.4, rng.choice([np.nan, np.inf, -np.inf], n), rng.random(n))


KINDS = ["distinct", "few", "mostly one", "in order", "skewed", "complex", "not finite"]


@examples(400)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 3_000),
    kind=st.sampled_from(KINDS),
    cuts=st.lists(st.floats(0, 1), max_size=5),
    at=st.floats(0, 1),
    count=st.integers(1, 40),
)
@example(seed=0, n=653, kind="mostly one", cuts=[0.5, 0.25], at=0.0, count=34)
def test_the_elements_are_those_of_the_whole_line(
    seed: int, n: int, kind: str, cuts: list[float], at: float, count: int
) -> None:
    x = drawn(seed, n, kind)
    parts = Parts(np.split(x, sorted(round(c * n) for c in cuts)))
    lo = round(at * (n - 1))
    hi = min(lo + count, n)
    np.testing.assert_array_equal(parts.pick(lo, hi), np.sort(x)[lo:hi])


@examples(400)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 3_000),
    kind=st.sampled_from(KINDS),
    others=st.integers(0, 3),
    at=st.floats(0, 1),
    count=st.integers(1, 3),
)
def test_a_part_that_is_the_whole_line_is_sorted_only_where_it_is_asked(
    seed: int, n: int, kind: str, others: int, at: float, count: int
) -> None:
    x = drawn(seed, n, kind)
    lo = round(at * (n - 1))
    hi = min(lo + count, n)
    parts = Parts([x[:0]] * others + [x])
    whole = parts.parts[-1]
    parts.parts[-1] = np.concatenate([whole[:lo][::-1], whole[lo:hi], whole[hi:][::-1]])
    np.testing.assert_array_equal(parts.pick(lo, hi), np.sort(x)[lo:hi])


@pytest.mark.parametrize("kind", KINDS)
def test_few_elements_are_read(kind: str) -> None:
    n = 200_000
    parts = Parts(np.split(drawn(1, n, kind), 4))
    whole = np.sort(np.concatenate(parts.parts))
    for lo, hi in ((n // 2 - 1, n // 2 + 1), (n // 10, n // 10 + 1), (0, 1), (n - 1, n), (n - 40, n - 35)):
        parts.read_elements = parts.rounds = 0
        np.testing.assert_array_equal(parts.pick(lo, hi), whole[lo:hi])
        assert parts.read_elements < 1_000


@pytest.mark.parametrize("kind", KINDS)
def test_ends_are_read_at_once(kind: str) -> None:
    """From either end alike: what lies before the ranks there is less than a round of samples."""
    parts = Parts(np.split(drawn(2, 4000, kind), 4))
    n, whole = 4000, np.sort(np.concatenate(parts.parts))
    for k in (1, 3, SHORT_END - 1, SHORT_END):
        for lo, hi in ((0, k), (k - 1, k), (n - k, n), (n - k, n - k + 1)):
            parts.read_elements = parts.rounds = 0
            np.testing.assert_array_equal(parts.pick(lo, hi), whole[lo:hi])
            assert parts.read_elements == 4 * k


@pytest.mark.parametrize("n", [1000, 30_000, 300_000])
def test_as_many_elements_are_read_as_are_predicted(n: int) -> None:
    """On average: of short lines fewer than of long ones."""
    rng, read, predicted = np.random.default_rng(n), 0, 0
    for _ in range(12):
        parts, k = Parts(np.array_split(rng.random(n), 4)), int(rng.integers(n // 10, n - n // 10))
        parts.pick(k, k + 1)
        read += parts.read_elements
        predicted += 4 * pick_bytes(n, 1, ((k, k + 1),))
    assert 0.75 * predicted < read < 1.25 * predicted
