"""Fused bodies, compiled: what one pass over memory, and vector math, are worth.

Our side waits for its kernels before it is measured; the first runs of a new program are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from spartan_ng.config import config

ELEMENTS = 50_000_000
OPTIONS = 20_000_000
ROWS, COLUMNS = 2_000_000, 50

Text = Callable[..., Any]
"""A workload's text: `text(np, *inputs)`."""


def vectors() -> Inputs:
    """Three vectors of doubles."""
    random = numpy.random.default_rng(0)
    return {name: random.random(ELEMENTS) for name in "XYZ"}


def options() -> Inputs:
    """Prices, strikes and years of options."""
    random = numpy.random.default_rng(1)
    bounds = {"S": (10, 50), "K": (10, 50), "T": (1, 2)}
    return {name: random.uniform(*b, OPTIONS) for name, b in bounds.items()}


def table() -> Inputs:
    """A tall matrix, a weight for each column, a label for each row."""
    random = numpy.random.default_rng(2)
    X = random.standard_normal((ROWS, COLUMNS))
    return {"X": X, "w": random.standard_normal(COLUMNS) * 0.1, "y": (random.random(ROWS) > 0.5) * 1.0}


def product_of_three(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """The workload's text."""
    return np.sum(X * Y * Z)


def masked_sum(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """The workload's text."""
    return X[X > 0.5].sum()


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


def normal_product(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text."""
    return X.T @ (X @ w)


def variance(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text."""
    return np.var(X, axis=0)


def arrays(inputs: Inputs) -> list[Any]:
    """The inputs that are arrays, in order."""
    return [x for x in inputs.values() if isinstance(x, numpy.ndarray)]


def numpy_side(text: Text) -> Side:
    """The text on the inputs themselves."""
    return lambda inputs: lambda: text(numpy, *arrays(inputs))


def our_side(text: Text, kernels: str) -> Side:
    """The same text with `import spartan_ng as np`."""

    def side(inputs: Inputs) -> Run:
        ours = [spartan_ng.asarray(x) for x in arrays(inputs)]

        def run() -> Any:
            with config.override(kernels=kernels):
                return numpy.asarray(text(spartan_ng, *ours))

        return run

    return side


def _case(text: Text, title: str, inputs: Callable[[], Inputs], limit: float, nbytes: int) -> Case:
    sides = {
        "numpy": numpy_side(text),
        OURS: our_side(text, "compile"),
        "interpreted": our_side(text, "interpret"),
    }
    name = text.__name__.replace("_", "-")
    return Case(name, title, inputs, sides, bytes_read=nbytes, rounds=5, ratio_limit=limit)


KERNEL_CASES = (
    _case(product_of_three, "sum(X * Y * Z) over 5e7 doubles", vectors, 0.25, 24 * ELEMENTS),
    _case(masked_sum, "X[X > 0.5].sum() over 5e7 doubles", vectors, 0.25, 8 * ELEMENTS),
    _case(black_scholes, "the price of 2e7 options", options, 0.25, 24 * OPTIONS),
    _case(gradient, "X.T @ (sigmoid(X @ w) - y), 2e6 × 50", table, 0.4, 8 * ROWS * COLUMNS),
    _case(normal_product, "X.T @ (X @ w), 2e6 × 50", table, 0.4, 8 * ROWS * COLUMNS),
    _case(variance, "var(X, axis=0), 2e6 × 50", table, 0.4, 16 * ROWS * COLUMNS),
)
"""Bodies that the compiler takes whole."""
