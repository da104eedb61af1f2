"""Linear models against scikit-learn and SciPy on data sets that scikit-learn ships."""

from __future__ import annotations

import numpy
import pytest
from scipy import optimize, special
from sklearn import datasets, linear_model, metrics, svm
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from spartan_ng.apps.errors import NotFittedError
from spartan_ng.apps.glm import FAMILIES, GLM, glm
from spartan_ng.apps.l2svm import L2SVM, l2svm
from spartan_ng.apps.linear_regression import LinearRegression, Ridge, linear_regression, ridge
from spartan_ng.apps.mlogreg import MultinomialLogisticRegression, mlogreg
from spartan_ng.apps.svm import SVM
from spartan_ng.apps.svm import svm as our_svm


def diabetes():
    return datasets.load_diabetes(return_X_y=True)


def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.some(4)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_linear_regression(alpha, fit_intercept, anywhere) -> None:
    X, y = diabetes()
    ours: LinearRegression | Ridge
    if alpha is None:
        ours, theirs = LinearRegression(fit_intercept=fit_intercept), linear_model.LinearRegression
        reference = theirs(fit_intercept=fit_intercept).fit(X, y)
    else:
        ours = Ridge(alpha=alpha, fit_intercept=fit_intercept)
        reference = linear_model.Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y)
    ours.fit(X, y)
    numpy.testing.assert_allclose(ours.coef_, reference.coef_, rtol=1e-8)
    assert ours.intercept_ == pytest.approx(reference.intercept_, rel=1e-10, abs=1e-10)
    assert ours.score(X, y) == pytest.approx(reference.score(X, y), rel=1e-10)
    numpy.testing.assert_allclose(numpy.asarray(ours.predict(X)), reference.predict(X))


def test_badly_scaled_columns_keep_their_digits() -> None:
    random = numpy.random.default_rng(0)
    X = random.standard_normal((500, 6)) * 10.0 ** numpy.arange(6) + 1e3
    w = random.standard_normal(6)
    numpy.testing.assert_allclose(linear_regression(X, X @ w).coef, w, rtol=1e-9)


def test_dependent_columns_give_the_least_norm() -> None:
    X, y = diabetes()
    X = numpy.concatenate([X, X[:, :1]], axis=1)
    expected = numpy.linalg.lstsq(X - X.mean(0), y - y.mean(), rcond=None)[0]
    numpy.testing.assert_allclose(linear_regression(X, y).coef, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_l2svm(fit_intercept, anywhere) -> None:
    X, y = cancer()
    ours = l2svm(X, y, reg=1.0, tol=1e-12, max_iter=400, fit_intercept=fit_intercept)
    theirs = svm.LinearSVC(C=0.5, fit_intercept=fit_intercept, tol=1e-10, max_iter=10**6, random_state=0)
    theirs.fit(X, y)
    numpy.testing.assert_allclose(ours.coef, theirs.coef_[0], atol=2e-4)
    w = numpy.append(theirs.coef_, theirs.intercept_)
    hinge = numpy.maximum(1 - (2 * y - 1) * theirs.decision_function(X), 0)
    assert ours.objective == pytest.approx((hinge @ hinge + w @ w) / 2, rel=1e-6)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("C", [0.01, 0.1])
def test_svm(C, anywhere) -> None:
    X, y = cancer()
    ours = our_svm(X, y, C=C)
    theirs = svm.LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    w = numpy.append(theirs.coef_, theirs.intercept_)
    hinge = numpy.maximum(1 - (2 * y - 1) * theirs.decision_function(X), 0)
    best = C * hinge.sum() + w @ w / 2
    assert best * (1 - 1e-6) <= ours.objective <= best + ours.gap
    assert ours.gap <= 1e-3 * ours.objective
    signed = (2 * y - 1) * (X @ ours.coef + ours.intercept)
    mine = C * numpy.maximum(1 - signed, 0).sum() + (ours.coef @ ours.coef + ours.intercept**2) / 2
    assert ours.objective == pytest.approx(mine)


def softmax_minimum(X, y, reg: float) -> float:
    """SciPy's minimum of mlogreg's objective."""
    rows, classes = numpy.arange(len(X)), y.max() + 1

    def objective(flat):
        B = flat.reshape(X.shape[1], classes - 1)
        Z = numpy.c_[X @ B, numpy.zeros(len(X))]
        total = special.logsumexp(Z, axis=1)
        R = numpy.exp(Z - total[:, None])
        R[rows, y] -= 1
        return (total - Z[rows, y]).sum() + reg * flat @ flat / 2, (X.T @ R[:, :-1]).ravel() + reg * flat

    start = numpy.zeros(X.shape[1] * (classes - 1))
    options = {"maxiter": 3000, "gtol": 1e-8, "ftol": 0.0, "maxfun": 10**6}
    return optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.slow
@pytest.mark.some(1)
def test_mlogreg(anywhere) -> None:
    X, y = datasets.load_digits(return_X_y=True)
    X = X[:, 2:40] / 16
    ours = mlogreg(X, y, reg=1.0, max_inner=50, fit_intercept=False)
    assert ours.objective == pytest.approx(softmax_minimum(X, y, 1.0), rel=1e-8)


def test_mlogreg_with_an_intercept_predicts_as_scikit_learn() -> None:
    iris = datasets.load_iris()
    names = iris.target_names[iris.target]
    model = MultinomialLogisticRegression(reg=0.0, fit_intercept=True, max_iter=100, max_inner=50)
    model.fit(iris.data, names)
    theirs = linear_model.LogisticRegression(C=1e9, tol=1e-9, max_iter=10000).fit(iris.data, names)
    numpy.testing.assert_allclose(
        numpy.asarray(model.predict_proba(iris.data)), theirs.predict_proba(iris.data), atol=1e-3
    )
    assert model.score(iris.data, names) == theirs.score(iris.data, names)


@pytest.mark.some(1)
def test_probit(anywhere) -> None:
    X, y = cancer()
    sign, reg = 2 * y - 1, 0.1

    def objective(w):
        z = sign * (X @ w[:-1] + w[-1])
        slope = -sign * numpy.exp(-z * z / 2 - numpy.log(2 * numpy.pi) / 2 - special.log_ndtr(z))
        penalty = numpy.append(reg * w[:-1], 0)
        return -special.log_ndtr(z).sum() + penalty @ w / 2, numpy.append(slope @ X, slope.sum()) + penalty

    options = {"maxiter": 5000, "gtol": 1e-9, "ftol": 0.0, "maxfun": 10**6}
    best = optimize.minimize(objective, numpy.zeros(31), jac=True, method="L-BFGS-B", options=options).fun
    ours = glm(X, y, reg=reg, fit_intercept=True, max_iter=100, max_inner=50)
    assert ours.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("family", "theirs"),
    [("poisson", linear_model.PoissonRegressor), ("gamma", linear_model.GammaRegressor)],
)
def test_logarithmic_links(family, theirs, anywhere) -> None:
    X, y = diabetes()
    X = X * 20
    ours = GLM(family=family, reg=1.0, tol=1e-9).fit(X, y)
    reference = theirs(alpha=1.0 / len(X), tol=1e-9, max_iter=1000).fit(X, y)
    numpy.testing.assert_allclose(ours.coef_, reference.coef_, atol=1e-5)
    numpy.testing.assert_allclose(numpy.asarray(ours.predict(X)), reference.predict(X), rtol=1e-4)
    assert ours.score(X, y) == pytest.approx(reference.score(X, y), rel=1e-6)  # the deviance explained


