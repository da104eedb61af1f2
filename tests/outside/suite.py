"""Run the files of an installed suite in processes of their own, and say what became of its functions."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

_HANG_S = 600
"""One test that runs so long hangs."""
_FILE_HANGS_S = 5400
"""One file that runs so long hangs where no signal reaches it."""
_REGULAR = (0, 1, 2, 5)
"""pytest's exit codes: all passed, some failed, some could not be collected, there were none."""
_CRASHES = 5
"""A file whose process dies so often is given up."""
_LINE = "\n      "
PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Suite:
    """Where a suite is installed, the list of what cannot hold, and how its pytest is called.

    `mode` is "default" or "lazy"; an exception may be for one of them.
    """

    root: Path
    exceptions: Path
    options: list[str]
    environment: dict[str, str]
    mode: str


@dataclass
class Outcome:
    """What became of a file's functions: those that passed, and the text of those that failed."""

    passed: set[str] = field(default_factory=set)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Functions that ran."""
        return len(self.passed) + len(self.failed)


def expected(suite: Suite) -> dict[str, str]:
    """The reason of each function that may fail."""
    if not suite.exceptions.exists():
        return {}
    groups = tomllib.loads(suite.exceptions.read_text())["cannot"]
    return {test: g["why"] for g in groups if g.get("only", suite.mode) == suite.mode for test in g["tests"]}


def outcome_of(suite: Suite, file: str) -> Outcome:
    """Run one file; where its process died, what is left of it again."""
    dead: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record")
        for _ in range(_CRASHES):
            code = _pytest(suite, file, Path(folder))
            if code in _REGULAR:
                break
            steps = _steps(record)
            dead[steps[-1][0] if steps else file] = f"the process ended with {code}"
        steps = _steps(record)
    return _by_function([*steps, *((test, "failed", text) for test, text in dead.items())])


def _steps(record: Path) -> list[tuple[str, str, str]]:
    """Tests, their outcomes and texts, in the order they happened."""
    if not record.exists():
        return []
    return [(test, outcome, text) for test, outcome, text in map(json.loads, record.read_text().splitlines())]


def _pytest(suite: Suite, file: str, folder: Path) -> int:
    """pytest's exit code; steps are added to `folder`/record, and tests that began there are left out."""
    ini = folder / "pytest.ini"
    ini.write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.outside.plugin", "-p", "no:cacheprovider", "-q"]
    command += ["--continue-on-collection-errors"]
    command += ["-c", str(ini), "--rootdir", str(suite.root), "--record", str(folder / "record")]
    command += [f"--timeout={_HANG_S}", "--timeout-method=signal", *suite.options]
    path = os.pathsep.join(p for p in (str(PROJECT), os.environ.get("PYTHONPATH")) if p)
    scripts = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    environment = {**os.environ, **suite.environment, "PYTHONPATH": path, "PATH": scripts}
    try:
        done = subprocess.run(
            [*command, str(suite.root / file)],
            cwd=folder,
            env=environment,
            timeout=_FILE_HANGS_S,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except subprocess.TimeoutExpired:
        return -1
    if done.returncode not in _REGULAR:
        sys.stderr.write(done.stdout.decode(errors="replace")[-4000:])
    return done.returncode


def _by_function(steps: list[tuple[str, str, str]]) -> Outcome:
    """A function fails if one of its cases does, and passes if one ran."""
    found = Outcome()
    for test, outcome, text in steps:
        name = test.partition("[")[0]
        if outcome == "failed":
            found.failed.setdefault(name, f"{test}\n{text}")
        elif outcome == "passed":
            found.passed.add(name)
    found.passed -= found.failed.keys()
    return found


def run(suite: Suite, files: list[str], jobs: int, details: Path | None) -> int:
    """Run files and print what became of them; 1 if the list of exceptions does not say just that."""
    known = expected(suite)
    if details is not None:
        details.write_text("")
    total, unexpected, stale = Outcome(), dict[str, str](), list[str]()
    with ThreadPoolExecutor(jobs) as pool:
        outcomes: Callable[[str], Outcome] = lambda file: outcome_of(suite, file)  # noqa: E731
        for file, found in zip(files, pool.map(outcomes, files), strict=True):
            new = {test: text for test, text in found.failed.items() if test not in known}
            print(f"{len(found.passed):5} of {found.count:5} {file}", *sorted(new), sep=_LINE, flush=True)
            if details is not None:  # a file at a time: a long run is read while it goes on
                with details.open("a") as said:
                    said.writelines(f"{found.failed[test]}\n\n" for test in sorted(found.failed))
            total.passed |= found.passed
            total.failed |= found.failed
            unexpected |= new
            stale += [test for test in known if test in found.passed]
    _say_why(known, total)
    share = 100 * len(total.passed) / max(1, total.count)
    print(f"{len(total.passed)} of {total.count} functions pass ({share:.2f}%), {suite.mode}")
    print(f"{len(unexpected)} fail unexpectedly; {len(stale)} pass that are listed:", *stale, sep=_LINE)
    return int(bool(unexpected or stale))


def _say_why(known: dict[str, str], total: Outcome) -> None:
    """How many functions fail for each of the reasons."""
    for why, n in collections.Counter(known[t] for t in total.failed if t in known).most_common():
        print(f"{n:5} {why}")
