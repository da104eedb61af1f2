"""The harness that counts an app's bytes."""

from __future__ import annotations

import pytest

from benchmarks.app_tilings import BYTES, TILINGS, moved
from benchmarks.app_workloads import WORKLOADS


@pytest.mark.slow
def test_smart_tiling_moves_less_than_columns_and_as_predicted():
    smart, column = moved(WORKLOADS["kmeans"], None, 1.0), moved(WORKLOADS["kmeans"], "column", 1.0)
    assert smart.measured < column.measured / 20
    assert smart.error == 0


@pytest.mark.slow
def test_a_forced_tiling_is_predicted_too():
    row = moved(WORKLOADS["kmeans"], "row", 0.05)
    assert row.measured > 0
    assert row.error == pytest.approx(0, abs=0.05)


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("name", WORKLOADS)
def test_the_bytes_of_every_app_are_predicted(name):
    scale = 0.2 if name == "cox" else 0.05  # with fewer subjects, ties decide where looked-up rows lie
    smart = moved(WORKLOADS[name], None, scale, profile=BYTES)
    assert abs(smart.predicted - smart.measured) <= 0.05 * smart.measured + 4096


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("name", ["glm", "pagerank", "svd", "cox"])
def test_smart_tiling_moves_no_more_than_the_best_that_is_forced(name):
    smart = moved(WORKLOADS[name], None, 0.05, profile=BYTES)
    assert smart.measured <= min(moved(WORKLOADS[name], t, 0.05).measured for t in TILINGS)
