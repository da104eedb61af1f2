"""Products behind a zero or an overflow: what is decided stays so, however factors are cut into blocks."""

from __future__ import annotations

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on


def _decided(dtype: str) -> np.ndarray:
    """Columns whose first factors make them zero or infinite, and later ones that overflow, underflow or do
    neither; behind zeros some have infinities and NaNs, which undo them."""
    rng = np.random.default_rng(7)
    large = float(np.finfo(dtype).max) ** 0.3
    x = np.exp(rng.normal(rng.choice([-1, 0, 1], 60), 1, (3000, 60))) * rng.choice([-1, 1], (3000, 60))
    x[:5] = np.where(np.arange(60) % 2, -large, 1)
    x[2, :40:2] = rng.choice([0.0, -0.0], 20)
    x[2700, :10] = rng.choice([np.inf, -np.inf, np.nan], 10)
    return x.astype(dtype)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("reproducible", [False, True])
def test_what_is_decided_stays(kernels, workers, dtype, reproducible):
    x = _decided(dtype)
    kept = np.random.default_rng(8).random(x.shape) < 0.9
    kept[:5] = True
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    settings = {"small_bytes": 0, "kernels": kernels, "reproducible": reproducible}
    with running_on(backend), config.override(**settings), np.errstate(all="ignore"):
        for axis, array, mask in ((0, x, kept), (1, np.ascontiguousarray(x.T), kept.T)):
            a = sp.asarray(array)
            found = sp.compute(a.prod(axis), (a + a).prod(axis), a.prod(axis, where=sp.asarray(mask)))
            expected = [array.prod(axis), (array + array).prod(axis), array.prod(axis, where=mask)]
            for f, e in zip(found, expected, strict=True):
                _assert_same(f, e)


@pytest.mark.parametrize("first", [0.0, -0.0, 1e200, -1e200, 1.0])
@pytest.mark.parametrize("later", [1e3, -1e-3, 1.0])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_long_lines(first, later, dtype):
    with np.errstate(all="ignore"):
        x = np.full(500_001, later, dtype)
        x[:2] = first
        expected = np.prod(x)
        with running_on(EmbeddedBackend(2)), config.override(small_bytes=0):
            found = sp.prod(sp.asarray(x)).compute()
    if dtype != "c16" or np.isfinite(expected):  # the parts of complex infinities depend on the order
        _assert_same(found, expected)


def test_integers_wrap():
    x = np.arange(1, 1_000_000) * 2 + 1
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0), np.errstate(over="ignore"):
        assert sp.prod(sp.asarray(x)).compute() == np.prod(x)
        assert sp.prod(sp.asarray(x), dtype=float).compute() == np.inf


def _assert_same(found, expected):
    rtol = 1e-4 if np.asarray(expected).dtype == "f4" else 1e-10
    np.testing.assert_allclose(found, expected, rtol=rtol)
    if np.asarray(expected).dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])
