"""Survival curves and hazards against lifelines and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.apps.concordance import concordance
from spartan_ng.apps.cox import CoxRegression, cox
from spartan_ng.apps.kaplan_meier import KaplanMeier, kaplan_meier

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
lifelines = pytest.importorskip("lifelines")


@pytest.fixture(scope="module")
def rossi():
    from lifelines.datasets import load_rossi

    return load_rossi()


@pytest.fixture(scope="module")
def waltons():
    from lifelines.datasets import load_waltons

    return load_waltons()


@pytest.mark.some(1)
def test_kaplan_meier(anywhere, waltons):
    t, e = waltons["T"].to_numpy(), waltons["E"].to_numpy()
    with np.errstate():  # the fitter silences errors, and leaves it at that
        reference = lifelines.KaplanMeierFitter().fit(t, e)
    model = KaplanMeier().fit(t, e)
    curve = reference.survival_function_["KM_estimate"]
    np.testing.assert_allclose(model.survival_, curve.loc[model.times_], rtol=1e-12)
    table = reference.event_table.loc[model.times_]
    np.testing.assert_array_equal(model.at_risk_, table["at_risk"])
    np.testing.assert_array_equal(model.events_, table["observed"])
    assert model.median_ == reference.median_survival_time_
    asked = np.array([0.0, 5.5, 30.0, 1000.0])
    np.testing.assert_allclose(model.predict(asked).compute(), reference.predict(asked), rtol=1e-12)


def test_greenwood() -> None:
    found = kaplan_meier([1, 2, 2, 3], [1, 1, 0, 1])
    np.testing.assert_allclose(found.survival, [3 / 4, 1 / 2, 0])
    np.testing.assert_allclose(found.variance, [9 / 16 / 12, 1 / 4 * (1 / 12 + 1 / 6), 0])


@pytest.mark.some(1)
def test_cox(anywhere, rossi):
    reference = lifelines.CoxPHFitter().fit(rossi, "week", "arrest")
    X = rossi.drop(columns=["week", "arrest"]).to_numpy(float)
    found = cox(X, rossi["week"].to_numpy(), rossi["arrest"].to_numpy())
    np.testing.assert_allclose(found.coef, reference.params_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.standard_errors, reference.standard_errors_, rtol=1e-5)
    np.testing.assert_allclose(found.log_likelihood, reference.log_likelihood_, rtol=1e-8)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="no subjects"):
        kaplan_meier([])
    with pytest.raises(ValueError, match="NaN"):
        kaplan_meier([1.0, np.nan])
    with pytest.raises(ValueError, match="no events"):
        cox(np.ones((3, 1)), [1, 2, 3], [0, 0, 0])
    with pytest.raises(ValueError, match="X has shape"):
        cox(np.ones((3, 1)), [1, 2])


def test_estimator(rossi) -> None:
    X = rossi[["fin", "age"]].to_numpy(float)
    model = CoxRegression().fit(X, rossi["week"].to_numpy(), rossi["arrest"].to_numpy())
    np.testing.assert_allclose(model.predict(X).compute(), X @ model.coef_)


@pytest.mark.parametrize("n", [2, 3, 16, 17, 150])
def test_concordance_is_lifelines(n) -> None:
    """Ties of times and of risks, and subjects lost at the time of an event, among them."""
    random = np.random.default_rng(n)
    for _ in range(4):
        times, seen = np.ceil(random.exponential(size=n) * 8), random.random(n) < 0.7
        risks = np.round(random.normal(size=n), 1)
        seen[times.argmin()] = True
        times[times.argmax()] += 1  # somebody outlives the first
        expected = lifelines.utils.concordance_index(times, -risks, seen)
        assert concordance(times, seen, risks) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match="no two subjects can be compared"):
        concordance(times, np.zeros(n), risks)
