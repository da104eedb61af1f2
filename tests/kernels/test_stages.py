"""Random stages in every tier, on one worker and on three: see `tests.stages`.

The seeds are fixed, so that kernels are compiled once for all runs of the tests; `python -m tests.stages`
draws others.
"""

from __future__ import annotations

import pytest

from tests.stages import SIZES_A_BODY, Runner, drawn


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


@pytest.mark.parametrize("body", [4, 8, 9])
def test_compiled(runner, body):
    before = runner.compiled
    for number in range(body * SIZES_A_BODY, (body + 1) * SIZES_A_BODY):
        stage = drawn(number, 0)
        assert not list(runner.differences(stage, ("compile",))), stage
    assert runner.compiled > before, "a body without loops: take another"
