"""A line that takes long to plan, and little to compute, is told so, once, with the way out."""

from __future__ import annotations

import warnings

import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.api.core.watch import Watch
from spartan_ng.errors import PerformanceWarning


def test_a_line_is_named_once():
    watch = Watch()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(100):
            watch.note(0.1, 0.001)
    (told,) = seen
    assert told.category is PerformanceWarning
    assert told.filename == __file__
    assert "np.compute(array) before the loop" in str(told.message)


@pytest.mark.parametrize(
    ("seconds", "worked_s", "runs"),
    [(0.9, 0.0, 1), (30.0, 0.0, 1), (0.1, 0.05, 1000), (0.00005, 0.0, 1000), (0.1, 0.0095, 1000)],
    ids=["short", "once", "works", "quick", "a tenth"],
)
def test_lines_that_are_not_slow_are_not_named(seconds, worked_s, runs):
    watch = Watch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(runs):
            watch.note(seconds, worked_s)


def test_a_session_counts_the_work_of_its_stages():
    with np.config.override(small_bytes=0):
        before = session.current().worked_s
        float((np.arange(200_000.0) * 2).sum())
        assert session.current().worked_s > before
