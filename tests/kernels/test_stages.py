"""Random stages in every tier, on one worker and on three: see `tests.stages`.

The seeds are fixed, so that kernels are compiled once for all runs of the tests; `python -m tests.stages`
draws others. For each form a fault is put in, and stages of that form find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spartan_ng.arrays import box_shape
from spartan_ng.compressed.groups import Coding
from spartan_ng.kernels import blocks, rows, sampled
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.kernels.scans import MonoidScan, UfuncScan
from spartan_ng.ops.line_states import Ends
from spartan_ng.plan.settings import Settings
from tests.stages import FORMS, SIZES_A_BODY, Runner, drawn


def _lost(right, blocks_, count):
    return right(blocks_[:-1] if len(blocks_) > 1 else blocks_, count)


def _behind_nothing(right, how, xs, out, carry):
    return right(how, xs, out, None)


def _first_alone(right, reducer, a, b):
    return a


def _one_index_less(right, reducer, args, box):
    return right(reducer, [x[: max(len(x) - 1, 1)] for x in args], box)


def _elsewhere(right, user, what, *args, extent=None, **options):
    place = {} if extent is None else {"extent": tuple((0, hi - lo) for lo, hi in extent)}
    return right(user, what, *args, **place, **options)


def _turned(right, row, a, b, pattern):
    return right(row, a, b, pattern)[::-1]


def _one_row_more(right, coding, lo, hi):
    return [counts + 1 for counts in right(coding, lo, hi)]


def _from_the_start(right, fn, key, parameters, shape, dtype, box):
    return right(fn, key, parameters, shape, dtype, tuple((0, n) for n in box_shape(box)))


FAULTS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "cells": (blocks, "_runs", _lost),
    "scanned": (UfuncScan, "scan", _behind_nothing),
    "product": (Reducer, "combine", _first_alone),
    "segments": (Reducer, "_bincount", _one_index_less),
    "ends": (Ends, "combine", _first_alone),
    "users": (rows, "call_user", _elsewhere),
    "users' scans": (MonoidScan, "scan", _behind_nothing),
    "csr": (sampled, "dots", _turned),
    "compressed": (Coding, "counts", _one_row_more),
    "random numbers": (rows, "draw", _from_the_start),
}
"""For each form a function of the interpreter, and what it does wrong."""
KERNELS = {"scanned": "scans", "compressed": "look-ups"}
"""What the kernels of a form are, where they are not loops; of some there are none."""
SEEDS = {"scanned": 5, "ends": 1}
"""Seeds with kernels among the first stages, where 3 has none."""


@pytest.fixture(scope="module")
def runner():
    one = Runner()
    yield one
    one.close()


@pytest.mark.parametrize("seed", range(8))
def test_interpreted_and_in_programs(runner, seed):
    for number in range(0, 10 * SIZES_A_BODY, SIZES_A_BODY):
        stage = drawn(number, seed)
        assert not list(runner.differences(stage, ("interpret", "numexpr"))), stage


@pytest.mark.parametrize("form", FORMS)
def test_interpreted(runner, form):
    for number in range(0, 12 * SIZES_A_BODY, SIZES_A_BODY):
        stage = drawn(number, 9, form)
        assert not list(runner.differences(stage, ("interpret",))), stage


@pytest.mark.parametrize("form", FORMS)
def test_compiled(runner, form):
    before = runner.compiled.copy()
    for number in [*range(4), *range(SIZES_A_BODY, SIZES_A_BODY + 4)]:
        stage = drawn(number, SEEDS.get(form, 3), form)
        assert not list(runner.differences(stage, ("compile",))), stage
    if form not in ("users' scans", "random numbers"):
        kind = KERNELS.get(form, "loops")
        assert runner.compiled[kind] > before[kind], "bodies without kernels: take others"


@pytest.mark.parametrize("form", FORMS)
def test_a_fault_is_found(monkeypatch, runner, form):
    place, name, wrong = FAULTS[form]
    right = getattr(place, name)
    monkeypatch.setattr(place, name, lambda *args, **options: wrong(right, *args, **options))
    stages = (drawn(n, seed, form) for seed in (1, 2, 3) for n in range(0, 60 * SIZES_A_BODY, SIZES_A_BODY))
    assert any(any(runner.differences(stage, ("interpret",))) for stage in stages)


@pytest.mark.slow
def test_other_last_bits_are_found(monkeypatch, runner):
    """Where last bits are to be kept, and the plan does not keep them."""
    right = Settings
    monkeypatch.setattr("tests.stages.runner.Settings", lambda *args, reproducible: right(*args))
    numbers = range(0, 120, SIZES_A_BODY)
    stages = (drawn(n, seed, "cells") for seed in range(27, 35) for n in numbers)
    assert any(any(runner.differences(s, ("interpret",))) for s in stages if s.keeps_bits)
