"""Multinomial logistic regression by trust-region Newton steps.

Fusion plans (PVLDB '18), Table 2 and its expression (2), with the paper's hyper-parameters: the inner loop's
Q = P * (X @ V), X.T @ (Q - P * Q.sum(axis=1)) is one pass over X. The last class is the one the others are
compared with, so that the weights are unique without a penalty, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import spartan_ng as np
from spartan_ng.apps.checks import distinct, points, require_positive
from spartan_ng.apps.design import Design
from spartan_ng.apps.estimator import Classifier, softmax
from spartan_ng.apps.newton import minimize


@dataclass(frozen=True, slots=True)
class Fit:
    """What `mlogreg` finds.

    Parameters
    ----------
    coef : log odds of each class against the last, shape (n_classes - 1, n_features)
    intercept : shape (n_classes - 1,); 0 without one
    classes : the sorted distinct targets
    objective : sum of log losses + reg * |coef|² / 2
    n_iter : number of Newton steps
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


def mlogreg(
    X: Any,
    y: Any,
    *,
    reg: float = 1.0,
    tol: float = 1e-6,
    max_iter: int = 100,
    max_inner: int = 10,
    fit_intercept: bool = True,
) -> Fit:
    """Fit a linear model of any number of classes' log odds, by Newton's steps.

    Parameters
    ----------
    X : points, shape (n_points, n_features)
    y : their classes, shape (n_points,), of any dtype that sorts
    reg : strength of the penalty, 1 / C for scikit-learn's C; the intercept is not penalized
    tol : stop when the gradient's norm is at most this share of the first one's
    max_iter : upper bound of the number of Newton steps
    max_inner : upper bound of the passes over X for each of them
    fit_intercept : whether the model has an intercept

    Raises
    ------
    ValueError : shapes do not fit, one class only, or an option that is not positive

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    X = points(X)
    require_positive("mlogreg", max_iter=max_iter, max_inner=max_inner)
    if reg < 0:
        raise ValueError(f"mlogreg: reg is {reg}, it must not be negative")
    y, classes = distinct("mlogreg", X, y, 2)
    design = Design(X, fit_intercept)
    penalty = np.full((design.shape[1], 1), reg, X.dtype).compute()
    penalty[X.shape[1] :] = 0
    member = (y[:, None] == classes[:-1]).astype(X.dtype).persist()
    start = np.zeros((design.shape[1], len(classes) - 1), X.dtype).compute()
    loss = _LogLoss(design, member, penalty)
    found = minimize("mlogreg", loss, start, max_iter=max_iter, max_inner=max_inner, tol=tol)
    (weights, intercept), loop = design.parted(found.point), found.loop
    return Fit(weights.T, intercept, classes, found.value, loop.n_iter, loop.converged, loop.history)


@dataclass(frozen=True, slots=True)
class _LogLoss:
    """The objective; a point is (n_features, n_classes - 1), a state the predicted probabilities."""

    design: Design
    member: Any
    penalty: Any

    def at(self, point: Any) -> tuple[float, Any, Any]:
        """Value, gradient and probabilities."""
        z = self.design.times(point)
        top = np.maximum(z.max(axis=1), 0)
        e = np.exp(z - top[:, None])
        total = e.sum(axis=1) + np.exp(-top)
        P = e / total[:, None]
        loss = (np.log(total) + top - (self.member * z).sum(axis=1)).sum()
        slopes = self.design.turned_times(P - self.member)
        np.persist(loss, slopes, P)
        value = float(loss) + float((self.penalty * point * point).sum()) / 2
        return value, slopes.compute() + self.penalty * point, P

    def curved(self, state: Any, direction: Any) -> Any:
        """The inner loop's expression (2)."""
        change = self.design.turned_times(_centred(state, state * self.design.times(direction)))
        return change.compute() + self.penalty * direction


@dataclass(eq=False, repr=False, kw_only=True)
class MultinomialLogisticRegression(Classifier):
    """Multinomial logistic regression as an estimator; see `mlogreg`.

    Attributes after `fit`: `coef_`, `intercept_`, `classes_`, `objective_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(mlogreg)
    _sparse: ClassVar[bool] = True

    reg: float = 1.0
    tol: float = 1e-6
    max_iter: int = 100
    max_inner: int = 10
    fit_intercept: bool = True

    def decision_function(self, X: Any) -> Any:
        """Log odds: of the second of two classes, shape (n_points,), else of each against the last, whose own
        are 0, shape (n_points, n_classes).
        """
        z = self._seen(X) @ self.coef_.T + self.intercept_
        return -z[:, 0] if len(self.classes_) == 2 else np.concatenate([z, np.zeros((z.shape[0], 1))], axis=1)

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, shape (n_points, n_classes)."""
        z = self.decision_function(X)
        return softmax(np.stack([0 * z, z], axis=1) if z.ndim == 1 else z)


def _centred(P: Any, Q: Any) -> Any:
    """Q less P times its row sums. No large value has a name where it is evaluated: it would be kept."""
    return Q - P * Q.sum(axis=1)[:, None]
