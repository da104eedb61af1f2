"""Fusion moves no large array that lies on workers for the sake of a small value that it would not store.

Programs over two matrices, each as it lies and turned, planned as by default and without any fusion: what is
fused moves no more but for a few vectors. Arrays that nobody has placed, which plans.md's programs have, ask
nothing of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

N, WORKERS = 600, 4
_VECTORS = 6 * WORKERS * N * 8
"""Bytes of vectors that plans may move for each other's sake."""

PROGRAMS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "A @ (B @ v)": lambda np, A, B, v: A @ (B @ v),
    "A @ B @ v": lambda np, A, B, v: A @ B @ v,
    "v @ A @ B": lambda np, A, B, v: v @ A @ B,
    "A @ exp(B @ v)": lambda np, A, B, v: A @ np.exp(B @ v / 600),
    "exp(A) @ (B @ v)": lambda np, A, B, v: np.exp(A) @ (B @ v),
    "(A * 2 + 1) @ (B @ v)": lambda np, A, B, v: (A * 2 + 1) @ (B @ v),
    "A @ (v / (B @ v))": lambda np, A, B, v: A @ (v / (B @ v)),
    "A @ (A.T @ v)": lambda np, A, B, v: A @ (A.T @ v),
    "a row of a product": lambda np, A, B, v: (A @ B)[3],
    "a column of a product": lambda np, A, B, v: (A @ B)[:, 3],
    "row sums of a product": lambda np, A, B, v: (A @ B).sum(1),
    "column sums of a product": lambda np, A, B, v: (A @ B).sum(0),
    "A - A.mean(0)": lambda np, A, B, v: A - A.mean(0),
    "A - A.mean(1)": lambda np, A, B, v: A - A.mean(1)[:, None],
    "(A - A.mean(0)).sum(1)": lambda np, A, B, v: (A - A.mean(0)).sum(1),
    "A / (B.sum(0) + 1)": lambda np, A, B, v: A / (B.sum(0) + 1),
    "A - max(B)": lambda np, A, B, v: A - B.max(1)[:, None] * 2,
    "slices": lambda np, A, B, v: A[::2] @ (B @ v),
    "sorted": lambda np, A, B, v: np.sort(A, 1) @ (B @ v),
    "cumulated": lambda np, A, B, v: np.cumsum(A, 0) @ (B @ v),
    "a mask": lambda np, A, B, v: (A > 0.5) @ (B @ v),
    "the largest": lambda np, A, B, v: (A @ (B @ v)).max(),
    "einsum": lambda np, A, B, v: np.einsum("ij,jk,k", A, B, v),
}


@pytest.mark.some(24)
@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_fused_moves_no_more(name: str, turned: tuple[bool, bool]) -> None:
    program, moved = PROGRAMS[name], {}
    with running_on(SimulatedBackend(WORKERS)), config.override(small_bytes=0):
        for fusion in ("off", "cost"):
            rng = np.random.default_rng(5)
            placed = [rng.random((N, N)).persist() for _ in turned]
            a, b = (m.T if is_turned else m for m, is_turned in zip(placed, turned, strict=True))
            v = rng.random(N).persist()
            with config.override(fusion=fusion):
                found = program(np, a, b, v)
                moved[fusion] = np.explain(found).to_dict()["predicted_bytes"]
                value = numpy.asarray(found)
        whole = program(numpy, *(numpy.asarray(m) for m in (a, b, v)))
    numpy.testing.assert_allclose(value, whole, rtol=1e-9)
    assert moved["cost"] <= moved["off"] + _VECTORS
