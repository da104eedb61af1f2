"""Places of extremes in lines that loops make are found there, and are NumPy's: the first, NaN before all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

WIDTHS = (2, 3, 8, 50, 1024, 1025, 2500)
"""Of lines: one vector and less, a strip and more."""
PROGRAMS: dict[str, Any] = {
    "least": lambda np, a, b: np.argmin(a + b, axis=1) + 1,
    "greatest": lambda np, a, b: np.argmax(a - b, axis=-1) * 2,
    "of one function": lambda np, a, b: np.argmin(np.negative(a), axis=1) + 1,
    "kept": lambda np, a, b: np.argmin(a * 2 + b, axis=1, keepdims=True) + 1,
    "beside another": lambda np, a, b: np.argmin(a + b, axis=1) + (a + b).max(axis=1),
    "both": lambda np, a, b: np.argmin(a + b, axis=1) - np.argmax(a + b, axis=1),
    "of columns": lambda np, a, b: np.argmin(a + b, axis=0) + 1,
}


@pytest.fixture(params=["threads", "workers"], autouse=True)
def backend(request: pytest.FixtureRequest):
    made = EmbeddedBackend(2) if request.param == "threads" else SimulatedBackend(2)
    with config.override(small_bytes=0, kernels="compile"), running_on(made):
        yield


def operands(kind: str, width: int) -> tuple[Any, Any]:
    """Two matrices with ties, zeros of both signs, and what is no number, at several places of lines."""
    rng, rows = np.random.default_rng(width), 30_000 // width + 37
    a, b = rng.integers(0, 100, (rows, width)), rng.integers(0, 5, (rows, width))
    a, b = a.astype(kind), b.astype(kind)
    if a.dtype.kind == "f":
        a[::7, width // 2] = a[::7, -1] = a[::49, 0] = np.nan
        a[3::11], a[4::13] = np.inf, -np.inf
        a[5::17, 1], b[5::17] = 0, 0
        a[6::19], b[6::19, 0] = -0.0, 0.0
        a[8] = np.nan
    return a, b


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "u1"])
def test_places_are_numpys(kind: str, width: int) -> None:
    a, b = operands(kind, width)
    x, y = sp.asarray(a), sp.asarray(b)
    with np.errstate(all="ignore"):
        for name, program in PROGRAMS.items():
            wanted = program(np, a, b)
            found = np.asarray(program(sp, x, y))
            assert found.dtype == wanted.dtype, name
            np.testing.assert_array_equal(found, wanted, err_msg=name)


@pytest.mark.parametrize("kind", ["f8", "f4"])
def test_labels_are_the_nearest_centres(kind: str) -> None:
    """Behind a product, whose last bits are others': there are no ties."""
    x = np.random.default_rng(0).random((9000, 20)).astype(kind)
    c = x[:40] * 3

    def labels(np: Any, x: Any, c: Any) -> Any:
        return np.argmin((x**2).sum(1)[:, None] - 2 * x @ c.T + (c**2).sum(1), axis=1)

    found = labels(sp, sp.asarray(x), sp.asarray(c))
    np.testing.assert_array_equal(np.asarray(found), labels(np, x, c))


def test_the_loop_that_makes_a_line_looks_through_it() -> None:
    x, c = sp.asarray(np.ones((9000, 20))), sp.asarray(np.ones((40, 20)))
    assert "subtract > argmin: compiled" in str(sp.explain(np.argmin(x.sum(1)[:, None] - x @ c.T, axis=1)))
