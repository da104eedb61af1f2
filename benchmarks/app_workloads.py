"""Every app on data of a size that benchmarks and tests choose: what to measure, without measuring it.

A workload makes its data, runs the app for a fixed number of iterations, and gives the arrays it found,
the same on every backend. The data's bytes are proportional to the scale: at 1 they are about 8 MB, a second
or so of work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng.apps.als import als
from spartan_ng.apps.als_cg import als_cg
from spartan_ng.apps.autoencoder import autoencoder
from spartan_ng.apps.cholesky import cholesky
from spartan_ng.apps.cox import cox
from spartan_ng.apps.event_rate import event_rates
from spartan_ng.apps.fuzzy_kmeans import fuzzy_kmeans
from spartan_ng.apps.glm import glm
from spartan_ng.apps.kaplan_meier import kaplan_meier
from spartan_ng.apps.kmeans import kmeans
from spartan_ng.apps.l2svm import l2svm
from spartan_ng.apps.linear_regression import linear_regression, ridge
from spartan_ng.apps.linear_systems import conjugate_gradient, jacobi
from spartan_ng.apps.logistic_regression import logistic_regression
from spartan_ng.apps.mlogreg import mlogreg
from spartan_ng.apps.naive_bayes import naive_bayes
from spartan_ng.apps.nmf import gnmf, kl_nmf
from spartan_ng.apps.options import black_scholes, monte_carlo
from spartan_ng.apps.pagerank import pagerank
from spartan_ng.apps.pca import pca
from spartan_ng.apps.ssvd import ssvd
from spartan_ng.apps.svd import svd
from spartan_ng.apps.svm import svm
from spartan_ng.apps.swaption import swaption

Workload = Callable[..., tuple[Any, ...]]
"""Called with the scale, and with `iterations` where the app iterates; gives small arrays and numbers."""

COLUMNS = 50


def _rows(scale: float, columns: int = COLUMNS, least: int = 30) -> int:
    """The number of rows whose doubles take 8 MB at scale 1."""
    return max(int(scale * 1_000_000) // columns, least)


def _labelled(scale: float) -> tuple[Any, Any]:
    """Points and the 0/1 classes that a noisy linear rule gives them."""
    random = np.random.default_rng(0)
    rows = _rows(scale)
    X = random.standard_normal((rows, COLUMNS))
    y = X @ random.standard_normal(COLUMNS) + random.standard_normal(rows) > 0
    return X, y.astype(np.float64)


def _subjects(scale: float, columns: int) -> tuple[Any, Any, Any]:
    """Covariates, exponential times whose hazards they change, and events with one in four unseen."""
    random = np.random.default_rng(0)
    rows = _rows(scale, columns)
    X = random.standard_normal((rows, columns))
    times = np.round(1000 * random.exponential(size=rows) * np.exp(X @ np.linspace(-0.5, 0.5, columns)))
    return X, times, random.random(rows) > 0.25


def _kmeans(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features around 32 (at most a tenth of the points) places."""
    random = np.random.default_rng(0)
    rows = _rows(scale)
    clusters = min(32, rows // 10)
    places = 4 * random.standard_normal((clusters, COLUMNS))
    X = places[random.integers(clusters, size=rows)] + random.standard_normal((rows, COLUMNS))
    found = kmeans(X, clusters, init=X[:clusters], max_iter=iterations, tol=0.0)
    return found.centers, found.inertia


def _logistic_regression(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features of two classes, by Newton's method."""
    found = logistic_regression(*_labelled(scale), max_iter=iterations, tol=0.0)
    return found.coef, found.intercept, found.objective


def _linear_regression(scale: float) -> tuple[Any, ...]:
    """Points × 50 features."""
    found = linear_regression(*_labelled(scale))
    return found.coef, found.intercept, found.objective


def _ridge(scale: float) -> tuple[Any, ...]:
    """Points × 50 features."""
    found = ridge(*_labelled(scale))
    return found.coef, found.intercept, found.objective


def _naive_bayes(scale: float) -> tuple[Any, ...]:
    """Points × 50 counts of two classes."""
    X, y = _labelled(scale)
    found = naive_bayes(np.floor(np.abs(4 * X)), y)
    return found.linear, found.constant


def _fuzzy_kmeans(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features, 8 clusters."""
    X, _ = _labelled(scale)
    found = fuzzy_kmeans(X, 8, init=X[:8], max_iter=iterations, tol=0.0)
    return found.centers, found.objective


def _l2svm(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features of two classes."""
    found = l2svm(*_labelled(scale), max_iter=iterations, tol=0.0)
    return found.coef, found.objective


def _svm(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features of two classes."""
    found = svm(*_labelled(scale), C=0.01, max_iter=iterations, tol=0.0)
    return found.coef, found.objective, found.gap


def _mlogreg(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features of five classes, five passes an iteration."""
    X, _ = _labelled(scale)
    found = mlogreg(X, X[:, :5].argmax(axis=1), max_iter=iterations, max_inner=5, tol=0.0)
    return found.coef, found.objective


def _glm(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Points × 50 features, yes or no, five passes an iteration."""
    found = glm(*_labelled(scale), max_iter=iterations, max_inner=5, tol=0.0)
    return found.coef, found.objective


def _svd(scale: float, iterations: int = 8) -> tuple[Any, ...]:
    """A tall matrix of 50 columns, two singular values."""
    X, _ = _labelled(scale)
    found = svd(X * np.linspace(2, 1, COLUMNS), 2, max_iter=iterations, tol=0.0, seed=0)
    return found.values, np.abs(found.right)


def _ssvd(scale: float) -> tuple[Any, ...]:
    """A tall matrix of 50 columns, two singular values."""
    X, _ = _labelled(scale)
    found = ssvd(X * np.linspace(2, 1, COLUMNS), 2, n_passes=2, seed=0)
    return found.values, np.abs(found.right)


def _pca(scale: float) -> tuple[Any, ...]:
    """Points × 50 features."""
    X, _ = _labelled(scale)
    found = pca(X * np.linspace(2, 1, COLUMNS), 3)
    return found.components, found.explained_variance


def _ratings(scale: float) -> Any:
    """A sparse matrix of ratings from 1 to 5; at scale 1, 4,000 users, 3,000 items, one rating in 20."""
    shape = max(int(4_000 * scale**0.5), 40), max(int(3_000 * scale**0.5), 30)
    random = numpy.random.default_rng(0)
    found = sparse.random_array(shape, density=0.05, rng=random).tocsr()
    found.data = numpy.ceil(5 * found.data)
    return np.asarray(found)


def _als(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Users × items, 10 factors."""
    found = als(_ratings(scale), 10, max_iter=iterations, tol=0.0, seed=0)
    return found.user_factors, found.item_factors, found.objective


def _als_cg(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Users × items, 20 factors, three conjugate gradients a turn."""
    found = als_cg(_ratings(scale), max_iter=iterations, max_inner=3, tol=0.0, seed=0)
    return found.user_factors, found.item_factors, found.objective


def _gnmf(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Users × items, 10 components."""
    found = gnmf(_ratings(scale), max_iter=iterations, tol=0.0, seed=0)
    return found.weights, found.components, found.objective


def _kl_nmf(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Users × items, 10 components."""
    found = kl_nmf(_ratings(scale), max_iter=iterations, tol=0.0, seed=0)
    return found.weights, found.components, found.objective


def _autoencoder(scale: float, iterations: int = 1) -> tuple[Any, ...]:
    """Points × 50 features in batches of at most 512, 100 and 2 neurons; an iteration is an epoch."""
    X, _ = _labelled(scale)
    batch = min(512, X.shape[0] // 4)
    found = autoencoder(X, h1=100, batch=batch, epochs=iterations, tol=0.0, seed=0)
    return found.w1, found.w4, found.history


def _pagerank(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Pages with ten links each, 12 bytes a link; a tenth of the pages have none."""
    n = max(int(65_000 * scale), 50)
    random = numpy.random.default_rng(0)
    rows, columns = numpy.repeat(numpy.arange(n // 10, n), 10), random.integers(0, n, 10 * (n - n // 10))
    links = sparse.coo_array((numpy.ones(len(rows)), (rows, columns)), (n, n)).tocsr()
    found = pagerank(np.asarray(links), max_iter=iterations, tol=0.0)
    return found.ranks, found.change


def _system(scale: float) -> tuple[Any, Any]:
    """A symmetric and diagonally dominant dense matrix, and a right side."""
    n = max(int((1_000_000 * scale) ** 0.5), 30)
    random = np.random.default_rng(0)
    M = random.random((n, n))
    return (M + M.T) / 2 + n * np.eye(n), random.random(n)


def _conjugate_gradient(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """A dense system."""
    found = conjugate_gradient(*_system(scale), max_iter=iterations, tol=0.0)
    return found.x, found.residual


def _jacobi(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """A dense system."""
    found = jacobi(*_system(scale), max_iter=iterations, tol=0.0)
    return found.x, found.residual


def _cholesky(scale: float) -> tuple[Any, ...]:
    """A dense matrix, in eight block columns."""
    A, _ = _system(scale)
    found = cholesky(A, block=-(-A.shape[0] // 8))
    return found.factor, found.log_determinant


def _black_scholes(scale: float) -> tuple[Any, ...]:
    """A million options."""
    random = np.random.default_rng(0)
    n = _rows(scale, 1)
    found = black_scholes(50 + 100 * random.random(n), 50 + 100 * random.random(n), 0.1 + random.random(n))
    return found.calls.sum(), found.puts.sum()


def _monte_carlo(scale: float) -> tuple[Any, ...]:
    """A million shocks: an Asian option's paths of ten steps."""
    found = monte_carlo(payoff="asian", steps=10, paths=_rows(scale, 10))
    return found.price, found.standard_error


def _swaption(scale: float) -> tuple[Any, ...]:
    """A million shocks: paths of ten steps."""
    found = swaption(steps=10, paths=_rows(scale, 10))
    return found.price, found.standard_error


def _kaplan_meier(scale: float) -> tuple[Any, ...]:
    """A million times, rounded so that many are equal."""
    _, times, seen = _subjects(scale, 1)
    found = kaplan_meier(times, seen)
    return found.times, found.survival, found.variance


def _event_rate(scale: float) -> tuple[Any, ...]:
    """A million times."""
    _, times, seen = _subjects(scale, 1)
    found = event_rates(times, seen, 0.1)
    return found.times, found.rates


def _cox(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Subjects × 5 covariates."""
    found = cox(*_subjects(scale, 5), max_iter=iterations, tol=0.0)
    return found.coef, found.standard_errors, found.log_likelihood


WORKLOADS: dict[str, Workload] = {
    "als": _als,
    "als-cg": _als_cg,
    "autoencoder": _autoencoder,
    "black-scholes": _black_scholes,
    "cholesky": _cholesky,
    "conjugate-gradient": _conjugate_gradient,
    "cox": _cox,
    "event-rate": _event_rate,
    "fuzzy-kmeans": _fuzzy_kmeans,
    "glm": _glm,
    "gnmf": _gnmf,
    "jacobi": _jacobi,
    "kaplan-meier": _kaplan_meier,
    "kl-nmf": _kl_nmf,
    "kmeans": _kmeans,
    "l2svm": _l2svm,
    "linear-regression": _linear_regression,
    "logistic-regression": _logistic_regression,
    "mlogreg": _mlogreg,
    "monte-carlo": _monte_carlo,
    "naive-bayes": _naive_bayes,
    "pagerank": _pagerank,
    "pca": _pca,
    "ridge": _ridge,
    "ssvd": _ssvd,
    "svd": _svd,
    "svm": _svm,
    "swaption": _swaption,
}
"""Each app's workload by the name of its command."""
