"""Compiled sums round no worse than NumPy's, however few bytes lie behind their operands' elements."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np
from spartan_ng.kernels.compiled import select
from spartan_ng.kernels.compiled.compile import compiler

SHAPES = ((3, 20_000), (20_000, 3), (2, 3, 7_000), (2, 7_000, 3))


def _operands(shape, stands, dtype):
    """Two arrays, each of which stands still along some axes."""
    rng = numpy.random.default_rng(len(stands))
    for still in stands:
        own = rng.random([1 if d in still else n for d, n in enumerate(shape)]).astype(dtype)
        yield numpy.broadcast_to(own, shape)


def _cases():
    for shape in SHAPES:
        axes = range(len(shape))
        sets = list(product(*((None, d) for d in axes)))
        for one, other, folded in product(sets, sets, sets):
            if any(d is not None for d in folded):
                yield shape, *(tuple(d for d in s if d is not None) for s in (one, other, folded))


@pytest.mark.parametrize("kernels", ["interpret", "compile"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8"])
def test_sums_of_what_a_mask_leaves_are_as_exact_as_numpys(dtype, kernels):
    """NumPy adds pairwise what it has copied, and one after the other where it is given a mask."""
    a = (numpy.random.default_rng(0).random(300_000) / 64 + 1 / 8).astype(dtype)
    mask, eps = a.real > a[0].real, numpy.finfo(dtype).eps
    exact = a[mask].astype("G" if a.dtype.kind == "c" else "g").sum()
    with np.config.override(small_bytes=0, kernels=kernels):
        x, there = np.asarray(a), np.asarray(mask)
        found = {
            "filtered": x[there].sum(),
            "masked": np.sum(x, where=there),
            "compared": x[x.real > a[0].real].sum(),
            "a mean": x[there].mean() * mask.sum(),
            "a masked mean": np.mean(x, where=there) * mask.sum(),
            "numbers": np.nansum(np.where(there, x, numpy.nan)),
        }
        for name, value in found.items():
            error = abs(numpy.asarray(value).astype(exact.dtype) - exact) / abs(exact) / eps
            assert error <= 8, (name, float(error))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_what_is_broadcast_are_as_exact_as_numpys(some, dtype, monkeypatch):
    monkeypatch.setattr(select, "HOT_S", 0.0)
    eps = numpy.finfo(dtype).eps
    for shape, one, other, folded in some(_cases(), 3):
        a, b = _operands(shape, (one, other), dtype)
        exact = (a.astype("g") * b.astype("g")).sum(folded)
        numpys = abs((a * b).sum(folded) - exact).max() / abs(exact).max() / eps
        with np.config.override(small_bytes=0, kernels="compile"):
            x, y = (
                np.broadcast_to(
                    np.asarray(v[tuple(slice(0, 1) if s == 0 else slice(None) for s in v.strides)]), shape
                )
                for v in (a, b)
            )
            found = numpy.asarray((x * y).sum(folded))
        assert compiler.wait()
        error = abs(found - exact).max() / abs(exact).max() / eps
        assert error <= 4 * numpys + 64, (shape, one, other, folded, float(error), float(numpys))
