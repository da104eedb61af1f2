"""Precisions and tolerances of `linalg`: NumPy has LAPACK work in doubles, whatever matrices are of.

So a default tolerance, and what a nearly singular matrix gives, are NumPy's for each dtype, whether a matrix
is worked on in one task, by groups of rows, or by panels.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.algebra import factorizations
from spartan_ng.api.files.sources import over
from tests.api.test_tall_matrices import little_memory
from tests.sources.recorder import Recorder

DTYPES = ["f4", "f8", "c8", "c16", "i1", "i4", "u2", "?", ">f4", ">f8"]
TALL: dict[str, Callable[[Any, Any], Any]] = {
    "lstsq": lambda m, x: m.linalg.lstsq(x, x[:, 0] * 2 + 1)[0],
    "rank of lstsq": lambda m, x: m.linalg.lstsq(x, x[:, 0] + 1)[2],
    "residuals of lstsq": lambda m, x: m.linalg.lstsq(x, x[:, 0] * x[:, 1] + 1)[1],
    "many columns": lambda m, x: m.linalg.lstsq(x, m.concatenate([x] * 260, 1) + 1)[0],
    "pinv": lambda m, x: m.linalg.pinv(x),
    "pinv, rtol": lambda m, x: m.linalg.pinv(x + m.ones(1, "f4"), rtol=None),
    "matrix_rank": lambda m, x: m.linalg.matrix_rank(x),
    "cond": lambda m, x: m.linalg.cond(x),
    "svdvals": lambda m, x: m.linalg.svdvals(x),
    "svd": lambda m, x: m.linalg.svd(x, full_matrices=False)[1],
    "norm": lambda m, x: m.linalg.norm(x, "nuc"),
    "qr": lambda m, x: m.linalg.qr(x)[0] * m.ones(1, "f4"),
    "r": lambda m, x: m.linalg.qr(x, "r"),
    "polyfit": lambda m, x: m.polyfit(x[:, 0], x[:, 1], 1),
}
SQUARE: dict[str, Callable[[Any, Any], Any]] = {
    "solve": lambda m, a: m.linalg.solve(a, a[:, :2] + 1),
    "inv": lambda m, a: m.linalg.inv(a),
    "det": lambda m, a: m.linalg.det(a / 8),
    "slogdet": lambda m, a: m.linalg.slogdet(a)[1],
    "cholesky": lambda m, a: m.linalg.cholesky(a),
}


def tall_matrix(dtype: str) -> Any:
    """Three columns of small numbers, which are nearly alike where that can be said."""
    rng = numpy.random.default_rng(7)
    a = rng.integers(0, 2 if dtype == "?" else 5, (3001, 3)).astype(dtype)
    if a.dtype.kind in "fc":
        a[:, 2] = a[:, 1] + (a[:, 2] * numpy.float32(1e-5)).astype(dtype)
    return a


def asked(call: Callable[[Any, Any], Any], a: Any, x: Any) -> None:
    """Alike, up to roundings of the result, and of doubles times the condition of what is nearly singular."""
    expected, found = numpy.asarray(call(numpy, a)), numpy.asarray(call(np, x))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    eps = float(numpy.finfo(expected.dtype).eps) if expected.dtype.kind in "fc" else 0
    bound = (50 * eps + 1e-7) * max(float(numpy.max(abs(expected), initial=0)), 1e-300)
    assert float(numpy.max(abs(found - expected), initial=0)) <= bound, (found, expected)


@pytest.mark.some(20)
@pytest.mark.parametrize("workers", [None, 0, 3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TALL)
def test_tall_matrices_of_every_dtype(
    name: str, dtype: str, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factorizations, "LARGE", 50)
    a = tall_matrix(dtype)
    with nullcontext() if workers is None else little_memory(workers, 300_000):
        x = np.array(a) if workers is None else over(Recorder(a))
        asked(TALL[name], a, x)


@pytest.mark.some(20)
@pytest.mark.parametrize("workers", [None, 0, 3])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "?"])
@pytest.mark.parametrize("name", SQUARE)
def test_square_matrices_of_every_dtype(
    name: str, dtype: str, workers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By panels on workers; nearly singular, but for what Cholesky's has in every dtype."""
    monkeypatch.setattr(factorizations, "LARGE", 50)
    monkeypatch.setattr(factorizations, "PANEL", 8)
    monkeypatch.setattr(factorizations, "BLOCKED", 0)
    rng = numpy.random.default_rng(9)
    low = rng.integers(0, 2, (24, 24))
    a = (low @ low.T + numpy.eye(24, dtype=int)).astype(dtype)
    if a.dtype.kind in "fc" and name != "cholesky":
        a[1] = a[0]
        a[1, 1] += numpy.float32(1e-3)
    with nullcontext() if workers is None else little_memory(workers, 1 << 20):
        asked(SQUARE[name], a, np.array(a) + np.array(0, dtype))
