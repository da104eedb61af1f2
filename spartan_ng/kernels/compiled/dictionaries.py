"""Products of a compressed matrix and dense columns, compiled: a product a tuple, then a look-up a row.

Rows are taken in strips that stay in the cache while all groups pass over them. Lists of offsets become
codes, strip by strip; runs are added to, or summed, as a whole. For a vector, four groups with codes of a
byte are taken together, and a group of zeros for each that lacks: their look-ups do not wait for each other.
Columns without a layout are left to BLAS; NumPy does all as long as the kernel is not compiled.

Elgohary et al., "Compressed Linear Algebra for Large-Scale Machine Learning" (VLDB 2016), section 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.compressed.groups import Codes, Group, Offsets
from spartan_ng.compressed.matrix import CompressedMatrix
from spartan_ng.kernels.compiled.compile import at_hand

WORTH = 1 << 15
"""Look-ups from which a product is worth a kernel."""
_FIELDS = 9
"""Numbers of a group in the table: kind, bytes a code, codes, starts, listed (offsets or runs), distinct,
counts, columns and their number. A call adds the dictionary's address."""

_HEAD = """\
from numba import carray, njit
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import pointer

STRIP = 4096


@njit(nogil=True, error_model='numpy')
def strip_codes(t, lo, hi, cursors, codes):
    if t[0] == 0:
        if t[1] == 1:
            narrow = carray(pointer(t[2]), (hi,), np.uint8)
            for i in range(lo, hi):
                codes[i - lo] = narrow[i]
        else:
            wide = carray(pointer(t[2]), (hi,), np.uint16)
            for i in range(lo, hi):
                codes[i - lo] = wide[i]
        return
    codes[: hi - lo] = 0
    offsets = carray(pointer(t[2]), (t[4],), np.int32)
    starts = carray(pointer(t[3]), (t[5],), np.int64)
    for k in range(1, t[5]):
        p, end = cursors[k], starts[k]
        while p < end and offsets[p] < hi:
            codes[offsets[p] - lo] = k
            p += 1
        cursors[k] = p


@njit(nogil=True, error_model='numpy')
def first_cursors(table, rows):
    most = 1
    for g in range(1, table.shape[0]):
        if table[g, 0] == 1:
            most = max(most, table[g, 5])
    cursors = np.zeros((table.shape[0], most), np.int64)
    for g in range(1, table.shape[0]):
        if table[g, 0] == 1:
            starts = carray(pointer(table[g, 3]), (table[g, 5],), np.int64)
            for k in range(1, table[g, 5]):
                cursors[g, k] = starts[k - 1]
    return cursors


@njit(nogil=True, error_model='numpy')
def count_narrow(table):
    found = 0
    while found + 1 < table.shape[0] and table[found + 1, 0] == 0 and table[found + 1, 1] == 1:
        found += 1
    return found


@njit(nogil=True, error_model='numpy')
def four(table, g, narrow, sizes):
    places = np.empty((4, 2), np.int64)
    for q in range(g, g + 4):
        places[q - g, 0] = table[q if q <= narrow else g, 2]
        places[q - g, 1] = sizes[q if q <= narrow else table.shape[0]]
    return places


@njit(nogil=True, error_model='numpy')
def run_code(t, p):
    if t[1] == 1:
        return np.int64(carray(pointer(t[2]), (t[4],), np.uint8)[p])
    return np.int64(carray(pointer(t[2]), (t[4],), np.uint16)[p])
"""

