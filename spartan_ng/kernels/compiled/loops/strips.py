"""Products of a CSR matrix and a long vector, strip of columns after strip; see `compiled.strips`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled

NUMBER = np.float64
INDEX = np.uint32
WORD = np.uint64
BITS = 16
ARRANGE, TURNED, LOOK = 1, 2, 3


@compiled
def mixed(word: Any, index: Any, p: Any) -> Any:
    """A number that no other word, and no other index, gives in the same place: what sums, products with odd
    numbers and shifts have mixed can be taken apart again.

    The finalizer of MurmurHash3 (Appleby, 2011)."""
    x = np.uint64(index) * np.uint64(0x9E3779B97F4A7C15) + p * np.uint64(0xD1B54A32D192ED03)
    x ^= np.uint64(word)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@compiled
def look(t: Any) -> None:
    """Note a number that a group's non-zeros have, and hardly any others (by chance, one of 2**64). Places
    have no sign: one that counts from the end would have each element gathered."""
    rows, nnz, lo, hi = t[8], t[9], np.uint64(t[12]), np.uint64(t[13])
    words, indices = array_at(t[1], (nnz,), WORD), array_at(t[2], (nnz,), INDEX)
    starts = array_at(t[3], (rows + 1,), INDEX)
    noted = np.uint64(0)
    for p in range(np.uint64(starts[lo]), np.uint64(starts[hi])):
        noted += mixed(words[p], indices[p], p)
    for r in range(lo, hi):
        noted += mixed(starts[r], r, ~r)
    array_at(t[6], (1,), np.uint64)[0] = noted


@compiled
def arrange(t: Any) -> None:
    """Put the values and places of a group's non-zeros into the order of its cells, and note where these
    end."""
    rows, nnz, blocks, strips, lo, hi = t[8], t[9], t[10], t[11], t[12], t[13]
    data, indices = array_at(t[1], (nnz,), NUMBER), array_at(t[2], (nnz,), INDEX)
    starts = array_at(t[3], (rows + 1,), INDEX)
    values, places = array_at(t[4], (nnz,), NUMBER), array_at(t[5], (nnz,), np.uint32)
    ends = array_at(t[6], (blocks * strips,), np.int64)
    ends[:] = 0
    for r in range(lo, hi):
        block = (r - lo) >> BITS
        for p in range(starts[r], starts[r + 1]):
            ends[(np.int64(indices[p]) >> BITS) * blocks + block] += 1
    begin = np.int64(starts[lo])
    for i in range(blocks * strips):
        begin, ends[i] = begin + ends[i], begin
    for r in range(lo, hi):
        block, row = (r - lo) >> BITS, ((r - lo) & ((1 << BITS) - 1)) << BITS
        for p in range(starts[r], starts[r + 1]):
            c = np.int64(indices[p])
            cell = (c >> BITS) * blocks + block
            at = ends[cell]
            values[at] = data[p]
            places[at] = row | (c & ((1 << BITS) - 1))
            ends[cell] = at + 1


@compiled
def multiply(t: Any) -> None:
    """To a group's rows what a range of strips adds; or, turned, to the columns of the
    strips what a group adds."""
    rows, nnz, blocks, strips, lo = t[8], t[9], t[10], t[11], t[12]
    starts = array_at(t[3], (rows + 1,), INDEX)
    values, places = array_at(t[4], (nnz,), NUMBER), array_at(t[5], (nnz,), np.uint32)
    ends = array_at(t[6], (blocks * strips,), np.int64)
    turned, cells = t[0] == TURNED, t[15] * blocks
    inner, outer = (rows, t[17]) if turned else (t[17], rows)
    x, out = array_at(t[7], (inner,), NUMBER), array_at(t[14], (outer,), NUMBER)
    p = ends[cells - 1] if cells else np.int64(starts[lo])
    for cell in range(cells, t[16] * blocks):
        column, row = (cell // blocks) << BITS, lo + ((cell % blocks) << BITS)
        end = ends[cell]
        if turned:
            part, sums = x[row:], out[column:]
            while p < end:
                place = places[p]
                sums[place & np.uint32((1 << BITS) - 1)] += values[p] * part[place >> np.uint32(BITS)]
                p += 1
        else:
            part, sums = x[column:], out[row:]
            while p < end:
                place = places[p]
                sums[place >> np.uint32(BITS)] += values[p] * part[place & np.uint32((1 << BITS) - 1)]
                p += 1


@compiled
def kernel(table: Any) -> None:
    """What the lines of the table say: to arrange a group, to multiply by it, or to look at it."""
    for i in range(table.shape[0]):
        if table[i, 0] == ARRANGE:
            arrange(table[i])
        elif table[i, 0] == LOOK:
            look(table[i])
        else:
            multiply(table[i])
