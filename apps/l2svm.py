"""A linear support vector machine with squared hinge loss, by nonlinear conjugate gradients.

Fusion plans (PVLDB '18), Table 2, with its hyper-parameters. The objective sum(max(0, 1 - y * (X @ w))²) /
2 + reg * |w|² / 2 has one derivative along a direction that is piecewise linear: a line search is a few
Newton steps, each two sums over vectors of the points, and X is read twice an outer iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite, require_positive, two_classes
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.design import Design
from spartan_ng.apps.estimator import Separator

_SEARCH = 50
"""Upper bound of the Newton steps of a line search; a few are taken."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What `l2svm` finds.

    Parameters
    ----------
    coef : shape (n_features,)
    intercept : a number; 0 without one
    classes : the two classes, sorted
    objective : sum of squared hinge losses / 2 + reg * |coef|² / 2
    n_iter : number of directions that were searched
    converged : whether `tol` ended them
    history : the objective after each
    """

    coef: Any
    intercept: float
    classes: Any
    objective: float
    n_iter: int
    converged: bool
    history: Any


def l2svm(
    X: Any, y: Any, *, reg: float = 0.5, tol: float = 1e-4, max_iter: int = 1000, fit_intercept: bool = True
) -> Fit:
    """Fit a linear classifier with squared hinge loss, of two classes.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their classes, shape (n_points,), two different values
    reg : strength of the penalty, 1 / (2 * C) for scikit-learn's C
    tol : stop when a step promises to lower the objective by no more than this share of it
    max_iter : upper bound of the number of directions that are searched
    fit_intercept : whether the model has an intercept, which is penalized like the weights

    Raises
    ------
    ValueError : shapes do not fit, not two classes, or reg or max_iter is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("l2svm", reg=reg, max_iter=max_iter)
    classes, sign = two_classes("l2svm", X, y)
    design = Design(X, fit_intercept)
    w = np.zeros(design.shape[1], X.dtype).compute()
    margin = np.zeros(X.shape[0], X.dtype)
    gradient = design.turned_times(sign).compute()
    require_finite("l2svm", X, gradient)
    direction, objective = gradient, float(X.shape[0]) / 2
    loop = Iterations("L2SVM", max_iter, tol)
    for _ in loop:
        change = design.times(direction).persist()
        length = _search(sign, margin, change, reg * float(w @ direction), reg * float(direction @ direction))
        w = w + length * direction
        margin = (margin + np.asarray(length) * change).persist()
        loss = np.maximum(1 - sign * margin, 0)
        total, slopes = np.compute((loss * loss).sum(), design.turned_times(sign * loss))
        objective = float(total) / 2 + reg * float(w @ w) / 2
        previous, gradient = gradient, slopes - reg * w
        loop.saw(objective)
        loop.converged = length * float(direction @ previous) < tol * objective or not gradient.any()
        turned = float(previous @ previous)  # 0 where the points tell nothing of their classes
        direction = gradient + (float(gradient @ gradient) / turned if turned else 0.0) * direction
    found = *design.parted(w), classes, objective
    return Fit(*found, loop.n_iter, loop.converged, loop.history)


def _search(sign: Any, margin: Any, change: Any, slope: float, curvature: float) -> float:
    """How far to go along a direction: Newton's method for the derivative's zero.

    `slope` and `curvature` are the penalty's.
    """
    length = 0.0
    for _ in range(_SEARCH):
        loss = 1 - sign * (margin + np.asarray(length) * change)
        active = (loss > 0).astype(loss.dtype)
        first, second = np.compute((active * loss * sign * change).sum(), (active * change * change).sum())
        g = slope + length * curvature - float(first)
        h = curvature + float(second)
        if h <= 0:
            return length
        length -= g / h
        if g * g < 1e-20 * h:
            return length
    return length


@dataclass(eq=False, repr=False, kw_only=True)
class L2SVM(Separator):
    """The support vector machine as an estimator; see `l2svm`.

    Attributes after `fit`: `coef_`, `intercept_`, `classes_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(l2svm)

    reg: float = 0.5
    tol: float = 1e-4
    max_iter: int = 1000
    fit_intercept: bool = True
