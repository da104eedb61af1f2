"""What is multiplied with itself is seen in two ways, and still made once, in the pass of its product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.optimizer.fusion.legality import LARGEST_RESULT
from tests.test_programs import running_on

ROWS = 12_000


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def _own(z: Any) -> Any:
    return z.T @ z


def _shares(z: Any) -> Any:
    return _own(z) / _own(z).sum()


def _beside(z: Any) -> Any:
    return z.T @ (z + 1)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "covariances": lambda xp, x: xp.cov(x, rowvar=False),
    "correlations": lambda xp, x: xp.corrcoef(x, rowvar=False),
    "squares": lambda xp, x: _own(xp.tanh(x) * 2),
    "beside each other": lambda xp, x: _beside(xp.tanh(x)),
    "lines": lambda xp, x: _own(_softmax(xp, x)),
    "a shared divisor": lambda xp, x: _shares(x - 0.5),
    "as a sum": lambda xp, x: xp.einsum("ki,kj->ij", x * x, x * x),
}


@pytest.mark.some(24)
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("columns", [1, 2, 7, 60, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_operand_of_two_names_is_made_in_the_pass(name: str, columns: int, workers: int) -> None:
    x = np.random.default_rng(columns).random((ROWS, columns))
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        made = PROGRAMS[name](sp, sp.asarray(x))
        explained = sp.explain(made)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(np.asarray(made), PROGRAMS[name](np, x), rtol=1e-9, atol=1e-12)
    assert columns * columns < LARGEST_RESULT
    if columns > 1:  # else there is nothing that would be seen in two ways
        stored = [s for s in explained.slots if s.role not in ("input", "both")]
        assert max(s.nbytes for s in stored) < x.nbytes, explained


@pytest.mark.parametrize("workers", [1, 3])
def test_an_operand_that_is_asked_for_is_stored_beside(workers: int) -> None:
    x = np.random.default_rng(0).random((ROWS, 20))
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0):
        z = sp.tanh(sp.asarray(x))
        found = sp.compute(z, z.T @ z, z.sum(0))
    wanted = np.tanh(x), np.tanh(x).T @ np.tanh(x), np.tanh(x).sum(0)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(f), w, rtol=1e-10)


@pytest.mark.slow
def test_rows_too_long_for_a_block_are_stored() -> None:
    x = np.random.default_rng(0).random((40_000, 182))
    assert x.shape[1] ** 2 > LARGEST_RESULT
    with running_on(SimulatedBackend(1)), config.override(small_bytes=0):
        z = sp.tanh(sp.asarray(x))
        made = z.T @ z
        assert len(sp.explain(made).stages) == 2
        np.testing.assert_allclose(np.asarray(made), np.tanh(x).T @ np.tanh(x), rtol=1e-10)
