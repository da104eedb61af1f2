"""A worker killed at the same moments of the same programs: on our own cluster, in `dask.array`, and on Ray.

    python -m benchmarks faults

Four worker processes of one thread each, which are started again when they end. A program runs twice before
it is timed, then once for each moment, a share of its usual time, at which one of the processes is killed.
Ray has no arrays of its own: there our plans run as its tasks.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import click
import numpy

from benchmarks import report
from benchmarks.engines import WORKERS, Put, Side, running

SIDES = ("own", "dask.array", "ray")
MOMENTS = (0.2, 0.5, 0.8)
LIMIT_S = 60.0
"""What takes longer is not waited for."""
PLATE = numpy.random.default_rng(1).random((1000, 1000))
POINTS = numpy.random.default_rng(2).random((200_000, 20))


def kmeans(xp: Any, put: Put, keep: Put) -> Any:
    """Ten iterations, one-hot."""
    x, c = put(POINTS), POINTS[:10]
    for _ in range(10):
        labels = xp.argmin((x * x).sum(axis=1)[:, None] - 2 * x @ c.T + (c * c).sum(axis=1), axis=1)
        hot = (labels[:, None] == numpy.arange(10)) * 1.0
        c = numpy.asarray((hot.T @ x) / xp.maximum(hot.sum(axis=0), 1)[:, None])
    return c


def running_sums(xp: Any, put: Put, keep: Put) -> Any:
    """Sums along both axes of a plate, ten times."""
    plate = put(PLATE)
    for k in range(10):
        plate = keep(xp.cumsum(plate, axis=k % 2) / 1000)
    return plate


PROGRAMS = (kmeans, running_sums)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one program on one side; seconds are medians."""

    side: str
    usual_s: float
    killed_s: tuple[float, ...]
    """Of the runs that gave the right answer."""
    failed: tuple[str, ...] = ()
    """What became of the others."""


def pids(side: str) -> list[int]:
    """The processes of the workers, once all are there."""
    if side == "own":
        from spartan_ng import session

        backend: Any = session.current().backend
        while backend.workers < WORKERS:
            backend.wait_for_workers(WORKERS, 1.0)
        labels = [member.label.split() for member in backend.status().members.members]
        return [int(words[words.index("pid") + 1]) for words in labels]
    if side == "dask.array":
        import distributed

        client = distributed.default_client()
        client.wait_for_workers(WORKERS)
        return list(client.run(os.getpid, on_error="ignore").values())
    import psutil

    children = psutil.Process().children(recursive=True)
    names = {p.pid: p.name() for p in children}  # without its agents a node of Ray's ends
    return [pid for pid, name in names.items() if name.startswith("ray::") and not name.endswith("Agent")]


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """The seconds that a run takes, and what it gives; TimeoutError where it takes too long."""
    found: list[Any] = []

    def work() -> None:
        try:
            found.append(numpy.asarray(run()))
        except Exception as error:  # noqa: BLE001 - counted
            found.append(error)

    thread = threading.Thread(target=work, daemon=True)
    begun = time.perf_counter()
    thread.start()
    thread.join(LIMIT_S)
    taken = time.perf_counter() - begun
    if not found:
        raise TimeoutError(f"no answer in {LIMIT_S:g} s")
    return taken, found[0]


def measured(side: str, run: Callable[[], Any], wanted: Any, draw: random.Random) -> Row:
    """A program without kills, and with one at each of the moments."""
    try:
        timed(run)
        usual_s, _ = timed(run)
    except TimeoutError as error:
        return Row(side, float("nan"), (), (str(error),))
    taken, failed = [], []
    for moment in MOMENTS:
        victim = draw.choice(pids(side))

        def kill(victim: int = victim) -> None:
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)

        killer = threading.Timer(moment * usual_s, kill)
        killer.start()
        try:
            seconds, found = timed(run)
        except TimeoutError as error:
            failed.append(str(error))
            break  # nobody knows what it would do to the next run
        finally:
            killer.join()
        if isinstance(found, Exception):
            failed.append(type(found).__name__)
        elif numpy.allclose(found, wanted, rtol=1e-6):
            taken.append(seconds)
        else:
            failed.append("WRONG")
    return Row(side, usual_s, tuple(taken), tuple(failed))


def table(name: str, rows: list[Row]) -> list[str]:
    """One program as lines of Markdown."""
    lines = [
        f"| {name} | usual | with a kill | that is more | at most | right |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if not row.killed_s:
            lines.append(f"| {row.side} | | | | | none: {', '.join(sorted(set(row.failed)))} |")
            continue
        killed_s = statistics.median(row.killed_s)
        right = f"{len(row.killed_s)} of {len(row.killed_s) + len(row.failed)}"
        others = f" ({', '.join(sorted(set(row.failed)))})" if row.failed else ""
        lines.append(
            f"| {row.side} | {row.usual_s:.2f} s | {killed_s:.2f} s | {killed_s - row.usual_s:.2f} s "
            f"| {max(row.killed_s):.2f} s | {right}{others} |"
        )
    return lines


def main() -> str:
    """Kill workers; the section for RESULTS.md."""
    logging.disable(logging.CRITICAL)
    wanted = [numpy.asarray(program(numpy, lambda x: x, lambda x: x)) for program in PROGRAMS]
    rows: dict[str, list[Row]] = {program.__name__: [] for program in PROGRAMS}
    for side in SIDES:
        with running(side) as on:
            for program, value in zip(PROGRAMS, wanted, strict=True):
                draw = random.Random(program.__name__)

                def run(program: Any = program, on: Side = on) -> Any:
                    return program(on.library, on.put, on.keep)

                rows[program.__name__].append(measured(side, run, value, draw))
                click.echo(f"{side} {program.__name__}: {rows[program.__name__][-1]}")
                if any("no answer" in text for text in rows[program.__name__][-1].failed):
                    break  # it may still be at work, beside whatever comes next
    tables = [line for name, each in rows.items() for line in [*table(name, each), ""]]
    text = (
        f"One of {WORKERS} workers is killed at {len(MOMENTS)} moments of each program, from "
        f"{MOMENTS[0]:.0%} to {MOMENTS[-1]:.0%} of its usual time; medians."
    )
    section = "\n".join(["### faults", "", text, "", f"{report.now()}.", "", *tables])
    click.echo(section)
    return section


if __name__ == "__main__":
    main()