_FROM_RIGHT = (
    _HEAD
    + """\


@njit(nogil=True, error_model='numpy')
def tuple_products(t, b, m):
    distinct, k = t[5], t[8]
    words = carray(pointer(t[9]), (distinct, k), np.float64)
    columns = carray(pointer(t[7]), (k,), np.int64)
    out = np.zeros((distinct, m))
    for d in range(distinct):
        for c in range(k):
            for j in range(m):
                out[d, j] += words[d, c] * b[columns[c], j]
    return out


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    rows, width, m = table[0, 0], table[0, 1], table[0, 2]
    b = carray(pointer(table[0, 3]), (width, m), np.float64)
    out = carray(pointer(table[0, 4]), (rows, m), np.float64)
    groups = table.shape[0]
    sizes = np.zeros(groups + 1, np.int64)
    for g in range(1, groups):
        sizes[g + 1] = sizes[g] + table[g, 5]
    products = np.zeros((sizes[groups] + 256, m))
    for g in range(1, groups):
        products[sizes[g] : sizes[g + 1]] = tuple_products(table[g], b, m)
    cursors = first_cursors(table, rows)
    codes = np.empty(STRIP, np.uint16)
    narrow = count_narrow(table) if m == 1 else 0
    for lo in range(0, rows, STRIP):
        hi = min(lo + STRIP, rows)
        part = out[lo:hi]
        part[:] = 0.0
        for g in range(1, narrow + 1, 4):
            flat, places = part[:, 0], four(table, g, narrow, sizes)
            c0 = carray(pointer(places[0, 0] + lo), (hi - lo,), np.uint8)
            c1 = carray(pointer(places[1, 0] + lo), (hi - lo,), np.uint8)
            c2 = carray(pointer(places[2, 0] + lo), (hi - lo,), np.uint8)
            c3 = carray(pointer(places[3, 0] + lo), (hi - lo,), np.uint8)
            p0, p1 = products[places[0, 1] :, 0], products[places[1, 1] :, 0]
            p2, p3 = products[places[2, 1] :, 0], products[places[3, 1] :, 0]
            for i in range(hi - lo):
                flat[i] += (p0[c0[i]] + p1[c1[i]]) + (p2[c2[i]] + p3[c3[i]])
        for g in range(narrow + 1, groups):
            t = table[g]
            known = products[sizes[g] : sizes[g + 1]]
            if t[0] == 2:
                starts = carray(pointer(t[3]), (t[4] + 1,), np.int32)
                p = cursors[g, 0]
                while p < t[4] and starts[p] < hi:
                    word = known[run_code(t, p)]
                    for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
                        for j in range(m):
                            out[i, j] += word[j]
                    if starts[p + 1] > hi:
                        break
                    p += 1
                cursors[g, 0] = p
                continue
            strip_codes(t, lo, hi, cursors[g], codes)
            if m == 1:
                flat, numbers = part[:, 0], known[:, 0]
                for i in range(hi - lo):
                    flat[i] += numbers[codes[i]]
            else:
                for i in range(hi - lo):
                    word = known[codes[i]]
                    for j in range(m):
                        part[i, j] += word[j]
"""
)

_FROM_LEFT = (
    _HEAD
    + """\


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    rows, width, m = table[0, 0], table[0, 1], table[0, 2]
    b = carray(pointer(table[0, 3]), (rows, m), np.float64)
    out = carray(pointer(table[0, 4]), (width, m), np.float64)
    groups = table.shape[0]
    sizes = np.zeros(groups + 1, np.int64)
    for g in range(1, groups):
        sizes[g + 1] = sizes[g] + table[g, 5]
    sums = np.zeros((sizes[groups] + 256, m))
    cursors = first_cursors(table, rows)
    codes = np.empty(STRIP, np.uint16)
    narrow = count_narrow(table) if m == 1 else 0
    for lo in range(0, rows, STRIP):
        hi = min(lo + STRIP, rows)
        part = b[lo:hi]
        for g in range(1, narrow + 1, 4):
            flat, places = part[:, 0], four(table, g, narrow, sizes)
            c0 = carray(pointer(places[0, 0] + lo), (hi - lo,), np.uint8)
            c1 = carray(pointer(places[1, 0] + lo), (hi - lo,), np.uint8)
            c2 = carray(pointer(places[2, 0] + lo), (hi - lo,), np.uint8)
            c3 = carray(pointer(places[3, 0] + lo), (hi - lo,), np.uint8)
            s0, s1 = sums[places[0, 1] :, 0], sums[places[1, 1] :, 0]
            s2, s3 = sums[places[2, 1] :, 0], sums[places[3, 1] :, 0]
            for i in range(hi - lo):
                x = flat[i]
                s0[c0[i]] += x
                s1[c1[i]] += x
                s2[c2[i]] += x
                s3[c3[i]] += x
        for g in range(narrow + 1, groups):
            t = table[g]
            known = sums[sizes[g] : sizes[g + 1]]
            if t[0] == 2:
                starts = carray(pointer(t[3]), (t[4] + 1,), np.int32)
                p = cursors[g, 0]
                while p < t[4] and starts[p] < hi:
                    word = known[run_code(t, p)]
                    for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
                        for j in range(m):
                            word[j] += b[i, j]
                    if starts[p + 1] > hi:
                        break
                    p += 1
                cursors[g, 0] = p
                continue
            strip_codes(t, lo, hi, cursors[g], codes)
            if m == 1:
                flat, numbers = part[:, 0], known[:, 0]
                for i in range(hi - lo):
                    numbers[codes[i]] += flat[i]
            else:
                for i in range(hi - lo):
                    word = known[codes[i]]
                    for j in range(m):
                        word[j] += part[i, j]
    out[:] = 0.0
    for g in range(1, groups):
        t = table[g]
        d, k = t[5], t[8]
        words = carray(pointer(t[9]), (d, k), np.float64)
        columns = carray(pointer(t[7]), (k,), np.int64)
        counts = carray(pointer(t[6]), (d,), np.int64)
        known = sums[sizes[g] : sizes[g + 1]]
        for q in range(d):
            if counts[q] > 0:
                for c in range(k):
                    for j in range(m):
                        out[columns[c], j] += words[q, c] * known[q, j]
"""
)


