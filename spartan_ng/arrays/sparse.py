"""SciPy's sparse arrays, without importing SciPy for programs that have none.

SciPy takes several times as long to import as NumPy does. What makes a sparse array imports it; an object
can be one only where that has been done.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

INDEX_BYTES = 4
"""Bytes of a column index, beside the value of each non-zero of a CSR array."""


_START_BYTES = 8
"""Bytes of the place where a row begins; there is one more of them than rows."""


def csr_bytes(nonzeros: int, rows: int, itemsize: int) -> int:
    """Bytes of a CSR array with so many non-zeros of so many bytes."""
    return nonzeros * (itemsize + INDEX_BYTES) + _START_BYTES * (rows + 1)


def csr_nonzeros(nbytes: int, rows: int, itemsize: int) -> int:
    """The non-zeros of a CSR array of so many bytes."""
    return max(nbytes - _START_BYTES * (rows + 1), 0) // (itemsize + INDEX_BYTES)


def is_sparse(x: object) -> bool:
    """Whether `x` is one of SciPy's sparse arrays or matrices."""
    test = getattr(sys.modules.get("scipy.sparse"), "issparse", None)
    return test is not None and bool(test(x))


def is_csr(x: object) -> bool:
    """Whether `x` is a `scipy.sparse.csr_array`, the one class of our sparse tiles."""
    kind = getattr(sys.modules.get("scipy.sparse"), "csr_array", None)
    return kind is not None and isinstance(x, kind)


def is_imported() -> bool:
    """Whether SciPy is there: to import it takes longer than what is done with small arrays."""
    return "scipy.sparse" in sys.modules


def csr_array(*args: Any, **keywords: Any) -> Any:
    """`scipy.sparse.csr_array` of these arguments."""
    from scipy import sparse

    return sparse.csr_array(*args, **keywords)


def lines(a: Any, lo: int, hi: int) -> Any:
    """Some rows of a CSR array, or columns of a CSC one: its own elements, and not a copy as SciPy's slices.

    They are to be read only.
    """
    first, last = a.indptr[lo], a.indptr[hi]
    shape = (hi - lo, a.shape[1]) if a.format == "csr" else (a.shape[0], hi - lo)
    part = type(a)(shape, dtype=a.dtype)  # given the arrays, it would copy what is a small part of others
    part.data, part.indices = a.data[first:last], a.indices[first:last]
    part.indptr = a.indptr[lo : hi + 1] - first
    return part


def even_runs(before: Any, count: int) -> list[tuple[int, int]]:
    """At most so many runs of rows, of about equal work each; `before` says how much there is before each
    row, and in all."""
    n, work = len(before) - 1, int(before[-1])
    bounds = np.searchsorted(before, np.arange(1, count) * work // max(count, 1))
    return list(pairwise(sorted({0, *(int(x) for x in bounds if x < n), n})))


def stacked(bands: Iterable[Sequence[Any]]) -> Any:
    """A `csr_array` of bands of rows that lie below each other; the parts of a band lie beside each other."""
    from scipy import sparse

    rows = [band[0] if len(band) == 1 else sparse.hstack(band, format="csr") for band in bands]
    return sparse.csr_array(sparse.vstack(rows, format="csr"))
