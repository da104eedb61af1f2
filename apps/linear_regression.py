"""Linear and ridge regression from one pass over the points: the normal equations, refined once.

Spartan (ATC '15), section 5. The (features × features) matrix of centered columns is solved on the
driver. Forming it squares the condition number; a second pass, which solves for what the first one's
residuals still contain, gives most of the digits back (Björck's corrected semi-normal equations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite, targets
from spartan_ng.apps.estimator import Regressor


@dataclass(frozen=True, slots=True)
class Fit:
    """What `linear_regression` and `ridge` find.

    Parameters
    ----------
    coef : shape (n_features,)
    intercept : a number
    objective : sum of squared residuals + alpha * |coef|²
    """

    coef: Any
    intercept: float
    objective: float


def linear_regression(X: Any, y: Any, *, fit_intercept: bool = True) -> Fit:
    """Fit a linear model by least squares; of several equally good ones, that of least norm.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their targets, shape (n_points,)
    fit_intercept : whether the model has an intercept

    Raises
    ------
    ValueError : shapes do not fit
    """
    X = points(X)
    return _solve("linear_regression", X, y, 0.0, fit_intercept)


def ridge(X: Any, y: Any, *, alpha: float = 1.0, fit_intercept: bool = True) -> Fit:
    """Fit a linear model by least squares with an L2 penalty; the intercept is not penalized.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their targets, shape (n_points,)
    alpha : strength of the penalty
    fit_intercept : whether the model has an intercept

    Raises
    ------
    ValueError : shapes do not fit, or alpha is negative
    """
    X = points(X)
    if alpha < 0:
        raise ValueError(f"ridge: alpha is {alpha}, it must not be negative")
    return _solve("ridge", X, y, alpha, fit_intercept)


def _solve(name: str, X: Any, y: Any, alpha: float, fit_intercept: bool) -> Fit:
    """Least squares in centered columns; with an intercept the means carry it."""
    y = targets(name, X, y)
    mean, level = np.compute(X.mean(axis=0), y.mean()) if fit_intercept else (np.zeros(X.shape[1]), 0.0)
    mean, level = np.asarray(mean), np.asarray(level)
    centered, target = X - mean, y - level
    gram, moment = np.compute(centered.T @ centered, target @ centered)
    require_finite(name, X, gram, moment)
    coef = _least_squares(gram, moment, alpha)
    residual = target - centered @ coef
    coef = coef + _least_squares(gram, (residual @ centered).compute() - alpha * coef, alpha)
    residual = target - centered @ coef
    loss, offset = np.compute((residual * residual).sum(), level - mean @ coef)
    return Fit(coef, float(offset), float(loss) + alpha * float(coef @ coef))


def _least_squares(gram: Any, moment: Any, alpha: float) -> Any:
    """The solution of least norm of (gram + alpha) @ x = moment."""
    if alpha > 0:
        return linalg.solve(gram + alpha * np.eye(len(gram)).compute(), moment, assume_a="pos")
    values, vectors = linalg.eigh(gram)
    kept = values > len(gram) * 1e-15 * values[-1]
    vectors, values = vectors[:, kept], values[kept]
    return vectors @ ((moment @ vectors) / values)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(Regressor):
    """Least squares as an estimator; see `linear_regression`.

    Attributes after `fit`: `coef_`, `intercept_`, `objective_`, `n_features_in_`.
    """

    _find = staticmethod(linear_regression)
    _sparse: ClassVar[bool] = True

    fit_intercept: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class Ridge(Regressor):
    """Ridge regression as an estimator; see `ridge`.

    Attributes after `fit`: `coef_`, `intercept_`, `objective_`, `n_features_in_`.
    """

    _find = staticmethod(ridge)
    _sparse: ClassVar[bool] = True

    alpha: float = 1.0
    fit_intercept: bool = True
