"""Looking up rows on workers: NumPy's answer on every layout, and only the rows that are asked for move."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spartan_ng as sp
from spartan_ng import session
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import TILINGS, config
from spartan_ng.worker.joins import _MOST_RUNS, _runs
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
@given(st.sets(st.integers(0, 20_000), min_size=1, max_size=1500))
def test_runs_cover_what_is_wanted(wanted: set[int]) -> None:
    runs = _runs(np.array(sorted(wanted)))
    assert len(runs) <= _MOST_RUNS
    assert all(any(lo <= i < hi for lo, hi in runs) for i in list(wanted)[:20])
    assert all(a[1] <= b[0] for a, b in pairwise(runs))
    assert {lo for lo, _ in runs} <= wanted
