"""What stands between a small program and its numbers, counted in calls of Python functions.

A program that comes again finds its plan; all that is left is the way there and back, which every small
program pays. How often Python functions are called on it depends on no machine.

They are counted in a process of their own: Python 3.11 stands where it is traced, while an exception waits
for a thread that never comes back from C, as some tests leave one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
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
from tests.first_starts import first_start

MOST = {"sum": 242, "step": 400}
"""Calls that `float(sum(X * Y))` and `w - c * (X.T @ (X @ w))` may take,"""
MOST_OF_A_WRITE = 201
"""and writing what a product of a line with a matrix gives to two lines, which NumPy does step by step,"""
MOST_OF_STEPS = {
    "a + b": 26,
    "a * 2.0": 28,
    "np.sqrt(m)": 29,
    "m @ a": 32,
    "m.T @ m": 38,
    "m[1:] - m[:-1]": 48,
    "m[:, 3] + 1.0": 39,
    "np.sum(m, axis=0)": 34,
    "m.mean(axis=0)": 107,
    "np.where(m > 0, m, 0.0)": 93,
    "np.clip(m, 0, 1)": 63,
    "np.concatenate([a, b])": 43,
    "np.sort(a)": 26,
    "np.roll(m, 1, axis=0)": 64,
    "m.astype(numpy.float32)": 55,
}
"""and steps that are kept for later,"""
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


def printed(folder: Path, *words: str) -> Counter[str]:
    """What this module prints as a command."""
    lines = first_start(folder, "-m", "tests.test_calls", *words).splitlines()
    return Counter({name: int(n) for name, n in (line.rsplit(" ", 1) for line in lines)})


@pytest.mark.parametrize("program", ["sum", "step"])
def test_a_program_whose_plan_is_there_takes_few_calls(program: str, tmp_path: Path) -> None:
    found = printed(tmp_path, program)
    assert any("worker/executor.py" in name for name in found), "it ran on the plan's way"
    assert not any("lower.py" in name for name in found), "the plan was there"
    assert found.total() <= MOST[program], found


def test_planning_takes_few_calls(tmp_path: Path) -> None:
    found = printed(tmp_path, "planning")
    assert any("lower.py" in name for name in found), "it was planned"
    assert found.total() <= MOST_OF_PLANNING, found.most_common(50)


def test_steps_by_numpy_take_few_calls_beside_it(tmp_path: Path) -> None:
    found = printed(tmp_path, "write")
    assert any("kernels/stepwise.py" in name for name in found), "NumPy did the steps"
    assert not any("executor.py" in name for name in found), "and no plan"
    assert found.total() <= MOST_OF_A_WRITE, found.most_common(50)


def test_steps_that_are_kept_for_later_take_few_calls(tmp_path: Path) -> None:
    found = printed(tmp_path, "kept")
    assert {name: found[name] for name, most in MOST_OF_STEPS.items() if found[name] > most} == {}
    assert set(found) == set(MOST_OF_STEPS), "each has been counted"


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


def a_write() -> Counter[str]:
    """The calls of writing a line of covariances to both triangles."""
    by_no_clock()
    x = numpy.random.default_rng(0).random((300, 300))
    with config.override(small_bytes=1 << 19):
        d, c = np.array(x), np.zeros(x.shape)
        d -= 0.5

        def write() -> None:
            c[3:, 3] = c[3, 3:] = d[:, 3] @ d[:, 3:] / (len(d) - 1)

        for _ in range(3):
            write()
        found = calls(write)
        expected = (x[:, 3] - 0.5) @ (x[:, 3:] - 0.5) / 299
        numpy.testing.assert_allclose(c[3, 3:], expected, rtol=1e-9)
        numpy.testing.assert_allclose(c[3:, 3], expected, rtol=1e-9)
    return found


def kept_steps() -> Counter[str]:
    """How many calls each of the steps takes that are kept for later."""
    by_no_clock()
    found: Counter[str] = Counter()
    with config.override(small_bytes=0):
        a, b = np.asarray(numpy.ones(1000)).persist(), np.asarray(numpy.ones(1000)).persist()
        m = np.asarray(numpy.ones((64, 1000))).persist()
        names = {"np": np, "numpy": numpy, "a": a, "b": b, "m": m}
        for text in MOST_OF_STEPS:
            step = eval(f"lambda: {text}", names)  # of the table above
            step()
            found[text] = calls(step).total()
    return found


def by_no_clock() -> None:
    """Have nothing that this process does hang on the time that something takes: when what is compiled, and
    which lines are looked at."""
    vars(select)["HOT_S"] = watch._QUICK_S = float("inf")


def calls_of(program: Callable[[], Any], expected: Any) -> Counter[str]:
    """The calls of a program that is planned, once its plan is there."""
    by_no_clock()
    with config.override(small_bytes=0, fusion="cost", kernels="auto"):
        for _ in range(2):
            np.testing.assert_allclose(program(), expected, rtol=1e-12)
        return calls(program)


PROGRAMS = {"planning": planning, "sum": a_sum, "step": a_step, "write": a_write, "kept": kept_steps}


if __name__ == "__main__":
    for name, n in sorted(PROGRAMS[sys.argv[1]]().items()):
        print(name, n)
