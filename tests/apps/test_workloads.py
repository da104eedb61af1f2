"""Every app's workload finds the same at once, embedded and on three workers; a loop is planned once."""

from __future__ import annotations

import inspect
from functools import cache

import numpy
import pytest

from benchmarks.app_workloads import WORKLOADS
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.planner import Planner

SCALE = 0.002
"""Data of about 16 kB."""


@cache
def on_the_driver(name: str) -> tuple[numpy.ndarray, ...]:
    """What NumPy alone finds."""
    with config.override(small_bytes=1 << 20):
        return tuple(numpy.asarray(a) for a in WORKLOADS[name](SCALE))


@pytest.mark.some(16)
@pytest.mark.parametrize("name", WORKLOADS)
def test_finds_the_same_anywhere(name, anywhere) -> None:
    found = WORKLOADS[name](SCALE)
    for ours, expected in zip(found, on_the_driver(name), strict=True):
        numpy.testing.assert_allclose(numpy.asarray(ours), expected, rtol=1e-6, atol=1e-9)


ITERATIVE = [n for n, run in WORKLOADS.items() if "iterations" in inspect.signature(run).parameters]


@pytest.mark.some(4)
@pytest.mark.parametrize("anywhere", ["three workers"], indirect=True)
@pytest.mark.parametrize("name", ITERATIVE)
def test_further_iterations_find_their_plans(name, anywhere, monkeypatch) -> None:
    made = []
    make = Planner._make

    def counted(*args):
        made.append(args)
        return make(*args)

    monkeypatch.setattr(Planner, "_make", counted)
    counts = []
    WORKLOADS[name](SCALE, iterations=9)  # teaches the optimizer what arrays weigh
    for iterations in (6, 9):
        made.clear()
        session.current().planner._plans.clear()
        WORKLOADS[name](SCALE, iterations=iterations)
        counts.append(len(made))
    assert counts[0] == counts[1] > 0
