"""Compiled scans against NumPy: every step, dtype and shape, whole lines and chunks."""

from __future__ import annotations

import numpy as np
import pytest

from spartan_ng.config import config
from spartan_ng.kernels.compiled import prefixes, scans
from spartan_ng.kernels.compiled.scans import compiled_scan
from spartan_ng.ops.folds import FOLDS, PREFIX_FOLDS

SHAPES = [((4099,), 0), ((37, 64), 0), ((37, 64), 1), ((3, 41, 5), 1), ((5, 7, 3), 0), ((1, 9), 0)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("name", ["add", "multiply", "minimum", "maximum"])
def test_values(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "LEAST", 1)
    rng = np.random.default_rng(3)
    for shape, axis in SHAPES:
        x = (rng.standard_normal(shape) * 3 + 1).astype(dtype)
        if dtype[0] == "f" and name in ("minimum", "maximum"):
            x[rng.random(shape) < 0.01] = np.nan
        out = np.empty_like(x)
        with config.override(kernels="compile"), np.errstate(all="ignore"):
            scan = compiled_scan(name, [x], out, axis, {})
            assert scan is not None
            function = getattr(np, name)
            expected = function.accumulate(x, axis, dtype=dtype)
            carry = np.take(x, [0], axis)
            for before, wanted in ((None, expected), (carry, function(carry, expected))):
                pieces = scan.pieces(2) or [((0, scan.outer), (0, scan.inner))]
                out[...] = 0
                for lines, neighbours in pieces:
                    scan.run(lines, neighbours, (0, scan.n), before)
                np.testing.assert_allclose(out, wanted, rtol=1e-4 if dtype == "f4" else 1e-10, atol=1e-4)


def test_recurrence_with_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "LEAST", 1)
    rng = np.random.default_rng(3)
    y, w = rng.standard_normal((2, 500, 20))
    w[rng.random(w.shape) < 0.2] = 0
    y[rng.random(y.shape) < 0.01] = np.inf
    out = np.empty_like(y)
    with config.override(kernels="compile"):
        scan = compiled_scan("cumsumprod", [y, w], out, 0, {})
    assert scan is not None
    scan.run((0, 1), (0, 20), (0, 500), np.ones((1, 20)))
    before = np.ones(20)
    for i in range(500):
        with np.errstate(invalid="ignore"):
            before = y[i] + np.where(w[i] == 0, 0, w[i] * before)
        np.testing.assert_allclose(out[i], before, rtol=1e-12)


def test_left_to_numpy() -> None:
    x = np.ones((1 << 9, 1 << 9))
    out = np.empty_like(x)
    with config.override(kernels="compile"):
        assert compiled_scan("add", [x], out, 0, {}) is not None
        assert compiled_scan("add", [x], out, 0, {"over": "raise"}) is None
        assert compiled_scan("add", [x.T], out, 0, {}) is None
        assert compiled_scan("logaddexp", [x], out, 0, {}) is None
        assert compiled_scan("add", [x[:10]], out[:10], 0, {}) is None
    with config.override(kernels="interpret"):
        assert compiled_scan("add", [x], out, 0, {}) is None


@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_of_prefix_sums(name: str) -> None:
    x = np.random.default_rng(2).standard_normal(prefixes.LEAST + 3)
    fold = FOLDS[PREFIX_FOLDS[name]]
    special = x.copy()
    special[[100, 5000]] = np.inf, -np.inf
    with config.override(kernels="compile"), np.errstate(invalid="ignore"):
        for y in (x, special):
            state = prefixes.prefix_state(fold.name, y, y.dtype)
            assert state is not None
            expected = fold.finalize(fold.block(y, (0,), y.dtype, None, 0))
            np.testing.assert_allclose(fold.finalize(state), expected, rtol=1e-10)
        assert prefixes.prefix_state(fold.name, x[::2], x.dtype) is None
        with np.errstate(invalid="raise"):
            assert prefixes.prefix_state(fold.name, x, x.dtype) is None
