"""What it costs, without faults, that arrays remember what they came from.

    python -m benchmarks lineage

The same loops on four workers with lineage and without it, in turns. Counted are jobs and the bytes that
workers move, which are to be the same. The processor's time of all processes is measured; the ratio is the
median of those of the pairs, which says something on a busy machine, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import click
import numpy
import psutil

import spartan_ng as np
from benchmarks import report
from spartan_ng import session
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.planner import Planner

WORKERS, PAIRS = 4, 15
random = numpy.random.default_rng(0)
SMALL, X, PLATE = random.random((64, 8)), random.random((200_000, 20)), random.random((300, 300))
Y = (X[:, 0] > 0.5) * 1.0


def loop_body(x: Any) -> Any:
    """200 steps over a matrix of 64 x 8."""
    w = np.zeros(8)
    for _ in range(200):
        w = (w - 1e-3 * (x.T @ (x @ w - 1))).persist()
    return w


def regression(x: Any) -> Any:
    """20 steps of a logistic regression."""
    w, y = np.zeros(20), np.array(Y)
    for _ in range(20):
        w = (w - x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(Y)).persist()
    return w


def stencil(x: Any) -> Any:
    """40 steps of heat in a plate."""
    for _ in range(40):
        x = np.pad((x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4, 1).persist()
    return x


PROGRAMS: tuple[tuple[Callable[[Any], Any], Any], ...] = (
    (loop_body, SMALL),
    (regression, X),
    (stencil, PLATE),
)


def worked_s() -> float:
    """The processor's seconds of this process and of those that it has started."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def counted(program: Callable[[Any], Any], given: Any) -> tuple[int, int, float]:
    """Jobs, bytes moved, and the processor's seconds of one run."""
    now = session.current()
    assert isinstance(now.backend, ClusterBackend)
    before = int(now.backend._link.new_job().rpartition("/")[2]), now.moved_bytes, worked_s()
    numpy.asarray(program(given))
    after = int(now.backend._link.new_job().rpartition("/")[2]), now.moved_bytes, worked_s()
    jobs, nbytes, seconds = (b - a for a, b in zip(before, after, strict=True))
    return int(jobs) - 1, int(nbytes), seconds


def main() -> str:
    """Run the pairs; the section for RESULTS.md."""
    lines = [
        "### lineage",
        "",
        f"Loops on {WORKERS} workers with lineage, and without it, in {PAIRS} pairs; medians of ratios.",
        "",
        f"{report.now()}.",
        "",
        "| program | jobs | without | bytes moved | without | processor's time, ratio | half of the pairs |",
        "|---|---|---|---|---|---|---|",
    ]
    before = session.current().backend
    with LocalCluster(WORKERS) as backend, config.override(small_bytes=0, recover_s=None):
        session.use(backend)
        now = session.current()
        planners = [Planner(backend, recipes=True), Planner(backend, recipes=False)]
        for program, value in PROGRAMS:
            given = np.array(value).persist()
            found: list[list[tuple[int, int, float]]] = [[], []]
            for pair in range(-2, PAIRS):  # the first ones plan and compile
                for which in (0, 1) if pair % 2 else (1, 0):
                    now.planner = planners[which]
                    row = counted(program, given)
                    found[which] += [row] if pair >= 0 else []
            (jobs, nbytes, _), (jobs_off, nbytes_off, _) = found[0][-1], found[1][-1]
            ratios = [a[2] / b[2] for a, b in zip(*found, strict=True)]
            low, middle, high = statistics.quantiles(ratios, n=4)
            lines.append(
                f"| {program.__name__} | {jobs} | {jobs_off} | {nbytes:,} | {nbytes_off:,} | {middle:.3f} "
                f"| {low:.3f} to {high:.3f} |"
            )
            click.echo(lines[-1])
        session.use(before)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    click.echo(main())
