"""Looking up rows on workers: NumPy's answer on every layout, and only the rows that are asked for move."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import TILINGS, config
from tests.test_programs import running_on


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("tiling", [None, *TILINGS])
def test_every_axis_and_shape_of_indices(workers: int, tiling: str | None) -> None:
    value = np.random.default_rng(0).random((50, 7, 3))
    cases: list[tuple[int, Any]] = [
        (0, [3, 9, 9, 2]),
        (1, [[1, 2], [6, 0]]),
        (0, 4),
        (2, [1]),
        (0, np.arange(20).reshape(4, 5) * 2),
    ]
    with running_on(SimulatedBackend(workers)), config.override(tiling=tiling, small_bytes=0):
        x = sp.asarray(value) + 1
        for axis, indices in cases:
            found = sp.take(x, sp.asarray(indices), axis=axis)
            np.testing.assert_array_equal(np.asarray(found), np.take(value + 1, indices, axis=axis))


def test_only_the_rows_that_are_asked_for_move() -> None:
    value = np.random.default_rng(0).random((10_000, 20))
    with running_on(SimulatedBackend(4)), config.override(tiling="row", small_bytes=0):
        x = (sp.asarray(value) * 2).persist()
        rows = np.array([17, 4_000, 9_999, 18])
        np.testing.assert_array_equal(np.asarray(x[sp.asarray(rows)]), 2 * value[rows])
        ran = session.current().last_run
    assert ran is not None
    assert 0 < ran[1].bytes_moved < 20 * 8 * 8 * len(rows)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["dense", "csr"]),
    st.integers(1, 5),
    st.sets(st.integers(0, 59), min_size=1, max_size=60),
    st.sampled_from([slice(None), slice(None, None, -1), slice(7, 50, 3), slice(58, 4, -4)]),
)
def test_picked_rows_and_nothing_else(kind: str, workers: int, wanted: set[int], view: slice) -> None:
    value = np.random.default_rng(0).random((60, 5)) * (np.arange(5) != 2)
    seen = value[view]
    rows = np.array(sorted({r % len(seen) for r in wanted}))[::-1]
    with running_on(SimulatedBackend(workers)), config.override(tiling="row", small_bytes=0):
        x = sp.asarray(csr_array(value) if kind == "csr" else value).persist()
        found = x[view][sp.asarray(rows)].persist()
        ran = session.current().last_run
        np.testing.assert_array_equal(np.asarray(found), seen[rows])
    assert ran is not None
    if kind == "dense":
        assert ran[1].bytes_moved <= rows.size * (5 * 8 + 8 * workers)


@pytest.mark.parametrize("picks", [3_000, 30_000])
def test_many_rows_at_random_places_move_alone(picks: int) -> None:
    rng = np.random.default_rng(0)
    value, at = rng.random((100_000, 8)), rng.permutation(100_000)[:picks]
    with running_on(SimulatedBackend(4)), config.override(tiling="row", small_bytes=0):
        found = sp.asarray(value).persist()[sp.asarray(at)].persist()
        ran = session.current().last_run
        np.testing.assert_array_equal(np.asarray(found), value[at])
    assert ran is not None
    assert sum(ran[0].predicted_bytes) == pytest.approx(ran[1].bytes_moved, rel=0.05)


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.9])
def test_a_filter_moves_the_rows_that_are_kept(rate: float) -> None:
    rng = np.random.default_rng(1)
    value, mask = rng.random((20_000, 16)), rng.random(20_000) < rate
    with running_on(SimulatedBackend(4)), config.override(tiling="row", small_bytes=0):
        x, keep = sp.asarray(value).persist(), sp.asarray(mask).persist()
        found = x[keep].persist()
        ran = session.current().last_run
        np.testing.assert_array_equal(np.asarray(found), value[mask])
    assert ran is not None
    assert ran[1].bytes_moved <= mask.sum() * 16 * 8 + 3 * mask.size
