"""Survival curves and hazards against lifelines and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from spartan_ng.apps import cox as cox_app
from spartan_ng.apps import kaplan_meier as km_app
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


def test_kaplan_meier(anywhere, waltons):
    t, e = waltons["T"].to_numpy(), waltons["E"].to_numpy()
    reference = lifelines.KaplanMeierFitter().fit(t, e)
    model = KaplanMeier().fit(t, e)
    curve = reference.survival_function_["KM_estimate"]
    np.testing.assert_allclose(model.survival_.survival, curve.loc[model.survival_.times], rtol=1e-12)
    table = reference.event_table.loc[model.survival_.times]
    np.testing.assert_array_equal(model.survival_.at_risk, table["at_risk"])
    np.testing.assert_array_equal(model.survival_.events, table["observed"])
    assert model.median_ == reference.median_survival_time_
    asked = np.array([0.0, 5.5, 30.0, 1000.0])
    np.testing.assert_allclose(model.predict(asked).compute(), reference.predict(asked), rtol=1e-12)


def test_greenwood() -> None:
    found = kaplan_meier([1, 2, 2, 3], [1, 1, 0, 1])
    np.testing.assert_allclose(found.survival, [3 / 4, 1 / 2, 0])
    np.testing.assert_allclose(found.variance, [9 / 16 / 12, 1 / 4 * (1 / 12 + 1 / 6), 0])


def test_cox(anywhere, rossi):
    reference = lifelines.CoxPHFitter().fit(rossi, "week", "arrest")
    X = rossi.drop(columns=["week", "arrest"]).to_numpy(float)
    found = cox(X, rossi["week"].to_numpy(), rossi["arrest"].to_numpy())
    np.testing.assert_allclose(found.weights, reference.params_, rtol=1e-5, atol=1e-6)
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


def test_commands(tmp_path, waltons, rossi) -> None:
    times, seen, data = (str(tmp_path / f"{n}.npy") for n in ("times", "seen", "data"))
    np.save(times, waltons["T"].to_numpy())
    np.save(seen, waltons["E"].to_numpy())
    picture, table = str(tmp_path / "curve.svg"), str(tmp_path / "table.npz")
    options = ["--data", times, "--events", seen, "--picture", picture, "--output", table]
    result = CliRunner().invoke(km_app.command, options)
    assert result.exit_code == 0, result.output
    assert "163 subjects, 156 events" in result.output
    assert (tmp_path / "curve.svg").stat().st_size > 1000
    assert {"times", "survival", "variance"} == set(np.load(table).files)
    np.save(times, rossi["week"].to_numpy())
    np.save(seen, rossi["arrest"].to_numpy())
    np.save(data, rossi[["fin", "age"]].to_numpy(float))
    options = ["--data", data, "--times", times, "--events", seen, "--picture", picture]
    result = CliRunner().invoke(cox_app.command, options)
    assert result.exit_code == 0, result.output
    assert "covariate 1: weight -0.0" in result.output


def test_estimator(rossi) -> None:
    X = rossi[["fin", "age"]].to_numpy(float)
    model = CoxRegression().fit(X, rossi["week"].to_numpy(), rossi["arrest"].to_numpy())
    np.testing.assert_allclose(model.predict(X).compute(), X @ model.coef_)
