"""Elementwise functions of sparse blocks, row by row of the table, against NumPy's over all elements.

Zeros that are not stored stay zeros where a row says so, whatever they meet: 0 / 0 is no number, but nothing
over 0 is nothing.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from spartan_ng.kernels.rows import _sparse_map
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.elementwise import Elementwise as Row

ROWS = [
    row
    for row in ELEMENTWISE.values()
    if row.zero != "none" and row.nout == 1 and row.name not in ("cast", "real", "imag")
]


def block(rng, dtype, is_sparse):
    """Small numbers, some of them zero, of which a sparse block stores some and leaves others out."""
    values = rng.integers(-2, 3, (5, 7)) / (1 if dtype != "f8" else 2.0)
    values = values.astype(dtype)
    if not is_sparse:
        return values, np.ones(values.shape, bool)
    stored = rng.random(values.shape) < 0.5
    where = np.nonzero(stored)
    found = sparse.csr_array((values[stored], where), values.shape)
    return found, stored


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_is_stored_is_numpys_and_the_rest_is_zero(row: Row) -> None:
    rng = np.random.default_rng(0)
    dtype = next(d for d in ("f8", "i8", "?") if _takes(row, d))
    for are_sparse in ((True, True), (True, False), (False, True)):
        if row.nin == 1 and not are_sparse[0]:
            continue
        if row.zero in ("all", "first") and not are_sparse[0]:
            continue
        if row.zero == "all" and not all(are_sparse):
            continue
        blocks, stored = zip(*(block(rng, dtype, s) for s in are_sparse[: row.nin]), strict=True)
        dense = [b.toarray() if sparse.issparse(b) else b for b in blocks]
        with np.errstate(all="ignore"):
            expected = np.asarray(row.function(*dense))
            found = _sparse_map(row.name, row.function, list(blocks))
        assert sparse.issparse(found)
        assert found.dtype == expected.dtype
        if row.zero == "first":
            expected = np.where(stored[0], expected, 0)
        np.testing.assert_array_equal(found.toarray(), expected)


def _takes(row: Row, dtype: str) -> bool:
    try:
        with np.errstate(all="ignore"):
            row.function(*[np.ones(2, dtype)] * row.nin)
    except TypeError:
        return False
    return True
