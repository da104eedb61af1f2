"""Products of a CSR matrix of doubles and a dense one, compiled: four non-zeros at a time.

SciPy adds one multiple of a row to the result after the other, and so loads and stores the result for each
non-zero. Here four rows are added at once, and rows that are summed over are scattered four results at a
time. The kernel is compiled in the background like all others; until it is there, SciPy multiplies.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.config import config
from spartan_ng.kernels.compiled.compile import PATIENCE_S, compiler

WORTH = 1 << 20
"""Multiplications from which a product is worth a kernel."""

_SOURCE = """\
from numba import carray, njit
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import pointer


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    for t in range(table.shape[0]):
        rows, nnz, width, inner, turned = table[t, 5], table[t, 6], table[t, 7], table[t, 8], table[t, 9]
        data = carray(pointer(table[t, 0]), (nnz,), np.float64)
        indices = carray(pointer(table[t, 1]), (nnz,), np.int32)
        starts = carray(pointer(table[t, 2]), (rows + 1,), np.int32)
        if turned:
            b = carray(pointer(table[t, 3]), (rows, width), np.float64)
            out = carray(pointer(table[t, 4]), (inner, width), np.float64)
            out[:] = 0.0
            for r in range(rows):
                p, end = starts[r], starts[r + 1]
                while p + 3 < end:
                    v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    i0, i1, i2, i3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
                    if i0 == i1 or i1 == i2 or i2 == i3 or i0 == i2 or i1 == i3 or i0 == i3:
                        break  # a repeated column: one after the other
                    for c in range(width):
                        x = b[r, c]
                        out[i0, c] += v0 * x
                        out[i1, c] += v1 * x
                        out[i2, c] += v2 * x
                        out[i3, c] += v3 * x
                    p += 4
                while p < end:
                    v, i = data[p], indices[p]
                    for c in range(width):
                        out[i, c] += v * b[r, c]
                    p += 1
        else:
            b = carray(pointer(table[t, 3]), (inner, width), np.float64)
            out = carray(pointer(table[t, 4]), (rows, width), np.float64)
            for r in range(rows):
                for c in range(width):
                    out[r, c] = 0.0
                p, end = starts[r], starts[r + 1]
                while p + 3 < end:
                    v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    b0, b1, b2, b3 = b[indices[p]], b[indices[p + 1]], b[indices[p + 2]], b[indices[p + 3]]
                    for c in range(width):
                        out[r, c] += (v0 * b0[c] + v1 * b1[c]) + (v2 * b2[c] + v3 * b3[c])
                    p += 4
                while p < end:
                    v, b0 = data[p], b[indices[p]]
                    for c in range(width):
                        out[r, c] += v * b0[c]
                    p += 1
"""


def multiply(a: Any, b: Any, turned: bool) -> Any:
    """`a @ b`, or `a.T @ b` where `turned`, of a CSR array and a matrix; None where no kernel is ready."""
    if config.kernels == "interpret" or a.nnz * b.shape[-1] < WORTH or not _fits(a, b):
        return None
    found = compiler.kernel(_SOURCE)
    compiler.request(found)
    if not found.settled and config.kernels == "compile":
        compiler.wait(PATIENCE_S)
    if found.function is None:
        return None
    rows, columns = a.shape
    out = np.empty((columns if turned else rows, b.shape[1]))
    arrays = (a.data, a.indices, a.indptr, b, out)
    sizes = (rows, a.nnz, b.shape[1], columns, int(turned))
    addresses = [array.__array_interface__["data"][0] for array in arrays]
    found.function(np.array([[*addresses, *sizes]], np.int64))
    return out


def _fits(a: Any, b: Any) -> bool:
    """Whether the operands are what the kernel was written for."""
    doubles = a.dtype == b.dtype == np.float64 and b.ndim == 2 and b.flags.c_contiguous
    narrow = a.indices.dtype == a.indptr.dtype == np.int32
    return bool(doubles and narrow and a.format == "csr")
