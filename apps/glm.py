"""Generalized linear models by trust-region Newton steps: one row a family and link.

Fusion plans (PVLDB '18), Table 2, where it is binomial probit regression, with the paper's hyper-parameters.
Each family's loss is convex in the linear predictor, so the exact second derivatives do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi
from typing import Any, ClassVar, Literal, get_args

from scipy import special

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import array, points, require_finite, require_positive, targets
from spartan_ng.apps.design import Design
from spartan_ng.apps.errors import UndefinedMetricWarning, warn
from spartan_ng.apps.estimator import Regressor, area, roc
from spartan_ng.apps.newton import minimize
from spartan_ng.apps.pictures import Panel

FamilyName = Literal["probit", "logit", "poisson", "gamma", "normal"]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of distributions with its link.

    Parameters
    ----------
    loss : negative log-likelihood of (linear predictor, target), up to what the target alone adds
    derivatives : its first and second derivative by the linear predictor
    mean : the expected target of a linear predictor
    link : the linear predictor of an expected target, a number
    least : the loss where every target is what was expected
    low, high : between which the targets are
    """

    loss: Callable[[Any, Any], Any]
    derivatives: Callable[[Any, Any], tuple[Any, Any]]
    mean: Callable[[Any], Any]
    link: Callable[[Any], Any]
    least: Callable[[Any], Any]
    low: float = -float("inf")
    high: float = float("inf")


def _probit_loss(z: Any, y: Any) -> Any:
    return -y * np.special.log_ndtr(z) - (1 - y) * np.special.log_ndtr(-z)


def _probit_derivatives(z: Any, y: Any) -> tuple[Any, Any]:
    """With r(z) = density / distribution: r falls, and its derivative is -r * (z + r)."""
    density = -0.5 * z * z - 0.5 * float(np.log(np.asarray(2 * pi)))
    yes, no = np.exp(density - np.special.log_ndtr(z)), np.exp(density - np.special.log_ndtr(-z))
    return (1 - y) * no - y * yes, y * yes * (z + yes) + (1 - y) * no * (no - z)


def _logit_derivatives(z: Any, y: Any) -> tuple[Any, Any]:
    p = np.special.expit(z)
    return p - y, p * (1 - p)


def _gamma_derivatives(z: Any, y: Any) -> tuple[Any, Any]:
    e = y * np.exp(-z)
    return 1 - e, e


def _entropy(y: Any) -> Any:
    """The loss of a yes/no target, or of a share, that was expected."""
    return -np.special.xlogy(y, y) - np.special.xlogy(1 - y, 1 - y)


FAMILIES: dict[str, Family] = {
    "probit": Family(_probit_loss, _probit_derivatives, np.special.ndtr, special.ndtri, _entropy, 0, 1),
    "logit": Family(
        lambda z, y: np.logaddexp(0, z) - y * z,
        _logit_derivatives,
        np.special.expit,
        special.logit,
        _entropy,
        0,
        1,
    ),
    "poisson": Family(
        lambda z, y: np.exp(z) - y * z,
        lambda z, y: (np.exp(z) - y, np.exp(z)),
        np.exp,
        log,
        lambda y: y - np.special.xlogy(y, y),
        0,
    ),
    "gamma": Family(
        lambda z, y: z + y * np.exp(-z), _gamma_derivatives, np.exp, log, lambda y: 1 + np.log(y), 0
    ),
    "normal": Family(
        lambda z, y: 0.5 * (y - z) ** 2,
        lambda z, y: (z - y, np.ones_like(z)),
        lambda z: z,
        lambda m: m,
        np.zeros_like,
    ),
}
"""Each family by its name; all but the binomial ones and the normal one have the logarithm as link."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What `glm` finds.

    Parameters
    ----------
    coef : shape (n_features,)
    intercept : a number; 0 without one
    objective : negative log-likelihood (without what the targets alone add) + reg * |coef|² / 2
    n_iter : number of Newton steps
    converged : whether `tol` ended them
    history : the objective after each
    """

    coef: Any
    intercept: float
    objective: float
    n_iter: int
    converged: bool
    history: Any


