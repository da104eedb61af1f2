"""Cumulative aggregates on one machine: against NumPy, and against a parallel loop written by hand for numba.

The hand-written kernels use all cores and two passes (totals, then each part behind its offset), as section
4.1 of "Efficient Data-Parallel Cumulative Aggregates" has it, and return a new array, as NumPy does; "kept
buffer" writes into the same array every time, without fresh pages. Every side gives a sample of its values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy
from numba import get_num_threads, njit, prange

import spartan_ng
from benchmarks.case import OURS, Case, Inputs, Run, Side
from spartan_ng.config import config

ROWS, COLUMNS = 2_000_000, 64
ELEMENTS = 100_000_000
SAMPLE = 9973

Text = Callable[[Any, Any], Any]
Kernel = Callable[[Any, Any], None]


@cache
def table() -> Inputs:
    """A tall matrix of doubles."""
    return {"x": numpy.random.default_rng(0).random((ROWS, COLUMNS)) - 0.25}


@cache
def line() -> Inputs:
    """A long vector of doubles."""
    return {"x": numpy.random.default_rng(0).random(ELEMENTS) - 0.25}


def columns(np: Any, x: Any) -> Any:
    """The workload's text."""
    return np.cumsum(x, axis=0)


def rows(np: Any, x: Any) -> Any:
    """The workload's text."""
    return np.cumsum(x, axis=1)


def prefix(np: Any, x: Any) -> Any:
    """The workload's text."""
    return np.cumsum(x)


def least_prefix(np: Any, x: Any) -> Any:
    """The workload's text."""
    return np.cumsum(x).min()


def greatest_mean(np: Any, x: Any) -> Any:
    """The workload's text: a fold of what is made of the scan."""
    return (np.cumsum(x) / np.arange(1, len(x) + 1)).max()


def running_mean_square(np: Any, x: Any) -> Any:
    """The workload's text: maps on both sides of the scan."""
    return np.cumsum(x * x) / np.arange(1, len(x) + 1)


