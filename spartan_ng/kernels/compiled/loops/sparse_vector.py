"""Products of a CSR matrix and a vector, in ranges of rows; see `compiled.sparse_product`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

NUMBER = np.float64
INDEX = np.uint32


@compiled
def kernel(table: Any) -> None:
    """The elements in the ranges that the table names, each added up in the order of its row."""
    for t in range(table.shape[0]):
        rows, nnz, inner, lo, hi = table[t, 6], table[t, 7], table[t, 9], table[t, 11], table[t, 12]
        data = array_at(table[t, 0], (nnz,), NUMBER)
        indices = array_at(table[t, 1], (nnz,), INDEX)
        starts = array_at(table[t, 2], (rows + 1,), INDEX)
        x = array_at(table[t, 3], (inner,), NUMBER)
        out = array_at(table[t, 4], (rows,), NUMBER)
        for r in range(lo, hi):
            total = NUMBER(0)
            for p in range(starts[r], starts[r + 1]):
                total += data[p] * x[indices[p]]
            out[r] = total
        if table[t, 5]:
            flipped = array_at(table[t, 5], (rows,), NUMBER)
            for r in range(lo, hi):
                flipped[r] = out[r]
