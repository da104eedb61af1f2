"""First runs: each side alone in a fresh process, ours with an empty and with a filled cache of kernels.

`python -m benchmarks.cold [ROW...]` runs some rows, `python -m benchmarks cold` all. Both sides' processes
load the same modules and have made their inputs (and touched them once) when the clock starts; it stops when
the value is there. Planning, starting threads, loading libraries and kernels all count. Inputs are handed
over for good, as if our own functions had made them: an array that its owner may still write to is
copied when an expression takes it in, which costs more than all that is measured here. Processes take turns,
and the least of the rounds counts: a first run can only be disturbed.
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
from scipy import sparse

import spartan_ng
from benchmarks import texts
from benchmarks.case import Inputs
from benchmarks.texts import Text
from spartan_ng.config import config

ROUNDS = 3
SIDES = ("numpy", "empty", "filled")
LIMIT = 1.3
"""What a first run may take, in times of NumPy's."""
SIDE, RANK, PER_ROW = 6_000, 100, 60
"""The sparse matrix, small enough that NumPy can make the dense product of its factors."""


def log_likelihood(np: Any, X: Any, U: Any, V: Any) -> Any:
    """The workload's text; SciPy's matrices want their own name for the product with a dense array."""
    dense = np.log(U @ V.T + 1e-15)
    return X.multiply(dense).sum() if np is numpy else np.sum(X * dense)


def factors() -> Inputs:
    """A sparse matrix and two dense factors."""
    random = numpy.random.default_rng(0)
    indices = numpy.sort(random.random((SIDE, SIDE)).argsort(axis=1)[:, :PER_ROW], axis=1)
    indptr = numpy.arange(0, SIDE * PER_ROW + 1, PER_ROW)
    X = sparse.csr_array((random.random(SIDE * PER_ROW), indices.reshape(-1), indptr), (SIDE, SIDE))
    return {"X": X, "U": random.random((SIDE, RANK)), "V": random.random((SIDE, RANK))}


def two_sums(np: Any, X: Any, Y: Any, Z: Any) -> Any:
    """Both sums as one value."""
    a, b = texts.two_sums(np, X, Y, Z)
    return a + b


def moments(np: Any, X: Any, *others: Any) -> Any:
    """All moments as one value."""
    mean, var, std = texts.moments(np, X)
    return mean + var + std


def regression(np: Any, X: Any, w: Any, y: Any) -> Any:
    """Ten steps of logistic regression."""
    for _ in range(10):
        w = w - 1e-7 * texts.gradient(np, X, w, y)
    return w


ROWS: dict[str, tuple[str, Text, Callable[[], Inputs]]] = {
    "product-of-three": ("sum(X * Y * Z)", texts.product_of_three, texts.vectors),
    "two-sums": ("sum(X * Y) + sum(X * Z)", two_sums, texts.vectors),
    "black-scholes": ("Black-Scholes", texts.black_scholes, texts.options),
    "normal-product": ("X.T @ (X @ v), 2e6 × 50", texts.normal_product, texts.table),
    "normal-product-wide": (
        "X.T @ (X @ v), 2e4 × 5000",
        texts.normal_product,
        texts.normals(texts.WIDE_ROWS, texts.WIDE_COLUMNS),
    ),
    "log-likelihood": (f"sum(X * log(U @ V.T + 1e-15)), {SIDE}²", log_likelihood, factors),
    "moments": ("mean, var, std", moments, texts.table),
    "masked-sum": ("X[X > 0].sum()", texts.masked_sum, texts.normals(texts.ELEMENTS)),
    "add-transposed": ("A + A.T", texts.add_transposed, texts.normals(texts.SQUARE, texts.SQUARE)),
    "lloyd": ("k-means, 3 iterations", texts.lloyd, texts.points),
    "logistic": ("logistic regression", regression, texts.table),
}
"""Title, text and inputs of each row."""


def main(names: tuple[str, ...] = ()) -> None:
    """Print a line for each row."""
    unknown = set(names) - ROWS.keys()
    if unknown:
        raise SystemExit(f"no row named {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    print(f"| first run | numpy | empty cache | ratio | filled cache | ratio | goal {LIMIT} |")
    print("|---|---|---|---|---|---|---|")
    for name in names or tuple(ROWS):
        print(line(name), flush=True)


def line(name: str) -> str:
    """One row, measured."""
    with tempfile.TemporaryDirectory() as filled:
        _child(name, "fill", filled)
        best = dict.fromkeys(SIDES, numpy.inf)
        for _ in range(ROUNDS):
            for side in SIDES:
                with tempfile.TemporaryDirectory() as empty:
                    best[side] = min(best[side], _child(name, side, filled if side == "filled" else empty))
    base, ours = best["numpy"], (best["empty"], best["filled"])
    cells = " | ".join(f"{s * 1e3:.0f} ms | {s / base:.2f}" for s in ours)
    met = "met" if max(ours) <= LIMIT * base else "MISSED"
    return f"| {ROWS[name][0]} | {base * 1e3:.0f} ms | {cells} | {met} |"


def _child(name: str, side: str, cache: str) -> float:
    """Seconds of a side's first run in a process of its own."""
    environment = {**os.environ, "SPARTAN_NG_CACHE_DIR": cache}
    command = [sys.executable, "-m", "benchmarks.cold", "--child", name, side]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: {side} failed\n{done.stderr}")
    return float(done.stdout.splitlines()[-1])


def first_run(name: str, side: str) -> float:
    """Seconds of the first run in this process."""
    _, text, inputs = ROWS[name]
    given = list(inputs().values())
    for x in given:
        x.sum()
        if isinstance(x, numpy.ndarray):
            x.flags.writeable = False  # nobody writes to it any more: it needs no copy to become ours
    start = time.perf_counter()
    if side == "numpy":
        text(numpy, *given)
        return time.perf_counter() - start
    with config.override(kernels="compile" if side == "fill" else "auto"):
        numpy.asarray(text(spartan_ng, *[spartan_ng.asarray(x) for x in given]))
    return time.perf_counter() - start


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(first_run(*sys.argv[2:]))
    else:
        main(tuple(sys.argv[1:]))
