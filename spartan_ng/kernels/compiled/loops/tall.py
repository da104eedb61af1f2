"""Products of two matrices over the rows of both, which are many and short; see `compiled.tall`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, tile_adder, vector_bytes

NUMBER = np.float64
WIDTH = 8
BYTES = vector_bytes()
STEPS = 64
"""Rows whose products are added up in registers: so many of both matrices stay near."""
LANES = BYTES // WIDTH
LINES, VECTORS = BYTES // 8, 3
"""Of a tile: its sums, a row of one matrix and a number of the other are all registers that there are."""
add_wide, add_narrow = tile_adder(LINES, VECTORS, LANES), tile_adder(LINES, 1, LANES)


@compiled
def pack(x: Any, line: Any, rows: Any, n: Any, near: Any, near_line: Any) -> None:
    """Copy the rows of a matrix to where they stay near, each into a longer line."""
    for k in range(rows):
        source, target = array_at(x + k * line, (n,), NUMBER), array_at(near + k * near_line, (n,), NUMBER)
        for i in range(n):
            target[i] = source[i]


@compiled
def add_rows(near: Any, line: Any, rows: Any, n: Any, part: Any, sums: Any) -> None:
    """Add the sum of some rows to `sums`; `part` is a line near by, as few numbers are read and written for
    each of them."""
    own, total = array_at(part, (n,), NUMBER), array_at(sums, (n,), NUMBER)
    for i in range(n):
        own[i] = 0
    together = rows // 4 * 4
    for k in range(0, together, 4):
        first = near + k * line
        a, b = array_at(first, (n,), NUMBER), array_at(first + line, (n,), NUMBER)
        c, d = array_at(first + 2 * line, (n,), NUMBER), array_at(first + 3 * line, (n,), NUMBER)
        for i in range(n):
            own[i] += (a[i] + b[i]) + (c[i] + d[i])
    for k in range(together, rows):
        a = array_at(near + k * line, (n,), NUMBER)
        for i in range(n):
            own[i] += a[i]
    for i in range(n):
        total[i] += own[i]


@compiled
def add_block(
    a: Any, m: Any, b: Any, n: Any, out: Any, rows: Any, is_half: Any, ahead: Any, last: Any
) -> None:
    """Add the products of so many rows, m and n of whole tiles wide, tile after tile; half of them where the
    other half is the same."""
    a_line, b_line = m * WIDTH, n * WIDTH
    for i in range(0, m, LINES):
        j = i // LANES * LANES if is_half else 0
        here, line = a + i * WIDTH, out + i * b_line
        while j + VECTORS * LANES <= n:
            at = j * WIDTH
            add_wide(NUMBER, here, a_line, b + at, b_line, line + at, b_line, rows, ahead)
            ahead = min(ahead + rows * 64, last)
            j += VECTORS * LANES
        while j < n:
            at = j * WIDTH
            add_narrow(NUMBER, here, a_line, b + at, b_line, line + at, b_line, rows, ahead)
            ahead = min(ahead + rows * 64, last)
            j += LANES


@compiled
def clear(address: Any, lines: Any, first: Any, n: Any) -> None:
    """Put zeros into lines of `n` numbers, from the `first` of each on."""
    for k in range(lines):
        line = array_at(address + k * n * WIDTH, (n,), NUMBER)
        for i in range(first, n):
            line[i] = 0


@compiled
def put(sums: Any, line: Any, m: Any, n: Any, is_half: Any, out: Any) -> None:
    """Copy the part of the sums' lines that the result has; both halves of one that has been made by half."""
    every, target = array_at(sums, (m, line), NUMBER), array_at(out, (m, n), NUMBER)
    for i in range(m):
        same = i if is_half else 0
        for j in range(same):
            target[i, j] = every[j, i]
        for j in range(same, n):
            target[i, j] = every[i, j]


@compiled
def kernel(t: Any) -> None:
    """Some rows after the other; while they are multiplied, the next ones are asked for."""
    a, a_line, b, b_line, rows = t[0, 0], t[0, 1], t[0, 2], t[0, 3], t[0, 4]
    m, n, wide_m, wide_n, is_half = t[0, 5], t[0, 6], t[0, 7], t[0, 8], t[0, 9]
    near_a, near_b, part, sums = t[0, 10], t[0, 11], t[0, 12], t[0, 13]
    out, sums_a, sums_b = t[0, 14], t[0, 15], t[0, 16]
    clear(sums, wide_m, 0, wide_n)
    clear(near_a, STEPS, m, wide_m)
    clear(near_b, STEPS, n, wide_n)
    if sums_a:
        clear(sums_a, 1, 0, m)
    if sums_b:
        clear(sums_b, 1, 0, n)
    for first in range(0, rows, STEPS):
        count = min(STEPS, rows - first)
        pack(a + first * a_line, a_line, count, m, near_a, wide_m * WIDTH)
        if sums_a:
            add_rows(near_a, wide_m * WIDTH, count, m, part, sums_a)
        if not is_half:
            pack(b + first * b_line, b_line, count, n, near_b, wide_n * WIDTH)
        if sums_b:
            add_rows(near_b, wide_n * WIDTH, count, n, part, sums_b)
        ahead = a + (first + count) * a_line
        last = ahead + count * a_line
        add_block(near_a, wide_m, near_b, wide_n, sums, count, is_half, ahead, last)
    put(sums, wide_n, m, n, is_half, out)