@pytest.mark.parametrize(
    ("family", "measure"),
    [
        ("probit", metrics.d2_log_loss_score),
        ("logit", metrics.d2_log_loss_score),
        ("normal", metrics.r2_score),
    ],
)
def test_explained_deviance(family, measure) -> None:
    random = numpy.random.default_rng(0)
    X = random.normal(size=(80, 3))
    z = X @ [1.0, -0.5, 0.2] + random.normal(size=80)
    y = numpy.asarray(z if family == "normal" else z > 0, float)
    model = GLM(family=family).fit(X, y)
    assert model.score(X, y) == pytest.approx(measure(y, numpy.asarray(model.predict(X))), rel=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_derivatives_of_the_families(family) -> None:
    rule = FAMILIES[family]
    z, y, h = numpy.linspace(-2, 2, 9), numpy.linspace(0, 1, 9), 1e-5
    first, second = (numpy.asarray(d) for d in rule.derivatives(z, y))
    before, after = numpy.asarray(rule.loss(z - h, y)), numpy.asarray(rule.loss(z + h, y))
    numpy.testing.assert_allclose(first, (after - before) / (2 * h), atol=1e-8)
    slopes = [numpy.asarray(rule.derivatives(z + d, y)[0]) for d in (-h, h)]
    numpy.testing.assert_allclose(second, (slopes[1] - slopes[0]) / (2 * h), atol=1e-8)


@pytest.mark.parametrize(
    "model", [LinearRegression(), Ridge(), GLM(family="normal", max_inner=60), L2SVM(), SVM()]
)
def test_estimators_follow_the_conventions(model) -> None:
    X, y = cancer()
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=3).mean() > (0.9 if hasattr(model, "classes_") else 0.5)
    with pytest.raises(ValueError, match=r"3 features, but .* is expecting 30"):
        model.fit(X, y).predict(X[:, :3])


def test_bad_input_is_named() -> None:
    X, y = numpy.ones((4, 2)), numpy.arange(4)
    for fit in (linear_regression, ridge, l2svm, our_svm, mlogreg, glm):
        with pytest.raises(ValueError, match=r"y has shape \(3,\), X has 4 rows"):
            fit(X, y[:3])
    with pytest.raises(ValueError, match="must not be negative"):
        ridge(X, y, alpha=-1)
    for two in (l2svm, our_svm):
        with pytest.raises(ValueError, match="y has 4 classes, not two"):
            two(X, y)
    with pytest.raises(ValueError, match="reg is 0, it must be positive"):
        l2svm(X, y > 1, reg=0)
    with pytest.raises(ValueError, match="one class only"):
        mlogreg(X, 0 * y)
    with pytest.raises(ValueError, match="family is 'cauchy'"):
        glm(X, y, family="cauchy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no probit targets"):
        glm(X, y)
