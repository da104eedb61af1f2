"""Options against SciPy's normal distribution and closed forms, simulations within their errors."""

from __future__ import annotations

import numpy
import pytest
from sklearn.base import clone

from benchmarks.app_references import formula, jamshidian
from spartan_ng.apps.options import BlackScholes, MonteCarlo, black_scholes, monte_carlo
from spartan_ng.apps.swaption import Swaption, drifts, effects, swaption

RNG = numpy.random.default_rng(0)
SPOT, STRIKE, YEARS = 50 + 100 * RNG.random((3, 500))


@pytest.mark.some(1)
def test_black_scholes(anywhere) -> None:
    T = YEARS / 100
    found = black_scholes(SPOT, STRIKE, T, rate=0.03, volatility=0.25)
    calls, puts = numpy.asarray(found.calls), numpy.asarray(found.puts)
    numpy.testing.assert_allclose(calls, formula(SPOT, STRIKE, T, 0.03, 0.25), rtol=1e-10, atol=1e-12)
    numpy.testing.assert_allclose(calls - puts, SPOT - STRIKE * numpy.exp(-0.03 * T), atol=1e-11)
    model = BlackScholes(rate=0.03, volatility=0.25)
    X = numpy.stack([SPOT, STRIKE, T], axis=1)
    numpy.testing.assert_array_equal(numpy.asarray(model.fit(X).predict(X)), calls)


@pytest.mark.some(4)
@pytest.mark.parametrize("kind", ["call", "put"])
@pytest.mark.parametrize("steps", [1, 5])
def test_monte_carlo(kind, steps, anywhere) -> None:
    exact = formula(100.0, 110.0, 2.0, 0.02, 0.3)
    if kind == "put":
        exact += 110 * numpy.exp(-0.04) - 100
    found = monte_carlo(100, 110, 2.0, kind=kind, steps=steps, paths=100_000, seed=1)
    assert found.price == pytest.approx(exact, abs=4 * found.standard_error)
    assert 0 < found.standard_error < 0.01 * exact


@pytest.mark.some(1)
def test_asian_options_are_what_their_paths_say(anywhere) -> None:
    found = monte_carlo(payoff="asian", steps=4, paths=5000, seed=3)
    random = numpy.random.default_rng(3)
    uniform = [(random.random(5000), random.random(5000)) for _ in range(2)]
    turns = [(numpy.sqrt(-2 * numpy.log1p(-u)), 2 * numpy.pi * v) for u, v in uniform]
    Z = numpy.array([f(angle) * r for r, angle in turns for f in (numpy.cos, numpy.sin)])
    payoffs = numpy.zeros(5000)
    for mirror in (1, -1):
        shocks = numpy.cumsum((0.02 - 0.045) / 4 + mirror * 0.15 * Z, axis=0)
        payoffs = payoffs + numpy.maximum(100 * numpy.exp(shocks).mean(axis=0) - 100, 0) / 2
    assert found.price == pytest.approx(numpy.exp(-0.02) * payoffs.mean(), rel=1e-10)
    assert found.price < monte_carlo(steps=4, paths=5000, seed=3).price


@pytest.mark.some(2)
@pytest.mark.parametrize(("strike", "expiry", "payments"), [(0.03, 1.0, 10), (0.04, 2.0, 4)])
def test_swaption(strike, expiry, payments, anywhere) -> None:
    found = swaption(strike, expiry=expiry, payments=payments, paths=60_000, seed=2)
    exact = jamshidian(strike, 0.5, effects(expiry, payments, 0.5, 0.03, 0.01, 0.1, 12))
    assert found.price == pytest.approx(exact, abs=4 * found.standard_error)
    assert found.standard_error < 0.03 * exact


def test_discounted_bonds_are_martingales() -> None:
    found = effects(1.5, 6, 0.5, 0.03, 0.02, 0.2, 9)
    drift, level = drifts(found)
    Z = numpy.random.default_rng(0).standard_normal((400_000, 9))
    discount = numpy.exp(drift + Z @ found.discount)
    bonds = numpy.exp(level + Z @ found.bonds) * discount[:, None]
    assert discount.mean() == pytest.approx(found.today[0], rel=1e-4)
    numpy.testing.assert_allclose(bonds.mean(axis=0), found.today[1:], rtol=3e-4)


def test_finer_steps_converge() -> None:
    prices = [jamshidian(0.03, 0.5, effects(1.0, 10, 0.5, 0.03, 0.01, 0.1, n)) for n in (10, 100, 1000)]
    assert abs(prices[2] - prices[1]) < 0.2 * abs(prices[1] - prices[0])


@pytest.mark.parametrize("model", [MonteCarlo(paths=1000), Swaption(paths=1000)])
def test_simulations_as_estimators(model) -> None:
    assert clone(model).get_params() == model.get_params()
    assert model.fit().price_ == clone(model).fit().price_
    assert model.set_params(random_state=None).fit().price_ != model.fit().price_


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match="have shapes"):
        black_scholes(SPOT, STRIKE[:3], YEARS)
    with pytest.raises(ValueError, match="volatility is 0"):
        monte_carlo(volatility=0)
    with pytest.raises(ValueError, match="payoff='barrier' is unknown"):
        monte_carlo(payoff="barrier")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="payments is 0"):
        swaption(payments=0)
    with pytest.raises(ValueError, match="spots, strikes, years"):
        BlackScholes().fit(numpy.ones((3, 2)))
