"""A line sorted over workers is NumPy's sort: ties, NaN, constants, tiny and sampled parts."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import Future
from threading import get_ident
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import simulated
from benchmarks.simulated import SimulatedBackend
from spartan_ng.arrays import ArrayRef, Key
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import PACKED_ELEMENTS
from spartan_ng.graph import build
from spartan_ng.kernels import line_sorts as line_sorts_kernel
from spartan_ng.kernels import merges
from spartan_ng.ops import line_sorts
from spartan_ng.optimizer.fusion import labels
from spartan_ng.session import Session
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.stages import sorting
from spartan_ng.worker.stages.sorted_parts import SortedParts
from tests.sampling import examples
from tests.sources.recorder import Recorder


def sort_on(workers: int, x: np.ndarray, name: str, memory: int | None = None) -> np.ndarray:
    """The sort; with a budget of memory, of an array that lies outside."""
    profile = Profile() if memory is None else Profile(memory_bytes=memory, limited=True)
    backend = SimulatedBackend(workers, profile)
    try:
        dtype = x.dtype if name == "sort" else np.dtype(np.intp)
        outside = build.data(ArrayRef(x.shape, x.dtype, source=Recorder(x)))
        node = build.along_axis(name, [build.constant(x) if memory is None else outside], 0, dtype=dtype)
        (ref,) = Session(backend).evaluate([node])
        return backend.value(ref)
    finally:
        backend.close()


@examples(60)
@given(
    st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf]), min_size=1, max_size=40),
    st.sampled_from([2, 3, 5]),
)
def test_few_distinct_values(values: list[float], workers: int) -> None:
    x = np.array(values)
    np.testing.assert_array_equal(sort_on(workers, x, "sort"), np.sort(x))
    np.testing.assert_array_equal(sort_on(workers, x, "argsort"), np.argsort(x, kind="stable"))


@examples(60)
@given(
    st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5, np.nan, np.inf]), min_size=1, max_size=90),
    st.sampled_from([1, 2, 3]),
)
def test_few_distinct_values_in_short_runs(values: list[float], workers: int) -> None:
    x = np.array(values)
    with patch.object(line_sorts, "_SHORTEST", 4), patch.object(labels, "_LONG_LINE_BYTES", 0):
        np.testing.assert_array_equal(sort_on(workers, x, "sort", 64), np.sort(x))
        np.testing.assert_array_equal(sort_on(workers, x, "argsort", 64), np.argsort(x, kind="stable"))


NAT = np.datetime64("NaT", "s")
LINES = {
    "random": lambda rng, n: rng.standard_normal(n),
    "sorted": lambda rng, n: np.arange(n, dtype=float)[::-1].copy(),
    "constant": lambda rng, n: np.ones(n),
    "skewed": lambda rng, n: rng.zipf(1.5, n).astype(float),
    "times": lambda rng, n: np.where(rng.random(n) < 0.1, NAT, rng.integers(0, 99, n).astype("M8[s]")),
    "single": lambda rng, n: np.where(rng.random(n) < 0.1, np.nan, rng.random(n)).astype("f4"),
    "short": lambda rng, n: rng.integers(-9999, 9999, n).astype("i2"),
    "unsigned": lambda rng, n: rng.integers(0, 1 << 63, n).astype("u8") * 2,
    "texts": lambda rng, n: rng.integers(0, 999, n).astype("U3"),
}


@pytest.mark.parametrize("is_near", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", LINES)
def test_what_does_not_fit_is_sorted_in_runs(workers: int, kind: str, is_near: bool) -> None:
    n = 60_013
    x = LINES[kind](np.random.default_rng(0), n)
    with (
        patch.object(labels, "_LONG_LINE_BYTES", 0),
        patch.object(simulated._Transfer, "is_near", is_near),
        patch.object(merges, "_RANGE_BYTES", 1 << 14),
    ):
        memory = x.nbytes // 5
        np.testing.assert_array_equal(sort_on(workers, x, "sort", memory), np.sort(x))
        np.testing.assert_array_equal(sort_on(workers, x, "argsort", memory), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("workers", [1, 3])
def test_runs_and_pieces_of_an_order_are_sorted_by_vectors(workers: int) -> None:
    """Behind the digits of their values: no vector of them is sorted by its indices."""
    x = np.random.default_rng(0).standard_normal(200_000)
    lengths: list[int] = []

    def noted(part: np.ndarray) -> Any:
        lengths.append(len(part))
        return line_sorts_kernel.argsorted(part)

    with (
        patch.object(labels, "_LONG_LINE_BYTES", 0),
        patch.object(sorting, "argsorted", noted),
        patch.object(merges, "argsorted", noted),
    ):
        found = sort_on(workers, x, "argsort", x.nbytes // 2)
    np.testing.assert_array_equal(found, np.argsort(x, kind="stable"))
    assert sum(lengths) == 2 * len(x)
    assert sorted(lengths)[len(lengths) // 2] >= PACKED_ELEMENTS


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("kind", ["random", "constant", "skewed"])
def test_workers_ask_for_pieces_not_for_runs(kind: str, name: str) -> None:
    n, workers = 60_013, 3
    x = LINES[kind](np.random.default_rng(0), n)
    asked: list[int] = []
    fetch = simulated._Transfer.fetch

    def counted(self: simulated._Transfer, key: Key, rank: int, region: Region) -> Future[Any]:
        asked.append(rank)
        return fetch(self, key, rank, region)

    with (
        patch.object(simulated._Transfer, "fetch", counted),
        patch.object(line_sorts, "_SHORTEST", 256),
        patch.object(labels, "_LONG_LINE_BYTES", 0),
    ):
        np.testing.assert_array_equal(
            sort_on(workers, x, name, x.nbytes // 5), getattr(np, name)(x, kind="stable")
        )
        element = 8 if name == "sort" else 16
        pieces = n // line_sorts.run_length(n // workers, element, x.nbytes // 5)
    assert pieces > 75
    assert len(asked) <= 3 * pieces * (workers - 1)


@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("kind", ["random", "sorted", "constant", "skewed"])
def test_large_enough_to_be_sampled(workers: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    n = 20_011
    x = LINES[kind](rng, n)
    np.testing.assert_array_equal(sort_on(workers, x, "sort"), np.sort(x))
    np.testing.assert_array_equal(sort_on(workers, x, "argsort"), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_what_peers_have_is_on_its_way_while_a_piece_is_merged(workers: int, name: str) -> None:
    """One piece ahead; who has all parts waits for nobody, and merges pieces on all threads."""
    under_way: dict[int, list[Any]] = defaultdict(list)
    ahead = set()
    between, take = SortedParts.between, SortedParts.take
    slots = 1 if name == "sort" else 2

    def asked(self: SortedParts, *args: Any) -> Any:
        under_way[get_ident()].append(coming := between(self, *args))
        return coming

    def taken(self: SortedParts, coming: Any) -> Any:
        own = under_way[get_ident()]
        if any(c is coming for c in own):  # and no sample
            ahead.add(len(own))
            own[:] = [c for c in own if c is not coming]
        return take(self, coming)

    x = np.random.default_rng(0).standard_normal(20_011)
    with (
        patch.object(SortedParts, "between", asked),
        patch.object(SortedParts, "take", taken),
        patch.object(line_sorts, "_SHORTEST", 256),
        patch.object(labels, "_LONG_LINE_BYTES", 0),
    ):
        np.testing.assert_array_equal(
            sort_on(workers, x, name, x.nbytes // 5), getattr(np, name)(x, kind="stable")
        )
    assert max(ahead) == (slots if workers == 1 else 2 * slots)
