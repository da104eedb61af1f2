"""First runs: each side alone in a fresh process, ours with an empty and with a filled cache of kernels.

Imports and inputs are not measured, the first evaluation is: planning, the interpreter, and whatever else
wakes up. Processes take turns, and the least of the rounds counts: a first run can only be disturbed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy

from benchmarks.case import Inputs
from benchmarks.workloads import kernels, loops

ROUNDS = 3
SIDES = ("numpy", "empty", "filled")
LIMIT = 1.3
"""What a first run may take, in times of NumPy's."""

Text = Callable[..., Any]


def two_sums(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """The workload's text."""
    a, b = np.sum(X * Y), np.sum(X * Z)
    return a + b


def moments(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text."""
    return np.mean(X, axis=0) + np.var(X, axis=0) + np.std(X, axis=0)


def regression(np: Any, X: Any, w: Any, y: Any) -> Any:
    """The workload's text: ten steps of logistic regression."""
    for _ in range(10):
        w = w - 1e-7 * kernels.gradient(np, X, w, y)
    return w


ROWS: dict[str, tuple[Text, Callable[[], Inputs]]] = {
    "sum(X * Y * Z)": (kernels.product_of_three, kernels.vectors),
    "sum(X * Y) + sum(X * Z)": (two_sums, kernels.vectors),
    "Black-Scholes": (kernels.black_scholes, kernels.options),
    "X.T @ (X @ v), 2e6 × 50": (kernels.normal_product, kernels.table),
    "X.T @ (X @ v), 2e4 × 5000": (
        loops.normal_product,
        loops.normals(loops.WIDE_ROWS, loops.WIDE_COLUMNS),
    ),
    "mean, var, std": (moments, kernels.table),
    "X[X > 0].sum()": (loops.masked_sum, loops.normals(kernels.ELEMENTS)),
    "A + A.T": (loops.add_transposed, loops.normals(loops.SQUARE, loops.SQUARE)),
    "softmax": (loops.softmax, loops.normals(loops.SOFTMAX_ROWS, loops.SOFTMAX_COLUMNS)),
    "logistic regression": (regression, kernels.table),
}
"""Texts and their inputs; the sparse ones have no side in NumPy that fits into memory."""


def main() -> None:
    """Print a row for each text."""
    print(f"| first run | numpy | empty cache | ratio | filled cache | ratio | goal {LIMIT} |")
    print("|---|---|---|---|---|---|---|")
    for name in ROWS:
        with tempfile.TemporaryDirectory() as filled:
            _child(name, "fill", filled)
            best = dict.fromkeys(SIDES, numpy.inf)
            for _ in range(ROUNDS):
                for side in SIDES:
                    with tempfile.TemporaryDirectory() as empty:
                        taken = _child(name, side, filled if side == "filled" else empty)
                    best[side] = min(best[side], taken)
        base = best["numpy"]
        met = "met" if max(best["empty"], best["filled"]) <= LIMIT * base else "MISSED"
        print(
            f"| {name} | {base * 1e3:.0f} ms | {best['empty'] * 1e3:.0f} ms | {best['empty'] / base:.2f} "
            f"| {best['filled'] * 1e3:.0f} ms | {best['filled'] / base:.2f} | {met} |",
            flush=True,
        )


def _child(name: str, side: str, cache: str) -> float:
    """Seconds of a side's first run in a process of its own."""
    environment = {**os.environ, "SPARTAN_NG_CACHE_DIR": cache}
    command = [sys.executable, "-m", "benchmarks.cold", name, side]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {side} failed\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def first_run(name: str, side: str) -> float:
    """Seconds of the first run in this process."""
    text, inputs = ROWS[name]
    arrays = kernels.arrays(inputs())
    if side == "numpy":
        run = kernels.numpy_side(text)(dict(enumerate(arrays)))  # type: ignore[arg-type]
    else:
        kind = "compile" if side == "fill" else "auto"
        run = kernels.our_side(text, kind)(dict(enumerate(arrays)))  # type: ignore[arg-type]
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    print(first_run(*sys.argv[1:]))
