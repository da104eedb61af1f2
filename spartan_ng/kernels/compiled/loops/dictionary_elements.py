"""The elements of compressed columns, written to a dense array.

Small tiles of rows, so that what is written column by column stays in the first level of the cache.
"""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled
from spartan_ng.kernels.compiled.loops.dictionary_rows import (
    find_first_cursors,
    most_cursors,
    strip_codes,
    taken,
)

NUMBER = np.uint64
STRIP = 2048
"""Rows of a strip, whose results are written."""


@compiled
def put(codes: Any, words: Any, columns: Any, out: Any) -> None:
    """A group's words, written to its columns."""
    for c in range(len(columns)):
        column, known = columns[c], words[c]
        for i in range(len(codes)):
            out[i, column] = known[codes[i]]


@compiled
def kernel(table: Any) -> None:
    """All elements of the rows that the table names."""
    first, last, width = table[0, 0], table[0, 1], table[0, 2]
    out = array_at(table[0, 5], (last - first, width), NUMBER)
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
                words = array_at(t[9], (t[8], t[5]), NUMBER)
                columns = array_at(t[7], (t[8],), np.int64)
                if t[0] != 0:
                    put(others[g, lo - top : hi - top], words, columns, part)
                elif t[1] == 1:
                    put(array_at(t[2] + lo, (hi - lo,), np.uint8), words, columns, part)
                else:
                    put(array_at(t[2] + 2 * lo, (hi - lo,), np.uint16), words, columns, part)
