"""Statistics of integers near their limits: what is computed in doubles wraps around nowhere."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

FUNCTIONS = {
    "average": lambda xp, a, w: xp.average(a, axis=-1, weights=w),
    "average of all": lambda xp, a, w: xp.average(a, weights=w, returned=True),
    "mean": lambda xp, a, w: xp.mean(a, axis=0),
    "mean under a mask": lambda xp, a, w: xp.mean(a, where=w > 1),
    "nanmean": lambda xp, a, w: xp.nanmean(a, axis=1),
    "var": lambda xp, a, w: xp.var(a, axis=1, ddof=1),
    "std": lambda xp, a, w: xp.std(a),
    "nanstd": lambda xp, a, w: xp.nanstd(a, axis=0),
    "ptp": lambda xp, a, w: xp.ptp(a, axis=0),
    "cov": lambda xp, a, w: xp.cov(a),
    "cov with weights": lambda xp, a, w: xp.cov(a[:, :3], aweights=w[0, :3]),
    "corrcoef": lambda xp, a, w: xp.corrcoef(a),
    "median": lambda xp, a, w: xp.median(a, axis=1),
    "quantile": lambda xp, a, w: xp.quantile(a, [0.1, 0.5], axis=0),
    "trapezoid": lambda xp, a, w: xp.trapezoid(a, axis=1),
    "trapezoid at": lambda xp, a, w: xp.trapezoid(a, w, axis=1),
    "interp": lambda xp, a, w: xp.interp([0.5, 1.5], [0, 1, 2], a[0, :3]),
    "gradient": lambda xp, a, w: xp.gradient(a, axis=1),
    "diff": lambda xp, a, w: xp.diff(a, axis=0),
    "sum": lambda xp, a, w: xp.sum(a * w, axis=0),
    "prod": lambda xp, a, w: xp.prod(a, axis=1),
    "cumsum": lambda xp, a, w: xp.cumsum(a, axis=1),
    "dot": lambda xp, a, w: xp.dot(a, w.T),
    "einsum": lambda xp, a, w: xp.einsum("ij,ij->i", a, w),
    "inner": lambda xp, a, w: xp.inner(a, w),
    "norm": lambda xp, a, w: xp.linalg.norm(a, axis=1),
    "vector norm 3": lambda xp, a, w: xp.linalg.norm(a[0], 3),
    "convolve": lambda xp, a, w: xp.convolve(a[0], w[0]),
    "histogram": lambda xp, a, w: xp.histogram(a, 4, weights=w)[0],
    "bincount": lambda xp, a, w: xp.bincount([0, 1, 1, 0], a[0]),
    "power": lambda xp, a, w: a**2,
    "divide": lambda xp, a, w: a / w,
    "polyval": lambda xp, a, w: xp.polyval(a[0], w[0]),
    "cross": lambda xp, a, w: xp.cross(a[:, :3], w[:, :3]),
    "kron": lambda xp, a, w: xp.kron(a, w),
    "trace": lambda xp, a, w: xp.trace(a),
    "linspace": lambda xp, a, w: xp.linspace(a[0], a[1], 3),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_statistics_are_numpys(name):
    rng = numpy.random.default_rng(len(name))
    for dtype in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"):
        if dtype == "?":
            a, w = rng.random((3, 4)) > 0.4, rng.random((3, 4)) > 0.4
        else:
            limits = numpy.iinfo(dtype)
            a = rng.integers(limits.max - 9, limits.max, (3, 4), dtype, endpoint=True)
            a[rng.random((3, 4)) > 0.6] = limits.min
            w = rng.integers(limits.max // 2, limits.max, (3, 4), dtype)
        outcomes = []
        for xp in (numpy, np):
            with np.config.override(small_bytes=0):
                try:
                    found = FUNCTIONS[name](xp, xp.array(a), xp.array(w))
                    parts = found if isinstance(found, tuple) else (found,)
                    outcomes.append([numpy.asarray(p) for p in parts])
                except (TypeError, ValueError, ZeroDivisionError) as error:
                    outcomes.append([numpy.array(type(error).__mro__[-4].__name__)])
        for got, wanted in zip(outcomes[1], outcomes[0], strict=True):
            assert got.dtype == wanted.dtype, dtype
            if wanted.dtype.kind in "fc":
                rtol = 1e-9 if wanted.dtype.itemsize > 4 else 2e-3
                numpy.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol * 1e-3, err_msg=dtype)
            else:
                numpy.testing.assert_array_equal(got, wanted, err_msg=dtype)
