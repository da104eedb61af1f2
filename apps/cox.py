"""Cox's proportional hazards regression, by Newton's method on sums over risk sets.

Cox (1972), ties as Efron (1977). With the subjects in descending order of their times, every sum over a risk
set is a cumulative sum (Distributed cumulative aggregates, BTW '19, section 1). An iteration
forces the sums at the distinct times of events, and from them a gradient and a (features × features) matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps import pictures
from spartan_ng.apps.checks import points, require_finite, require_positive
from spartan_ng.apps.concordance import concordance
from spartan_ng.apps.convergence import Iterations
from spartan_ng.apps.estimator import Estimator
from spartan_ng.apps.kaplan_meier import starts_of, subjects
from spartan_ng.apps.pictures import Panel


@dataclass(frozen=True, slots=True)
class Fit:
    """What `cox` finds.

    Parameters
    ----------
    coef : logarithms of the hazard ratios, shape (n_features,)
    standard_errors : of them
    log_likelihood : the partial likelihood's logarithm
    n_iter : number of Newton steps
    converged : whether `tol` ended them
    history : the log-likelihood after each
    """

    coef: Any
    standard_errors: Any
    log_likelihood: float
    n_iter: int
    converged: bool
    history: Any


def cox(X: Any, durations: Any, observed: Any = None, *, max_iter: int = 50, tol: float = 1e-9) -> Fit:
    """Fit hazards h(t | x) = h0(t) * exp(x @ weights).

    Parameters
    ----------
    X : covariates, shape (n, n_features)
    durations : time until the event, or until the subject was lost from sight, shape (n,)
    observed : whether the event was seen, shape (n,); default is always
    max_iter : upper bound of the number of Newton steps
    tol : stop when a step promises to raise the log-likelihood by no more

    Raises
    ------
    ValueError : shapes do not fit, or no events

    Warns
    -----
    ConvergenceWarning : `max_iter` ended it, and tol is not 0
    """
    t, e = subjects("cox", durations, observed)
    X = points(X).astype(np.float64)
    require_positive("cox", max_iter=max_iter)
    if X.shape[0] != t.shape[0]:
        raise ValueError(f"cox: X has shape {X.shape}, there are {t.shape[0]} durations")
    if float(e.sum()) == 0:
        raise ValueError("cox: no events")
    problem = _Partial(X, t, e)
    weights = np.zeros(X.shape[1]).compute()
    value, slope, curvature = problem.terms(weights)
    require_finite("cox", X, value, slope, curvature)
    step = _solved(curvature, slope)
    loop = Iterations("Cox's regression", max_iter, tol)
    loop.converged = step @ slope / 2 <= tol
    for _ in loop:
        for _halving in range(30):
            new = problem.terms(weights + step)
            if new[0] >= value:
                break
            step = step / 2
        weights = weights + step
        value, slope, curvature = new
        step = _solved(curvature, slope)
        loop.saw(value)
        loop.converged = step @ slope / 2 <= tol
    errors = linalg.inv(curvature).diagonal() ** 0.5
    return Fit(weights, errors, value, loop.n_iter, loop.converged, loop.history)


def _solved(curvature: Any, slope: Any) -> Any:
    """Newton's step; ValueError where the log-likelihood does not bend along some combination."""
    try:
        return linalg.solve(curvature, slope, assume_a="pos")
    except linalg.LinAlgError as error:
        raise ValueError(
            "cox: no coefficients are the best: the covariates are constant or combinations of each other, "
            "or there are too few events"
        ) from error


class _Partial:
    """The partial log-likelihood; subjects in descending order of time, in groups of equal times."""

    def __init__(self, X: Any, t: Any, e: Any) -> None:
        order = np.argsort(-t, kind="stable")
        self.X = (X - X.mean(axis=0))[order].persist()
        self.e = e[order].persist()
        self.starts = starts_of(t[order])
        n = t.shape[0]
        self.last = np.concatenate([np.asarray(self.starts[1:]), np.full(1, n)]).compute() - 1
        features = X.shape[1]
        self.pairs = [(i, j) for i in range(features) for j in range(i, features)]

    def terms(self, weights: Any) -> tuple[float, Any, Any]:
        """Value, gradient, and negative matrix of second derivatives."""
        X, e = self.X, self.e
        risk = X @ weights
        r = np.exp(risk)[:, None]
        squares = np.stack([X[:, i] * X[:, j] for i, j in self.pairs], axis=1)
        moments = np.concatenate([r, r * X, r * squares], axis=1)
        at_risk = np.cumsum(moments, axis=0)[np.asarray(self.last)]
        tied = np.segment_sum(moments * e[:, None], self.starts)
        events = np.segment_sum(e, self.starts)
        linear = (e * risk).sum()
        first = e @ X
        return self._efron(*np.compute(at_risk, tied, events, linear, first))

    def _efron(self, at_risk: Any, tied: Any, events: Any, value: Any, slope: Any) -> tuple[float, Any, Any]:
        """The l-th of d tied events sees the risk set less l/d of the tied; one row for each l."""
        k = slope.shape[0]
        curvature = np.zeros((k, k)).compute()
        value, slope = float(value), slope.copy()
        for step in range(int(events.max())):
            here = events > step
            share = (step / events[here])[:, None]
            sums = at_risk[here] - share * tied[here]
            means = sums[:, 1 : k + 1] / sums[:, :1]
            value -= float(np.log(sums[:, 0]).sum())
            slope = slope - means.sum(axis=0)
            seconds = (sums[:, k + 1 :] / sums[:, :1]).sum(axis=0)
            for (i, j), second in zip(self.pairs, seconds, strict=True):
                term = second - means[:, i] @ means[:, j]
                curvature[i, j] += term
                curvature[j, i] = curvature[i, j]
        return value, slope, curvature


@dataclass(eq=False, repr=False, kw_only=True)
class CoxRegression(Estimator):
    """Cox's regression as an estimator; see `cox`.

    Attributes after `fit`: `coef_`, `standard_errors_`, `log_likelihood_`, `n_iter_`, `converged_`,
    `history_`, `n_features_in_`.
    """

    _find = staticmethod(cox)
    _learned: ClassVar[str] = "coef_"
    _measure: ClassVar[str] = "concordance"
    _history: ClassVar[str] = "partial log-likelihood"

    max_iter: int = 50
    tol: float = 1e-9

    def fit(self, X: Any, durations: Any, observed: Any = None) -> Self:
        """Fit the model to subjects: covariates, times, and whether events were seen."""
        return self._fit(X, durations, observed)

    def predict(self, X: Any) -> Any:
        """Logarithms of the subjects' hazards, against one whose covariates are all 0."""
        return self._seen(X) @ self.coef_

    def score(self, X: Any, durations: Any, observed: Any = None) -> float:
        """Harrell's concordance: how often of two subjects the one of greater hazard has its event first."""
        t, e = subjects(type(self).__name__, durations, observed)
        return concordance(*np.compute(t, e, self.predict(X)))

    def _panels(self, *data: Any) -> list[Panel]:
        del data
        return [pictures.intervals(self.coef_, self.standard_errors_, "logarithm of the hazard ratio")]
