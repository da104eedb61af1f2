"""The source of loops over compressed columns: products from either side, and the elements themselves.

Rows are taken in strips that stay in the cache while all groups pass over them: short ones where results are
written, longer ones where they are only read. From the right a row looks up
its tuple's product; for a vector, four groups with codes of a byte are taken together, and a group of zeros
for each that lacks: their look-ups do not wait for each other. From the left a row is added to its tuple's
sum, where equal codes in neighbouring rows wait for each other's store; for groups of few columns it is
cheaper to multiply by the tuple, with sums in registers. What the lists of offsets do not name is summed from
a copy of the strip in which the named rows are zeros: a difference of sums would lose digits.

Elgohary et al., "Compressed Linear Algebra for Large-Scale Machine Learning" (VLDB 2016), section 4.

A table's first line has: the first row and the last, columns of the matrix, columns of the dense operand, its
address, the result's address. Each other line is a group: layout (0 codes, 1 offsets, 2 runs), bytes a code,
codes or offsets, starts, their number, distinct tuples, counts (0: all tuples have rows), columns, their
number, words.
"""

from __future__ import annotations

from functools import cache

MOST_MULTIPLIED = 3
"""Columns of a group up to which rows are multiplied by tuples, and not added to tuples' sums. Measured:
0.33, 0.45, 0.6 ns a row for 1, 2, 3 columns; 0.7 ns for an addition."""
_UNROLLED = 4

_HEAD = """\
from numba import carray, njit
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import pointer

STRIP = STRIP_ROWS


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
    if t[0] == 1:
        offsets = carray(pointer(t[2]), (t[4],), np.int32)
        starts = carray(pointer(t[3]), (t[5],), np.int64)
        for k in range(1, t[5]):
            p, end = cursors[k], starts[k]
            while p < end and offsets[p] < hi:
                codes[offsets[p] - lo] = k
                p += 1
            cursors[k] = p
        return
    starts = carray(pointer(t[3]), (t[4] + 1,), np.int32)
    p = cursors[0]
    while p < t[4] and starts[p] < hi:
        code = run_code(t, p)
        for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
            codes[i - lo] = code
        if starts[p + 1] > hi:
            break
        p += 1
    cursors[0] = p


@njit(nogil=True, error_model='numpy')
def run_code(t, p):
    if t[1] == 1:
        return np.int64(carray(pointer(t[2]), (t[4],), np.uint8)[p])
    return np.int64(carray(pointer(t[2]), (t[4],), np.uint16)[p])


@njit(nogil=True, error_model='numpy')
def below(numbers, a, b, row):
    while a < b:
        middle = (a + b) // 2
        if numbers[middle] < row:
            a = middle + 1
        else:
            b = middle
    return a


@njit(nogil=True, error_model='numpy')
def first_cursors(table):
    first, most = table[0, 0], 1
    for g in range(1, table.shape[0]):
        if table[g, 0] == 1:
            most = max(most, table[g, 5])
    cursors = np.zeros((table.shape[0], most), np.int64)
    for g in range(1, table.shape[0]):
        t = table[g]
        if t[0] == 1:
            offsets = carray(pointer(t[2]), (t[4],), np.int32)
            starts = carray(pointer(t[3]), (t[5],), np.int64)
            for k in range(1, t[5]):
                cursors[g, k] = below(offsets, starts[k - 1], starts[k], first)
        elif t[0] == 2:
            runs = carray(pointer(t[3]), (t[4] + 1,), np.int32)
            cursors[g, 0] = max(below(runs, 0, t[4], first + 1) - 1, 0)
    return cursors


@njit(nogil=True, error_model='numpy')
def first_words(table):
    sizes = np.zeros(table.shape[0] + 1, np.int64)
    for g in range(1, table.shape[0]):
        sizes[g + 1] = sizes[g] + table[g, 5]
    return sizes
"""

