"""Bytes seen as another dtype are a step like others: what comes again has its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.planner import Planner

VALUE = numpy.random.default_rng(0).random(600)
PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "as long": lambda xp, x: x.view("i8") & 255,
    "narrower": lambda xp, x: x.view("u2") + 1,
    "wider": lambda xp, x: (x + 1).view("c16") * 2,
    "real and imaginary": lambda xp, x: (x * 1j).view("f8").sum(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_plan_is_made_however_often_it_runs(name: str) -> None:
    made = 0
    make = Planner._make

    def counted(self: Planner, *args: Any) -> Any:
        nonlocal made
        made += 1
        return make(self, *args)

    with config.override(small_bytes=0), patch.object(Planner, "_make", counted):
        for k in range(3):
            value = VALUE + k
            found = numpy.asarray(PROGRAMS[name](np, np.array(value)))
            assert numpy.array_equal(found, PROGRAMS[name](numpy, value))
    assert made <= 1
