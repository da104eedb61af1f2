"""A linear support vector machine with hinge loss, by accelerated projected gradients on its dual.

Spartan (ATC '15), section 5; Beck and Teboulle (2009), restarted as O'Donoghue and Candès (2015). The dual
variables, one a point, lie in a box; a step reads X twice (X.T @ (y * a), then X @ w) and leaves the rest
in place. The duality gap says how good the weights are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import spartan_ng as np
from spartan_ng.apps.checks import points, require_finite, require_positive, two_classes
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.design import Design
from spartan_ng.apps.estimator import Separator
from spartan_ng.apps.svd import lanczos

_SAFETY = 1.02
"""What the dual's curvature, found to 1%, is multiplied with: a step may be too short, not too long."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What `svm` finds.

    Parameters
    ----------
    coef : shape (n_features,)
    intercept : a number; 0 without one
    classes : the two classes, sorted
    objective : C * sum of hinge losses + |coef and intercept|² / 2
    gap : the objective is at most so much above the best
    n_iter : number of iterations that were run
    converged : whether `tol` ended them
    history : the gap after each
    """

    coef: Any
    intercept: float
    classes: Any
    objective: float
    gap: float
    n_iter: int
    converged: bool
    history: Any


def svm(
    X: Any, y: Any, *, C: float = 1.0, tol: float = 1e-3, max_iter: int = 2000, fit_intercept: bool = True
) -> Fit:
    """Fit a linear classifier with hinge loss, of two classes.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their classes, shape (n_points,), two different values
    C : inverse strength of the penalty
    tol : stop when the duality gap is at most this share of the objective
    max_iter : upper bound of the number of iterations
    fit_intercept : whether the model has an intercept, which is penalized like the weights

    Raises
    ------
    ValueError : shapes do not fit, not two classes, or C or max_iter is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("svm", C=C, max_iter=max_iter)
    classes, sign = two_classes("svm", X, y)
    design = Design(X, fit_intercept)
    _, values, _ = lanczos(design, 1, 1e-2, 100, 0)
    require_finite("svm", X, values)
    rate = np.asarray(1 / (_SAFETY * float(values[0])))
    dual = before = np.zeros(X.shape[0], X.dtype)
    momentum, push = 1.0, 0.0
    coef, objective, bound = np.zeros(design.shape[1]).compute(), C * X.shape[0], 0.0
    loop = Iterations("SVM", max_iter, tol)
    for _ in loop:
        ahead = np.clip(dual + np.asarray(push) * (dual - before), 0, C)
        weights = design.turned_times(sign * ahead)
        slope = 1 - sign * design.times(weights)
        moved = np.clip(ahead + rate * slope, 0, C)
        against = ((ahead - moved) * (moved - dual)).sum()
        hinge, mass = np.maximum(slope, 0).sum(), ahead.sum()
        np.persist(moved, weights, hinge, mass, against)
        w = weights.compute()
        norm = float(w @ w) / 2
        if C * float(hinge) + norm < objective:
            coef, objective = w, C * float(hinge) + norm
        bound = max(bound, float(mass) - norm)
        loop.saw(objective - bound)
        loop.converged = objective - bound <= tol * objective
        last, momentum = momentum, (1 + (1 + 4 * momentum * momentum) ** 0.5) / 2
        if float(against) > 0:
            last = momentum = 1.0
        push = (last - 1) / momentum
        before, dual = dual, moved
    found = *design.parted(coef), classes, objective, objective - bound
    return Fit(*found, loop.n_iter, loop.converged, loop.history)


@dataclass(eq=False, repr=False, kw_only=True)
class SVM(Separator):
    """The support vector machine as an estimator; see `svm`.

    Attributes after `fit`: `coef_`, `intercept_`, `classes_`, `objective_`, `gap_`, `n_iter_`,
    `converged_`, `history_`, `n_features_in_`.
    """

    _find = staticmethod(svm)
    _history: ClassVar[str] = "duality gap"

    C: float = 1.0
    tol: float = 1e-3
    max_iter: int = 2000
    fit_intercept: bool = True
