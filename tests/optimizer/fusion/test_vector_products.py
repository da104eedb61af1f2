"""Products of one matrix with vectors read it once, however long its lines are: one pass for what depends on
each other, as `X.T @ (X @ v)`, and for what does not, as `A @ p` beside `r @ A`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.optimizer.fusion.legality import LEAST_TASKS
from tests.test_programs import running_on


def _in_place(xp: Any, A: Any, x: Any, r: Any) -> list[Any]:
    a, b = xp.array(r), xp.array(x)
    a += A @ x
    b += r @ A
    return [a, b]


def _into(xp: Any, A: Any, x: Any, r: Any) -> list[Any]:
    a, b = xp.zeros(len(r), A.dtype), xp.zeros(len(x), A.dtype)
    xp.matmul(A, x, out=a)
    xp.add(xp.dot(r, A), b, out=b)
    xp.multiply(a, r, out=a)
    return [a, b]


def _shared(xp: Any, A: Any, x: Any, r: Any) -> list[Any]:
    y, z = A @ x, r @ A
    return [xp.exp(y / abs(y).max()) - y, (z * z).sum(), A @ (x + 1) + r]


PROGRAMS: dict[str, Callable[[Any, Any, Any, Any], list[Any]]] = {
    "A.T @ (A @ x)": lambda xp, A, x, r: [A.T @ (A @ x)],
    "(A @ x) @ A": lambda xp, A, x, r: [(A @ x) @ A],
    "A @ (r @ A)": lambda xp, A, x, r: [A @ (r @ A)],
    "a gradient": lambda xp, A, x, r: [A.T @ (1 / (1 + xp.exp(-(A @ x))) - r)],
    "a step": lambda xp, A, x, r: [x - 0.1 * (A.T @ (A @ x - r))],
    "a step along the other axis": lambda xp, A, x, r: [r - 0.1 * (A @ (r @ A - x))],
    "r @ A, A @ x": lambda xp, A, x, r: [r @ A, A @ x],
    "A.T @ r, x @ A.T": lambda xp, A, x, r: [A.T @ r, x @ A.T],
    "r += A @ x, x += r @ A": _in_place,
    "out=": _into,
    "several that are asked for again": _shared,
    "sums": lambda xp, A, x, r: [((A @ x) ** 2).sum(), abs(A.T @ r).max(), xp.outer(A @ x, x[:3])],
}
ALONG_COLUMNS = ("A @ (r @ A)", "a step along the other axis")
"""Programs whose first product goes along the columns, so that blocks are cut between these alone."""
SHAPES = {"wide": (300, 900), "square": (600, 600), "tall": (9000, 40), "odd": (1037, 129)}


def _given(shape: tuple[int, int], dtype: str = "f8") -> list[Any]:
    random = np.random.default_rng(3)
    return [random.standard_normal(n).astype(dtype) for n in (shape, shape[1], shape[0])]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_pass_reads_the_matrix(name: str, shape: str) -> None:
    """But where so few lines are left that there is nothing to cut."""
    with running_on(SimulatedBackend(1)), config.override(small_bytes=0):
        given = _given(SHAPES[shape])
        explained = sp.explain(*PROGRAMS[name](sp, *map(sp.asarray, given)))
    (matrix,) = (s.number for s in explained.slots if s.shape == given[0].shape)
    lines = SHAPES[shape][name in ALONG_COLUMNS]
    expected = 1 if lines >= LEAST_TASKS else 2
    assert sum(matrix in stage.reads for stage in explained.stages) == expected, explained


@pytest.mark.some(14)
@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values(shape: str, dtype: str, workers: int, kernels: str) -> None:
    given = _given(SHAPES[shape], dtype)
    with running_on(SimulatedBackend(workers)), config.override(small_bytes=0, kernels=kernels):
        for name, program in PROGRAMS.items():
            found = program(sp, *map(sp.asarray, given))
            sp.persist(*found)
            for a, b in zip(found, program(np, *given), strict=True):
                error = np.abs(np.asarray(a) - b).max() / np.abs(b).max()
                assert error < 1e3 * np.finfo(dtype).eps, name


def test_a_plan_is_made_where_two_products_read_one_matrix() -> None:
    """NumPy's product is as good for one, or for two with matrices of their own."""
    A, x, r = _given((2000, 700))
    B = A + 1
    runs = {
        "one": lambda A, B: [A @ x],
        "two of two": lambda A, B: [A @ x, B @ x],
        "two of one": lambda A, B: [A @ x, r @ A],
        "one of the other": lambda A, B: [A.T @ (A @ x)],
    }
    with config.override(small_bytes=1 << 20):
        planned = []
        for name, run in runs.items():
            session.current().last_run = None
            sp.persist(*run(*map(sp.array, (A, B))))
            if session.current().last_run is not None:
                planned.append(name)
    assert planned == ["two of one", "one of the other"]
