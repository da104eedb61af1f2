"""Products of many short rows with a matrix of few columns; see `compiled.narrow`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, tile_adder, vector_bytes

NUMBER = np.float64
WIDTH = 8
BYTES = vector_bytes()
VECTORS = 1
"""That a row of the result takes."""
LANES = BYTES // WIDTH
LINES = 8
"""Rows whose products are added up in registers at a time."""
add_lines = tile_adder(LINES, VECTORS, LANES, turned=True)
add_line = tile_adder(1, VECTORS, LANES, turned=True)


@compiled
def store(sums: Any, out: Any, out_line: Any, rows: Any, n: Any) -> None:
    """Take the sums to where they belong, and leave zeros."""
    for r in range(rows):
        source = array_at(sums + r * VECTORS * BYTES, (VECTORS * LANES,), NUMBER)
        target = array_at(out + r * out_line, (n,), NUMBER)
        for j in range(n):
            target[j] = source[j]
        for j in range(VECTORS * LANES):
            source[j] = 0.0


@compiled
def kernel(t: Any) -> None:
    """Some rows after the other; while they are multiplied, the next ones are asked for."""
    a, a_line, b, out, out_line = t[0, 0], t[0, 1], t[0, 2], t[0, 3], t[0, 4]
    rows, inner, n, sums = t[0, 5], t[0, 6], t[0, 7], t[0, 8]
    line = VECTORS * BYTES
    r = 0
    while r + LINES <= rows:
        here = a + r * a_line
        ahead = here + LINES * a_line if r + 2 * LINES <= rows else here
        add_lines(NUMBER, here, a_line, b, line, sums, line, inner, ahead)
        store(sums, out + r * out_line, out_line, LINES, n)
        r += LINES
    while r < rows:
        here = a + r * a_line
        add_line(NUMBER, here, a_line, b, line, sums, line, inner, here)
        store(sums, out + r * out_line, out_line, 1, n)
        r += 1
