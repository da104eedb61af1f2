"""Programs that several benchmarks run, and their inputs: array code for any library that speaks NumPy.

Inputs are NumPy's, or made by the library that `np` names, with the same numbers.

Importing this module loads NumPy alone, so that a fresh process can time what a library loads by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.case import Inputs

ELEMENTS = 50_000_000
OPTIONS = 20_000_000
ROWS, COLUMNS = 2_000_000, 50
WIDE_ROWS, WIDE_COLUMNS = 20_000, 5_000
SOFTMAX_ROWS, SOFTMAX_COLUMNS = 200_000, 100
SQUARE = 8_000
POINTS, CLUSTERS, ROUNDS = 1_000_000, 128, 3

Text = Callable[..., Any]
"""A workload's text: `text(np, *inputs)`."""


def vectors(np: Any = numpy) -> Inputs:
    """Three vectors of doubles."""
    random = np.random.default_rng(0)
    return {name: random.random(ELEMENTS) for name in "XYZ"}


def options(np: Any = numpy) -> Inputs:
    """Prices, strikes and years of options."""
    random = np.random.default_rng(1)
    bounds = {"S": (10, 50), "K": (10, 50), "T": (1, 2)}
    return {name: random.uniform(*b, OPTIONS) for name, b in bounds.items()}


def table(np: Any = numpy) -> Inputs:
    """A tall matrix, a weight for each column, a label for each row."""
    random = np.random.default_rng(2)
    X = random.standard_normal((ROWS, COLUMNS))
    return {"X": X, "w": random.standard_normal(COLUMNS) * 0.1, "y": (random.random(ROWS) > 0.5) * 1.0}


def product_of_three(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """The workload's text."""
    return np.sum(X * Y * Z)


def black_scholes(np: Any, S: Any, K: Any, T: Any) -> Any:
    """The workload's text: the mean price of calls, the normal distribution by its logistic neighbour."""
    rate, volatility = 0.1, 0.2
    spread = volatility * np.sqrt(T)
    d1 = (np.log(S / K) + (rate + volatility**2 / 2) * T) / spread
    d2 = d1 - spread
    p1 = 1 / (1 + np.exp(-1.702 * d1))
    p2 = 1 / (1 + np.exp(-1.702 * d2))
    return np.mean(S * p1 - K * np.exp(-rate * T) * p2)


def gradient(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text: the gradient of logistic regression."""
    return X.T @ (1 / (1 + np.exp(-(X @ w))) - y)


def normal_product(np: Any, X: Any, v: Any, *others: Any) -> Any:
    """The workload's text."""
    return X.T @ (X @ v)


def masked_sum(np: Any, X: Any) -> Any:
    """The workload's text."""
    return X[X > 0].sum()


def variance(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text."""
    return np.var(X, axis=0)


def arrays(inputs: Inputs) -> list[Any]:
    """The inputs that are arrays, in order."""
    return [x for x in inputs.values() if isinstance(x, numpy.ndarray)]


def softmax(np: Any, X: Any) -> Any:
    """The workload's text."""
    weights = np.exp(X - X.max(axis=1, keepdims=True))
    return (weights / weights.sum(axis=1, keepdims=True)).max(axis=1).mean()


def add_transposed(np: Any, A: Any) -> Any:
    """The workload's text."""
    return A + A.T


def normals(*shape: int) -> Callable[..., Inputs]:
    """One array of normal numbers, and a vector for its columns where it has some."""

    def inputs(np: Any = numpy) -> Inputs:
        random = np.random.default_rng(0)
        X = random.standard_normal(shape)
        return (
            {"X": X}
            if len(shape) == 1 or shape[1] != WIDE_COLUMNS
            else {"X": X, "v": random.random(shape[1])}
        )

    return inputs


def two_sums(np: Any, X: Any, Y: Any, Z: Any) -> tuple[Any, ...]:
    """The workload's text."""
    return np.sum(X * Y), np.sum(X * Z)


def moments(np: Any, X: Any) -> tuple[Any, ...]:
    """The workload's text."""
    return X.mean(axis=0), X.var(axis=0), X.std(axis=0)


def lloyd(np: Any, X: Any, centers: Any) -> Any:
    """The workload's text: iterations of k-means in plain array code."""
    for _ in range(ROUNDS):
        labels = ((centers * centers).sum(axis=1) - 2 * (X @ centers.T)).argmin(axis=1)
        sums, counts = np.zeros((CLUSTERS, X.shape[1])), np.zeros(CLUSTERS)
        np.add.at(sums, labels, X)
        np.add.at(counts, labels, 1)
        centers = sums / np.maximum(counts, 1)[:, None]
    return centers


def points(np: Any = numpy) -> Inputs:
    """Points without clusters, so that labels go on changing, and the first ones as centers."""
    X = np.random.default_rng(0).standard_normal((POINTS, COLUMNS))
    return {"X": X, "start": X[:CLUSTERS].copy()}
