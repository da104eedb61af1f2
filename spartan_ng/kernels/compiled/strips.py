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

import threading
import weakref
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct, field
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


_ARRANGE, _MULTIPLY, _TURNED, _LOOK = 1, 0, 2, 3
"""What the kernel does with a group."""


class _RowGroup(Struct, eq=False):
    """Some rows, and where their cells end: the non-zeros of a block of rows in a strip, blocks next to each
    other; None until they have been put in order, which one thread does. What was `noted` of them then tells
    whether they are what they were: a matrix of SciPy's is read where it lies, and who has it may write."""

    lo: int
    hi: int
    ends: NDArray[np.int64] | None = None
    noted: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

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


_Ends = dict[tuple[int, int], NDArray[np.int64]]
Looked = dict[Strips, _Ends]
"""Of the strips that a run has to do with, where the cells end of groups that it has looked at: nobody writes
into a matrix while a run reads it, which may multiply by it a hundred times."""


class StripedProduct(Struct, frozen=True):
    """A product with a vector, of `a` or, where `turned`, of its transpose, that is ready to run: in the
    groups of the rows of `a`, or in strips of its columns."""

    a: Any
    b: Any
    turned: bool
    strips: Strips
    kernel: Function
    ends: _Ends
    """Where the cells end of groups that have been looked at."""

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the result, a column."""
        return self.a.shape[1 if self.turned else 0], 1

    def ranges(self, count: int) -> list[tuple[int, int]]:
        """The groups of rows, or the strips, however many are asked for."""
        if not self.turned:
            return list(self.strips.groups)
        n = self.a.shape[1]
        return list(pairwise([*range(0, n, _STRIP), n]))

    def run(self, rows: tuple[int, int], out: NDArray[Any], flipped: NDArray[Any] | None = None) -> None:
        """Fill a group's part of `out`, or a strip's, and the same of `flipped`, its transpose."""
        out[rows[0] : rows[1]] = 0
        if self.turned:
            groups, strip = list(self.strips.groups.values()), rows[0] // _STRIP
            for k in range(len(groups)):  # threads that come together put different ones in order
                self._arranged(groups[(strip + k) % len(groups)])
            for group in groups:
                self._call(_TURNED, group, self._arranged(group), out, (strip, strip + 1))
        else:
            group = self.strips.groups[rows]
            self._call(_MULTIPLY, group, self._arranged(group), out, (0, self.strips.count))
        if flipped is not None:
            flipped.reshape(-1)[slice(*rows)] = out.reshape(-1)[slice(*rows)]

    def _arranged(self, group: _RowGroup) -> NDArray[np.int64]:
        """Where the cells of a group end, which is put in order if it was not, or is another one now."""
        with group.lock:
            known = self.ends.get((group.lo, group.hi))
            if known is not None:
                return known
            noted = np.empty(1, np.int64)
            self._call(_LOOK, group, noted, noted, (0, self.strips.count))
            if group.ends is None or group.noted != noted[0]:
                ends = np.empty(group.blocks * self.strips.count, np.int64)
                self._call(_ARRANGE, group, ends, ends, (0, self.strips.count))
                group.ends, group.noted = ends, int(noted[0])
            self.ends[group.lo, group.hi] = group.ends
            return group.ends

    def _call(
        self,
        what: int,
        group: _RowGroup,
        ends: NDArray[np.int64],
        out: NDArray[Any],
        of_strips: tuple[int, int],
    ) -> None:
        a, strips = self.a, self.strips
        arrays = (a.data, a.indices, a.indptr, strips.values, strips.places, ends, self.b)
        counts = (a.shape[0], int(a.indptr[-1]), group.blocks, strips.count, group.lo, group.hi)
        line = [what, *map(address, arrays), *counts, address(out), *of_strips, a.shape[1]]
        self.kernel(np.array([line], np.int64))


class _Earlier(Struct, eq=False):
    """How often a matrix was multiplied by vectors, and its strips, once it has some."""

    memory: list[weakref.ref[Any]]
    """The arrays that its own are views of, or are."""
    products: int = 0
    strips: Strips | None = None
    scatters: bool | None = None

    def pays(self, a: Any) -> bool:
        """Whether another order is the same to each row, and other elements of vectors are near then."""
        if self.scatters is None:
            self.scatters = bool(a.has_sorted_indices) and _scatters(a)
        return self.scatters


_Key = tuple[tuple[tuple[int, str], ...], int, tuple[int, int]]
_earlier: dict[_Key, _Earlier] = {}
"""By where the arrays of matrices lie, which is the same for all views of one, as long as their memory is
theirs."""


def striped_product(a: Any, b: Any, turned: bool, looked: Looked) -> StripedProduct | None:
    """`a @ b`, or `a.T @ b` where `turned`, of a CSR array and a contiguous vector as a column, as part of
    what has `looked`; None where another order is not worth it, or not yet, or memory has no room for it."""
    rows, columns = a.shape
    if columns < SCATTERED_STRIPS * _STRIP or a.nnz * _STRIP**2 < STRIP_NONZEROS * rows * columns:
        return None
    found = _noted(a)
    found.products += 1
    nbytes = a.nnz * (a.dtype.itemsize + np.dtype(np.uint32).itemsize)
    if found.products <= STRIP_PRODUCTS or not found.pays(a) or nbytes > copied_bytes():
        return None
    source = source_of(
        "strips",
        NUMBER=f"np.{a.dtype.name}",
        INDEX=f"np.u{a.indices.dtype.name}",
        WORD=f"np.uint{8 * a.dtype.itemsize}",
    )
    kernel = at_hand(source, None, lambda f: _flaw(f, a), "sparse products by strips")
    if kernel is None:
        return None
    if found.strips is None:
        found.strips = Strips(a, threads())
    return StripedProduct(a, b, turned, found.strips, kernel, looked.setdefault(found.strips, {}))


def _noted(a: Any) -> _Earlier:
    """What is known of a matrix, as long as its memory lives."""
    arrays = a.data, a.indices, a.indptr
    key = tuple((address(x), x.dtype.str) for x in arrays), a.nnz, a.shape
    memory = [_owner(x) for x in arrays]
    found = _earlier.get(key)
    if found is None or any(ref() is not x for ref, x in zip(found.memory, memory, strict=True)):
        found = _earlier[key] = _Earlier([weakref.ref(x, lambda ref: _forget(key, ref)) for x in memory])
    return found


def _owner(x: Any) -> Any:
    """The array that an array is a view of, or that it is."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return x


