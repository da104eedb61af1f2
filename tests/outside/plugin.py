"""The plugin of an outside suite's own pytest: this package in NumPy's place, and a record of what happened.

The record is a line of JSON for each step, written when it is taken: the last line of a process that died
names the test it died in. A process that finds a record goes on after it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from spartan_ng.config import config as options
from tests.outside.backend import BACKENDS
from tests.outside.in_place import Finder


def pytest_addoption(parser: pytest.Parser) -> None:
    """What the command of a suite passes on."""
    parser.addoption("--record", required=True, help="where the record is written")
    parser.addoption("--in-place", type=Path, help="the suite's folder, whose tests import this package")
    parser.addoption("--backend-of", choices=list(BACKENDS), help="the package whose tests take backends")
    parser.addoption("--chunked", action="store_true", help="xarray's chunks are this package's arrays")
    parser.addoption("--lazy", action="store_true", help="leave nothing to NumPy because it is small")


def pytest_configure(config: pytest.Config) -> None:
    """Before the suite's modules are imported."""
    folder = config.getoption("--in-place")
    if folder is not None:
        sys.meta_path.insert(0, Finder(folder))
    library = config.getoption("--backend-of")
    if library is not None:
        BACKENDS[library]()
    if config.getoption("--chunked"):
        from tests.outside.chunked import Chunked

        config.pluginmanager.register(Chunked())
    if config.getoption("--lazy"):
        options.small_bytes = 0
    config.pluginmanager.register(Recorder(Path(config.getoption("--record"))))


class Recorder:
    """Writes what becomes of each test."""

    def __init__(self, path: Path) -> None:
        before = path.read_text().splitlines() if path.exists() else []
        self._begun = {test for test, outcome, _ in map(json.loads, before) if outcome == "began"}
        self._file = path.open("a", buffering=1)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what has begun in an earlier process."""
        items[:] = [item for item in items if item.nodeid not in self._begun]

    def _write(self, test: str, outcome: str, text: str = "") -> None:
        self._file.write(json.dumps([test, outcome, text]) + "\n")

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self._write(nodeid, "began")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test's set-up, call or tear-down has ended."""
        if report.failed or report.when == "call" or report.skipped:
            self._write(report.nodeid, report.outcome, _reason(report))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported fails as a whole."""
        if report.failed:
            self._write(report.nodeid, "failed", _reason(report))


def _reason(report: Any) -> str:
    """The last line of a failure: the exception and its text."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash is not None else report.longrepr or "")[-2000:] if report.failed else ""
