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
number, words. What a kernel needs besides, it takes one after the other of zeroed memory whose address
the first line has next; `scratch_numbers` says how much.
"""

from __future__ import annotations

from functools import cache

MOST_MULTIPLIED = 3
"""Columns of a group up to which rows are multiplied by tuples, and not added to tuples' sums. Measured:
0.33, 0.45, 0.6 ns a row for 1, 2, 3 columns; 0.7 ns for an addition."""
_UNROLLED = 4
_STRIP = 2048
"""Rows of a strip whose results are written; and"""
_READ_STRIP = 8192
"""of one that is only read."""
_PAD = 256
"""Zeros for a group that lacks, as many as a byte has codes."""

_HEAD = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

STRIP = STRIP_ROWS


@compiled
def taken(table, numbers):
    place = table[0, 6]
    table[0, 6] = place + 8 * numbers
    return place


@compiled
def strip_codes(t, lo, hi, cursors, codes):
    if t[0] == 0:
        if t[1] == 1:
            narrow = array_at(t[2], (hi,), np.uint8)
            for i in range(lo, hi):
                codes[i - lo] = narrow[i]
        else:
            wide = array_at(t[2], (hi,), np.uint16)
            for i in range(lo, hi):
                codes[i - lo] = wide[i]
        return
    codes[: hi - lo] = 0
    if t[0] == 1:
        offsets = array_at(t[2], (t[4],), np.int32)
        starts = array_at(t[3], (t[5],), np.int64)
        for k in range(1, t[5]):
            p, end = cursors[k], starts[k]
            while p < end and offsets[p] < hi:
                codes[offsets[p] - lo] = k
                p += 1
            cursors[k] = p
        return
    starts = array_at(t[3], (t[4] + 1,), np.int32)
    p = cursors[0]
    while p < t[4] and starts[p] < hi:
        code = run_code(t, p)
        for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
            codes[i - lo] = code
        if starts[p + 1] > hi:
            break
        p += 1
    cursors[0] = p


@compiled
def run_code(t, p):
    if t[1] == 1:
        return np.int64(array_at(t[2], (t[4],), np.uint8)[p])
    return np.int64(array_at(t[2], (t[4],), np.uint16)[p])


@compiled
def below(numbers, a, b, row):
    while a < b:
        middle = (a + b) // 2
        if numbers[middle] < row:
            a = middle + 1
        else:
            b = middle
    return a


@compiled
def most_cursors(table):
    most = 1
    for g in range(1, table.shape[0]):
        if table[g, 0] == 1:
            most = max(most, table[g, 5])
    return most


@compiled
def find_first_cursors(table, cursors):
    first = table[0, 0]
    for g in range(1, table.shape[0]):
        t = table[g]
        if t[0] == 1:
            offsets = array_at(t[2], (t[4],), np.int32)
            starts = array_at(t[3], (t[5],), np.int64)
            for k in range(1, t[5]):
                cursors[g, k] = below(offsets, starts[k - 1], starts[k], first)
        elif t[0] == 2:
            runs = array_at(t[3], (t[4] + 1,), np.int32)
            cursors[g, 0] = max(below(runs, 0, t[4], first + 1) - 1, 0)


@compiled
def find_first_words(table, sizes):
    for g in range(1, table.shape[0]):
        sizes[g + 1] = sizes[g] + table[g, 5]
"""

