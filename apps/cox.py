"""Cox's proportional hazards regression, by Newton's method on sums over risk sets.

Cox (1972), ties as Efron (1977). With the subjects in descending order of their times, every sum over a risk
set is a cumulative sum (Distributed cumulative aggregates, BTW '19, section 1). An iteration
forces the sums at the distinct times of events, and from them a gradient and a (features × features) matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from scipy import linalg

import spartan_ng as np
from spartan_ng.apps.kaplan_meier import starts_of, subjects


@dataclass(frozen=True, slots=True)
class Fit:
    """What `cox` finds.

    Parameters
    ----------
    weights : logarithms of the hazard ratios, shape (n_features,)
    standard_errors : of the weights
    log_likelihood : the partial likelihood's logarithm
    n_iter : number of Newton steps
    """

    weights: Any
    standard_errors: Any
    log_likelihood: float
    n_iter: int


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
    """
    t, e = subjects("cox", durations, observed)
    X = np.asarray(X).astype(np.float64)
    if X.ndim != 2 or X.shape[0] != t.shape[0]:
        raise ValueError(f"cox: X has shape {X.shape}, there are {t.shape[0]} durations")
    if float(e.sum()) == 0:
        raise ValueError("cox: no events")
    problem = _Partial(X, t, e)
    weights = np.zeros(X.shape[1]).compute()
    value, slope, curvature = problem.terms(weights)
    for n_iter in range(1, max_iter + 1):
        step = linalg.solve(curvature, slope, assume_a="pos")
        if step @ slope / 2 <= tol:
            return Fit(weights, linalg.inv(curvature).diagonal() ** 0.5, value, n_iter - 1)
        for _ in range(30):
            new = problem.terms(weights + step)
            if new[0] >= value:
                break
            step = step / 2
        weights = weights + step
        value, slope, curvature = new
    return Fit(weights, linalg.inv(curvature).diagonal() ** 0.5, value, max_iter)


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


class CoxRegression:
    """Cox's regression as an estimator; see `cox`.

    Attributes after `fit`: `coef_`, `standard_errors_`, `log_likelihood_`, `n_iter_`.
    """

    def __init__(self, *, max_iter: int = 50, tol: float = 1e-9) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, durations: Any, observed: Any = None) -> Self:
        """Fit the model to subjects."""
        found = cox(X, durations, observed, max_iter=self.max_iter, tol=self.tol)
        self.coef_ = found.weights
        self.standard_errors_ = found.standard_errors
        self.log_likelihood_ = found.log_likelihood
        self.n_iter_ = found.n_iter
        return self

    def predict(self, X: Any) -> Any:
        """Logarithms of the subjects' hazards, against one whose covariates are all 0."""
        return np.asarray(X) @ self.coef_


def plot(fit: Fit, path: str) -> None:
    """Draw the weights with two standard errors into a file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 0.4 * len(fit.weights) + 1.2), layout="constrained")
    axes = figure.subplots()
    rows = list(range(len(fit.weights)))
    axes.errorbar(fit.weights, rows, xerr=2 * fit.standard_errors, fmt="o", capsize=3)
    axes.axvline(0, linewidth=0.8)
    axes.set(xlabel="logarithm of the hazard ratio", ylabel="covariate", yticks=rows)
    figure.savefig(path)
