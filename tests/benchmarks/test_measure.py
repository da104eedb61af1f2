"""The harness: wrong results are refused, ratios are those of the rounds, promises are judged."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import measure as harness
from benchmarks.case import OURS, Case
from benchmarks.measure import Row, measure, reset_peak, resident
from benchmarks.report import seconds, section, size, verdict


def case(ours, theirs=np.sum, **options) -> Case:
    return Case(
        name="c",
        title="a case",
        inputs=lambda: {"x": np.ones(4)},
        sides={"numpy": lambda i: lambda: theirs(i["x"]), OURS: lambda i: lambda: ours(i["x"])},
        rounds=3,
        **options,
    )


class Clock(SimpleNamespace):
    """What the harness takes for the time: it passes only where somebody sleeps."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(harness, "time", one)
    return one


def test_another_result_is_refused() -> None:
    with pytest.raises(AssertionError, match="c: spartan_ng"):
        measure(case(lambda x: x.sum() + 1), peaks=False)


def test_ratios_are_to_the_first_side(clock: Clock) -> None:
    def taking(duration):
        def total(x):
            clock.sleep(duration)
            return x.sum()

        return total

    base, ours = measure(case(taking(0.03), taking(0.015)), peaks=False)
    assert base.ratio == 1.0
    assert ours.ratio == pytest.approx(2.0)
    assert ours.seconds == pytest.approx(0.03)


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
