"""First runs: each side alone in a fresh process, ours with an empty and with a filled cache of kernels.

Each process computes its line three times: the first run counts, and with an empty cache all three together,
as of a program that is short and new; with a filled cache the first in times of the last, as of its next
start.

`python -m benchmarks.cold [ROW...]` runs some rows, `python -m benchmarks cold` all. Both sides' processes
load the same modules and have made their inputs, each with its own functions, when the clock starts; it stops
when the value is there, where arrays of that side are. Planning, loading libraries and kernels all count.
"entered" are plain NumPy arrays that their owner may still write to: they are copied as an expression takes
them in, and that counts, too; nothing at all has run before. Processes take turns, and the least of the
rounds counts: a first run can only be disturbed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy
from scipy import sparse

import spartan_ng
from benchmarks import report, texts
from benchmarks.case import Inputs
from benchmarks.fresh import run_fresh
from benchmarks.texts import Text
from spartan_ng.config import config

ROUNDS = 3
Seconds = tuple[float, ...]
SIDES = ("numpy", "empty", "filled", "entered")
LIMIT = 1.3
"""What a first run may take, in times of NumPy's."""
RUNS, ALL_LIMIT, AGAIN_LIMIT = 3, 1.0, 1.2
"""So many runs, and what they may take together, in times of NumPy's; what the next start's first may take,
in times of its last."""
SIDE, RANK = 20_000, 100
_SPARSE = 1e-2
"""The density above which the dense product is NumPy's faster way to the non-zeros."""
_STRIP = 1 << 12
"""Non-zeros that NumPy's other way takes together, for the cache."""


def log_likelihood(np: Any, X: Any, U: Any, V: Any) -> Any:
    """The workload's text; NumPy and SciPy have two, and take the faster one."""
    if np is not numpy:
        return np.sum(X * np.log(U @ V.T + 1e-15))
    if X.nnz > _SPARSE * X.shape[0] * X.shape[1]:
        return X.multiply(np.log(U @ V.T + 1e-15)).sum()
    entries = X.tocoo()
    total = 0.0
    for lo in range(0, X.nnz, _STRIP):
        part = slice(lo, lo + _STRIP)
        products = np.einsum("ij,ij->i", U[entries.row[part]], V[entries.col[part]])
        total += (entries.data[part] * np.log(products + 1e-15)).sum()
    return total


def factors(density: float) -> Callable[..., Inputs]:
    """A sparse matrix, as many non-zeros in each row, and two dense factors."""

    def inputs(np: Any = numpy) -> Inputs:
        random = numpy.random.default_rng(0)
        count = int(SIDE * density)
        apart = SIDE // count
        indices = random.integers(0, apart, (SIDE, count), dtype=numpy.int32)
        indices += numpy.arange(0, SIDE, apart, dtype=numpy.int32)
        indptr = numpy.arange(0, SIDE * count + 1, count, dtype=numpy.int32)
        X = sparse.csr_array((random.random(SIDE * count), indices.reshape(-1), indptr), (SIDE, SIDE))
        random = np.random.default_rng(1)
        return {"X": X, "U": random.random((SIDE, RANK)), "V": random.random((SIDE, RANK))}

    return inputs


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


ROWS: dict[str, tuple[str, Text, Callable[..., Inputs]]] = {
    "product-of-three": ("sum(X * Y * Z)", texts.product_of_three, texts.vectors),
    "two-sums": ("sum(X * Y) + sum(X * Z)", two_sums, texts.vectors),
    "black-scholes": ("Black-Scholes", texts.black_scholes, texts.options),
    "normal-product": ("X.T @ (X @ v), 2e6 × 50", texts.normal_product, texts.table),
    "normal-product-wide": (
        "X.T @ (X @ v), 2e4 × 5000",
        texts.normal_product,
        texts.normals(texts.WIDE_ROWS, texts.WIDE_COLUMNS),
    ),
    **{
        f"log-likelihood-{density:g}": (
            f"sum(X * log(U @ V.T + 1e-15)), {SIDE}², density {density:g}",
            log_likelihood,
            factors(density),
        )
        for density in (1e-1, 1e-2, 1e-3, 1e-4)
    },
    "moments": ("mean, var, std", moments, texts.table),
    "masked-sum": ("X[X > 0].sum()", texts.masked_sum, texts.normals(texts.ELEMENTS)),
    "add-transposed": ("A + A.T", texts.add_transposed, texts.normals(texts.SQUARE, texts.SQUARE)),
    "lloyd": ("k-means, 3 iterations", texts.lloyd, texts.points),
    "logistic": ("logistic regression", regression, texts.table),
}
"""Title, text and inputs of each row."""


