"""Logistic regression with an L2 penalty, by Newton's method, L-BFGS or gradient descent.

The objective is scikit-learn's: C * (sum of log losses) + |w|² / 2, the intercept not penalized. Every
solver sees the points only through sums over them, so that an iteration forces a gradient, and for
Newton a (features × features) matrix; the points stay where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, get_args

from scipy import linalg, optimize

import spartan_ng as np
from spartan_ng.apps.checks import distinct, points, require_finite, require_positive
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Classifier, softmax

Solver = Literal["newton", "lbfgs", "gradient"]
"""Newton and gradient descent are for two classes, L-BFGS for any number."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What `logistic_regression` finds.

    Parameters
    ----------
    coef : shape (n_features,), or (n_classes, n_features) for more than two classes
    intercept : a number, or shape (n_classes,)
    classes : the sorted distinct targets
    objective : C * (sum of log losses) + |w|² / 2
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the objective after each
    """

    coef: Any
    intercept: Any
    classes: Any
    objective: float
    n_iter: int
    converged: bool
    history: Any


def logistic_regression(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    solver: Solver | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
    fit_intercept: bool = True,
) -> Fit:
    """Fit a linear model of the classes' log odds, by Newton's method, L-BFGS or gradients.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their classes, shape (n_points,), of any dtype that sorts
    C : inverse strength of the penalty
    solver : "newton", "lbfgs" or "gradient"; default is newton for two classes, else lbfgs
    max_iter : upper bound of the number of iterations
    tol : stop when no component of the gradient, for one point on average, exceeds it
    fit_intercept : whether the model has an intercept

    Raises
    ------
    ValueError : shapes do not fit, fewer than two classes, or a solver that cannot do it

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("logistic_regression", C=C, max_iter=max_iter)
    y, classes = distinct("logistic_regression", X, y, 2)
    solver = solver or ("newton" if len(classes) == 2 else "lbfgs")
    if solver not in get_args(Solver):
        raise ValueError(f"logistic_regression: solver is {solver!r}, not one of {get_args(Solver)}")
    loop = Iterations("logistic regression", max_iter, tol)
    if solver == "lbfgs" and len(classes) > 2:
        return _multinomial(X, y, classes, C, loop, tol, fit_intercept)
    if len(classes) > 2:
        raise ValueError(f"logistic_regression: {solver} is for two classes, y has {len(classes)}; use lbfgs")
    solve = {"newton": _newton, "lbfgs": _lbfgs, "gradient": _gradient_descent}[solver]
    problem = _Binary(X, (y == classes[1]).astype(X.dtype).persist(), C, fit_intercept)
    point, objective = solve(problem, loop, tol)
    require_finite("logistic_regression", X, objective)
    found = point[:-1], float(point[-1]), classes, objective
    return Fit(*found, loop.n_iter, loop.converged, loop.history)


def _sigmoid(z: Any) -> Any:
    """1 / (1 + exp(-z)) without overflow."""
    return 0.5 * np.tanh(0.5 * z) + 0.5


@dataclass(frozen=True, slots=True)
class _Binary:
    """The objective of two classes; a point of it is the weights, then the intercept."""

    X: Any
    y: Any
    C: float
    fit_intercept: bool

    @property
    def start(self) -> Any:
        """All zeros."""
        return np.zeros(self.X.shape[1] + 1, self.X.dtype).compute()

    def terms(self, point: Any) -> tuple[Any, Any, Any]:
        """Objective, gradient (lazy both), and the predicted probabilities at `point`."""
        w, b = point[:-1], point[-1]
        z = self.X @ w + b
        p = _sigmoid(z)
        loss = self.C * (np.logaddexp(0, z) - self.y * z).sum() + 0.5 * (w * w).sum()
        residual = p - self.y
        slope = self.C * residual.sum() * self.fit_intercept
        gradient = np.concatenate([self.C * (residual @ self.X) + w, slope[None]])
        return loss, gradient, p

    def hessian(self, p: Any) -> Any:
        """The (n_features + 1)² matrix of second derivatives, lazy."""
        X, s = self.X, self.C * p * (1 - p)
        inner = X.T @ (s[:, None] * X) + np.eye(X.shape[1], dtype=X.dtype)
        edge = (s @ X) * self.fit_intercept
        corner = s.sum() if self.fit_intercept else np.asarray(1.0)
        return np.block([[inner, edge[:, None]], [edge[None, :], corner[None, None]]])

    def small(self, gradient: Any, tol: float) -> bool:
        """Whether the gradient is small enough to stop."""
        return bool(abs(gradient).max() <= tol * self.C * max(self.X.shape[0], 1))


def _newton(problem: _Binary, loop: Iterations, tol: float) -> tuple[Any, float]:
    """Newton's method (iteratively reweighted least squares); a step that does not descend is halved."""
    point = problem.start
    lazy_loss, lazy_gradient, p = problem.terms(point)
    loss, gradient, hessian = np.compute(lazy_loss, lazy_gradient, problem.hessian(p))
    require_finite("logistic_regression", problem.X, loss, gradient)
    loop.converged = problem.small(gradient, tol)
    for _ in loop:
        step = linalg.solve(hessian, gradient, assume_a="pos")
        for halvings in range(30):
            candidate = point - step / 2**halvings
            lazy_loss, lazy_gradient, p = problem.terms(candidate)
            new_loss, gradient, hessian = np.compute(lazy_loss, lazy_gradient, problem.hessian(p))
            if new_loss <= loss:
                break
        point, loss = candidate, new_loss
        loop.saw(loss)
        loop.converged = problem.small(gradient, tol)
    return point, float(loss)