def multiply(a: CompressedMatrix, b: Any) -> Any:
    """The product with a dense vector or matrix: compiled where a kernel is ready and worth it."""
    columns = 1 if b.ndim == 1 else b.shape[1]
    looked_up = sorted((g for g in a.groups if g.layout is not None), key=_kind)
    if a.rows * columns * len(looked_up) < WORTH or not _fits(a, b, looked_up):
        return a @ b
    kernel = at_hand(_FROM_LEFT if a.turned else _FROM_RIGHT)
    if kernel is None:
        return a @ b
    dense = np.ascontiguousarray(b)
    out = np.empty((a.shape[0], columns))
    lines: Any = a.remembered("table", lambda: _lines(a))
    table = np.empty((len(looked_up) + 1, _FIELDS + 1), np.int64)
    table[0, :5] = a.rows, a.width, columns, _address(dense), _address(out)
    table[1:, :_FIELDS] = lines[0]
    words = [np.ascontiguousarray(g.dictionary) for g in looked_up]
    table[1:, _FIELDS] = [_address(w) for w in words]
    kernel(table)
    _add_plain(a, dense.reshape(len(dense), columns), out)
    return out[:, 0] if b.ndim == 1 else out


def _fits(a: CompressedMatrix, b: Any, looked_up: list[Group]) -> bool:
    """Whether the operands are what the kernels were written for."""
    double = all(x == np.float64 for x in (b.dtype, *(g.dictionary.dtype for g in a.groups)))
    return double and bool(looked_up) and a.rows < 2**31


def _kind(g: Group) -> tuple[int, int]:
    """A layout's number in the table, and bytes a code: bytes come first."""
    layout = g.layout
    assert layout is not None, "groups without one are left out"
    if isinstance(layout, Offsets):
        return 1, layout.offsets.itemsize
    return 0 if isinstance(layout, Codes) else 2, layout.codes.itemsize


def _lines(a: CompressedMatrix) -> tuple[Any, list[Any]]:
    """The part of the table that dictionaries have no share in, and the arrays that it has addresses of."""
    kept: list[Any] = []
    lines = []
    known = zip(a.groups, a.counts(), strict=True)
    for g, count in sorted((k for k in known if k[0].layout is not None), key=lambda k: _kind(k[0])):
        layout = g.layout
        columns, count = np.array(g.columns, np.int64), np.ascontiguousarray(count, np.int64)
        if isinstance(layout, Codes):
            main, starts, listed = layout.codes, layout.codes, layout.rows
        elif isinstance(layout, Offsets):
            main, starts, listed = layout.offsets, layout.starts, len(layout.offsets)
        else:
            assert layout is not None, "groups without one are left out"
            main, starts, listed = layout.codes, layout.starts, len(layout.codes)
        main, starts = np.ascontiguousarray(main), np.ascontiguousarray(starts)
        kept += [main, starts, columns, count]
        addresses = _address(main), _address(starts)
        tail = len(g.dictionary), _address(count), _address(columns), len(columns)
        lines.append((_kind(g)[0], main.itemsize, *addresses, listed, *tail))
    return np.array(lines, np.int64), kept


def _add_plain(a: CompressedMatrix, b: Any, out: Any) -> None:
    """What columns without a layout bring."""
    for g in a.groups:
        if g.layout is None:
            columns = list(g.columns)
            if a.turned:
                out[columns] = g.dictionary.T @ b
            else:
                out += g.dictionary @ b[columns]


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