_RIGHT = (
    _HEAD
    + """\


@njit(nogil=True, error_model='numpy')
def tuple_products(t, b, m, out):
    distinct, k = t[5], t[8]
    words = carray(pointer(t[9]), (k, distinct), np.NUMBER)
    columns = carray(pointer(t[7]), (k,), np.int64)
    for c in range(k):
        for d in range(distinct):
            for j in range(m):
                out[d, j] += words[c, d] * b[columns[c], j]


@njit(nogil=True, error_model='numpy')
def vector_products(t, b, out):
    distinct, k = t[5], t[8]
    words = carray(pointer(t[9]), (k, distinct), np.NUMBER)
    columns = carray(pointer(t[7]), (k,), np.int64)
    for c in range(k):
        factor = b[columns[c]]
        for d in range(distinct):
            out[d] += words[c, d] * factor


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
def add_listed(t, hi, first, cursors, known, out):
    offsets = carray(pointer(t[2]), (t[4],), np.int32)
    starts = carray(pointer(t[3]), (t[5],), np.int64)
    for k in range(1, t[5]):
        p, end, word = cursors[k], starts[k], known[k]
        while p < end and offsets[p] < hi:
            out[offsets[p] - first] += word
            p += 1
        cursors[k] = p


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    rows, groups = last - first, table.shape[0]
    b = carray(pointer(table[0, 4]), (width, m), np.NUMBER)
    out = carray(pointer(table[0, 5]), (rows, m), np.NUMBER)
    sizes = first_words(table)
    products = np.zeros((sizes[groups] + 256, m), np.NUMBER)
    vector = carray(pointer(table[0, 4]), (width,), np.NUMBER)
    sums = carray(pointer(table[0, 5]), (rows,), np.NUMBER)
    flat_products = products.reshape(products.size)
    for g in range(1, groups):
        if m == 1:
            vector_products(table[g], vector, flat_products[sizes[g] : sizes[g + 1]])
        else:
            tuple_products(table[g], b, m, products[sizes[g] : sizes[g + 1]])
    cursors = first_cursors(table)
    codes = np.empty(STRIP, np.uint16)
    narrow = count_narrow(table) if m == 1 else 0
    for lo in range(first, last, STRIP):
        hi = min(lo + STRIP, last)
        part = out[lo - first : hi - first]
        part[:] = 0
        for g in range(1, narrow + 1, 4):
            flat, places = sums[lo - first : hi - first], four(table, g, narrow, sizes)
            c0 = carray(pointer(places[0, 0] + lo), (hi - lo,), np.uint8)
            c1 = carray(pointer(places[1, 0] + lo), (hi - lo,), np.uint8)
            c2 = carray(pointer(places[2, 0] + lo), (hi - lo,), np.uint8)
            c3 = carray(pointer(places[3, 0] + lo), (hi - lo,), np.uint8)
            p0, p1 = flat_products[places[0, 1] :], flat_products[places[1, 1] :]
            p2, p3 = flat_products[places[2, 1] :], flat_products[places[3, 1] :]
            for i in range(hi - lo):
                flat[i] += (p0[c0[i]] + p1[c1[i]]) + (p2[c2[i]] + p3[c3[i]])
        for g in range(narrow + 1, groups):
            t = table[g]
            known = products[sizes[g] : sizes[g + 1]]
            flat, numbers = sums[lo - first : hi - first], flat_products[sizes[g] : sizes[g + 1]]
            if m == 1 and t[0] == 1 and numbers[0] == 0:
                add_listed(t, hi, lo, cursors[g], numbers, flat)
                continue
            strip_codes(t, lo, hi, cursors[g], codes)
            if m == 1:
                for i in range(hi - lo):
                    flat[i] += numbers[codes[i]]
            else:
                for i in range(hi - lo):
                    word = known[codes[i]]
                    for j in range(m):
                        part[i, j] += word[j]
"""
)