_RIGHT = (
    _HEAD
    + """\


@compiled
def tuple_products(t, b, m, out):
    distinct, k = t[5], t[8]
    words = array_at(t[9], (k, distinct), np.NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    for c in range(k):
        for d in range(distinct):
            for j in range(m):
                out[d, j] += words[c, d] * b[columns[c], j]


@compiled
def vector_products(t, b, out):
    distinct, k = t[5], t[8]
    words = array_at(t[9], (k, distinct), np.NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    for c in range(k):
        factor = b[columns[c]]
        for d in range(distinct):
            out[d] += words[c, d] * factor


@compiled
def count_narrow(table):
    found = 0
    while found + 1 < table.shape[0] and table[found + 1, 0] == 0 and table[found + 1, 1] == 1:
        found += 1
    return found


@compiled
def find_four(table, g, narrow, sizes, places):
    for q in range(g, g + 4):
        places[q - g, 0] = table[q if q <= narrow else g, 2]
        places[q - g, 1] = sizes[q if q <= narrow else table.shape[0]]


@compiled
def add_listed(t, hi, first, cursors, known, out):
    offsets = array_at(t[2], (t[4],), np.int32)
    starts = array_at(t[3], (t[5],), np.int64)
    for k in range(1, t[5]):
        p, end, word = cursors[k], starts[k], known[k]
        while p < end and offsets[p] < hi:
            out[offsets[p] - first] += word
            p += 1
        cursors[k] = p


@compiled
def kernel(table):
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    rows, groups = last - first, table.shape[0]
    b = array_at(table[0, 4], (width, m), np.NUMBER)
    out = array_at(table[0, 5], (rows, m), np.NUMBER)
    sizes = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
    find_first_words(table, sizes)
    words = sizes[groups] + PAD
    place = taken(table, words * m)
    products = array_at(place, (words, m), np.NUMBER)
    flat_products = array_at(place, (words * m,), np.NUMBER)
    places = array_at(taken(table, 8), (4, 2), np.int64)
    vector = array_at(table[0, 4], (width,), np.NUMBER)
    sums = array_at(table[0, 5], (rows,), np.NUMBER)
    for g in range(1, groups):
        if m == 1:
            vector_products(table[g], vector, flat_products[sizes[g] : sizes[g + 1]])
        else:
            tuple_products(table[g], b, m, products[sizes[g] : sizes[g + 1]])
    most = most_cursors(table)
    cursors = array_at(taken(table, table.shape[0] * most), (table.shape[0], most), np.int64)
    find_first_cursors(table, cursors)
    codes = array_at(taken(table, STRIP // 4), (STRIP,), np.uint16)
    narrow = count_narrow(table) if m == 1 else 0
    for lo in range(first, last, STRIP):
        hi = min(lo + STRIP, last)
        part = out[lo - first : hi - first]
        part[:] = 0
        for g in range(1, narrow + 1, 4):
            flat = sums[lo - first : hi - first]
            find_four(table, g, narrow, sizes, places)
            c0 = array_at(places[0, 0] + lo, (hi - lo,), np.uint8)
            c1 = array_at(places[1, 0] + lo, (hi - lo,), np.uint8)
            c2 = array_at(places[2, 0] + lo, (hi - lo,), np.uint8)
            c3 = array_at(places[3, 0] + lo, (hi - lo,), np.uint8)
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


@compiled
def add_common(t, lo, hi, cursors, x, copied, sums):
    n = hi - lo
    for i in range(n):
        copied[i] = x[i]
    offsets = array_at(t[2], (t[4],), np.int32)
    starts = array_at(t[3], (t[5],), np.int64)
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


@compiled
def add_runs(t, lo, hi, cursors, x, sums):
    starts = array_at(t[3], (t[4] + 1,), np.int32)
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


@compiled
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


@compiled
def turned_words(t, out):
    k, distinct = t[8], t[5]
    words = array_at(t[9], (k, distinct), np.NUMBER)
    for c in range(k):
        for d in range(distinct):
            out[d * k + c] = words[c, d]


@compiled
def vector_sums(table, b, kept, kept_p, places):
    first, last = table[0, 0], table[0, 1]
    most = most_cursors(table)
    cursors = array_at(taken(table, table.shape[0] * most), (table.shape[0], most), np.int64)
    find_first_cursors(table, cursors)
    copied = array_at(taken(table, STRIP), (STRIP,), np.NUMBER)
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
            narrow = array_at(t[2] + lo, (hi - lo,), np.uint8)
            wide = array_at(t[2] + 2 * lo, (hi - lo,), np.uint16)
            copies = array_at(kept_p + 8 * places[g], (len(own) // t[5], t[5]), np.NUMBER)
            if t[8] <= MOST:
                k = t[8]
                if t[1] == 1:
                    multiply_some(k, narrow, x, own[k:], own)
                else:
                    multiply_some(k, wide, x, own[k:], own)
            elif t[1] == 1:
                add_rows(narrow, x, copies)
            else:
                add_rows(wide, x, copies)


@compiled
def find_places(table, places):
    for g in range(1, table.shape[0]):
        t = table[g]
        size = t[5]
        if t[0] == 0 and t[8] <= MOST:
            size = t[8] * (1 + t[5])
        elif t[0] == 0 and t[5] <= 512:
            size = 4 * t[5]
        places[g + 1] = places[g] + size


@compiled
def matrix_sums(table, b, m, sums, sizes):
    first, last = table[0, 0], table[0, 1]
    most = most_cursors(table)
    cursors = array_at(taken(table, table.shape[0] * most), (table.shape[0], most), np.int64)
    find_first_cursors(table, cursors)
    codes = array_at(taken(table, STRIP // 4), (STRIP,), np.uint16)
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


@compiled
def tuples_times_sums(t, m, known, out):
    d, k = t[5], t[8]
    words = array_at(t[9], (k, d), np.NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    counts = array_at(t[6], (d,), np.int64)
    for c in range(k):
        for q in range(d):
            if t[6] == 0 or counts[q] > 0:
                for j in range(m):
                    out[columns[c], j] += words[c, q] * known[q, j]


@compiled
def kernel(table):
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    b = array_at(table[0, 4], (last - first, m), np.NUMBER)
    out = array_at(table[0, 5], (width, m), np.NUMBER)
    groups = table.shape[0]
    out[:] = 0
    if m > 1:
        sizes = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
        find_first_words(table, sizes)
        words = sizes[groups]
        sums = array_at(taken(table, words * m), (words, m), np.NUMBER)
        matrix_sums(table, b, m, sums, sizes)
        for g in range(1, groups):
            tuples_times_sums(table[g], m, sums[sizes[g] : sizes[g + 1]], out)
        return
    places = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
    find_places(table, places)
    kept_p = taken(table, places[groups])
    kept = array_at(kept_p, (places[groups],), np.NUMBER)
    for g in range(1, table.shape[0]):
        if table[g, 0] == 0 and table[g, 8] <= MOST:
            turned_words(table[g], kept[places[g] + table[g, 8] : places[g + 1]])
    vector_sums(table, array_at(table[0, 4], (last - first,), np.NUMBER), kept, kept_p, places)
    for g in range(1, table.shape[0]):
        t, own = table[g], kept[places[g] : places[g + 1]]
        if t[0] == 0 and t[8] <= MOST:
            columns = array_at(t[7], (t[8],), np.int64)
            for c in range(t[8]):
                out[columns[c], 0] = own[c]
            continue
        for q in range(t[5], len(own)):
            own[q % t[5]] += own[q]
        tuples_times_sums(t, 1, array_at(kept_p + 8 * places[g], (t[5], 1), np.NUMBER), out)
"""

_ELEMENTS = (
    _HEAD
    + """\


@compiled
def put(codes, words, columns, out):
    for c in range(len(columns)):
        column, known = columns[c], words[c]
        for i in range(len(codes)):
            out[i, column] = known[codes[i]]


@compiled
def kernel(table):
    first, last, width = table[0, 0], table[0, 1], table[0, 2]
    out = array_at(table[0, 5], (last - first, width), np.NUMBER)
    groups, most = table.shape[0], most_cursors(table)
    cursors = array_at(taken(table, groups * most), (groups, most), np.int64)
    find_first_cursors(table, cursors)
    others = array_at(taken(table, groups * STRIP // 4), (groups, STRIP), np.uint16)
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
                words = array_at(t[9], (t[8], t[5]), np.NUMBER)
                columns = array_at(t[7], (t[8],), np.int64)
                if t[0] != 0:
                    put(others[g, lo - top : hi - top], words, columns, part)
                elif t[1] == 1:
                    put(array_at(t[2] + lo, (hi - lo,), np.uint8), words, columns, part)
                else:
                    put(array_at(t[2] + 2 * lo, (hi - lo,), np.uint16), words, columns, part)
"""
)
"""Small tiles of rows, so that what is written column by column stays in the first level of the cache."""


def _multiply(k: int) -> str:
    """Rows times tuples of k words: the sums of four rows at a time are in registers."""
    rows = range(_UNROLLED)
    lines = [
        "@compiled",
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
    chosen = ["@compiled", "def multiply_some(k, codes, x, words, out):"]
    for k in every:
        chosen += [f"    if k == {k}:", f"        multiply_{k}(codes, x, words, out)"]
    parts = [_HEAD.rstrip("\n"), f"MOST = {MOST_MULTIPLIED}", *map(_multiply, every), "\n".join(chosen)]
    return "\n\n\n".join(parts) + "\n" + _LEFT_END


@cache
def from_right(number: str) -> str:
    """The kernel of `X @ b` in float64 or int64."""
    return _RIGHT.replace("NUMBER", number).replace("STRIP_ROWS", str(_STRIP)).replace("PAD", str(_PAD))


@cache
def from_left(number: str) -> str:
    """The kernel of `X.T @ b` in float64 or int64."""
    return _left().replace("NUMBER", number).replace("STRIP_ROWS", str(_READ_STRIP))


@cache
def elements(number: str) -> str:
    """The kernel that writes all elements, as unsigned numbers of their size."""
    return _ELEMENTS.replace("NUMBER", number).replace("STRIP_ROWS", str(_STRIP))


def scratch_numbers(lines: int, cursors: int, words: int, columns: int) -> int:
    """The 64-bit numbers that a kernel takes of its scratch at most; `lines` are the table's, `cursors` the
    longest list of starts, `words` the distinct tuples of all groups, `columns` those of the dense operand
    (0: the elements are asked for)."""
    places = lines * cursors + (lines + 1)
    if columns == 0:
        return places + lines * _STRIP // 4
    results = max((words + _PAD) * columns, 4 * words + MOST_MULTIPLIED * lines)
    return places + results + _READ_STRIP + 8
