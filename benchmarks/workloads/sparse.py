"""Sparse operands: bodies that touch non-zeros alone, against hand-written parallel loops.

No side makes the dense product U @ V.T: it would be 3.2 GB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
from numba import njit, prange
from scipy import sparse

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from spartan_ng.config import config

SIDE, RANK = 20_000, 100


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loop for all cores, with sums in any order."""
    loop: Callable[..., Any] = njit(parallel=True, fastmath=True)(function)
    return loop


@compiled
def log_likelihood_kernel(indptr: Any, indices: Any, data: Any, U: Any, V: Any) -> Any:
    """The sum of x * log(u @ v + 1e-15) over the non-zeros, rows in parallel."""
    total = 0.0
    for i in prange(len(indptr) - 1):
        row = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            dot = 0.0
            for k in range(U.shape[1]):
                dot += U[i, k] * V[j, k]
            row += data[p] * numpy.log(dot + 1e-15)
        total += row
    return total


@compiled
def update_kernel(indptr: Any, indices: Any, data: Any, U: Any, V: Any) -> Any:
    """((X != 0) * (U @ V.T)) @ V, rows in parallel."""
    out = numpy.zeros_like(U)
    for i in prange(len(indptr) - 1):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            dot = 0.0
            for k in range(U.shape[1]):
                dot += U[i, k] * V[j, k]
            for k in range(U.shape[1]):
                out[i, k] += dot * V[j, k]
    return out


@compiled
def squares_kernel(indptr: Any, indices: Any, data: Any, U: Any, V: Any) -> Any:
    """The sum of squares."""
    total = 0.0
    for p in prange(len(data)):
        total += data[p] * data[p]
    return total


def log_likelihood(np: Any, X: Any, U: Any, V: Any) -> Any:
    """The workload's text."""
    return np.sum(X * np.log(U @ V.T + 1e-15))


def update(np: Any, X: Any, U: Any, V: Any) -> Any:
    """The workload's text: the step of ALS-CG."""
    return ((X != 0) * (U @ V.T)) @ V


def squares(np: Any, X: Any, U: Any, V: Any) -> Any:
    """The workload's text."""
    return np.sum(X**2)


def factors(density: float) -> Callable[[], Inputs]:
    """A sparse matrix, drawn row by row, and two dense factors."""

    def inputs() -> Inputs:
        random = numpy.random.default_rng(0)
        count = int(SIDE * density)
        indices = numpy.empty((SIDE, count), numpy.int32)
        for row in indices:
            row[:] = numpy.sort(random.choice(SIDE, count, replace=False))
        indptr = numpy.arange(0, SIDE * count + 1, count, dtype=numpy.int32)
        X = sparse.csr_array((random.random(SIDE * count), indices.reshape(-1), indptr), (SIDE, SIDE))
        return {"X": X, "U": random.random((SIDE, RANK)), "V": random.random((SIDE, RANK))}

    return inputs


def kernel_side(kernel: Callable[..., Any]) -> Side:
    """The hand-written loop."""

    def side(inputs: Inputs) -> Run:
        X, U, V = (inputs[name] for name in "XUV")
        return lambda: kernel(X.indptr, X.indices, X.data, U, V)

    return side


def our_side(text: Callable[..., Any], kernels: str) -> Side:
    """The array text; `kernels` as in the configuration."""

    def side(inputs: Inputs) -> Run:
        ours = [spartan_ng.asarray(inputs[name]) for name in "XUV"]

        def run() -> Any:
            with config.override(kernels=kernels):
                return numpy.asarray(text(spartan_ng, *ours))

        return run

    return side


def _case(text: Callable[..., Any], kernel: Callable[..., Any], title: str, density: float) -> Case:
    sides = {
        "kernel": kernel_side(kernel),
        OURS: our_side(text, "compile"),
        "interpreted": our_side(text, "interpret"),
    }
    name = f"{text.__name__.replace('_', '-')}-{density:g}"
    title = f"{title}, X {SIDE}² of density {density:g}, rank {RANK}"
    return Case(name, title, factors(density), sides, rounds=5, ratio_limit=1.3)


SPARSE_CASES = (
    *(
        _case(log_likelihood, log_likelihood_kernel, "sum(X * log(U @ V.T + 1e-15))", density)
        for density in (1e-1, 1e-2, 1e-3, 1e-4)
    ),
    _case(update, update_kernel, "((X != 0) * (U @ V.T)) @ V", 1e-2),
    _case(squares, squares_kernel, "sum(X ** 2)", 1e-1),
)
"""Outer and Cell over a sparse main operand."""
