"""Rows of CSR arrays and columns of CSC ones are SciPy's slices, without their copy."""

from __future__ import annotations

import numpy
import pytest
from scipy import sparse

from spartan_ng.arrays.sparse import lines


@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "c16", "?"])
def test_lines_are_scipys_slices(form: str, dtype: str) -> None:
    rng = numpy.random.default_rng(0)
    whole = sparse.random_array((9, 7), density=0.3, format=form, rng=rng).astype(dtype)
    n = whole.shape[0 if form == "csr" else 1]
    for lo in range(n + 1):
        for hi in range(lo, n + 1):
            expected = whole[lo:hi] if form == "csr" else whole[:, lo:hi]
            found = lines(whole, lo, hi)
            assert (found.shape, found.dtype, found.format) == (expected.shape, expected.dtype, form)
            numpy.testing.assert_array_equal(found.toarray(), expected.toarray())
            assert found.nnz == expected.nnz
            assert found.nnz == 0 or numpy.shares_memory(found.data, whole.data)
            found.check_format(full_check=True)
