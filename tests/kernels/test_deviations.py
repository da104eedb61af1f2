"""The variance in one pass: NumPy's values for every axis and layout, and nothing cancels."""

from __future__ import annotations

import numpy as np
import pytest

import spartan_ng as sp
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.backends.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
def test_variances(kernels, workers, axis, dtype):
    x = (np.random.default_rng(0).random((60, 30, 17)) * 100).astype(dtype)
    backend = EmbeddedBackend(2) if workers == 1 else SimulatedBackend(workers)
    with running_on(backend), config.override(small_bytes=0, kernels=kernels):
        a = sp.asarray(x)
        found = sp.compute(a.var(axis), a.std(axis, ddof=1), (a.T + 0).var(axis), a.var(axis, keepdims=True))
    expected = [x.var(axis), x.std(axis, ddof=1), x.T.var(axis), x.var(axis, keepdims=True)]
    for f, e in zip(found, expected, strict=True):
        assert f.dtype == e.dtype
        np.testing.assert_allclose(f, e, rtol=1e-4 if dtype == "f4" else 1e-10)


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
def test_a_large_mean_cancels_nothing(kernels):
    x = np.random.default_rng(0).random((50_000, 3)) + 1e9
    x[0] = -1e9
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0, kernels=kernels):
        a = sp.asarray(x)
        np.testing.assert_allclose(a[1:].var(0).compute(), x[1:].var(0), rtol=1e-9)
        np.testing.assert_allclose(a.var(0).compute(), x.var(0), rtol=1e-9)


def test_special_values():
    x = np.ones((400, 4))
    x[7, 1], x[9, 2] = np.nan, np.inf
    with running_on(EmbeddedBackend(2)), config.override(small_bytes=0), np.errstate(all="ignore"):
        np.testing.assert_array_equal(sp.asarray(x).var(0).compute(), x.var(0))
