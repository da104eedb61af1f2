"""Products of what lies outside, under budgets that leave little for what is read at a time: right, each
element read once, and few additions to a result that no cache holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import DEEP, WIDE_STATE_BYTES
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

SHAPES = [(900, 500), (500, 900), (3000, 400), (2000, 60), (60, 2000), (400, 400)]
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "with itself": lambda xp, x: x.T @ x,
    "of rows": lambda xp, x: x @ x.T,
    "of what is made": lambda xp, x: xp.exp(-x).T @ x,
    "of what is made twice": lambda xp, x: (x * 2).T @ (x + 1),
    "finished": lambda xp, x: (x.T @ x) / len(x),
    "of a part": lambda xp, x: x[::2].T @ x[::2, :50],
    "of halves": lambda xp, x: x[: len(x) // 2].T @ x[len(x) // 2 : len(x) // 2 * 2],
    "backwards": lambda xp, x: x[::-1].T @ x,
    "beside a sum": lambda xp, x: xp.concatenate([x.T @ x, x.sum(axis=0)[None]]),
    "of single precision": lambda xp, x: x.astype("f4").T @ x.astype("f4"),
}
ONCE = ("with itself", "of rows", "of what is made", "finished")
CASES = [
    (form, shape, budget) for form in FORMS for shape in SHAPES for budget in (1 << 20, 4 << 20, 1 << 26)
]


@pytest.mark.some(12)
@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize(("form", "shape", "budget"), CASES)
def test_products_are_right_and_read_once(
    form: str, shape: tuple[int, int], budget: int, workers: int
) -> None:
    value = numpy.random.default_rng(0).random(shape)
    source = Recorder(value, (50, shape[1]))
    profile = Profile(memory_bytes=budget, limited=True)
    backend = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, budget)
    with config.override(memory_bytes=budget, small_bytes=0), running_on(backend):
        found = numpy.asarray(FORMS[form](np, over(source)))
    rtol = 1e-4 if "single" in form else 1e-10
    numpy.testing.assert_allclose(found, FORMS[form](numpy, value), rtol=rtol)
    if not workers and form in ONCE:
        assert source.times.max() == 1


@pytest.mark.some(30)
@pytest.mark.parametrize(("form", "shape", "budget"), CASES)
def test_no_result_that_caches_do_not_hold_is_added_to_often(
    form: str, shape: tuple[int, int], budget: int
) -> None:
    """`x.T @ x` of a thousand columns took four times as long as its operands do to disk and back."""
    with config.override(memory_bytes=budget, small_bytes=0), running_on(EmbeddedBackend(2, budget)):
        made = FORMS[form](np, over(Recorder(numpy.ones(shape), (50, shape[1]))))
        explained = np.explain(made)
    for stage in explained.stages:
        band = re.fullmatch(r"reads (\d+) indices of dimension (\d+) at a time", stage.band)
        if band is None or len(stage.domain) != 3 or "matmul" not in stage.operators:
            continue
        length, along = map(int, band.groups())
        if (
            along == 2
            and length < stage.domain[2]
            and 8 * stage.domain[0] * stage.domain[1] >= WIDE_STATE_BYTES
        ):
            assert length >= DEEP, explained
