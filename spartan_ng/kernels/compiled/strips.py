"""Products of a CSR matrix with one long vector after the other, strip of columns after strip.

Rows ask for elements of the vector that lie anywhere, and one that no core's cache holds is asked in vain,
once for each non-zero: a product takes as long as its look-ups, and hardly reads the matrix meanwhile. A
matrix that is multiplied again and again (PageRank, power iterations, conjugate gradients) is worth another
order: of all rows of a group those non-zeros first whose columns are in the first strip, and so on. A strip
of the vector stays in the cache while all rows have added what it gives; a place is two halves of a word,
within a block of rows and within a strip. Where indices ascend, each row is still added up in the order of
its columns, so that the order changes no bit.

Inspector and executor: Saltz, Mirchandaney and Crowley, "Run-time parallelization and scheduling of loops"
(IEEE Transactions on Computers 40(5), 1991). The kernel is `loops/strips.py`.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from spartan_ng.arrays.copying import address
from spartan_ng.arrays.sparse import even_runs
from spartan_ng.costs.choices import SCATTERED_STRIPS, STRIP_NONZEROS, STRIP_PRODUCTS
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, last_rows
from spartan_ng.kernels.compiled.trust import at_hand
from spartan_ng.memory import copied_bytes, threads

_STRIP: int = 1 << constant_of("strips", "BITS")
"""Columns of a strip, and rows of a block."""
_SAMPLE, _RUNS = 512, 64
"""Non-zeros that follow each other and are looked at for how many strips they ask; so many times."""


class _RowGroup(Struct, eq=False):
    """Some rows, and where their cells end: the non-zeros of a block of rows in a strip, blocks next to each
    other; None until they have been put in order."""

    lo: int
    hi: int
    ends: NDArray[np.int64] | None = None

    @property
    def blocks(self) -> int:
        """How many blocks of rows there are."""
        return -(-(self.hi - self.lo) // _STRIP)


class Strips:
    """The non-zeros of a CSR matrix in the order of strips; groups of rows, one for each thread, are put in
    order when they are first multiplied by."""

    def __init__(self, a: Any, count: int) -> None:
        nnz = int(a.indptr[-1])
        self.values: NDArray[Any] = np.empty(nnz, a.dtype)
        self.places = np.empty(nnz, np.uint32)
        self.groups = {(lo, hi): _RowGroup(lo, hi) for lo, hi in even_runs(a.indptr, count)}
        self.count = -(-a.shape[1] // _STRIP)


class StripedProduct(Struct, frozen=True):
    """A product with a vector that is ready to run in the groups of the rows of `a`."""

    a: Any
    b: Any
    strips: Strips
    kernel: Function

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the result, a column."""
        return self.a.shape[0], 1

    def ranges(self, count: int) -> list[tuple[int, int]]:
        """The groups of rows, however many are asked for."""
        return list(self.strips.groups)

    def run(self, rows: tuple[int, int], out: NDArray[Any], flipped: NDArray[Any] | None = None) -> None:
        """Fill a group's part of `out`, and of `flipped`, its transpose.

        Two who put a group in order at the same time write the same to the same places.
        """
        group = self.strips.groups[rows]
        ends = group.ends
        if ends is None:
            ends = np.empty(group.blocks * self.strips.count, np.int64)
            self._call(True, group, ends, out)
            group.ends = ends
        self._call(False, group, ends, out)
        if flipped is not None:
            flipped.reshape(-1)[slice(*rows)] = out.reshape(-1)[slice(*rows)]

    def _call(self, arranges: bool, group: _RowGroup, ends: NDArray[np.int64], out: NDArray[Any]) -> None:
        a, strips = self.a, self.strips
        arrays = (a.data, a.indices, a.indptr, strips.values, strips.places, ends, self.b)
        counts = (a.shape[0], int(a.indptr[-1]), group.blocks, strips.count, group.lo, group.hi)
        line = [int(arranges), *map(address, arrays), *counts, address(out)]
        self.kernel(np.array([line], np.int64))


class _Earlier(Struct, eq=False):
    """How often a matrix was multiplied by vectors, and its strips, once it has some."""

    matrix: weakref.ref[Any]
    products: int = 0
    strips: Strips | None = None
    scatters: bool | None = None

    @property
    def pays(self) -> bool:
        """Whether another order is the same to each row, and other elements of vectors are near then."""
        if self.scatters is None:
            a = self.matrix()
            self.scatters = a is not None and bool(a.has_sorted_indices) and _scatters(a)
        return self.scatters


_earlier: dict[int, _Earlier] = {}
"""By the identity of matrices that live: nobody writes into one that is ours."""


def striped_product(a: Any, b: Any) -> StripedProduct | None:
    """`a @ b` of a CSR array and a contiguous vector as a column; None where another order is not worth it,
    or not yet, or memory has no room for it."""
    rows, columns = a.shape
    if columns < SCATTERED_STRIPS * _STRIP or a.nnz * _STRIP**2 < STRIP_NONZEROS * rows * columns:
        return None
    found = _noted(a)
    found.products += 1
    nbytes = a.nnz * (a.dtype.itemsize + np.dtype(np.uint32).itemsize)
    if found.products <= STRIP_PRODUCTS or not found.pays or nbytes > copied_bytes():
        return None
    source = source_of("strips", NUMBER=f"np.{a.dtype.name}", INDEX=f"np.u{a.indices.dtype.name}")
    kernel = at_hand(source, None, lambda f: _flaw(f, a, b), "sparse products by strips")
    if kernel is None:
        return None
    if found.strips is None:
        found.strips = Strips(a, threads())
    return StripedProduct(a, b, found.strips, kernel)


def _noted(a: Any) -> _Earlier:
    """What is known of a matrix, as long as it lives."""
    key = id(a)
    found = _earlier.get(key)
    if found is None or found.matrix() is not a:
        found = _earlier[key] = _Earlier(weakref.ref(a, lambda ref: _forget(key, ref)))
    return found


def _forget(key: int, ref: weakref.ref[Any]) -> None:
    found = _earlier.get(key)
    if found is not None and found.matrix is ref:
        del _earlier[key]


def _scatters(a: Any) -> bool:
    """Whether rows that follow each other ask many strips of the vector, by some runs of non-zeros."""
    first = np.linspace(0, max(a.nnz - _SAMPLE, 0), _RUNS).astype(np.int64)
    asked = (len(np.unique(a.indices[p : p + _SAMPLE] // _STRIP)) for p in first)
    return sum(asked) >= SCATTERED_STRIPS * _RUNS


def _flaw(kernel: Function, a: Any, b: Any) -> str:
    """What the kernel makes otherwise than SciPy of the last rows, in two groups."""
    first, last = last_rows(a.indptr, 1)
    part, guards = a[first:last], Guards()
    found = guards.empty((last - first, 1), a.dtype)
    product = StripedProduct(part, b, Strips(part, 2), kernel)
    for rows in product.ranges(2):
        product.run(rows, found)
    wanted = part @ b
    return guards.flaw([(found, wanted)], largest([part.data, b, wanted]))