def main(names: tuple[str, ...] = ()) -> str:
    """Print a line for each row, and give them as a section of RESULTS.md."""
    unknown = set(names) - ROWS.keys()
    if unknown:
        raise SystemExit(f"no row named {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    columns = [
        *("first run", "numpy", "empty cache", "ratio", "filled cache", "ratio", f"goal {LIMIT}"),
        *(
            f"{RUNS} runs",
            f"goal {ALL_LIMIT}",
            "next start / warm",
            f"goal {AGAIN_LIMIT}",
            "entered",
            "ratio",
        ),
    ]
    told = [f"### first runs\n\nEach in a new process.\nMade on {report.now()}.\n"]
    told += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    print("\n".join(told))
    for name in names or tuple(ROWS):
        told.append(line(name))
        print(told[-1], flush=True)
    return "\n".join(told) + "\n"


def line(name: str) -> str:
    """One row, measured."""
    with tempfile.TemporaryDirectory() as cache:
        _child(name, "fill", cache)
        best: dict[str, Seconds] = {}
        for _ in range(ROUNDS):
            for side in SIDES:
                with tempfile.TemporaryDirectory() as empty:
                    found = _child(name, side, cache if side == "filled" else empty)
                best[side] = tuple(map(min, found, best.get(side, found)))
    base, together, _ = best["numpy"]
    empty, filled, entered = (f"{best[s][0] * 1e3:.0f} ms | {best[s][0] / base:.2f}" for s in SIDES[1:])
    of_first = _met(max(best["empty"][0], best["filled"][0]) / base, LIMIT)
    of_all = best["empty"][1] / together
    again = best["filled"][0] / best["filled"][2]
    told = f"{of_all:.2f} | {_met(of_all, ALL_LIMIT)} | {again:.2f} | {_met(again, AGAIN_LIMIT)}"
    return f"| {ROWS[name][0]} | {base * 1e3:.0f} ms | {empty} | {filled} | {of_first} | {told} | {entered} |"


def _met(ratio: float, limit: float) -> str:
    return "met" if ratio <= limit else "MISSED"


def _child(name: str, side: str, cache: str) -> Seconds:
    """What `runs` gives of a side in its own process."""
    try:
        told = run_fresh(["-m", "benchmarks.cold", "--child", name, side], {"SPARTAN_NG_CACHE_DIR": cache})
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"{name}: {side} failed\n{error.stderr}") from error
    return tuple(map(float, told.splitlines()[-1].split()))


def runs(name: str, side: str) -> Seconds:
    """Seconds of the first run in this process, of all `RUNS` together, and of the last."""
    _, text, inputs = ROWS[name]
    own = side in ("fill", "empty", "filled")
    given = list(inputs(spartan_ng if own else numpy).values())
    if own:
        given = [spartan_ng.asarray(x).persist() for x in given]
    else:
        for x in given:
            x.sum()
    np = numpy if side == "numpy" else spartan_ng
    took: list[float] = []
    with config.override(kernels="compile" if side == "fill" else "auto"):
        for _ in range(RUNS):
            begun = time.perf_counter()
            if np is numpy:
                text(numpy, *given)
            else:
                np.persist(text(np, *[np.asarray(x) for x in given]))
            took.append(time.perf_counter() - begun)
    return took[0], sum(took), took[-1]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(*runs(*sys.argv[2:]))
    else:
        main(tuple(sys.argv[1:]))
