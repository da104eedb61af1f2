"""Every app on data of a size that benchmarks and tests choose: what to measure, without measuring it.

A workload makes its data, runs the app for a fixed number of iterations, and gives the arrays it found,
the same on every backend. The data's bytes are proportional to the scale: at 1 they are about 8 MB, a second
or so of work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import spartan_ng as np
from spartan_ng.apps.cox import cox
from spartan_ng.apps.kaplan_meier import kaplan_meier
from spartan_ng.apps.kmeans import kmeans
from spartan_ng.apps.logistic_regression import logistic_regression

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
    return found.weights, found.intercept, found.objective


def _kaplan_meier(scale: float) -> tuple[Any, ...]:
    """A million times, rounded so that many are equal."""
    _, times, seen = _subjects(scale, 1)
    found = kaplan_meier(times, seen)
    return found.times, found.survival, found.variance


def _cox(scale: float, iterations: int = 3) -> tuple[Any, ...]:
    """Subjects × 5 covariates."""
    found = cox(*_subjects(scale, 5), max_iter=iterations, tol=0.0)
    return found.weights, found.standard_errors, found.log_likelihood


WORKLOADS: dict[str, Workload] = {
    "cox": _cox,
    "kaplan-meier": _kaplan_meier,
    "kmeans": _kmeans,
    "logistic-regression": _logistic_regression,
}
"""Each app's workload by the name of its command."""
