"""Products of a CSR matrix and a dense one, compiled: four non-zeros at a time, in ranges for threads.

SciPy adds one multiple of a row to the result after the other, on one thread, and so loads and stores the
result for each non-zero. Here four rows are added at once. Where rows are summed over (`a.T @ b`) each
range has columns of its own, found in every row by bisection: no range has a state that is added up later,
and the order of additions does not depend on the ranges. Blocks of columns, for the second-level cache, were
tried, and lost: a row's runs of non-zeros get too short.

With a vector there is nothing to add at once: what takes the time is to look its elements up, which lie far
from each other. Each row is added up as SciPy does, bit by bit the same, and that several threads wait for
elements at the same time is all that helps.

The kernels, `loops/sparse_product.py` and `loops/sparse_vector.py`, are compiled in the background like all
others; until they are there, SciPy multiplies.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spartan_ng.arrays.copying import address
from spartan_ng.arrays.sparse import even_runs
from spartan_ng.costs.choices import SPARSE_PRODUCTS
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import source_of
from spartan_ng.kernels.compiled.strips import Looked, StripedProduct, striped_product
from spartan_ng.kernels.compiled.trial import Guards, largest, last_rows
from spartan_ng.kernels.compiled.trust import at_hand

_NUMBERS = frozenset({"float64", "float32", "int64", "int32"})
_SAMPLE = 1 << 14
"""Column indices that ranges of columns are balanced by."""


class CompiledSparseProduct(Struct, frozen=True):
    """A product that is ready to run in ranges of the rows of `a @ b`, or of `a.T @ b` where `turned`.

    A vector is a matrix of one column."""

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
        if not self.turned:
            return even_runs(a.indptr, count)
        shares = np.arange(1, count) / count
        if a.has_sorted_indices:
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
        addresses = [address(array) for array in arrays]
        addresses.append(0 if flipped is None else address(flipped))
        line = [*addresses, n, a.nnz, self.b.shape[1], inner, int(self.turned), *rows]
        self.kernel(np.array([line], np.int64))


def prepare(a: Any, b: Any, turned: bool, looked: Looked) -> CompiledSparseProduct | StripedProduct | None:
    """`a @ b`, or `a.T @ b` where `turned`, of a CSR array and a matrix or a vector, as part of what has
    `looked`; None where no kernel is ready, or SciPy is as fast."""
    vector = b.ndim == 1
    b = b[:, None] if vector else b
    if b.ndim != 2 or a.nnz * b.shape[1] < SPARSE_PRODUCTS or not _fits(a, b):
        return None
    loop, kind = "sparse_product", a.indices.dtype.name
    if b.shape[1] == 1:
        striped = striped_product(a, np.ascontiguousarray(b), turned, looked)
        if striped is not None:
            return striped
    if vector and turned:
        return None
    if b.shape[1] == 1 and not turned:
        loop, kind = "sparse_vector", f"u{kind}"  # of what has no sign, no place counts from the end
    source = source_of(loop, NUMBER=f"np.{a.dtype.name}", INDEX=f"np.{kind}")
    kernel = at_hand(source, turned, lambda f: _flaw(f, a, b, turned), "sparse products")
    return None if kernel is None else CompiledSparseProduct(a, np.ascontiguousarray(b), turned, kernel)


def _flaw(kernel: Function, a: Any, b: Any, turned: bool) -> str:
    """What the kernel makes otherwise than SciPy of the last rows, in two ranges."""
    first, last = last_rows(a.indptr, b.shape[1])
    part, right = a[first:last], np.ascontiguousarray(b[first:last] if turned else b)
    product, guards = CompiledSparseProduct(part, right, turned, kernel), Guards()
    found = guards.empty(product.shape, a.dtype)
    for rows in product.ranges(2):
        product.run(rows, found)
    wanted = (part.T if turned else part) @ right
    return guards.flaw([(found, wanted)], largest([part.data, right, wanted]))


def multiply(a: Any, b: Any, turned: bool) -> Any:
    """The whole product on this thread; None where no kernel is ready."""
    product = prepare(a, b, turned, {})
    if product is None:
        return None
    out = np.empty(product.shape, a.dtype)
    for rows in product.ranges(1):
        product.run(rows, out)
    return out.reshape(-1) if b.ndim == 1 else out


def _fits(a: Any, b: Any) -> bool:
    """Whether the operands are what the kernel was written for."""
    numbers = a.dtype == b.dtype and a.dtype.name in _NUMBERS and a.dtype.isnative
    return bool(numbers and a.indices.dtype == a.indptr.dtype and a.format == "csr")