def glm(
    X: Any,
    y: Any,
    *,
    family: FamilyName = "probit",
    reg: float = 1e-3,
    tol: float = 1e-6,
    max_iter: int = 100,
    max_inner: int = 10,
    fit_intercept: bool = True,
) -> Fit:
    """Fit a generalized linear model; by default, of yes/no targets with the normal distribution as link.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their targets, shape (n_points,): 0 or 1 (or shares) for probit and logit
    family : "probit", "logit", "poisson", "gamma" (the latter two with logarithmic link) or "normal"
    reg : strength of the penalty; the intercept is not penalized
    tol : stop when the gradient's norm is at most this share of the first one's
    max_iter : upper bound of the number of Newton steps
    max_inner : upper bound of the passes over X for each of them
    fit_intercept : whether the model has an intercept

    Raises
    ------
    ValueError : shapes do not fit, an unknown family, a target it cannot have, or an option out of its range

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("glm", max_iter=max_iter, max_inner=max_inner)
    if family not in FAMILIES:
        raise ValueError(f"glm: family is {family!r}, not one of {get_args(FamilyName)}")
    if reg < 0:
        raise ValueError(f"glm: reg is {reg}, it must not be negative")
    y = targets("glm", X, y).persist()
    rule = FAMILIES[family]
    least, largest = np.compute(y.min(), y.max())
    require_finite("glm", y, least, largest)
    if not (least >= rule.low and largest <= rule.high):
        raise ValueError(f"glm: targets from {least} to {largest} are no {family} targets")
    design = Design(X, fit_intercept)
    penalty = np.full(design.shape[1], reg, X.dtype).compute()
    penalty[X.shape[1] :] = 0
    start = 0 * penalty
    loss = _Likelihood(design, y, rule, penalty)
    found = minimize("glm", loss, start, max_iter=max_iter, max_inner=max_inner, tol=tol)
    (coef, intercept), loop = design.parted(found.point), found.loop
    return Fit(coef, intercept, found.value, loop.n_iter, loop.converged, loop.history)


@dataclass(frozen=True, slots=True)
class _Likelihood:
    """The objective; a point is weights of the design, a state the second derivatives of its rows."""

    design: Design
    y: Any
    family: Family
    penalty: Any

    def at(self, point: Any) -> tuple[float, Any, Any]:
        """Value, gradient and second derivatives by the linear predictors."""
        z = self.design.times(point)
        first, second = self.family.derivatives(z, self.y)
        loss, slopes = self.family.loss(z, self.y).sum(), self.design.turned_times(first)
        np.persist(loss, slopes, second)
        value = float(loss) + float(self.penalty @ (point * point)) / 2
        return value, slopes.compute() + self.penalty * point, second

    def curved(self, state: Any, direction: Any) -> Any:
        """X.T @ (state * (X @ direction)) of the design, and the penalty's part."""
        return (
            self.design.turned_times(state * self.design.times(direction)).compute()
            + self.penalty * direction
        )


@dataclass(eq=False, repr=False, kw_only=True)
class GLM(Regressor):
    """A generalized linear model as an estimator; see `glm`.

    Attributes after `fit`: `coef_`, `intercept_`, `objective_`, `n_iter_`, `converged_`, `history_`,
    `n_features_in_`.
    """

    family: FamilyName = "probit"
    _find = staticmethod(glm)
    _sparse: ClassVar[bool] = True
    _measure: ClassVar[str] = "D2"

    reg: float = 1e-3
    tol: float = 1e-6
    max_iter: int = 100
    max_inner: int = 10
    fit_intercept: bool = True

    def predict(self, X: Any) -> Any:
        """The expected targets of points, shape (n_points,); probabilities for probit and logit."""
        return FAMILIES[self.family].mean(super().predict(X))

    def _panels(self, *data: Any) -> list[Panel]:
        """Yes and no have no residuals to look at, but a curve of who is found."""
        if not data or FAMILIES[self.family].high != 1:
            return super()._panels(*data)
        X, y = data
        curve = roc(self.predict(X), array(y) > 0.5)
        return [pictures.roc(*curve, area(*curve))]

    def score(self, X: Any, y: Any) -> float:
        """The share of the deviance that is explained, against the mean of y for all (D²): at most 1."""
        rule = FAMILIES[self.family]
        X = self._seen(X)
        y = targets(type(self).__name__, X, y)
        if y.shape[0] < 2:
            warn("D² is not defined for less than two values", UndefinedMetricWarning)
            return float("nan")
        ours, best = rule.loss(X @ self.coef_ + self.intercept_, y).sum(), rule.least(y).sum()
        mean, least, largest = (float(a) for a in np.compute(y.mean(), y.min(), y.max()))
        if least == largest:  # nobody's model is right, at a predictor that may be infinite
            return float(ours <= best)
        nobodys = rule.loss(np.full(1, float(rule.link(mean))), y).sum()
        ours, best, nobodys = (float(a) for a in np.compute(ours, best, nobodys))
        return 1.0 - (ours - best) / (nobodys - best)
