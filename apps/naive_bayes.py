"""Naive Bayes for counts and for measurements: moments from one product with the classes' indicators.

Spartan (ATC '15), section 5. Features are independent within a class: multinomial for counts (words; X may be
sparse), normal for measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import Any, ClassVar, Literal, get_args

import spartan_ng as np
from spartan_ng.apps.checks import distinct, points, require_finite, require_positive
from spartan_ng.apps.estimator import Classifier, softmax

Kind = Literal["multinomial", "gaussian"]


@dataclass(frozen=True, slots=True)
class Fit:
    """What `naive_bayes` finds: log p(x, class) is x² @ square + x @ linear + constant, and what x alone
    adds.

    Parameters
    ----------
    classes : the sorted distinct classes
    priors : their shares of the points
    square, linear : shape (n_features, n_classes); `square` is all 0 for counts
    constant : shape (n_classes,)
    """

    classes: Any
    priors: Any
    square: Any
    linear: Any
    constant: Any


def naive_bayes(
    X: Any, y: Any, *, kind: Kind = "multinomial", alpha: float = 1.0, smoothing: float = 1e-9
) -> Fit:
    """Fit a classifier that takes features as independent.

    Parameters
    ----------
    X : points, shape (n_points, n_features); counts, which may be sparse, or measurements
    y : their classes, shape (n_points,), of any dtype that sorts
    kind : "multinomial" for counts, or "gaussian"
    alpha : what is added to every count
    smoothing : share of the largest variance that is added to all, for "gaussian"

    Raises
    ------
    ValueError : shapes do not fit, an unknown kind, negative counts, or alpha or smoothing not positive
    """
    X = points(X)
    if kind not in get_args(Kind):
        raise ValueError(f"naive_bayes: kind is {kind!r}, not one of {get_args(Kind)}")
    require_positive("naive_bayes", alpha=alpha, smoothing=smoothing)
    y, classes = distinct("naive_bayes", X, y)
    member = (y[:, None] == classes).astype(X.dtype)
    if kind == "multinomial":
        return _multinomial(X, member, classes, alpha)
    return _gaussian(X, member, classes, smoothing)


def _multinomial(X: Any, member: Any, classes: Any, alpha: float) -> Fit:
    counts, sizes, least = np.compute(X.T @ member, member.sum(axis=0), X.min())
    if least < 0:
        raise ValueError(f"naive_bayes: Negative values in data: a count is {least}")
    require_finite("naive_bayes", X, counts)
    counts = counts + alpha
    priors = sizes / sizes.sum()
    linear, constant = np.compute(np.log(counts / counts.sum(axis=0)), np.log(priors))
    return Fit(classes, priors, 0 * linear, linear, constant)


def _gaussian(X: Any, member: Any, classes: Any, smoothing: float) -> Fit:
    """Moments about the mean of all points, so that large means lose no digits."""
    center, spread = np.compute(X.mean(axis=0), X.var(axis=0))
    require_finite("naive_bayes", X, spread)
    moved = X - center
    sums, squares, sizes = np.compute(moved.T @ member, (moved * moved).T @ member, member.sum(axis=0))
    means = sums / sizes
    variances = squares / sizes - means * means + smoothing * spread.max()
    means = means + center[:, None]
    priors = sizes / sizes.sum()
    logarithms = np.log(priors).compute() - (np.log(variances).compute() + log(2 * pi)).sum(axis=0) / 2
    constant = logarithms - (means * means / variances).sum(axis=0) / 2
    return Fit(classes, priors, -0.5 / variances, means / variances, constant)


@dataclass(eq=False, repr=False, kw_only=True)
class NaiveBayes(Classifier):
    """Naive Bayes as an estimator; see `naive_bayes`.

    Attributes after `fit`: `classes_`, `priors_`, `square_`, `linear_`, `constant_`, `n_features_in_`.
    """

    _find = staticmethod(naive_bayes)
    _learned = "classes_"
    _sparse: ClassVar[bool] = True

    kind: Kind = "multinomial"
    alpha: float = 1.0
    smoothing: float = 1e-9

    @property
    def _positive(self) -> bool:  # type: ignore[override]
        return self.kind == "multinomial"

    def predict_joint_log_proba(self, X: Any) -> Any:
        """Joint log likelihoods of points and classes, shape (n_points, n_classes)."""
        X = self._seen(X)
        scores = X @ self.linear_ + self.constant_
        return scores if self.kind == "multinomial" else scores + (X * X) @ self.square_

    def decision_function(self, X: Any) -> Any:
        """Log odds of the second of two classes, shape (n_points,), else the joint log likelihoods."""
        scores = self.predict_joint_log_proba(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes, shape (n_points, n_classes)."""
        return softmax(self.predict_joint_log_proba(X))

    def __sklearn_tags__(self) -> Any:
        """Points that are no counts are poorly told apart by counts."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._positive
        return tags
