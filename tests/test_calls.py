"""What stands between a small program and its numbers, counted in calls of Python functions.

A program that comes again finds its plan; all that is left is the way there and back, which every small
program pays. How often Python functions are called on it depends on no machine.

They are counted in a process of their own: Python 3.11 stands where it is traced, while an exception waits
for a thread that never comes back from C, as some tests leave one.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.planning import gradient_steps, shared_values
from spartan_ng.api.core import watch
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.graph.node import topological
from spartan_ng.kernels.compiled import select
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from spartan_ng.plan.lower import lower
from spartan_ng.plan.settings import Settings

MOST = {"sum": 250, "step": 520}
"""Calls that `float(sum(X * Y))` and `w - c * (X.T @ (X @ w))` may take,"""
MOST_OF_PLANNING = 14_500
"""and planning programs of 24 and 25 operators together."""


def calls(function: Callable[[], object]) -> Counter[str]:
    """The Python functions that are called, and how often, by this thread."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            found[f"{frame.f_code.co_filename}:{frame.f_code.co_qualname}"] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return found


def printed(*words: str) -> Counter[str]:
    """What this module prints as a command."""
    command = [sys.executable, "-m", "tests.test_calls", *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Counter({name: int(n) for name, n in (line.rsplit(" ", 1) for line in done.stdout.splitlines())})


@pytest.mark.parametrize("program", ["sum", "step"])
def test_a_program_whose_plan_is_there_takes_few_calls(program: str) -> None:
    found = printed(program)
    assert any("worker/executor.py" in name for name in found), "it ran on the plan's way"
    assert not any("lower.py" in name for name in found), "the plan was there"
    assert found.total() <= MOST[program], found


def test_planning_takes_few_calls() -> None:
    found = printed("planning")
    assert any("lower.py" in name for name in found), "it was planned"
    assert found.total() <= MOST_OF_PLANNING, found.most_common(50)


def planning() -> Counter[str]:
    """The calls of planning what `benchmarks planning` plans: for the second time, as tables are there."""
    found: Counter[str] = Counter()
    with config.override(small_bytes=0, check=False):
        for root in (gradient_steps(2), shared_values(2)):

            def plan(root: Any = root) -> None:
                roots = run_passes(PASSES, [root], ())
                lower(topological(roots), roots, Settings(Profile(), fusion="cost"), "a plan")

            plan()
            found += calls(plan)
    return found


def a_sum() -> Counter[str]:
    """The calls of a sum whose plan is there."""
    x, y = numpy.random.default_rng(0).random((2, 100, 100))
    X, Y = np.asarray(x), np.asarray(y)
    return calls_of(lambda: float(np.sum(X * Y)), (x * y).sum())


def a_step() -> Counter[str]:
    """The calls of a loop's step whose plan is there."""
    random = numpy.random.default_rng(0)
    x, v = random.random((64, 8)), random.random(8)
    X, w = np.asarray(x), np.asarray(v)
    return calls_of(lambda: numpy.asarray(w - 1e-3 * (X.T @ (X @ w))), v - 1e-3 * (x.T @ (x @ v)))


def calls_of(program: Callable[[], Any], expected: Any) -> Counter[str]:
    """The calls of a program that is planned, once its plan is there."""
    vars(select)["HOT_S"] = watch._QUICK_S = float("inf")  # how soon it is compiled depends on the machine
    with config.override(small_bytes=0, fusion="cost", kernels="auto"):
        for _ in range(2):
            np.testing.assert_allclose(program(), expected, rtol=1e-12)
        return calls(program)


PROGRAMS = {"planning": planning, "sum": a_sum, "step": a_step}


if __name__ == "__main__":
    for name, n in sorted(PROGRAMS[sys.argv[1]]().items()):
        print(name, n)