@njit(parallel=True)  # type: ignore[untyped-decorator]
def columns_by_hand(x: Any, y: Any) -> None:
    """Parts of the rows: their sums, then each part behind those before it."""
    parts, n, m = get_num_threads(), x.shape[0], x.shape[1]
    totals = numpy.zeros((parts, m))
    for p in prange(parts):
        for i in range(p * n // parts, (p + 1) * n // parts):
            for j in range(m):
                totals[p, j] += x[i, j]
    for p in prange(parts):
        before = numpy.zeros(m)
        for q in range(p):
            for j in range(m):
                before[j] += totals[q, j]
        for i in range(p * n // parts, (p + 1) * n // parts):
            for j in range(m):
                before[j] += x[i, j]
                y[i, j] = before[j]


@njit(parallel=True)  # type: ignore[untyped-decorator]
def rows_by_hand(x: Any, y: Any) -> None:
    """Every row by itself."""
    for i in prange(x.shape[0]):
        before = 0.0
        for j in range(x.shape[1]):
            before += x[i, j]
            y[i, j] = before


@njit(parallel=True)  # type: ignore[untyped-decorator]
def prefix_by_hand(x: Any, y: Any) -> None:
    """Parts of the line: their sums, then each part behind those before it."""
    parts, n = get_num_threads(), x.shape[0]
    totals = numpy.zeros(parts)
    for p in prange(parts):
        total = 0.0
        for i in range(p * n // parts, (p + 1) * n // parts):
            total += x[i]
        totals[p] = total
    for p in prange(parts):
        before = totals[:p].sum()
        for i in range(p * n // parts, (p + 1) * n // parts):
            before += x[i]
            y[i] = before


@njit(parallel=True)  # type: ignore[untyped-decorator]
def mean_square_by_hand(x: Any, y: Any) -> None:
    """As the line, with the maps in the loops."""
    parts, n = get_num_threads(), x.shape[0]
    totals = numpy.zeros(parts)
    for p in prange(parts):
        total = 0.0
        for i in range(p * n // parts, (p + 1) * n // parts):
            total += x[i] * x[i]
        totals[p] = total
    for p in prange(parts):
        before = totals[:p].sum()
        for i in range(p * n // parts, (p + 1) * n // parts):
            before += x[i] * x[i]
            y[i] = before / (i + 1)


@njit(parallel=True)  # type: ignore[untyped-decorator]
def least_by_hand(x: Any, y: Any) -> None:
    """The sum and least prefix of each part."""
    parts, n = get_num_threads(), x.shape[0]
    totals, least = numpy.zeros(parts), numpy.zeros(parts)
    for p in prange(parts):
        total, found = 0.0, numpy.inf
        for i in range(p * n // parts, (p + 1) * n // parts):
            total += x[i]
            found = min(found, total)
        totals[p], least[p] = total, found
    before, found = 0.0, numpy.inf
    for p in range(parts):
        found = min(found, before + least[p])
        before += totals[p]
    y[0] = found


@njit(parallel=True)  # type: ignore[untyped-decorator]
def greatest_mean_by_hand(x: Any, y: Any) -> None:
    """Parts of the line: their sums, then the greatest mean of each part behind those before it."""
    parts, n = get_num_threads(), x.shape[0]
    totals, greatest = numpy.zeros(parts), numpy.zeros(parts)
    for p in prange(parts):
        total = 0.0
        for i in range(p * n // parts, (p + 1) * n // parts):
            total += x[i]
        totals[p] = total
    for p in prange(parts):
        before, found = totals[:p].sum(), -numpy.inf
        for i in range(p * n // parts, (p + 1) * n // parts):
            before += x[i]
            found = max(found, before / (i + 1))
        greatest[p] = found
    y[0] = greatest.max()


def sampled(value: Any) -> Any:
    """Some of a result's elements."""
    return numpy.asarray(value.reshape(-1)[::SAMPLE] if isinstance(value, numpy.ndarray) else value)


def numpy_side(text: Text) -> Side:
    """The text on the input itself."""
    return lambda inputs: lambda: sampled(text(numpy, inputs["x"]))


def our_side(text: Text) -> Side:
    """The same text with `import spartan_ng as np`; kernels are compiled before the first run."""

    def side(inputs: Inputs) -> Run:
        x = spartan_ng.asarray(inputs["x"])

        def run() -> Any:
            with config.override(kernels="compile"):
                return sampled(numpy.asarray(text(spartan_ng, x)))

        return run

    return side


def by_hand(kernel: Kernel, shape: Callable[[Any], tuple[int, ...]], kept: bool) -> Side:
    """A kernel that fills an array: a new one, or always the same."""

    def side(inputs: Inputs) -> Run:
        x = inputs["x"]
        same = numpy.zeros(shape(x)) if kept else None

        def run() -> Any:
            y = numpy.empty(shape(x)) if same is None else same
            kernel(x, y)
            return sampled(y)

        return run

    return side


def _case(text: Text, title: str, inputs: Callable[[], Inputs], limit: float, kernel: Kernel) -> Case:
    whole = text not in (least_prefix, greatest_mean)
    sides = {
        "numpy": numpy_side(text),
        OURS: our_side(text),
        "numba": by_hand(kernel, lambda x: x.shape if whole else (1,), kept=False),
    }
    if whole:
        sides["numba, kept buffer"] = by_hand(kernel, lambda x: x.shape, kept=True)
    name = "scan-" + text.__name__.replace("_", "-")
    nbytes = 8 * (ELEMENTS if inputs is line else ROWS * COLUMNS) * (2 if whole else 1)
    return Case(name, title, inputs, sides, bytes_read=nbytes, rounds=5, ratio_limit=limit)


SCAN_CASES = (
    _case(columns, "cumsum(x, axis=0), 2e6 × 64", table, 0.1, columns_by_hand),
    _case(rows, "cumsum(x, axis=1), 2e6 × 64", table, 0.5, rows_by_hand),
    _case(prefix, "cumsum(x) over 1e8 doubles", line, 0.5, prefix_by_hand),
    _case(least_prefix, "min(cumsum(x)) over 1e8 doubles", line, 0.2, least_by_hand),
    _case(greatest_mean, "max(cumsum(x) / arange) over 1e8 doubles", line, 0.3, greatest_mean_by_hand),
    _case(running_mean_square, "cumsum(x * x) / arange over 1e8 doubles", line, 0.3, mean_square_by_hand),
)
"""Scans of one machine."""
