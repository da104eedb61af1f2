"""Fused bodies, compiled: what one pass over memory, and vector math, are worth.

Our side waits for its kernels before it is measured; the first runs of a new program are interpreted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from benchmarks.installed import installed
from benchmarks.texts import (
    COLUMNS,
    ELEMENTS,
    OPTIONS,
    ROWS,
    Text,
    arrays,
    black_scholes,
    gradient,
    normal_product,
    options,
    product_of_three,
    table,
    variance,
    vectors,
)
from spartan_ng.config import config


def masked_sum(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """The workload's text."""
    return X[X > 0.5].sum()


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


def jax_side(text: Text) -> Side:
    """The text compiled by jax."""

    def side(inputs: Inputs) -> Run:
        import jax

        jax.config.update("jax_enable_x64", True)
        theirs = [jax.numpy.asarray(x) for x in arrays(inputs)]
        jitted = jax.jit(lambda *args: text(jax.numpy, *args))
        return lambda: numpy.asarray(jitted(*theirs))

    return side


def _case(
    text: Text,
    title: str,
    inputs: Callable[[], Inputs],
    limit: float,
    nbytes: int,
    others: Mapping[str, Side] | None = None,
) -> Case:
    sides = {
        "numpy": numpy_side(text),
        OURS: our_side(text, "compile"),
        "interpreted": our_side(text, "interpret"),
        **(others or {}),
    }
    name = text.__name__.replace("_", "-")
    return Case(name, title, inputs, sides, bytes_read=nbytes, rounds=5, ratio_limit=limit)


KERNEL_CASES = (
    _case(product_of_three, "sum(X * Y * Z) over 5e7 doubles", vectors, 0.25, 24 * ELEMENTS),
    _case(masked_sum, "X[X > 0.5].sum() over 5e7 doubles", vectors, 0.25, 8 * ELEMENTS),
    _case(
        black_scholes,
        "the price of 2e7 options",
        options,
        0.25,
        24 * OPTIONS,
        installed({"jax": jax_side(black_scholes)}),
    ),
    _case(gradient, "X.T @ (sigmoid(X @ w) - y), 2e6 × 50", table, 0.4, 8 * ROWS * COLUMNS),
    _case(normal_product, "X.T @ (X @ w), 2e6 × 50", table, 0.4, 8 * ROWS * COLUMNS),
    _case(variance, "var(X, axis=0), 2e6 × 50", table, 0.4, 8 * ROWS * COLUMNS),
)
"""Bodies that the compiler takes whole."""
