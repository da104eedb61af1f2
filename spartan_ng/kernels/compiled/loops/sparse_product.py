"""Products of a CSR matrix and a dense one, in ranges of rows or columns; see `compiled.sparse_product`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled
from spartan_ng.kernels.compiled.loops.dictionary_rows import below

NUMBER = np.float64
INDEX = np.int32


@compiled
def kernel(table: Any) -> None:
    """The product's rows in the ranges that the table names."""
    for t in range(table.shape[0]):
        rows, nnz, width, inner, turned = table[t, 6], table[t, 7], table[t, 8], table[t, 9], table[t, 10]
        lo, hi = table[t, 11], table[t, 12]
        data = array_at(table[t, 0], (nnz,), NUMBER)
        indices = array_at(table[t, 1], (nnz,), INDEX)
        starts = array_at(table[t, 2], (rows + 1,), INDEX)
        b = array_at(table[t, 3], (rows if turned else inner, width), NUMBER)
        out = array_at(table[t, 4], (inner if turned else rows, width), NUMBER)
        out[lo:hi] = 0
        if turned:
            for r in range(rows):
                p, end = np.int64(starts[r]), np.int64(starts[r + 1])
                if lo > 0:
                    p = below(indices, p, end, lo)
                if hi < inner:
                    end = below(indices, p, end, hi)
                x = b[r]
                while p + 3 < end:
                    v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    i0, i1, i2, i3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
                    if i0 == i1 or i1 == i2 or i2 == i3 or i0 == i2 or i1 == i3 or i0 == i3:  # noqa: SIM109
                        break  # a repeated column: one after the other
                    o0, o1, o2, o3 = out[i0], out[i1], out[i2], out[i3]
                    for c in range(width):
                        y = x[c]
                        o0[c] += v0 * y
                        o1[c] += v1 * y
                        o2[c] += v2 * y
                        o3[c] += v3 * y
                    p += 4
                while p < end:
                    v, o = data[p], out[indices[p]]
                    for c in range(width):
                        o[c] += v * x[c]
                    p += 1
        else:
            for r in range(lo, hi):
                p, end = np.int64(starts[r]), np.int64(starts[r + 1])
                o = out[r]
                while p + 3 < end:
                    v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    b0, b1, b2, b3 = b[indices[p]], b[indices[p + 1]], b[indices[p + 2]], b[indices[p + 3]]
                    for c in range(width):
                        o[c] += (v0 * b0[c] + v1 * b1[c]) + (v2 * b2[c] + v3 * b3[c])
                    p += 4
                while p < end:
                    v, b0 = data[p], b[indices[p]]
                    for c in range(width):
                        o[c] += v * b0[c]
                    p += 1
        if table[t, 5]:
            flipped = array_at(table[t, 5], (width, inner if turned else rows), NUMBER)
            for first in range(lo, hi, 16):
                last = min(first + 16, hi)
                for c in range(width):
                    for r in range(first, last):
                        flipped[c, r] = out[r, c]
