"""The harness that counts an app's bytes."""

from __future__ import annotations

import pytest

from benchmarks.app_tilings import moved
from spartan_ng.apps.workloads import WORKLOADS


def test_smart_tiling_moves_less_than_columns_and_as_predicted():
    smart, column = moved(WORKLOADS["kmeans"], None, 1.0), moved(WORKLOADS["kmeans"], "column", 1.0)
    assert smart.measured < column.measured / 20
    assert smart.error == 0


def test_a_forced_tiling_is_predicted_too():
    row = moved(WORKLOADS["kmeans"], "row", 0.05)
    assert row.measured > 0
    assert row.error == pytest.approx(0, abs=0.05)