_LEFT_END = """\


@njit(nogil=True, error_model='numpy')
def add_common(t, lo, hi, cursors, x, copied, sums):
    n = hi - lo
    copied[:n] = x
    offsets = carray(pointer(t[2]), (t[4],), np.int32)
    starts = carray(pointer(t[3]), (t[5],), np.int64)
    for k in range(1, t[5]):
        p, end, total = cursors[k], starts[k], sums[k]
        while p < end and offsets[p] < hi:
            total += x[offsets[p] - lo]
            copied[offsets[p] - lo] = 0
            p += 1
        cursors[k], sums[k] = p, total
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = np.NUMBER(0)
    whole = n // 8 * 8
    for i in range(0, whole, 8):
        a0 += copied[i]
        a1 += copied[i + 1]
        a2 += copied[i + 2]
        a3 += copied[i + 3]
        a4 += copied[i + 4]
        a5 += copied[i + 5]
        a6 += copied[i + 6]
        a7 += copied[i + 7]
    for i in range(whole, n):
        a0 += copied[i]
    sums[0] += ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7))


@njit(nogil=True, error_model='numpy')
def add_runs(t, lo, hi, cursors, x, sums):
    starts = carray(pointer(t[3]), (t[4] + 1,), np.int32)
    p = cursors[0]
    while p < t[4] and starts[p] < hi:
        total = np.NUMBER(0)
        for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
            total += x[i - lo]
        sums[run_code(t, p)] += total
        if starts[p + 1] > hi:
            break
        p += 1
    cursors[0] = p


@njit(nogil=True, error_model='numpy')
def add_rows(codes, x, sums):
    n, copies = len(x), sums.shape[0]
    if copies == 1:
        flat = sums[0]
        for i in range(n):
            flat[codes[i]] += x[i]
        return
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        s0[codes[i]] += x[i]
        s1[codes[i + 1]] += x[i + 1]
        s2[codes[i + 2]] += x[i + 2]
        s3[codes[i + 3]] += x[i + 3]
    for i in range(whole, n):
        s0[codes[i]] += x[i]


@njit(nogil=True, error_model='numpy')
def turned_words(t, out):
    k, distinct = t[8], t[5]
    words = carray(pointer(t[9]), (k, distinct), np.NUMBER)
    for c in range(k):
        for d in range(distinct):
            out[d * k + c] = words[c, d]


@njit(nogil=True, error_model='numpy')
def vector_sums(table, b, kept, places):
    first, last = table[0, 0], table[0, 1]
    cursors, copied = first_cursors(table), np.empty(STRIP, np.NUMBER)
    for lo in range(first, last, STRIP):
        hi = min(lo + STRIP, last)
        x = b[lo - first : hi - first]
        for g in range(1, table.shape[0]):
            t, own = table[g], kept[places[g] : places[g + 1]]
            if t[0] == 1:
                add_common(t, lo, hi, cursors[g], x, copied, own)
                continue
            if t[0] == 2:
                add_runs(t, lo, hi, cursors[g], x, own)
                continue
            narrow = carray(pointer(t[2] + lo), (hi - lo,), np.uint8)
            wide = carray(pointer(t[2] + 2 * lo), (hi - lo,), np.uint16)
            if t[8] <= MOST:
                k = t[8]
                if t[1] == 1:
                    multiply_some(k, narrow, x, own[k:], own)
                else:
                    multiply_some(k, wide, x, own[k:], own)
            elif t[1] == 1:
                add_rows(narrow, x, own.reshape(len(own) // t[5], t[5]))
            else:
                add_rows(wide, x, own.reshape(len(own) // t[5], t[5]))


@njit(nogil=True, error_model='numpy')
def vector_places(table):
    places = np.zeros(table.shape[0] + 1, np.int64)
    for g in range(1, table.shape[0]):
        t = table[g]
        size = t[5]
        if t[0] == 0 and t[8] <= MOST:
            size = t[8] * (1 + t[5])
        elif t[0] == 0 and t[5] <= 512:
            size = 4 * t[5]
        places[g + 1] = places[g] + size
    return places


@njit(nogil=True, error_model='numpy')
def matrix_sums(table, b, m, sums, sizes):
    first, last = table[0, 0], table[0, 1]
    cursors = first_cursors(table)
    codes = np.empty(STRIP, np.uint16)
    for lo in range(first, last, STRIP):
        hi = min(lo + STRIP, last)
        part = b[lo - first : hi - first]
        for g in range(1, table.shape[0]):
            known = sums[sizes[g] : sizes[g + 1]]
            strip_codes(table[g], lo, hi, cursors[g], codes)
            for i in range(hi - lo):
                word = known[codes[i]]
                for j in range(m):
                    word[j] += part[i, j]


@njit(nogil=True, error_model='numpy')
def tuples_times_sums(t, m, known, out):
    d, k = t[5], t[8]
    words = carray(pointer(t[9]), (k, d), np.NUMBER)
    columns = carray(pointer(t[7]), (k,), np.int64)
    counts = carray(pointer(t[6]), (d,), np.int64)
    for c in range(k):
        for q in range(d):
            if t[6] == 0 or counts[q] > 0:
                for j in range(m):
                    out[columns[c], j] += words[c, q] * known[q, j]


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    b = carray(pointer(table[0, 4]), (last - first, m), np.NUMBER)
    out = carray(pointer(table[0, 5]), (width, m), np.NUMBER)
    out[:] = 0
    if m > 1:
        sizes = first_words(table)
        sums = np.zeros((sizes[table.shape[0]], m), np.NUMBER)
        matrix_sums(table, b, m, sums, sizes)
        for g in range(1, table.shape[0]):
            tuples_times_sums(table[g], m, sums[sizes[g] : sizes[g + 1]], out)
        return
    places = vector_places(table)
    kept = np.zeros(places[table.shape[0]], np.NUMBER)
    for g in range(1, table.shape[0]):
        if table[g, 0] == 0 and table[g, 8] <= MOST:
            turned_words(table[g], kept[places[g] + table[g, 8] : places[g + 1]])
    vector_sums(table, carray(pointer(table[0, 4]), (last - first,), np.NUMBER), kept, places)
    for g in range(1, table.shape[0]):
        t, own = table[g], kept[places[g] : places[g + 1]]
        if t[0] == 0 and t[8] <= MOST:
            columns = carray(pointer(t[7]), (t[8],), np.int64)
            for c in range(t[8]):
                out[columns[c], 0] = own[c]
            continue
        for q in range(t[5], len(own)):
            own[q % t[5]] += own[q]
        tuples_times_sums(t, 1, own[: t[5]].reshape(t[5], 1), out)
"""

