"""Products of compressed columns from the right: `X @ b`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled
from spartan_ng.kernels.compiled.loops.dictionary_rows import (
    find_first_cursors,
    find_first_words,
    most_cursors,
    strip_codes,
    taken,
)

NUMBER = np.float64
STRIP = 2048
"""Rows of a strip, whose results are written."""
PAD = 256
"""Zeros for a group that lacks, as many as a byte has codes."""


@compiled
def tuple_products(t: Any, b: Any, m: Any, out: Any) -> None:
    """The products of a group's tuples and a matrix."""
    distinct, k = t[5], t[8]
    words = array_at(t[9], (k, distinct), NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    for c in range(k):
        for d in range(distinct):
            for j in range(m):
                out[d, j] += words[c, d] * b[columns[c], j]


@compiled
def vector_products(t: Any, b: Any, out: Any) -> None:
    """The products of a group's tuples and a vector."""
    distinct, k = t[5], t[8]
    words = array_at(t[9], (k, distinct), NUMBER)
    columns = array_at(t[7], (k,), np.int64)
    for c in range(k):
        factor = b[columns[c]]
        for d in range(distinct):
            out[d] += words[c, d] * factor


@compiled
def count_narrow(table: Any) -> Any:
    """How many of the first groups have codes of a byte."""
    found = 0
    while found + 1 < table.shape[0] and table[found + 1, 0] == 0 and table[found + 1, 1] == 1:
        found += 1
    return found


@compiled
def find_four(table: Any, g: Any, narrow: Any, sizes: Any, places: Any) -> None:
    """Addresses of codes, and places of products, of four groups."""
    for q in range(g, g + 4):
        places[q - g, 0] = table[q if q <= narrow else g, 2]
        places[q - g, 1] = sizes[q if q <= narrow else table.shape[0]]


@compiled
def add_listed(t: Any, hi: Any, first: Any, cursors: Any, known: Any, out: Any) -> None:
    """Products of a group's listed rows; all others have a product of zero."""
    offsets = array_at(t[2], (t[4],), np.int32)
    starts = array_at(t[3], (t[5],), np.int64)
    for k in range(1, t[5]):
        p, end, word = cursors[k], starts[k], known[k]
        while p < end and offsets[p] < hi:
            out[offsets[p] - first] += word
            p += 1
        cursors[k] = p


@compiled
def kernel(table: Any) -> None:
    """Each row's products of all groups, added."""
    first, last, width, m = table[0, 0], table[0, 1], table[0, 2], table[0, 3]
    rows, groups = last - first, table.shape[0]
    b = array_at(table[0, 4], (width, m), NUMBER)
    out = array_at(table[0, 5], (rows, m), NUMBER)
    sizes = array_at(taken(table, groups + 1), (groups + 1,), np.int64)
    find_first_words(table, sizes)
    words = sizes[groups] + PAD
    place = taken(table, words * m)
    products = array_at(place, (words, m), NUMBER)
    flat_products = array_at(place, (words * m,), NUMBER)
    places = array_at(taken(table, 8), (4, 2), np.int64)
    vector = array_at(table[0, 4], (width,), NUMBER)
    sums = array_at(table[0, 5], (rows,), NUMBER)
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