def _lbfgs(problem: _Binary, loop: Iterations, tol: float) -> tuple[Any, float]:
    """SciPy's L-BFGS on the driver; each of its calls is one pass over the points."""

    def value_and_slope(point: Any) -> tuple[float, Any]:
        loss, gradient, _ = problem.terms(point.astype(problem.X.dtype))
        loss, gradient = np.compute(loss, gradient)
        return float(loss), gradient.astype(float)

    return _minimize(value_and_slope, problem.start, problem.X.shape[0] * problem.C, loop, tol)


def _minimize(
    value_and_slope: Callable[[Any], tuple[float, Any]],
    start: Any,
    scale: float,
    loop: Iterations,
    tol: float,
) -> tuple[Any, float]:
    """SciPy's own loop; it has converged, too, where a line search finds nothing better."""

    def told(intermediate_result: Any) -> None:
        loop.saw(intermediate_result.fun)

    options = {"maxiter": loop.most, "gtol": tol * scale, "ftol": 0.0, "maxls": 50}
    found = optimize.minimize(
        value_and_slope, start, jac=True, method="L-BFGS-B", options=options, callback=told
    )
    loop.ended(int(found.nit), found.status != 1)
    return found.x, float(found.fun)


def _gradient_descent(problem: _Binary, loop: Iterations, tol: float) -> tuple[Any, float]:
    """Gradient descent with steps of 1 / L.

    The objective's curvature is at most L = C * |[X 1]|² / 4 + 1, the norm bounded by Frobenius's.
    """
    ones = problem.X.shape[0] * problem.fit_intercept
    rate = 1.0 / (problem.C * (float((problem.X * problem.X).sum()) + ones) / 4 + 1)
    point = problem.start
    loss, gradient = np.compute(*problem.terms(point)[:2])
    loop.converged = problem.small(gradient, tol)
    for _ in loop:
        point = point - rate * gradient
        loss, gradient = np.compute(*problem.terms(point)[:2])
        loop.saw(loss)
        loop.converged = problem.small(gradient, tol)
    return point, float(loss)


def _multinomial(
    X: Any, y: Any, classes: Any, C: float, loop: Iterations, tol: float, fit_intercept: bool
) -> Fit:
    """Softmax regression by L-BFGS; a point is the (n_classes, n_features + 1) matrix, flat."""
    k, (rows, columns) = len(classes), X.shape
    target = (y[:, None] == classes).astype(X.dtype).persist()

    def value_and_slope(flat: Any) -> tuple[float, Any]:
        point = flat.astype(X.dtype).reshape(k, columns + 1)
        w, b = point[:, :-1], point[:, -1]
        z = X @ w.T + b
        z = z - z.max(axis=1)[:, None]
        e = np.exp(z)
        total = e.sum(axis=1)
        loss = C * (np.log(total) - (target * z).sum(axis=1)).sum() + 0.5 * (w * w).sum()
        residual = e / total[:, None] - target
        slopes = C * (residual.T @ X) + w
        edge = C * residual.sum(axis=0) * fit_intercept
        value, slopes, edge = np.compute(loss, slopes, edge)
        return float(value), np.concatenate([slopes, edge[:, None]], axis=1).compute().ravel().astype(float)

    start = np.zeros(k * (columns + 1)).compute()
    flat, objective = _minimize(value_and_slope, start, C * rows, loop, tol)
    require_finite("logistic_regression", X, objective)
    point = flat.reshape(k, columns + 1)
    found = point[:, :-1], point[:, -1], classes, objective
    return Fit(*found, loop.n_iter, loop.converged, loop.history)


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticRegression(Classifier):
    """Logistic regression as an estimator, with scikit-learn's names; see `logistic_regression`.

    Attributes after `fit`: `coef_`, `intercept_`, `classes_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(logistic_regression)
    _sparse: ClassVar[bool] = True

    C: float = 1.0
    solver: Solver | None = None
    max_iter: int = 100
    tol: float = 1e-4
    fit_intercept: bool = True

    def _learn(self, found: Any, features: int | None = None) -> Self:
        """Two classes have a row of weights, as in scikit-learn."""
        super()._learn(found, features)
        self.coef_ = np.atleast_2d(np.asarray(found.coef)).compute()
        self.intercept_ = np.atleast_1d(np.asarray(found.intercept)).compute()
        return self

    def decision_function(self, X: Any) -> Any:
        """Log odds: shape (n_points,) for two classes, else (n_points, n_classes)."""
        z = self._seen(X) @ self.coef_.T + self.intercept_
        return z[:, 0] if len(self.classes_) == 2 else z

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, shape (n_points, n_classes)."""
        z = self.decision_function(X)
        if z.ndim == 1:
            p = _sigmoid(z)
            return np.stack([1 - p, p], axis=1)
        return softmax(z)