_ELEMENTS = (
    _HEAD
    + """\


@njit(nogil=True, error_model='numpy')
def put(codes, words, columns, out):
    for c in range(len(columns)):
        column, known = columns[c], words[c]
        for i in range(len(codes)):
            out[i, column] = known[codes[i]]


@njit(nogil=True, error_model='numpy', cache=True)
def kernel(table):
    first, last, width = table[0, 0], table[0, 1], table[0, 2]
    out = carray(pointer(table[0, 5]), (last - first, width), np.NUMBER)
    cursors, groups = first_cursors(table), table.shape[0]
    others = np.empty((groups, STRIP), np.uint16)
    for top in range(first, last, STRIP):
        bottom = min(top + STRIP, last)
        for g in range(1, groups):
            if table[g, 0] != 0:
                strip_codes(table[g], top, bottom, cursors[g], others[g])
        step = max(16, 3072 // width)
        for lo in range(top, bottom, step):
            hi = min(lo + step, bottom)
            part = out[lo - first : hi - first]
            for g in range(1, groups):
                t = table[g]
                words = carray(pointer(t[9]), (t[8], t[5]), np.NUMBER)
                columns = carray(pointer(t[7]), (t[8],), np.int64)
                if t[0] != 0:
                    put(others[g, lo - top : hi - top], words, columns, part)
                elif t[1] == 1:
                    put(carray(pointer(t[2] + lo), (hi - lo,), np.uint8), words, columns, part)
                else:
                    put(carray(pointer(t[2] + 2 * lo), (hi - lo,), np.uint16), words, columns, part)
"""
)
"""Small tiles of rows, so that what is written column by column stays in the first level of the cache."""


def _multiply(k: int) -> str:
    """Rows times tuples of k words: the sums of four rows at a time are in registers."""
    rows = range(_UNROLLED)
    lines = [
        "@njit(nogil=True, error_model='numpy')",
        f"def multiply_{k}(codes, x, words, out):",
        *(f"    a{r}_{c} = np.NUMBER(0)" for r in rows for c in range(k)),
        f"    n, whole = len(x), len(x) // {_UNROLLED} * {_UNROLLED}",
        f"    for i in range(0, whole, {_UNROLLED}):",
    ]
    for r in rows:
        lines.append(f"        x{r}, p{r} = x[i + {r}], np.int64(codes[i + {r}]) * {k}")
        lines += [f"        a{r}_{c} += x{r} * words[p{r} + {c}]" for c in range(k)]
    lines += ["    for i in range(whole, n):", f"        p0 = np.int64(codes[i]) * {k}"]
    lines += [f"        a0_{c} += x[i] * words[p0 + {c}]" for c in range(k)]
    lines += [f"    out[{c}] += " + " + ".join(f"a{r}_{c}" for r in rows) for c in range(k)]
    return "\n".join(lines)


def _left() -> str:
    every = range(1, MOST_MULTIPLIED + 1)
    chosen = ["@njit(nogil=True, error_model='numpy')", "def multiply_some(k, codes, x, words, out):"]
    for k in every:
        chosen += [f"    if k == {k}:", f"        multiply_{k}(codes, x, words, out)"]
    parts = [_HEAD.rstrip("\n"), f"MOST = {MOST_MULTIPLIED}", *map(_multiply, every), "\n".join(chosen)]
    return "\n\n\n".join(parts) + "\n" + _LEFT_END


@cache
def from_right(number: str) -> str:
    """The kernel of `X @ b` in float64 or int64."""
    return _RIGHT.replace("NUMBER", number).replace("STRIP_ROWS", "2048")


@cache
def from_left(number: str) -> str:
    """The kernel of `X.T @ b` in float64 or int64."""
    return _left().replace("NUMBER", number).replace("STRIP_ROWS", "8192")


@cache
def elements(number: str) -> str:
    """The kernel that writes all elements, as unsigned numbers of their size."""
    return _ELEMENTS.replace("NUMBER", number).replace("STRIP_ROWS", "2048")
