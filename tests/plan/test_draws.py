"""Random arrays are folded as they are drawn: of any size, in the same memory, with a bar that tells the
time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from math import prod

import numpy
import pytest

_MEAN = """
import json, sys
from benchmarks.measure import reset_peak, resident
import spartan_ng as np
from spartan_ng import progress
from spartan_ng.config import config

shape, most = json.loads(sys.argv[1]), int(sys.argv[2])


def mean(shape):
    return float(np.random.default_rng(0).random(shape).mean())


mean((3_000, 3_000))  # loads and compiles
show, told = progress.Bar.__call__, []


def shown(bar, done, total):
    show(bar, done, total)
    told.append(done)
    if len(told) == most:
        raise KeyboardInterrupt


progress.Bar.__call__, progress.DELAY_S, config.progress = shown, 0.0, True
reset_peak()
before = resident("VmRSS")
try:
    found = mean(shape)
except KeyboardInterrupt:
    found = None
print(json.dumps([found, len(told), resident("VmHWM") - before]))
"""


def mean(shape: tuple[int, ...], most: int) -> tuple[float | None, int, int, str]:
    """The mean of a random array, None where `most` parts of the work have been told before; how many were,
    the bytes that the process took for it, and what stood on the bar."""
    command = [sys.executable, "-c", _MEAN, json.dumps(shape), str(most)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return (*json.loads(done.stdout), done.stderr)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("shape", [(10**6, 10**6), (10, 10**11), (10**11, 10), (10**4, 10**4, 10**4)])
def test_memory_does_not_grow_with_the_array(shape: tuple[int, ...]) -> None:
    found, told, nbytes, bar = mean(shape, 3)
    assert found is None
    assert told >= 3
    assert nbytes < 20_000_000
    assert re.search(r"/\d+ stages \[\d\d:\d\d<[\d:]+\]", bar)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(10**4, 10**4), (3, 2 * 10**7)])
def test_work_that_is_drawn_to_its_end(shape: tuple[int, ...]) -> None:
    found, _, nbytes, _ = mean(shape, 10**6)
    assert nbytes < 20_000_000
    draws, left = numpy.random.default_rng(0), prod(shape)
    wanted = sum(float(draws.random(10**6).sum()) for _ in range(left // 10**6)) / left
    assert found == pytest.approx(wanted, rel=1e-12)
