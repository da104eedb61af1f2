"""Measure a case: equality first, then interleaved rounds, then peak memory in child processes.

Rounds are interleaved, and a ratio is taken inside each round, so that a machine that slows down for a while
slows both sides. The median of the ratios is reported, not the ratio of the medians.
"""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy

from benchmarks.case import Case, Inputs, Run
from spartan_ng.kernels.compiled.compile import wait_for_compiles

SAMPLE_S = 0.02
"""A sample of a short run repeats it for at least so long."""
PAUSE_S = 0.15
"""Before each side: threads that the last one's BLAS has started look for work for a tenth of a second."""


@dataclass(frozen=True, slots=True)
class Row:
    """One side's figures: seconds, ratio to the first side, bytes of memory beyond what it began with."""

    side: str
    seconds: float
    ratio: float
    first_seconds: float
    peak_bytes: int | None


def measure(case: Case, *, peaks: bool = True) -> list[Row]:
    """The figures of all sides of a case; raises AssertionError where a side's result differs."""
    with case.backends() as backends:
        times, first_seconds = _times(case, {**case.inputs(), "backends": backends})
    base = times[next(iter(times))]
    return [
        Row(
            name,
            median(sample),
            median(t / b for t, b in zip(sample, base, strict=True)),
            first_seconds[name],
            peak(case.name, name) if peaks else None,
        )
        for name, sample in times.items()
    ]


def _times(case: Case, inputs: Inputs) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Seconds of each side's rounds, and of its first run."""
    runs: dict[str, Run] = {name: side(inputs) for name, side in case.sides.items()}
    first_seconds = _check(case, runs)
    repeats = {name: _repeats(run) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(case.rounds):
        for name, run in runs.items():
            gc.collect()
            time.sleep(PAUSE_S)
            run()  # finds the memory again that the system took back meanwhile
            wait_for_compiles()  # a warm process: else a round times the compiler, and its stand-in
            times[name].append(_sample(run, repeats[name]))
    return times, first_seconds


def _check(case: Case, runs: dict[str, Run]) -> dict[str, float]:
    """Compare every side's first result with the first side's; seconds of each side's first run."""
    expected: Any = None
    seconds = {}
    for name, run in runs.items():
        start = time.perf_counter()
        value = numpy.asarray(run())
        seconds[name] = time.perf_counter() - start
        if expected is None:
            expected = value
        numpy.testing.assert_allclose(value, expected, rtol=case.rtol, err_msg=f"{case.name}: {name}")
    return seconds


def _sample(run: Run, repeats: int) -> float:
    """Seconds of one run, as the mean of `repeats`."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _repeats(run: Run) -> int:
    run()
    return max(1, int(SAMPLE_S / max(_sample(run, 1), 1e-7)))


def peak(case: str, side: str) -> int | None:
    """Peak resident bytes of one run of a side beyond what the process held before, in a child process."""
    child = subprocess.run(
        [sys.executable, "-m", "benchmarks.peak", case, side], capture_output=True, text=True, check=False
    )
    if child.returncode != 0:
        raise RuntimeError(f"{case}: {side}: the memory measurement failed\n{child.stderr}")
    found: int | None = json.loads(child.stdout.splitlines()[-1])
    return found


def resident(field: str) -> int:
    """`VmRSS` or `VmHWM` of this process, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    match = re.search(rf"{field}:\s+(\d+) kB", status)
    assert match is not None, f"/proc/self/status has no {field}"
    return int(match.group(1)) * 1024


def reset_peak() -> None:
    """Let `VmHWM` start again from the present resident size."""
    Path(f"/proc/{os.getpid()}/clear_refs").write_text("5")
