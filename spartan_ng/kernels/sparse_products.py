"""Products of two CSR matrices, row by row: no zero is stored, and columns are in any order.

Gustavson, "Two fast algorithms for sparse matrices: multiplication and permuted transposition" (ACM TOMS
4(3), 1978): the work is a sum over the non-zeros of A of the lengths of B's rows. The loops are SciPy's,
which run without the interpreter's lock: one counts how many places a run of rows needs, one fills them. So
the memory of the result is known, and asked for, before anything is multiplied, and threads fill one array.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from spartan_ng.arrays.sparse import csr_array, even_runs
from spartan_ng.errors import MemoryBudgetError

Rows = tuple[int, int]
_COLUMN_PAIRS = 4
"""So many pairs of non-zeros a run of rows has for each column of the result: its sums are cleared first."""


class SparseProduct:
    """The product of two sparse matrices of one dtype, in runs of rows.

    Attributes
    ----------
    shape : the result's
    pairs : before each row of the result, how many pairs of non-zeros are multiplied
    """

    def __init__(self, a: Any, b: Any) -> None:
        a, b = a.tocsr(), b.tocsr()
        self.shape: tuple[int, int] = (a.shape[0], b.shape[1])
        before = np.zeros(a.nnz + 1, np.int64)
        np.cumsum(np.diff(b.indptr)[a.indices], out=before[1:])
        self.pairs = before[a.indptr]
        most = max(int(self.pairs[-1]), a.nnz, b.nnz, *a.shape, *b.shape)
        self._kind = np.dtype(np.int32 if most <= np.iinfo(np.int32).max else np.int64)
        self._a, self._b = ((*self._widened(x.indptr, x.indices), x.data) for x in (a, b))
        self._firsts: dict[Rows, int] = {}
        self._ends: dict[Rows, Any] = {}
        self._indices: Any = None
        self._data: Any = None

    def runs(self, count: int) -> list[Rows]:
        """At most so many runs of rows, of about equal work each; fewer where there are more columns."""
        work = int(self.pairs[-1])
        count = max(1, min(count, work // (_COLUMN_PAIRS * max(self.shape[1], 1))))
        return even_runs(self.pairs, count)

    def count(self, rows: Rows) -> int:
        """Places that a run of rows needs: elements that cancel out will take none."""
        from scipy.sparse import _sparsetools

        indptr, indices, _ = self._part(rows)
        return int(
            _sparsetools.csr_matmat_maxnnz(len(indptr) - 1, self.shape[1], indptr, indices, *self._b[:2])
        )

    def begin(self, runs: list[Rows], counts: list[int], most_bytes: int) -> None:
        """Have room for all runs, which need so many places.

        Raises
        ------
        MemoryBudgetError : they take more than `most_bytes`
        """
        dtype, places = self._a[2].dtype, sum(counts)
        nbytes = places * (dtype.itemsize + self._kind.itemsize) + (self.shape[0] + 1) * self._kind.itemsize
        if nbytes > most_bytes:
            raise MemoryBudgetError(
                f"matmul: a product of CSR arrays, of shape {self.shape}, has up to {places:,} non-zeros, of "
                f"{nbytes:,} bytes, with a budget of {most_bytes:,} bytes: multiply some rows at a time, or "
                "a dense vector or matrix first, or raise config.memory_bytes"
            )
        self._indices, self._data = np.empty(places, self._kind), np.empty(places, dtype)
        self._firsts = dict(zip(runs, [0, *accumulate(counts[:-1])], strict=True))

    def fill(self, rows: Rows) -> None:
        """Make a run of rows."""
        from scipy.sparse import _sparsetools

        first = self._firsts[rows]
        indices, data = self._indices[first:], self._data[first:]
        left = self._part(rows)
        n = len(left[0]) - 1
        ends = np.empty(n + 1, self._kind)
        _sparsetools.csr_matmat(n, self.shape[1], *left, *self._b, ends, indices, data)
        self._ends[rows] = ends

    def result(self) -> Any:
        """The product, when all runs are made."""
        indptr, at = np.zeros(self.shape[0] + 1, self._kind), 0
        for (lo, hi), first in self._firsts.items():
            ends = self._ends[lo, hi]
            n = int(ends[-1])
            if at < first:  # elements before have cancelled out
                for array in (self._indices, self._data):
                    array[at : at + n] = array[first : first + n]
            indptr[lo + 1 : hi + 1] = ends[1:] + self._kind.type(at)
            at += n
        return csr_array((self._data[:at], self._indices[:at], indptr), shape=self.shape)

    def _part(self, rows: Rows) -> tuple[Any, Any, Any]:
        """Some rows of the left matrix: their starts, columns and values."""
        (lo, hi), (indptr, indices, data) = rows, self._a
        starts = indptr[lo : hi + 1]
        here = slice(starts[0], starts[-1])
        return starts - starts[0], indices[here], data[here]

    def _widened(self, *arrays: Any) -> tuple[Any, ...]:
        """Arrays of indices of one kind, as SciPy's loops want them."""
        return tuple(a.astype(self._kind, copy=False) for a in arrays)


def sparse_product(a: Any, b: Any, most_bytes: int) -> Any:
    """The product of two sparse matrices of one dtype on this thread, a CSR array.

    Raises
    ------
    MemoryBudgetError : it takes more than `most_bytes`
    """
    product = SparseProduct(a, b)
    runs = product.runs(1)
    product.begin(runs, [product.count(rows) for rows in runs], most_bytes)
    for rows in runs:
        product.fill(rows)
    return product.result()
