"""Run tests with a fault in the code: in children of a process that has imported everything once.

A run without a fault notes which tests come by which fault, and how long they take. Then each fault gets the
tests that do, those of the most particular files first, until one fails that passes without the fault.
Endless loops end by their processor time, which a busy machine does not change, and count as seen.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutants import switch
from tests.mutants.plugin import ALL_PASSED, Chosen, Recorder
from tests.mutants.sites import Site
from tests.mutants.tree import sites_of

FEW_S, FEW_FILES = 4.0, 4
"""The first tests that a fault meets: most are seen by these."""
_HANG_S = 900.0
_NO_ROOMS = frozenset({"spartan", "ng", "tests", "test", "py"})
_TIMES = 4
"""How many times what its tests usually take a fault may take."""


def record(own: Path, state: sqlite3.Connection, file: str) -> None:
    """Run a file without a fault, and keep what its tests come by, and what they take."""
    notes = own / "notes.jsonl"
    notes.unlink(missing_ok=True)
    switch.clear()
    _forked(own, -1, Recorder(file, notes), 36_000.0)
    with state:
        state.execute("begin immediate")
        for line in notes.read_text().splitlines() if notes.exists() else ():
            note = json.loads(line)
            row = note["test"], file, note["seconds"], note["passed"]
            state.execute("insert or replace into test values (?, ?, ?, ?)", row)
            reached = [(number, note["test"]) for number in note["reached"]]
            state.executemany("insert into reach values (?, ?)", reached)
        state.execute("insert into file values (?)", (file,))


def judge(own: Path, state: sqlite3.Connection, number: int, most_s: float, is_early: bool) -> None:
    """Find out whether tests see a fault, and keep which one does, or how many do not.

    What modules come by when they are imported is early: each test may see it, in a new process only.
    What fails without the fault as well (a test of newer code, an unsteady one) is put aside.
    """
    runs = _Runs(own, number, is_early)
    ran, verdict, why = 0, "no test", "no test comes by"
    for tests in _batches(state, sites_of(state)[number], number, most_s, is_early):
        while failed := runs.failed(tests, with_fault=True):
            if not runs.failed(failed, with_fault=False):
                break
            state.executemany("update test set passed = 0 where name = ?", [(t,) for t in failed])
            tests = {t: s for t, s in tests.items() if t not in failed}
        ran += len(tests)
        if failed:
            verdict, why = "seen", runs.why
            break
        if tests:
            verdict, why = "survives", f"{ran} tests"
    state.execute("insert or replace into verdict values (?, ?, ?, ?)", (number, verdict, why, ran))


class _Runs:
    """Runs of some tests with one fault, or without any."""

    def __init__(self, own: Path, number: int, is_early: bool) -> None:
        self._own = own
        self._number = number
        self._is_early = is_early
        self.why = ""
        """What has failed with the fault."""

    def failed(self, tests: dict[str, float], with_fault: bool) -> dict[str, float]:
        """The first of the tests that fails, or those of a file that cannot be imported."""
        if not tests:
            return {}
        number = self._number if with_fault else -1
        last = self._own / "last"
        last.unlink(missing_ok=True)
        limit = _TIMES * sum(tests.values()) + 15.0
        patience = _TIMES * max(tests.values()) + 120.0
        with _cache(self._own.parent / "kernels"):
            run = Chosen(list(tests), last, patience)
            own = self._own
            code = _fresh(own, number, run) if self._is_early else _forked(own, number, run, limit)
        if code == ALL_PASSED:
            return {}
        name = last.read_text() if last.exists() else ""
        if with_fault:
            self.why = f"{name}: ended with {code}" if code != 1 or not name else name
        return {t: s for t, s in tests.items() if name in (t, t.partition("::")[0])} or tests


def _batches(
    state: sqlite3.Connection, site: Site, number: int, most_s: float, is_early: bool
) -> Iterator[dict[str, float]]:
    """Tests that come by, with their seconds: few, then the others up to `most_s` seconds.

    Those of the fault's own room come first, as tests mirror the rooms; of each other file the shortest.
    """
    rows = state.execute(
        "select name, file, seconds from test where passed"
        " and (? or name in (select test from reach where number = ?)) order by seconds",
        (is_early, number),
    ).fetchall()
    sizes = dict(state.execute("select file, count(*) from test group by file"))
    by_file: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for name, file, seconds in rows:
        by_file[file].append((name, seconds))

    def particular(file: str) -> tuple[int, float, float]:
        tests = by_file[file]
        return -_in_common(file, site.path), -len(tests) / sizes[file], tests[0][1]

    files = sorted(by_file, key=particular)
    few = _up_to([t for f in files[:FEW_FILES] for t in by_file[f]], FEW_S)
    if few:
        yield few
    own = [f for f in files if _in_common(f, site.path) == _in_common(files[0], site.path) > 0]
    depth = max((len(tests) for tests in by_file.values()), default=0)
    turns = [by_file[f][i] for i in range(depth) for f in files if i < len(by_file[f])]
    nearest = [t for f in own for t in by_file[f]]
    many = _up_to([t for t in dict.fromkeys((*nearest, *turns)) if t[0] not in few], most_s)
    if many:
        yield many


def _in_common(test: str, module: str) -> int:
    """How many rooms, and words of their files' names, a test and a module share."""
    one, other = ({*re.split(r"[/_.]", name)} - _NO_ROOMS for name in (test, module))
    return len(one & other)


def _up_to(tests: Sequence[tuple[str, float]], seconds: float) -> dict[str, float]:
    """Tests from the front that take no longer than so many seconds together, and one at least."""
    found: dict[str, float] = {}
    for name, took in tests:
        if not found or sum(found.values()) + took <= seconds:
            found[name] = took
    return found


class _cache:
    """Kernels that a faulty compiler makes are nobody else's: a fault has links to what is compiled."""

    def __init__(self, base: Path) -> None:
        self._base = base

    def __enter__(self) -> None:
        self._own = tempfile.mkdtemp(dir=self._base.parent)
        shutil.copytree(self._base, self._own, copy_function=os.link, dirs_exist_ok=True)
        os.environ["SPARTAN_NG_CACHE_DIR"] = self._own

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._own, ignore_errors=True)
        os.environ["SPARTAN_NG_CACHE_DIR"] = str(self._base)


def _fresh(own: Path, number: int, run: Chosen) -> int:
    """The exit code of a run in a new process: what modules do when they are imported is faulty, too."""
    program = "import pickle, sys; sys.exit(pickle.load(sys.stdin.buffer)())"
    environment = {**os.environ, switch.NUMBER: str(number)}
    with (own / "output.txt").open("wb") as output:
        try:
            done = subprocess.run(
                [sys.executable, "-c", program],
                input=pickle.dumps(run),
                env=environment,
                stdout=output,
                stderr=output,
                timeout=_HANG_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL
    return done.returncode


def _forked(own: Path, number: int, work: Callable[[], int], cpu_s: float) -> int:
    """The exit code of `work` in a child with a fault, which may take so many seconds of the processor."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code: Any = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
            out = os.open(own / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            switch.active = number
            os.environ[switch.NUMBER] = str(number)
            code = work()
        except BaseException:  # noqa: BLE001  # the child of a fork must not go on with the parent's work
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(int(code))
    deadline = time.monotonic() + _HANG_S + 20 * cpu_s
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(ended[1])
