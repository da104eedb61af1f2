"""What every app can do, as estimator and as command: judge itself, predict, draw, be saved and loaded."""

from __future__ import annotations

import contextlib
import shlex
import warnings

import numpy
import pytest
from click.testing import CliRunner

import spartan_ng as np
from spartan_ng.apps import samples
from spartan_ng.apps.command import command_of
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.errors import ConvergenceWarning, NotFittedError
from spartan_ng.apps.estimator import area, roc
from spartan_ng.apps.kmeans import KMeans
from spartan_ng.apps.linear_regression import Ridge
from spartan_ng.apps.naive_bayes import NaiveBayes
from spartan_ng.apps.table import APPS
from spartan_ng.cli import main

PREDICTED = {
    "als": "pairs.npy",
    "als-cg": "pairs.npy",
    "black-scholes": "options.npy",
    "cholesky": "matrix.npy",
    "conjugate-gradient": "matrix.mtx",
    "cox": "covariates.npy",
    "event-rate": "times.npy",
    "gnmf": "ratings.mtx",
    "jacobi": "matrix.mtx",
    "kaplan-meier": "times.npy",
    "kl-nmf": "words.mtx",
    "monte-carlo": "prices.npy",
    "naive-bayes": "words.mtx",
    "pagerank": "pages.npy",
    "ssvd": "matrix.mtx",
    "svd": "matrix.mtx",
    "swaption": "rates.npy",
}
"""What each app predicts for; the others take the rows of points.npy."""
DIRECT = {
    "black-scholes",
    "cholesky",
    "event-rate",
    "kaplan-meier",
    "linear-regression",
    "monte-carlo",
    "naive-bayes",
    "pca",
    "ridge",
    "ssvd",
    "swaption",
}
"""Apps that do not iterate until something is small enough."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples")
    samples.write(path)
    numpy.save(path / "pairs.npy", numpy.array([[0, 1], [5, 3], [7, 7]]))
    numpy.save(path / "pages.npy", numpy.array([0, 5, 119]))
    numpy.save(path / "rates.npy", numpy.array([0.03, 0.035]))
    numpy.save(path / "prices.npy", numpy.array([100.0, 110.0]))
    numpy.save(path / "options.npy", numpy.array([[100.0, 90.0, 1.0], [80.0, 100.0, 0.5]]))
    return path


def app(folder, *arguments: str):
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, ["app", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done


def told(done) -> dict[str, str]:
    """What a command has printed, by name."""
    lines = [line.partition("  ") for line in done.stdout.splitlines() if "  " in line]
    return {name: value.strip() for name, _, value in lines}


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("name", APPS)
def test_a_saved_model_is_the_fitted_one(name, folder) -> None:
    """It predicts the same, knows as much, and is drawn."""
    row, saved = APPS[name], f"{name}.npz"
    asked = ["--predict", PREDICTED.get(name, "points.npy"), "--picture", f"{name}.png"]
    first = app(folder, name, *shlex.split(row.example), *asked, "--save", saved)
    again = app(folder, name, "--load", saved, *asked[:2], "--save", "again.npz")
    found, repeated = told(first), told(again)
    assert {k: v for k, v in found.items() if k in repeated} == repeated
    assert ("converged" in found) is (name not in DIRECT)
    assert found.get("converged", "yes") == "yes", "an example that does not converge"
    judged = set(found) - set(repeated) | {"standard_error", "parity"} & set(found)
    assert judged, "no quality is told"
    with numpy.load(folder / saved) as a, numpy.load(folder / "again.npz") as b:
        assert set(a.files) == set(b.files)
        assert a["predicted"].size
        numpy.testing.assert_allclose(b["predicted"], a["predicted"], rtol=1e-12)
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("row", APPS.values(), ids=lambda row: row.name)
def test_every_app_has_the_same_shape(row) -> None:
    estimator = row.load(row.estimator)
    assert callable(estimator.fit)
    assert callable(estimator.score)
    assert callable(getattr(estimator, "predict", None) or estimator.transform)
    offered = {o for p in command_of(row).params for o in p.opts}
    assert {"--load", "--save", "--output", "--predict", "--picture", "--workers", "--on"} <= offered
    with pytest.raises(NotFittedError, match="call fit before"):
        estimator().save("never.npz")
    with pytest.raises(NotFittedError, match="call fit before"):
        estimator().plot("never.png")


def test_loaded_models_are_judged_by_other_data(folder, tmp_path) -> None:
    points, classes = numpy.load(folder / "points.npy"), numpy.load(folder / "classes.npy")
    numpy.save(tmp_path / "new.npy", points[:50])
    numpy.save(tmp_path / "truth.npy", classes[:50])
    saved = str(tmp_path / "svm.npz")
    app(folder, "svm", "--data", "points.npy", "--target", "classes.npy", "--save", saved)
    done = app(tmp_path, "svm", "--load", saved, "--data", "new.npy", "--target", "truth.npy")
    with numpy.load(saved) as model:
        right = (points[:50] @ model["coef"] + model["intercept"] > 0) == (classes[:50] > 0)
    assert float(told(done)["accuracy"]) == pytest.approx(right.mean(), rel=1e-5)


def test_what_is_no_model_is_named(folder, tmp_path) -> None:
    def refused(*arguments: str) -> str:
        with contextlib.chdir(folder):
            done = CliRunner().invoke(main, ["app", *arguments])
        assert done.exit_code in (1, 2), done.output
        return done.output

    numpy.savez(tmp_path / "other.npz", a=1)
    app(folder, "kmeans", "--data", "points.npy", "--save", str(tmp_path / "kmeans.npz"))
    assert "has no model" in refused("ridge", "--load", str(tmp_path / "other.npz"))
    assert "has no model" in refused("ridge", "--load", "points.npy")
    assert "has a model of KMeans, not of Ridge" in refused("ridge", "--load", str(tmp_path / "kmeans.npz"))
    assert "Missing option '--data'" in refused("ridge")
    assert "--on dask needs --workers" in refused("ridge", "--data", "a", "--target", "b", "--on", "dask")
    assert "nowhere.npy" in refused("kmeans", "--data", "nowhere.npy")


def test_models_keep_names_arrays_and_nothing_that_runs(tmp_path) -> None:
    path = str(tmp_path / "model.npz")
    X = numpy.arange(12.0).reshape(6, 2)
    model = NaiveBayes(kind="gaussian").fit(X, numpy.array(["b", "a"] * 3, object))
    model.save(path)
    again = NaiveBayes.load(path)
    assert again.get_params() == model.get_params()
    assert again.predict(X).compute().tolist() == model.predict(X).compute().tolist()
    start = KMeans(2, init=X[:2]).fit(X)
    start.save(path)
    numpy.testing.assert_array_equal(KMeans.load(path).init, X[:2])
    with numpy.load(path, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind != "O" for name in stored.files)
    start.init = numpy.array([X, None], object)
    with pytest.raises(TypeError, match="init of dtype object cannot be saved"):
        start.save(path)


def test_roc_is_scikit_learns() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    random = numpy.random.default_rng(0)
    evidence, truth = numpy.round(random.normal(size=200), 1), random.random(200) < 0.3
    curve = roc(np.asarray(evidence), np.asarray(truth))
    wrong, right, _ = metrics.roc_curve(truth, evidence, drop_intermediate=False)
    numpy.testing.assert_allclose(curve[0], wrong)
    numpy.testing.assert_allclose(curve[1], right)
    assert area(*curve) == pytest.approx(metrics.roc_auc_score(truth, evidence))


def test_iterations_end_when_they_have_converged_and_warn_otherwise() -> None:
    loop = Iterations("halving", 20, 0.1)
    value = 1.0
    for _ in loop:
        value /= 2
        loop.saw(value)
        loop.converged = value <= 0.1
    assert (loop.n_iter, loop.converged, loop.history.tolist()) == (4, True, [0.5, 0.25, 0.125, 0.0625])
    with pytest.warns(
        ConvergenceWarning, match=r"halving has not converged in 3 .*\(most=3, tol=0.1\)"
    ) as seen:
        assert list(Iterations("halving", 3, 0.1, "most")) == [1, 2, 3]
    assert seen[0].filename == __file__  # the user's line
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(Iterations("so many", 3, 0.0)) == [1, 2, 3]


def test_warnings_are_scikit_learns_where_it_is_used() -> None:
    theirs = pytest.importorskip("sklearn.exceptions")
    with pytest.warns(theirs.ConvergenceWarning):
        KMeans(3, max_iter=1, random_state=0).fit(numpy.random.default_rng(0).random((50, 2)))
    with pytest.raises(theirs.NotFittedError):
        Ridge().predict(numpy.ones((2, 2)))
