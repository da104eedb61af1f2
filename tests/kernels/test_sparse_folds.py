"""Sums and extremes of what sparse blocks store, beside those of their dense forms."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from scipy import sparse

from spartan_ng.kernels.sparse_folds import sparse_fold

_rng = numpy.random.default_rng(0)


def _blocks(kind: str) -> list[numpy.ndarray]:
    """With empty rows and columns, full ones, one element, none, and numbers that are none."""
    dtype = numpy.dtype(kind)
    thin = numpy.where(_rng.random((40, 30)) < 0.2, _rng.standard_normal((40, 30)) * 9, 0)
    thin[[0, 7, 39]], thin[:, [0, 29]] = 0, 0
    full = thin.copy()
    full[3], full[:, 4] = -numpy.arange(1, 31), -7
    blocks = [thin, full, numpy.full((3, 4), -2.0), numpy.zeros((5, 6)), numpy.full((1, 1), -3.0)]
    if dtype.kind == "f":
        odd = full.copy()
        odd[3, 3], odd[5, 5], odd[9] = numpy.nan, numpy.inf, -numpy.inf
        blocks.append(odd)
    return [numpy.abs(b).astype(dtype) if dtype.kind in "ub" else b.astype(dtype) for b in blocks]


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u1", "?", "D"])
def test_folds_are_those_of_dense_blocks(kind: str, form: str) -> None:
    close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5} if kind == "f4" else {"rtol": 1e-9, "atol": 1e-12}
    with numpy.errstate(invalid="ignore"):
        for block in _blocks(kind):
            x = sparse.csr_array(block).asformat(form)
            for axes in ((0,), (1,), (0, 1)):
                made = block.sum(axis=axes).dtype
                for dtype in {made, numpy.dtype("D" if made.kind == "c" else "f8")}:
                    found = sparse_fold("add", x, axes, dtype)
                    assert found.dtype == dtype
                    numpy.testing.assert_allclose(found, block.sum(axis=axes, dtype=dtype), **close)
                for name in ("maximum", "minimum") if block.dtype.kind in "fiu" else ():
                    found = sparse_fold(name, x, axes, block.dtype)
                    assert found.dtype == block.dtype
                    numpy.testing.assert_array_equal(found, getattr(numpy, name).reduce(block, axes))
