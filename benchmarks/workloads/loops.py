"""Fused bodies against loops written by hand for all cores: what is left to gain.

The loops are as good as an afternoon makes them: in parallel, vectorized, one pass over memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numba import njit, prange

from benchmarks.case import OURS, Case, Inputs, Side
from benchmarks.texts import (
    ELEMENTS,
    SOFTMAX_COLUMNS,
    SOFTMAX_ROWS,
    SQUARE,
    WIDE_COLUMNS,
    WIDE_ROWS,
    add_transposed,
    arrays,
    masked_sum,
    normal_product,
    normals,
    softmax,
)
from benchmarks.workloads.kernels import numpy_side, our_side

_BLOCK = 128


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop for all cores, with sums in any order."""
    loop: Callable[..., Any] = njit(parallel=True, fastmath={"reassoc", "contract", "arcp"})(function)
    return loop


@compiled
def masked_sum_loop(X: Any) -> Any:
    """The sum of what is greater than 0."""
    total = 0.0
    for i in prange(len(X)):
        total += X[i] if X[i] > 0 else 0.0
    return total


@compiled
def normal_product_loop(X: Any, v: Any) -> Any:
    """X.T @ (X @ v), one pass over the rows."""
    parts = 8
    out = numpy.zeros((parts, X.shape[1]))
    for part in prange(parts):
        for i in range(part * len(X) // parts, (part + 1) * len(X) // parts):
            dot = 0.0
            for j in range(X.shape[1]):
                dot += X[i, j] * v[j]
            for j in range(X.shape[1]):
                out[part, j] += X[i, j] * dot
    return out.sum(axis=0)


@compiled
def softmax_loop(X: Any) -> Any:
    """The softmax of each row, then the mean of its largest element."""
    total = 0.0
    for i in prange(len(X)):
        top = X[i, 0]
        for j in range(X.shape[1]):
            top = max(top, X[i, j])
        weights = numpy.exp(X[i] - top)
        total += weights.max() / weights.sum()
    return total / len(X)


@compiled
def add_transposed_loop(A: Any) -> Any:
    """A + A.T in square blocks."""
    n = len(A)
    out = numpy.empty_like(A)
    for b in prange((n + _BLOCK - 1) // _BLOCK):
        for left in range(0, n, _BLOCK):
            for i in range(b * _BLOCK, min(n, (b + 1) * _BLOCK)):
                for j in range(left, min(n, left + _BLOCK)):
                    out[i, j] = A[i, j] + A[j, i]
    return out


def loop_side(loop: Callable[..., Any]) -> Side:
    """The loop on the inputs themselves."""
    return lambda inputs: lambda: loop(*arrays(inputs))


def _case(
    text: Callable[..., Any],
    loop: Callable[..., Any],
    title: str,
    inputs: Callable[[], Inputs],
    limit: float,
    base: str = "loop",
) -> Case:
    """A workload whose `limit` is a ratio to the side `base`."""
    others = {"loop": loop_side(loop), "numpy": numpy_side(text)}
    sides = {base: others.pop(base), OURS: our_side(text, "compile"), **others}
    name = f"{text.__name__.replace('_', '-')}-loop"
    return Case(name, title, inputs, sides, rounds=5, ratio_limit=limit)


LOOP_CASES = (
    _case(masked_sum, masked_sum_loop, "X[X > 0].sum() over 5e7 doubles", normals(ELEMENTS), 1.3),
    _case(
        normal_product,
        normal_product_loop,
        "X.T @ (X @ v), 2e4 × 5000",
        normals(WIDE_ROWS, WIDE_COLUMNS),
        1.25,
    ),
    _case(softmax, softmax_loop, "softmax of rows, 2e5 × 100", normals(SOFTMAX_ROWS, SOFTMAX_COLUMNS), 1.3),
    _case(add_transposed, add_transposed_loop, "A + A.T, 8000²", normals(SQUARE, SQUARE), 0.4, "numpy"),
)
"""Single passes, against the same pass written by hand."""
