"""What it costs, without faults, that arrays remember what they came from.

    python -m benchmarks lineage

The same loops on four workers with lineage and without it, in short turns. Counted are jobs and the bytes
that workers move, which are to be the same. The processor's time of all processes is measured, in
nanoseconds; the ratio is the median of those of the pairs, with the interval that has it with 95 % (order
statistics, whatever the noise looks like). Pairs are added until the interval lies on one side of 1.02, or
time is up.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
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

WORKERS, LEAST, LIMIT_S = 4, 200, 100.0
"""Pairs at least; seconds for a program, at most."""
MORE = 1.02
"""The ratio that is asked for."""
random = numpy.random.default_rng(0)
SMALL, X, PLATE = random.random((64, 8)), random.random((200_000, 20)), random.random((300, 300))
Y = (X[:, 0] > 0.5) * 1.0


def loop_body(x: Any) -> Any:
    """50 steps over a matrix of 64 x 8."""
    w = np.zeros(8)
    for _ in range(50):
        w = (w - 1e-3 * (x.T @ (x @ w - 1))).persist()
    return w


def regression(x: Any) -> Any:
    """Five steps of a logistic regression."""
    w, y = np.zeros(20), np.array(Y)
    for _ in range(5):
        w = (w - x.T @ (1 / (1 + np.exp(-(x @ w))) - y) / len(Y)).persist()
    return w


def stencil(x: Any) -> Any:
    """20 steps of heat in a plate."""
    for _ in range(20):
        x = np.pad((x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4, 1).persist()
    return x


PROGRAMS: tuple[tuple[Callable[[Any], Any], Any], ...] = (
    (loop_body, SMALL),
    (regression, X),
    (stencil, PLATE),
)


def worked_ns(pids: Iterable[int]) -> dict[int, int]:
    """The processor's time of each process that is there, by its clock: `/proc` counts hundredths."""
    found = {}
    for pid in pids:
        with suppress(OSError):  # a compiler has gone
            found[pid] = time.clock_gettime_ns((~pid << 3) | _SCHEDULED)
    return found


_SCHEDULED = 2
"""Of the clocks of a process the one that the scheduler keeps (`clock_getcpuclockid`)."""


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Where the median of what they are drawn from lies, with 95 %."""
    ordered, n = sorted(ratios), len(ratios)
    apart = math.ceil(1.96 * math.sqrt(n) / 2)
    return ordered[max(0, n // 2 - apart)], ordered[min(n - 1, (n - 1) // 2 + apart)]


def counted(program: Callable[[Any], Any], given: Any, pids: Sequence[int]) -> tuple[int, int, float]:
    """Jobs, bytes moved, and the processor's seconds of one run."""
    now = session.current()
    assert isinstance(now.backend, ClusterBackend)
    first, moved, before = (
        int(now.backend._link.new_job().rpartition("/")[2]),
        now.moved_bytes,
        worked_ns(pids),
    )
    numpy.asarray(program(given))
    after = worked_ns(before)
    jobs = int(now.backend._link.new_job().rpartition("/")[2]) - first - 1
    return jobs, now.moved_bytes - moved, sum(ns - before[pid] for pid, ns in after.items()) / 1e9


def compared(program: Callable[[Any], Any], value: Any, planners: Sequence[Planner]) -> str:
    """A program with lineage and without it, as a line of Markdown."""
    now, given = session.current(), np.array(value).persist()
    here = psutil.Process()
    pids = [here.pid, *(process.pid for process in here.children(recursive=True))]
    found: list[list[tuple[int, int, float]]] = [[], []]
    ratios: list[float] = []
    begun, pair, decided = time.monotonic(), -5, False  # the first ones plan and compile
    while time.monotonic() - begun < LIMIT_S and not decided:
        for which in (0, 1) if pair % 2 else (1, 0):
            now.planner = planners[which]
            row = counted(program, given, pids)
            found[which] += [row] if pair >= 0 else []
        pair += 1
        if pair > 0:
            ratios.append(found[0][-1][2] / found[1][-1][2])
        decided = len(ratios) >= LEAST and not (interval(ratios)[0] <= MORE < interval(ratios)[1])
    (jobs, nbytes, _), (jobs_off, nbytes_off, _) = found[0][-1], found[1][-1]
    low, high = interval(ratios)
    verdict = "yes" if high <= MORE else "no" if low > MORE else "not decided"
    return (
        f"| {program.__name__} | {jobs} | {jobs_off} | {nbytes:,} | {nbytes_off:,} | {len(ratios)} "
        f"| {statistics.median(ratios):.4f} | {low:.4f} to {high:.4f} | {verdict} |"
    )


def main() -> str:
    """Run the pairs; the section for RESULTS.md."""
    lines = [
        "### lineage",
        "",
        f"Loops on {WORKERS} workers with lineage, and without it, in turns; the median of ratios of pairs.",
        "",
        f"{report.now()}.",
        "",
        "| program | jobs | without | bytes moved | without | pairs | time, ratio | with 95 % | within 2 % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    before = session.current().backend
    with LocalCluster(WORKERS) as backend, config.override(small_bytes=0, recover_s=None):
        session.use(backend)
        planners = [Planner(backend, recipes=True), Planner(backend, recipes=False)]
        for program, value in PROGRAMS:
            lines.append(compared(program, value, planners))
            click.echo(lines[-1])
        session.use(before)
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    click.echo(main())