def _forget(key: _Key, ref: weakref.ref[Any]) -> None:
    found = _earlier.get(key)
    if found is not None and any(own is ref for own in found.memory):
        del _earlier[key]


def _scatters(a: Any) -> bool:
    """Whether rows that follow each other ask many strips of the vector, by some runs of non-zeros."""
    first = np.linspace(0, max(a.nnz - _SAMPLE, 0), _RUNS).astype(np.int64)
    asked = (len(np.unique(a.indices[p : p + _SAMPLE] // _STRIP)) for p in first)
    return sum(asked) >= SCATTERED_STRIPS * _RUNS


def _flaw(kernel: Function, a: Any) -> str:
    """What the kernel makes otherwise than SciPy of the last rows, in two groups, both ways."""
    part, guards = a[slice(*last_rows(a.indptr, 1))], Guards()
    strips, pairs = Strips(part, 2), []
    for turned in (False, True):
        left = part.T if turned else part
        x = (np.arange(left.shape[1]) % 7 - 3).astype(a.dtype)[:, None]
        product = StripedProduct(part, x, turned, strips, kernel, {})
        found = guards.empty(product.shape, a.dtype)
        for rows in product.ranges(2):
            product.run(rows, found)
        pairs.append((found, left @ x))
    return guards.flaw(pairs, largest([part.data, *(wanted for _, wanted in pairs)]))
