"""`python -m tests.mutants`: how many faults, put into the code on purpose, do the tests see?

    python -m tests.mutants --count 200 --seed 1
    python -m tests.mutants --count 200 --seed 1 --slice 600     # ten minutes of it; ask again to go on
    python -m tests.mutants --count 20 --seed 2 --paths worker --tests tests/worker

Faults (a comparison, a sign, `and` for `or`, a dropped `not`) are drawn at random and put into a copy of the
project. The tests run once without any, to see which come by which fault; then each fault meets the tests
that do. Survivors are printed: each is a question that no test asks. With new tests, ask `--again`: they meet
the code of the draw, and those that need newer code are put aside.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import click

from spartan_ng.starts import CACHE_VARIABLE
from tests.mutants import switch
from tests.mutants.tree import CORE, begin, connected, prepare, renew_tests, sites_of

MOST = 1 << 16
"""Faults that the switch can count."""
ROOT = Path(__file__).parents[2]
ROOMS = (
    *("kernels", "worker", "plan", "optimizer", "ops", "graph", "costs", "backends", "master"),
    *("sources", "sinks", "api", "numpy_parity", "cluster"),
)
ALONE = ("as_numpy", "programs", "lineage", "listing", "checkpoints", "progress", "fuzz")
TESTS = (*(f"tests/{room}" for room in ROOMS), *(f"tests/test_{name}.py" for name in ALONE))
"""Tests that take long for what they see of these faults (apps, launchers) are left out by default."""


@click.command(help=__doc__)
@click.option("--count", default=200, show_default=True, help="How many faults to draw.")
@click.option("--seed", default=0, show_default=True, help="Which ones.")
@click.option("--paths", multiple=True, default=CORE, help="Files and folders to put them into.")
@click.option("--numbers", is_flag=True, help="Draw constants that are one off and other operators, too.")
@click.option("--tests", multiple=True, default=TESTS, help="Files and folders of tests.")
@click.option("--most", default=60.0, show_default=True, help="Seconds of tests that a fault meets at most.")
@click.option("--slice", "slice_s", type=float, help="Seconds after which to stop; the next call goes on.")
@click.option("--again", is_flag=True, help="Judge anew what none has seen: tests of now, code of the draw.")
@click.option("--jobs", default=1, show_default=True, help="How many processes.")
@click.option("--place", type=Path, help="Where the copy lies.  [default: .mutants/SEED-COUNT]")
def main(
    count: int,
    seed: int,
    paths: tuple[str, ...],
    numbers: bool,
    tests: tuple[str, ...],
    most: float,
    slice_s: float | None,
    again: bool,
    jobs: int,
    place: Path | None,
) -> None:
    """Prepare the copy, and run the rest inside it."""
    end = time.time() + (slice_s or 1e9)
    place = (place or ROOT / ".mutants" / f"{seed}-{count}").resolve()
    if not (place / "state.sqlite").exists():
        prepare(ROOT, place, paths, count, seed, numbers)
    state = connected(place)
    if again:
        renew_tests(ROOT, place, state)
        state.execute("delete from verdict where verdict != 'seen'")
    for what in ("record", "judge"):
        begin(state)
        running = [_job(place, what, job, [str(most), str(end), *tests]) for job in range(jobs)]
        codes = [process.wait() for process in running]
        if any(codes) or time.time() > end:
            break
    report(state)


def _job(place: Path, what: str, job: int, options: list[str]) -> subprocess.Popen[bytes]:
    """A process in the copy, with files of its own."""
    own = place / f"job-{job}"
    for folder in (own, place / "kernels"):
        folder.mkdir(exist_ok=True)
    (own / "reached").write_bytes(bytes(MOST))
    environment = {
        **os.environ,
        "PYTHONPATH": str(place / "tree"),
        switch.REACHED: str(own / "reached"),
        CACHE_VARIABLE: str(place / "kernels"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "tests.mutants.inside", what, str(place), str(own), *options]
    return subprocess.Popen(command, cwd=place / "tree", env=environment)


def report(state: sqlite3.Connection) -> None:
    """Print the survivors, and how many were seen."""
    every = sites_of(state)
    rows = state.execute("select number, verdict, why from verdict order by number").fetchall()
    for number, verdict, why in rows:
        if verdict != "seen":
            print(f"{number:4d} {verdict} ({why}): {every[number].name}")
    seen = sum(verdict == "seen" for _, verdict, _ in rows)
    print(f"seen {seen} of {len(rows)}; {len(every) - len(rows)} to come")


if __name__ == "__main__":
    main()
