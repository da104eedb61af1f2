"""Products of a CSR matrix and a dense one, compiled: four non-zeros at a time, in ranges for threads.

SciPy adds one multiple of a row to the result after the other, on one thread, and so loads and stores the
result for each non-zero. Here four rows are added at once. Where rows are summed over (`a.T @ b`) each
range has columns of its own, found in every row by bisection: no range has a state that is added up later,
and the order of additions does not depend on the ranges. Blocks of columns, for the second-level cache, were
tried, and lost: a row's runs of non-zeros get too short.

The kernel is compiled in the background like all others; until it is there, SciPy multiplies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.trial import Guards, largest, last_rows, unequal
from spartan_ng.kernels.compiled.trust import at_hand

WORTH = 1 << 20
"""Multiplications from which a product is worth a kernel."""
_SAMPLE = 1 << 14
"""Column indices that ranges of columns are balanced by."""

_SOURCE = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled


@compiled
def bisect(indices, p, end, column):
    while p < end:
        middle = (p + end) // 2
        if indices[middle] < column:
            p = middle + 1
        else:
            end = middle
    return p


@compiled
def kernel(table):
    for t in range(table.shape[0]):
        rows, nnz, width, inner, turned = table[t, 6], table[t, 7], table[t, 8], table[t, 9], table[t, 10]
        lo, hi = table[t, 11], table[t, 12]
        data = array_at(table[t, 0], (nnz,), np.DTYPE)
        indices = array_at(table[t, 1], (nnz,), np.int32)
        starts = array_at(table[t, 2], (rows + 1,), np.int32)
        b = array_at(table[t, 3], (rows if turned else inner, width), np.DTYPE)
        out = array_at(table[t, 4], (inner if turned else rows, width), np.DTYPE)
        out[lo:hi] = 0.0
        if turned:
            for r in range(rows):
                p, end = starts[r], starts[r + 1]
                if lo > 0:
                    p = bisect(indices, p, end, lo)
                if hi < inner:
                    end = bisect(indices, p, end, hi)
                x = b[r]
                while p + 3 < end:
                    v0, v1, v2, v3 = data[p], data[p + 1], data[p + 2], data[p + 3]
                    i0, i1, i2, i3 = indices[p], indices[p + 1], indices[p + 2], indices[p + 3]
                    if i0 == i1 or i1 == i2 or i2 == i3 or i0 == i2 or i1 == i3 or i0 == i3:
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
                p, end = starts[r], starts[r + 1]
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
            flipped = array_at(table[t, 5], (width, inner if turned else rows), np.DTYPE)
            for first in range(lo, hi, 16):
                last = min(first + 16, hi)
                for c in range(width):
                    for r in range(first, last):
                        flipped[c, r] = out[r, c]
"""


@dataclass(frozen=True, slots=True)
class SparseProduct:
    """A product that is ready to run in ranges of the rows of `a @ b`, or of `a.T @ b` where `turned`."""

    a: Any
    b: Any
    turned: bool
    kernel: Function

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the result."""
        return self.a.shape[1 if self.turned else 0], self.b.shape[1]

    def ranges(self, count: int) -> list[tuple[int, int]]:
        """At most so many ranges of the result's rows, of about equal work each.

        Each range of columns goes through all rows of `a`: there should be one for each thread.
        """
        n, a = self.shape[0], self.a
        shares = np.arange(1, count) / count
        if not self.turned:
            bounds = np.searchsorted(a.indptr, shares * a.nnz)
        elif a.has_sorted_indices:
            sample = np.sort(a.indices[:: max(1, a.nnz // _SAMPLE)])
            bounds = sample[(shares * len(sample)).astype(np.int64)]
        else:
            bounds = np.zeros(0, np.int64)
        cuts = sorted({0, *(int(x) for x in bounds if x < n), n})
        return list(pairwise(cuts))

    def run(self, rows: tuple[int, int], out: NDArray[Any], flipped: NDArray[Any] | None = None) -> None:
        """Fill a range of rows of `out`, and the same columns of `flipped`, its transpose."""
        a, (n, inner) = self.a, self.a.shape
        arrays = (a.data, a.indices, a.indptr, self.b, out)
        addresses = [array.__array_interface__["data"][0] for array in arrays]
        addresses.append(0 if flipped is None else flipped.__array_interface__["data"][0])
        line = [*addresses, n, a.nnz, self.b.shape[1], inner, int(self.turned), *rows]
        self.kernel(np.array([line], np.int64))


def prepare(a: Any, b: Any, turned: bool) -> SparseProduct | None:
    """`a @ b`, or `a.T @ b` where `turned`, of a CSR array and a matrix; None where no kernel is ready."""
    if b.ndim != 2 or a.nnz * b.shape[1] < WORTH or not _fits(a, b):
        return None
    source = _SOURCE.replace("DTYPE", a.dtype.name)
    kernel = at_hand(source, turned, lambda f: _flaw(f, a, b, turned), "sparse products")
    return None if kernel is None else SparseProduct(a, np.ascontiguousarray(b), turned, kernel)


def _flaw(kernel: Function, a: Any, b: Any, turned: bool) -> str:
    """What the kernel makes otherwise than SciPy of the last rows, in two ranges."""
    first, last = last_rows(a.indptr, b.shape[1])
    part, right = a[first:last], np.ascontiguousarray(b[first:last] if turned else b)
    product, guards = SparseProduct(part, right, turned, kernel), Guards()
    found = guards.empty(product.shape, a.dtype)
    for rows in product.ranges(2):
        product.run(rows, found)
    wanted = (part.T if turned else part) @ right
    if not guards.intact:
        return "elements beside the result's are written to"
    return unequal(found, wanted, largest([part.data, right, wanted]))


def multiply(a: Any, b: Any, turned: bool) -> Any:
    """The whole product on this thread; None where no kernel is ready."""
    product = prepare(a, b, turned)
    if product is None:
        return None
    out = np.empty(product.shape, a.dtype)
    product.run((0, len(out)), out)
    return out


def _fits(a: Any, b: Any) -> bool:
    """Whether the operands are what the kernel was written for."""
    floats = a.dtype == b.dtype and a.dtype.name in ("float64", "float32")
    narrow = a.indices.dtype == a.indptr.dtype == np.int32
    return bool(floats and narrow and a.format == "csr")
