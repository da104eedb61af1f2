"""A line sorted over workers is NumPy's sort: ties, NaN, constants, tiny and sampled parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.sampling import examples


def sort_on(workers: int, x: np.ndarray, name: str) -> np.ndarray:
    backend = SimulatedBackend(workers)
    try:
        dtype = x.dtype if name == "sort" else np.dtype(np.intp)
        node = build.along_axis(name, [build.constant(x)], 0, dtype=dtype)
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


@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("kind", ["random", "sorted", "constant", "skewed"])
def test_large_enough_to_be_sampled(workers: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    n = 20_011
    x = {
        "random": rng.standard_normal(n),
        "sorted": np.arange(n, dtype=float)[::-1].copy(),
        "constant": np.ones(n),
        "skewed": rng.zipf(1.5, n).astype(float),
    }[kind]
    np.testing.assert_array_equal(sort_on(workers, x, "sort"), np.sort(x))
    np.testing.assert_array_equal(sort_on(workers, x, "argsort"), np.argsort(x, kind="stable"))
