"""Decayed event rates against sums over all pairs of times."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from spartan_ng.apps.command import command_of
from spartan_ng.apps.event_rate import EventRate, event_rate
from spartan_ng.apps.table import APPS

RNG = np.random.default_rng(0)
TIMES = np.sort(RNG.random(80)) * 10
EVENTS = RNG.integers(0, 3, 80)


def by_pairs(asked: np.ndarray, half_life: float) -> np.ndarray:
    """Every event at every asked time."""
    age = asked[:, None] - TIMES
    weights = np.where(age >= 0, np.exp2(-np.maximum(age, 0) / half_life), 0)
    return weights @ EVENTS * np.log(2) / half_life


def test_rates(anywhere) -> None:
    found = event_rate(TIMES, EVENTS, 1.5)
    np.testing.assert_allclose(np.asarray(found.compute()), by_pairs(TIMES, 1.5), rtol=1e-10)


def test_estimator(anywhere) -> None:
    order = RNG.permutation(80)
    model = EventRate(0.7).fit(TIMES[order], EVENTS[order])
    asked = np.array([-1.0, TIMES[0], 3.3, 9.9, 30.0])
    np.testing.assert_allclose(model.predict(asked).compute(), by_pairs(asked, 0.7), rtol=1e-9, atol=1e-12)


def test_a_steady_rate_is_found() -> None:
    model = EventRate(50.0).fit(np.arange(0, 1000, 0.25))
    assert model.rates_[-1] == pytest.approx(4.0, rel=0.01)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="ascend"):
        event_rate([2.0, 1.0], [1, 1], 1.0)
    with pytest.raises(ValueError, match="half_life"):
        event_rate([1.0, 2.0], [1, 1], 0)
    with pytest.raises(ValueError, match="no subjects"):
        EventRate().fit([])


def test_command(tmp_path) -> None:
    times, events = str(tmp_path / "times.npy"), str(tmp_path / "events.npy")
    np.save(times, TIMES)
    np.save(events, EVENTS)
    picture, table = str(tmp_path / "rate.svg"), str(tmp_path / "rate.npz")
    options = ["--times", times, "--events", events, "--half-life", "0.5"]
    command = command_of(APPS["event-rate"])
    result = CliRunner().invoke(command, [*options, "--picture", picture, "--output", table])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "rate.svg").stat().st_size > 1000
    np.testing.assert_allclose(np.load(table)["rates"], by_pairs(TIMES, 0.5), rtol=1e-10)
    result = CliRunner().invoke(command, ["--times", times, "--half-life", "-1"])
    assert result.exit_code == 1
    assert "half_life is -1.0" in result.output
