"""scikit-learn's own checks of the estimators that are estimators to it, and its defaults."""

from __future__ import annotations

import inspect

import pytest
from sklearn import cluster, decomposition, linear_model, naive_bayes, svm
from sklearn.utils.estimator_checks import check_estimator

from spartan_ng.apps.autoencoder import AutoEncoder
from spartan_ng.apps.fuzzy_kmeans import FuzzyKMeans
from spartan_ng.apps.glm import GLM
from spartan_ng.apps.kmeans import KMeans
from spartan_ng.apps.l2svm import L2SVM
from spartan_ng.apps.linear_regression import LinearRegression, Ridge
from spartan_ng.apps.logistic_regression import LogisticRegression
from spartan_ng.apps.mlogreg import MultinomialLogisticRegression
from spartan_ng.apps.naive_bayes import NaiveBayes
from spartan_ng.apps.nmf import GNMF, KLNMF
from spartan_ng.apps.pca import PCA
from spartan_ng.apps.ssvd import SSVD
from spartan_ng.apps.svd import SVD
from spartan_ng.apps.svm import SVM
from spartan_ng.apps.table import APPS

_OURS = {"check_classifiers_classes": "what decision_function gives is an array of ours, not NumPy's"}
_COUNTS = {"check_decision_proba_consistency": "its points are negative, and counts are not"}
_FLAT = "a fit's weights are of random starts, those of transform go on from equal ones"
_TAGS = "it asks who has predict_proba for the tags of classifiers, and gets none of a clusterer"
_DEGREES = {"check_estimator_sparse_array": _TAGS, "check_estimator_sparse_matrix": _TAGS}
_STARTS = {"check_transformer_general": _FLAT, "check_transformer_data_not_an_array": _FLAT}
CHECKED = [
    (AutoEncoder(8, 2, epochs=20), {}),
    (FuzzyKMeans(), _DEGREES),
    (GLM(family="normal"), {}),
    (GNMF(), _STARTS),
    (KLNMF(), _STARTS),
    (KMeans(), {}),
    (L2SVM(), _OURS),
    (LinearRegression(), {}),
    (LogisticRegression(), _OURS),
    (MultinomialLogisticRegression(), _OURS),
    (NaiveBayes(), _OURS | _COUNTS),
    (NaiveBayes(kind="gaussian"), _OURS),
    (PCA(), {}),
    (Ridge(), {}),
    (SSVD(), {}),
    (SVD(), {}),
    (SVM(), _OURS),
]
"""Estimators, and the checks that cannot hold for them, each with its reason."""

_PAIRS = "learns from ratings, and predicts pairs of users and items"
_SQUARE = "learns from one square matrix, and the checks' have more rows than columns"
_LIVES = "learns from times and whether events were seen, not from points and targets"
_NOTHING = "prices what its parameters say: there is nothing to learn from data"
UNCHECKED = {
    "als": _PAIRS,
    "als-cg": _PAIRS,
    "black-scholes": _NOTHING,
    "cholesky": _SQUARE,
    "conjugate-gradient": _SQUARE,
    "cox": _LIVES,
    "event-rate": _LIVES,
    "jacobi": _SQUARE,
    "kaplan-meier": _LIVES,
    "monte-carlo": _NOTHING,
    "pagerank": _SQUARE,
    "swaption": _NOTHING,
}
"""Apps whose estimators are none to scikit-learn, and why."""


def test_every_app_is_checked_or_says_why_not() -> None:
    checked = {name for name, row in APPS.items() if row.load(row.estimator) in {type(m) for m, _ in CHECKED}}
    assert checked | set(UNCHECKED) == set(APPS)
    assert not checked & set(UNCHECKED)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(1)
@pytest.mark.parametrize(("model", "failing"), CHECKED, ids=lambda v: repr(v)[:24])
def test_scikit_learn_takes_it(model, failing) -> None:
    """A check that is said to fail has to."""
    done = check_estimator(model, expected_failed_checks=failing, on_skip=None)
    assert {r["check_name"] for r in done if r["status"] == "xfail"} == set(failing)


SAME = [
    (KMeans, cluster.KMeans, ["n_clusters", "init", "max_iter", "tol", "random_state"]),
    (LinearRegression, linear_model.LinearRegression, ["fit_intercept"]),
    (Ridge, linear_model.Ridge, ["alpha", "fit_intercept"]),
    (LogisticRegression, linear_model.LogisticRegression, ["C", "max_iter", "tol", "fit_intercept"]),
    (MultinomialLogisticRegression, linear_model.LogisticRegression, ["max_iter", "fit_intercept"]),
    (GLM, linear_model.PoissonRegressor, ["max_iter", "fit_intercept"]),
    (L2SVM, svm.LinearSVC, ["tol", "max_iter", "fit_intercept"]),
    (SVM, svm.LinearSVC, ["C", "fit_intercept"]),
    (NaiveBayes, naive_bayes.MultinomialNB, ["alpha"]),
    (PCA, decomposition.PCA, ["n_components"]),
    (SVD, decomposition.TruncatedSVD, ["n_components", "random_state"]),
    (SSVD, decomposition.TruncatedSVD, ["n_components", "n_oversamples", "random_state"]),
    (GNMF, decomposition.NMF, ["max_iter", "tol", "random_state"]),
    (KLNMF, decomposition.NMF, ["max_iter", "tol", "random_state"]),
]
"""Estimators, scikit-learn's, and the parameters that mean the same in both."""


@pytest.mark.parametrize(("ours", "theirs", "names"), SAME, ids=lambda v: getattr(v, "__name__", ""))
def test_defaults_are_scikit_learns(ours, theirs, names) -> None:
    have, want = ours().get_params(), theirs().get_params()
    assert {n: have[n] for n in names} == {n: want[n] for n in names}


@pytest.mark.parametrize("row", APPS.values(), ids=lambda row: row.name)
def test_estimators_have_the_defaults_of_their_functions(row) -> None:
    options = {
        "random_state" if name == "seed" else name: p.default
        for name, p in inspect.signature(row.load(row.function)).parameters.items()
    }
    params = row.load(row.estimator)().get_params()
    assert {name: options[name] for name in params} == params
