"""Products of compressed columns from the left: `X.T @ b`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, local
from spartan_ng.kernels.compiled.loops.dictionary_rows import (
    find_first_cursors,
    find_first_words,
    most_cursors,
    run_code,
    strip_codes,
    taken,
)

NUMBER = np.float64
STRIP = 8192
"""Rows of a strip, which are only read."""
MOST = 3
"""Columns of a group up to which rows are multiplied by tuples, and not added to tuples' sums. Measured:
0.33, 0.45, 0.6 ns a row for 1, 2, 3 columns; 0.7 ns for an addition."""


def multiplier(k: int) -> Any:
    """The function that adds rows times tuples of `k` words: the sums of four rows at a time are in
    registers, as loops of so few steps are unrolled."""

    @compiled
    def multiply(codes: Any, x: Any, words: Any, out: Any) -> None:
        sums = array_at(local(96), (4, k), NUMBER)  # room for four rows of MOST sums
        for r in range(4):
            for c in range(k):
                sums[r, c] = 0
        whole = len(x) // 4 * 4
        for i in range(0, whole, 4):
            for r in range(4):
                p = np.int64(codes[i + r]) * k
                for c in range(k):
                    sums[r, c] += x[i + r] * words[p + c]
        for i in range(whole, len(x)):
            p = np.int64(codes[i]) * k
            for c in range(k):
                sums[0, c] += x[i] * words[p + c]
        for c in range(k):
            out[c] += sums[0, c] + sums[1, c] + sums[2, c] + sums[3, c]

    return multiply


multiply_1, multiply_2, multiply_3 = multiplier(1), multiplier(2), multiplier(3)


@compiled
def multiply_some(k: Any, codes: Any, x: Any, words: Any, out: Any) -> None:
    """Rows times tuples of up to `MOST` words."""
    if k == 1:
        multiply_1(codes, x, words, out)
    if k == 2:
        multiply_2(codes, x, words, out)
    if k == 3:
        multiply_3(codes, x, words, out)


@compiled
def add_common(t: Any, lo: Any, hi: Any, cursors: Any, x: Any, copied: Any, sums: Any) -> None:
    """A strip of offsets: listed rows to their tuples, all others to the first."""
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
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = NUMBER(0)
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
def add_runs(t: Any, lo: Any, hi: Any, cursors: Any, x: Any, sums: Any) -> None:
    """A strip of runs: sums of rows to their tuples."""
    starts = array_at(t[3], (t[4] + 1,), np.int32)
    p = cursors[0]
    while p < t[4] and starts[p] < hi:
        total = NUMBER(0)
        for i in range(max(lo, starts[p]), min(hi, starts[p + 1])):
            total += x[i - lo]
        sums[run_code(t, p)] += total
        if starts[p + 1] > hi:
            break
        p += 1
    cursors[0] = p


@compiled
def add_rows(codes: Any, x: Any, sums: Any) -> None:
    """A strip of codes: rows to their tuples, four sums of each side by side where there is room."""
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
def turned_words(t: Any, out: Any) -> None:
    """A group's words, tuple by tuple."""
    k, distinct = t[8], t[5]
    words = array_at(t[9], (k, distinct), NUMBER)
    for c in range(k):
        for d in range(distinct):
            out[d * k + c] = words[c, d]


@compiled
def vector_sums(table: Any, b: Any, kept: Any, kept_p: Any, places: Any) -> None:
    """What the tuples of all groups have to be multiplied by, of one column."""
    first, last = table[0, 0], table[0, 1]
    most = most_cursors(table)
    cursors = array_at(taken(table, table.shape[0] * most), (table.shape[0], most), np.int64)
    find_first_cursors(table, cursors)
    copied = array_at(taken(table, STRIP), (STRIP,), NUMBER)
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
            copies = array_at(kept_p + 8 * places[g], (len(own) // t[5], t[5]), NUMBER)
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
def find_places(table: Any, places: Any) -> None:
    """Where each group's sums begin."""
    for g in range(1, table.shape[0]):
        t = table[g]
        size = t[5]
        if t[0] == 0 and t[8] <= MOST:
            size = t[8] * (1 + t[5])
        elif t[0] == 0 and t[5] <= 512:
            size = 4 * t[5]
        places[g + 1] = places[g] + size


@compiled
def matrix_sums(table: Any, b: Any, m: Any, sums: Any, sizes: Any) -> None:
    """As `vector_sums`, of several columns."""
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
def tuples_times_sums(t: Any, m: Any, known: Any, out: Any) -> None:
    """A group's part of the result: its tuples times their sums."""
    d, k = t[5], t[8]
    words = array_at(t[9], (k, d), NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    counts = array_at(t[6], (d,), np.int64)
    for c in range(k):
        for q in range(d):
            if t[6] == 0 or counts[q] > 0:
                for j in range(m):
                    out[columns[c], j] += words[c, q] * known[q, j]


@compiled
def kernel(table: Any) -> None:
    """The product with one column, or with several."""
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    b = array_at(table[0, 4], (last - first, m), NUMBER)
    out = array_at(table[0, 5], (width, m), NUMBER)
    groups = table.shape[0]
    out[:] = 0
    if m > 1:
        sizes = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
        find_first_words(table, sizes)
        words = sizes[groups]
        sums = array_at(taken(table, words * m), (words, m), NUMBER)
        matrix_sums(table, b, m, sums, sizes)
        for g in range(1, groups):
            tuples_times_sums(table[g], m, sums[sizes[g] : sizes[g + 1]], out)
        return
    places = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
    find_places(table, places)
    kept_p = taken(table, places[groups])
    kept = array_at(kept_p, (places[groups],), NUMBER)
    for g in range(1, table.shape[0]):
        if table[g, 0] == 0 and table[g, 8] <= MOST:
            turned_words(table[g], kept[places[g] + table[g, 8] : places[g + 1]])
    vector_sums(table, array_at(table[0, 4], (last - first,), NUMBER), kept, kept_p, places)
    for g in range(1, table.shape[0]):
        t, own = table[g], kept[places[g] : places[g + 1]]
        if t[0] == 0 and t[8] <= MOST:
            columns = array_at(t[7], (t[8],), np.int64)
            for c in range(t[8]):
                out[columns[c], 0] = own[c]
            continue
        for q in range(t[5], len(own)):
            own[q % t[5]] += own[q]
        tuples_times_sums(t, 1, array_at(kept_p + 8 * places[g], (t[5], 1), NUMBER), out)
