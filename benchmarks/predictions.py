"""Predicted beside measured seconds of stages, embedded and on four workers: how far to believe `explain`.

A stage's seconds are those of its slowest task, the median of some runs whose kernels are compiled: of four
workers on two cores each has a core for itself in a lucky run, and all are twice as fast as they are. Of
programs of several stages the whole plan counts. A busy machine makes all of them too long, but hardly those
of one thread by the processor's time (`python -m benchmarks.predictions`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy
from scipy import sparse

import spartan_ng as np
from spartan_ng.kernels.compiled.compile import wait_for_compiles
from spartan_ng.units import time_text
from spartan_ng.worker import executor

ROUNDS = 15
"""Runs of which the median counts."""
WARM = 4
"""Runs before those that count: kernels are compiled, and have proved themselves."""
SETTLE_S = 1.0
"""Workers compile each for itself, and nobody can wait for that: they are left alone for so long, and are
warmed again."""

Program = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One program: what was predicted, and what was measured, in seconds."""

    name: str
    predicted: float
    measured: float

    @property
    def factor(self) -> float:
        """How far off the prediction is: 1 where it is right, at least 1 always."""
        return max(self.predicted / self.measured, self.measured / self.predicted)


def _likelihood(d: dict[str, Any]) -> Any:
    z = d["x"] @ d["v"]
    return np.sum(d["y"] * z - np.log1p(np.exp(-np.abs(z))) - np.maximum(z, 0.0))


def _kmeans(d: dict[str, Any]) -> Any:
    distances = ((d["x"] ** 2).sum(1)[:, None] - 2.0 * (d["x"] @ d["c"].T)) + (d["c"] ** 2).sum(1)
    return distances.argmin(1)


PROGRAMS: dict[str, Program] = {
    "matmul 2000": lambda d: d["a"] @ d["b"],
    "matmul 4000 x 100": lambda d: d["x"].T @ d["x"],
    "matrix times vector": lambda d: d["x"] @ d["v"],
    "sort": lambda d: np.sort(d["s"]),
    "argsort": lambda d: np.argsort(d["s"]),
    "sort of rows": lambda d: np.sort(d["a"], axis=1),
    "cumsum": lambda d: np.cumsum(d["s"]),
    "cumsum down": lambda d: np.cumsum(d["x"], axis=0),
    "sum": lambda d: d["x"].sum(),
    "sums of columns": lambda d: d["x"].sum(0),
    "sums of rows": lambda d: d["x"].sum(1),
    "variance": lambda d: d["x"].var(),
    "transposed sums": lambda d: (d["a"] + d["b"].T).sum(0),
    "exp and sum": lambda d: np.exp(d["x"] * -0.5).sum(),
    "map": lambda d: d["x"] * 2.0 + 1.0,
    "lookup": lambda d: d["s"][d["i"]],
    "mask": lambda d: d["x"][d["x"] > 0.5].sum(),
    "CSR times vector": lambda d: d["m"] @ d["w"],
    "log-likelihood": _likelihood,
    "k-means step": _kmeans,
    "draws": lambda d: np.random.default_rng(0).random((4_000_000,)).mean(),
}


def inputs(scale: float = 1.0) -> dict[str, Any]:
    """Arrays on the workers; at scale 1 the largest takes 160 MB."""
    rng = numpy.random.default_rng(0)
    rows, side = int(200_000 * scale), int(2_000 * scale**0.5)
    x = rng.random((rows, 100))
    made = {
        "x": x,
        "v": rng.random(100),
        "c": rng.random((16, 100)),
        "y": (rng.random(rows) > 0.5) * 1.0,
        "a": rng.random((side, side)),
        "b": rng.random((side, side)),
        "s": rng.random(20 * rows),
        "i": rng.integers(0, 20 * rows, 5 * rows),
        "w": rng.random(rows),
        "m": sparse.random_array((rows, rows), density=20 / rows, rng=rng, format="csr"),
    }
    return {name: np.array(value) if name != "m" else np.asarray(value) for name, value in made.items()}


def run(workers: int, scale: float = 1.0, only: str = "") -> list[Row]:
    """All programs in this process (`workers` 0) or on a local cluster."""
    if workers:
        with np.cluster(workers):
            return _rows(scale, only, SETTLE_S)
    return _rows(scale, only)


def _rows(scale: float, only: str, settle_s: float = 0.0) -> list[Row]:
    with np.config.override(small_bytes=0, progress=False):
        given = inputs(scale)
        return [_row(name, program, given, settle_s) for name, program in PROGRAMS.items() if only in name]


def _row(name: str, program: Program, given: dict[str, Any], settle_s: float) -> Row:
    for pause_s in (0.0, settle_s) if settle_s else (0.0,):
        time.sleep(pause_s)
        for _ in range(WARM):
            np.explain(program(given), run=True)
            wait_for_compiles()
    runs = [np.explain(program(given), run=True) for _ in range(ROUNDS)]
    seconds = [sum(s.measured_seconds or 0.0 for s in r.stages) for r in runs]
    return Row(name, runs[-1].predicted_seconds, median(seconds))


def table(rows: list[Row]) -> str:
    """As Markdown, and how many are within a factor of two."""
    lines = ["| program | predicted | measured | predicted / measured |", "|---|---|---|---|"]
    for r in rows:
        ratio = r.predicted / r.measured
        lines.append(f"| {r.name} | {time_text(r.predicted)} | {time_text(r.measured)} | {ratio:.2f} |")
    near = sum(r.factor <= 2 for r in rows)
    mean = exp(sum(log(r.factor) for r in rows) / len(rows))
    middle = median(r.factor for r in rows)
    lines += ["", f"{near} of {len(rows)} within a factor of 2; median {middle:.2f}, mean {mean:.2f}"]
    return "\n".join(lines)


def by_processor(scale: float = 1.0, only: str = "") -> list[Row]:
    """All programs on one thread, by the processor's time; nothing may have run in this process before."""
    with np.config.override(threads=1), patch.object(executor, "now_ns", time.process_time_ns):
        return _rows(scale, only)


def main() -> None:
    """Print all tables."""
    print("\n### in this process, on one thread, by the processor's time\n", flush=True)
    single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", __name__], check=True, env={**os.environ, **single})
    for workers in (0, 4):
        print(f"\n### {f'on {workers} workers' if workers else 'in this process'}\n")
        print(table(run(workers)), flush=True)


if __name__ == "__main__":
    print(table(by_processor()), flush=True)
