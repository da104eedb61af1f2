"""Logistic regression against scikit-learn on data sets that scikit-learn ships."""

from __future__ import annotations

import numpy
import pytest
from sklearn import datasets, linear_model
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from spartan_ng.apps.errors import NotFittedError
from spartan_ng.apps.logistic_regression import LogisticRegression, logistic_regression


def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16, y


@pytest.mark.some(5)
@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_two_classes_agree_with_scikit_learn(solver, C, fit_intercept, anywhere) -> None:
    X, y = cancer()
    ours = LogisticRegression(C=C, solver=solver, tol=1e-9, max_iter=1000, fit_intercept=fit_intercept).fit(
        X, y
    )
    theirs = linear_model.LogisticRegression(
        C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000, fit_intercept=fit_intercept
    ).fit(X, y)
    numpy.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-3, atol=1e-4)
    numpy.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-3, atol=1e-4)
    numpy.testing.assert_array_equal(numpy.asarray(ours.predict(X)), theirs.predict(X))
    numpy.testing.assert_allclose(numpy.asarray(ours.predict_proba(X)), theirs.predict_proba(X), atol=1e-4)


def test_gradient_descent_reaches_the_same_objective() -> None:
    X, y = cancer()
    X = X[:, :5]
    newton = logistic_regression(X, y, C=0.05, solver="newton", tol=1e-10)
    slow = logistic_regression(X, y, C=0.05, solver="gradient", tol=1e-6, max_iter=3000)
    assert slow.objective == pytest.approx(newton.objective, rel=1e-6)
    assert slow.n_iter > newton.n_iter


@pytest.mark.slow
@pytest.mark.some(1)
def test_many_classes_agree_with_scikit_learn(anywhere) -> None:
    X, y = (part[:600] for part in digits())
    ours = LogisticRegression(C=0.1, tol=1e-6, max_iter=500).fit(X, y)
    theirs = linear_model.LogisticRegression(C=0.1, tol=1e-8, max_iter=500).fit(X, y)
    numpy.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-2, atol=2e-3)
    numpy.testing.assert_allclose(numpy.asarray(ours.predict_proba(X)), theirs.predict_proba(X), atol=2e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


def test_separable_classes_converge_under_the_penalty() -> None:
    X = numpy.array([[-1.0], [-2.0], [1.0], [2.0]])
    found = logistic_regression(X, numpy.array([0, 0, 1, 1]), C=100.0, tol=1e-9)
    assert numpy.isfinite(found.objective)
    assert float(found.coef[0]) > 1


def test_classes_may_be_strings() -> None:
    iris = datasets.load_iris()
    names = iris.target_names[iris.target]
    model = LogisticRegression(max_iter=1000).fit(iris.data, names)
    assert list(model.classes_) == sorted(set(names))
    assert model.score(iris.data, names) > 0.95


def test_bad_input_is_named() -> None:
    X = numpy.ones((4, 2))
    with pytest.raises(ValueError, match=r"y has shape \(3,\), X has 4 rows"):
        logistic_regression(X, numpy.zeros(3))
    with pytest.raises(ValueError, match="one class only"):
        logistic_regression(X, numpy.zeros(4))
    with pytest.raises(ValueError, match="must be positive"):
        logistic_regression(X, numpy.arange(4), C=0)
    with pytest.raises(ValueError, match="use lbfgs"):
        logistic_regression(X, numpy.arange(4), solver="newton")
    with pytest.raises(ValueError, match="not one of"):
        logistic_regression(X, numpy.arange(4), solver="saga")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be"):
        logistic_regression(X[0], numpy.arange(4))


def test_estimator_follows_the_conventions() -> None:
    X, y = cancer()
    model = LogisticRegression(C=0.5)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=3).min() > 0.95
    with pytest.raises(ValueError, match="3 features"):
        model.fit(X, y).predict(X[:, :3])
