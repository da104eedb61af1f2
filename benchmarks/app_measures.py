"""What apps are measured by: a few lines of NumPy that know nothing of who found the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
from scipy import special

Found = Mapping[str, Any]
Files = Mapping[str, Any]


def squares(p: Any, f: Files, penalty: float = 0.0) -> float:
    """The squared errors of a linear model (coef, intercept) of the values, and its penalty."""
    coef, intercept = p
    return float(
        ((f["points.npy"] @ coef + intercept - f["values.npy"]) ** 2).sum() + penalty * (coef**2).sum()
    )


def signs(f: Files) -> Any:
    """The classes as -1 and 1."""
    return 2 * f["classes.npy"] - 1


def log_loss(coef: Any, intercept: float, f: Files, reg: float) -> float:
    """Of the classes, with the penalty of the weights."""
    margins = signs(f) * (f["points.npy"] @ coef + intercept)
    return float(numpy.logaddexp(0, -margins).sum() + reg * (coef**2).sum() / 2)


def hinge(coef: Any, intercept: float, f: Files, C: float, power: int) -> float:
    """Of the classes, with the penalty of all weights."""
    lack = numpy.maximum(1 - signs(f) * (f["points.npy"] @ coef + intercept), 0)
    return float(C * (lack**power).sum() + ((coef**2).sum() + intercept**2) / 2)


def probit_loss(coef: Any, intercept: float, f: Files) -> float:
    """Minus the log-likelihood of the answers."""
    return -float(special.log_ndtr((2 * f["answers.npy"] - 1) * (f["points.npy"] @ coef + intercept)).sum())


def inertia(centers: Any, f: Files) -> float:
    """Squared distances of the points to their centers."""
    apart = ((f["points.npy"][:, None] - centers) ** 2).sum(axis=2)
    return float(apart.min(axis=1).sum())


def fuzzy_loss(centers: Any, f: Files, fuzziness: float = 1.5) -> float:
    """Bezdek's objective with the best degrees for these centers."""
    apart = ((f["points.npy"][:, None] - centers) ** 2).sum(axis=2)
    return float((apart ** (-1 / (fuzziness - 1))).sum(axis=1).__pow__(1 - fuzziness).sum())


def rating_loss(U: Any, V: Any, f: Files, reg: float) -> float:
    """Squared errors of what is rated, with each row's and column's penalty by its ratings, halved."""
    R = f["ratings.mtx"]
    rated = R != 0
    penalty = (rated.sum(1) @ (U**2).sum(1)) + (rated.sum(0) @ (V**2).sum(1))
    return float(((rated * (R - U @ V.T)) ** 2).sum() + reg * penalty) / 2


def divergence(W: Any, H: Any, f: Files, name: str, beta: int) -> float:
    """Half the squared errors of a product (beta 2), or its Kullback-Leibler divergence (beta 1)."""
    X, Y = f[name], W @ H
    return float(((X - Y) ** 2).sum() / 2 if beta == 2 else special.kl_div(X, Y).sum())


def energy(x: Any, f: Files) -> float:
    """What the solution of the symmetric system minimizes."""
    return float(x @ (f["matrix.mtx"] @ x) / 2 - f["right.npy"] @ x)


def explained(right: Any, X: Any) -> float:
    """The squares of X along orthonormal rows."""
    return float(((X @ right.T) ** 2).sum())


def centred(f: Files) -> Any:
    """The points around their mean."""
    return f["points.npy"] - f["points.npy"].mean(axis=0)


def area(times: Any, survival: Any) -> float:
    """Under a survival curve that begins at 1: the mean of the times that were survived."""
    return float(numpy.diff(times, prepend=0.0) @ numpy.concatenate([[1.0], survival[:-1]]))


def partial_likelihood(weights: Any, f: Files) -> float:
    """Of Cox's model, ties as Efron's method has them."""
    risks = numpy.exp(f["covariates.npy"] @ weights)
    times, seen, total = f["times.npy"], f["seen.npy"], 0.0
    for time in numpy.unique(times[seen]):
        tied = seen & (times == time)
        n = int(tied.sum())
        left = risks[times >= time].sum() - numpy.arange(n) / n * risks[tied].sum()
        total += float(numpy.log(risks[tied]).sum() - numpy.log(left).sum())
    return total


def topic_loss(joint: Any, f: Files) -> float:
    """The log loss of joint log-likelihoods of texts and topics."""
    logs = joint - special.logsumexp(joint, axis=1, keepdims=True)
    return -float(logs[numpy.arange(len(logs)), f["topics.npy"]].sum())


def reconstruction(found: Found, f: Files) -> float:
    """Half the squared error of a point, standardized, that the network gives back."""
    X = (f["points.npy"] - found["mean"]) / found["scale"]
    out = X
    for i in range(1, 5):
        out = out @ found[f"w{i}"] + found[f"b{i}"]
        out = numpy.tanh(out) if i < 4 else out
    return float(((out - X) ** 2).sum()) / (2 * len(X))


def linear(found: Found) -> tuple[Any, float]:
    """The weights of two classes, and the intercept."""
    return numpy.ravel(found["coef"]), float(numpy.ravel(found["intercept"])[0])
