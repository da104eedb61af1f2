"""Bytes that programs move, as predicted and as measured, against what a person would have workers send."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from tests.test_programs import running_on

WORKERS = 4
N = 600
ITEM = 8
random = np.random.default_rng(0)
X = random.random(400_000)
A, B, V = random.random((N, N)), random.random((N, N)), random.random(N)


class ByHand(NamedTuple):
    """A program, its operands, and the bytes that suffice."""

    run: Callable[..., Any]
    operands: tuple[Any, ...]
    bytes: int
    predicted: float = 0.05
    """How far the prediction may be off; a search depends on the numbers."""


_SENT = (WORKERS - 1) * ITEM
"""Every worker but one sends a number to who adds them up."""

PROGRAMS = {
    "a column of a product": ByHand(lambda xp, a, b: (a.T @ b)[:, 424], (A, B), N * _SENT),
    "rows of a product": ByHand(lambda xp, a, b: (a @ b)[10:20], (A, B), 10 * N * _SENT + 36_000),
    "the trace of a product": ByHand(lambda xp, a, b: xp.trace(a @ b), (A, B), _SENT),
    "sums of a product": ByHand(lambda xp, a, b: (a @ b).sum(0), (A, B), 2 * N * _SENT),
    "the least of a sort": ByHand(lambda xp, x: xp.sort(x)[:10], (X,), 10 * _SENT),
    "the greatest of a sort": ByHand(lambda xp, x: xp.sort(x)[-10:], (X,), 10 * _SENT),
    "where the least are": ByHand(lambda xp, x: xp.argsort(x)[:10], (X,), 2 * 10 * _SENT),
    "the median": ByHand(lambda xp, x: xp.median(x), (X,), 1_000, 0.5),
    "a quantile": ByHand(lambda xp, x: xp.quantile(x, 0.3), (X,), 1_000, 0.5),
    "few distinct numbers": ByHand(lambda xp, x: xp.unique(x), (X * 100 // 1,), 128 * _SENT),
    "a chain of products": ByHand(lambda xp, a, b, v: a @ b @ v, (A, B, V), 2 * N * _SENT),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_moves_than_by_hand(name: str) -> None:
    run, operands, most, within = PROGRAMS[name]
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0):
        found = run(sp, *map(sp.asarray, operands))
        np.testing.assert_allclose(found.compute(), run(np, *operands), rtol=1e-10)
        ran = session.current().last_run
        measured = session.current().moved_bytes
    assert ran is not None
    plan, stats = ran
    assert measured == stats.bytes_moved, "one plan is all of it"
    assert sum(plan.predicted_bytes) == pytest.approx(measured, rel=within)
    assert measured <= 1.2 * most
