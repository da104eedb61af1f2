"""Real programs that store what they use inside, again and again in one process: see `tests.simulations`."""

from __future__ import annotations

import pytest

from spartan_ng.kernels.compiled import select
from tests.simulations import SIMULATIONS, TIERS, farthest


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", SIMULATIONS)
def test_as_numpy_run_after_run(monkeypatch, name, tier):
    monkeypatch.setattr(select, "HOT_S", 0.0)  # "auto" has all of it compiled after the first run
    assert farthest(name, tier, runs=3, steps=2) < 1e-11
