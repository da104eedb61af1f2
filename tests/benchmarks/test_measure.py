"""The harness: wrong results are refused, ratios are those of the rounds, promises are judged."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.case import OURS, Case
from benchmarks.measure import Row, measure, reset_peak, resident
from benchmarks.report import seconds, section, size, verdict


def case(ours, **options) -> Case:
    return Case(
        name="c",
        title="a case",
        inputs=lambda: {"x": np.ones(4)},
        sides={"numpy": lambda i: lambda: pause(i["x"]), OURS: lambda i: lambda: ours(i["x"])},
        rounds=3,
        **options,
    )


def pause(x, duration: float = 0.015):
    time.sleep(duration)
    return x.sum()


def test_another_result_is_refused() -> None:
    with pytest.raises(AssertionError, match="c: spartan_ng"):
        measure(case(lambda x: x.sum() + 1), peaks=False)


def test_ratios_are_to_the_first_side() -> None:
    base, ours = measure(case(lambda x: pause(x, 0.03)), peaks=False)
    assert base.ratio == 1.0
    assert 1.5 < ours.ratio < 3.0
    assert 0.03 <= ours.seconds < 0.1


def test_promises_are_judged() -> None:
    rows = [Row("numpy", 1.0, 1.0, 1.0, None), Row(OURS, 0.4, 0.4, 0.5, 10**7)]
    kept = case(lambda x: x, ratio_limit=0.5, seconds_limit=0.1)
    assert verdict(kept, rows) == "goal: ratio at most 0.5: met; goal: under 100.0 ms: MISSED"
    text = section(kept, rows, bandwidth=1e10)
    assert "| spartan_ng | 400.0 ms | 0.400 | 500.0 ms | 10.0 MB |" in text
    assert "bandwidth" not in text
    bound = case(lambda x: x, bytes_read=10**9)
    assert "1.00 GB of memory traffic: 100.0 ms at full bandwidth" in section(bound, rows, bandwidth=1e10)


def test_peak_memory_is_that_of_the_run() -> None:
    reset_peak()
    before = resident("VmRSS")
    block = np.ones(8_000_000)
    del block
    assert 60e6 < resident("VmHWM") - before < 80e6


def test_units() -> None:
    assert [seconds(s) for s in (2.0, 0.5, 5e-6)] == ["2.00 s", "500.0 ms", "5.0 µs"]
    assert [size(n) for n in (None, 10**6, 2 * 10**9)] == ["", "1.0 MB", "2.00 GB"]
