"""What stands between a small program and its numbers, counted in calls of Python functions.

A program that comes again finds its plan; all that is left is the way there and back, which every small
program pays. How often Python functions are called on it depends on no machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import watch
from spartan_ng.config import config
from spartan_ng.kernels.compiled import select

MOST = 250
"""Calls that `float(sum(X * Y))` may take."""


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


def test_a_sum_whose_plan_is_there_takes_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "HOT_S", float("inf"))  # how soon it is compiled depends on the machine
    monkeypatch.setattr(watch, "_QUICK_S", float("inf"))
    random = numpy.random.default_rng(0)
    x, y = random.random((2, 100, 100))
    X, Y = np.asarray(x), np.asarray(y)

    def program() -> None:
        assert float(np.sum(X * Y)) == pytest.approx(float((x * y).sum()), rel=1e-12)

    def alone() -> float:
        return float(np.sum(X * Y))

    with config.override(small_bytes=0, fusion="cost", kernels="auto"):
        program()
        program()
        found = calls(alone)
    assert any("worker/executor.py" in name for name in found), "it ran on the plan's way"
    assert not any("lower.py" in name for name in found), "the plan was there"
    assert found.total() <= MOST, "\n".join(f"{n} {k}" for k, n in sorted(found.items()))
