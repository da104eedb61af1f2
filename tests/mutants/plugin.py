"""pytest from inside: what each test comes by, and runs of chosen tests only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import switch

_QUIET = ["-q", "--no-header", "--tb=no", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
_OPTIONS = [*_QUIET, "-p", "no:cacheprovider", "-p", "no:xdist", "--seed=0"]
"""One seed: what a fault is judged by are the cases that came by it."""


ALL_PASSED = 64
"""What a run of chosen tests ends with: a fault may end its process before any of them, and say that all is
well."""


def _spent_s() -> float:
    """Processor time of this process and of those it has waited for, which a busy machine does not change."""
    return sum(os.times()[:4])


class Recorder:
    """Notes a line for each test: its name, seconds, whether it has passed, and the faults it came by."""

    def __init__(self, file: str, notes: Path) -> None:
        self._file = file
        self._notes = notes
        self._passed = True
        self._begun = 0.0

    def __call__(self) -> int:
        """Run the file's tests."""
        return int(pytest.main([*_OPTIONS, self._file], plugins=[self]))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Around a test and its fixtures."""
        if self._begun:  # what imports and collecting come by is the first test's
            switch.clear()
        self._begun, self._passed = _spent_s(), True
        yield
        note = {
            "test": item.nodeid,
            "seconds": _spent_s() - self._begun,
            "passed": self._passed,
            "reached": switch.reached(),
        }
        with self._notes.open("a") as file:
            file.write(json.dumps(note) + "\n")

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase has ended."""
        self._passed = self._passed and report.passed


class Chosen:
    """Runs some tests until one fails; each may take so many seconds.

    What has begun last is noted: a test, or a file that could not be imported. That is what failed, also
    where a fault ends the process or never lets it end.
    """

    def __init__(self, tests: Sequence[str], last: Path, timeout_s: float) -> None:
        self._tests = frozenset(tests)
        self._files = list(dict.fromkeys(t.partition("::")[0] for t in tests))
        self._last = last
        self._timeout_s = timeout_s

    def __call__(self) -> int:
        """Run them."""
        options = [*_OPTIONS, "-x", f"--timeout={self._timeout_s}", *self._files]
        return int(pytest.main(options, plugins=[self])) or ALL_PASSED

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep the chosen ones."""
        items[:] = [i for i in items if i.nodeid in self._tests]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file has been imported, or not."""
        if report.failed:
            self._last.write_text(report.nodeid)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._last.write_text(nodeid)
