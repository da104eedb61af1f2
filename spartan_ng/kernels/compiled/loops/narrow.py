"""Products of many short rows with a matrix of few columns; see `compiled.narrow`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, load, tile_filler, vector_bytes

NUMBER = np.float64
WIDTH = 8
BYTES = vector_bytes()
LANES = BYTES // WIDTH
LINES, VECTORS = BYTES // 8, 3
"""Of a tile: its sums, a row of few columns and a number of a row are all registers that there are."""
fill_one, fill_two, fill_three = (tile_filler(LINES, v, LANES) for v in (1, 2, 3))


@compiled
def fill(vectors: Any, a: Any, a_line: Any, b: Any, out: Any, out_line: Any, inner: Any, ahead: Any) -> None:
    """A tile so many vectors wide."""
    line = vectors * BYTES
    if vectors == 3:
        fill_three(NUMBER, a, a_line, b, line, out, out_line, inner, ahead)
    elif vectors == 2:
        fill_two(NUMBER, a, a_line, b, line, out, out_line, inner, ahead)
    else:
        fill_one(NUMBER, a, a_line, b, line, out, out_line, inner, ahead)


@compiled
def copy(tile: Any, line: Any, out: Any, out_line: Any, n: Any) -> None:
    """Take to where they belong the first numbers of a tile's lines."""
    for r in range(LINES):
        source, target = array_at(tile + r * line, (n,), NUMBER), array_at(out + r * out_line, (n,), NUMBER)
        for j in range(n):
            target[j] = source[j]


@compiled
def pack(b: Any, b_line: Any, b_step: Any, inner: Any, n: Any, strips: Any) -> None:
    """Copy the columns to strips of whole vectors, each in a piece of its own, with zeros behind the last."""
    strip = strips
    for left in range(0, n, VECTORS * LANES):
        columns = min(n - left, VECTORS * LANES)
        width = (columns + LANES - 1) // LANES * LANES
        own = array_at(strip, (inner, width), NUMBER)
        for k in range(inner):
            line = b + k * b_line + left * b_step
            for j in range(columns):
                own[k, j] = load(line + j * b_step, NUMBER)
            for j in range(columns, width):
                own[k, j] = 0.0
        strip += inner * width * WIDTH


@compiled
def kernel(t: Any) -> None:
    """Some rows after the other stay near while strips of the columns go by; meanwhile the next rows are
    asked for. The last lines of all are those of the last tile, some again."""
    a, a_line, b, b_line, b_step = t[0, 0], t[0, 1], t[0, 2], t[0, 3], t[0, 4]
    out, out_line = t[0, 5], t[0, 6]
    rows, inner, n, near, strips, tile = t[0, 7], t[0, 8], t[0, 9], t[0, 10], t[0, 11], t[0, 12]
    pack(b, b_line, b_step, inner, n, strips)
    for first in range(0, rows, near):
        last = min(first + near, rows)
        strip = strips
        for left in range(0, n, VECTORS * LANES):
            columns = min(n - left, VECTORS * LANES)
            vectors = (columns + LANES - 1) // LANES
            for r in range(first, last, LINES):
                row = min(r, rows - LINES)
                here, there = a + row * a_line, out + row * out_line + left * WIDTH
                ahead = here + near * a_line if left == 0 and r + near + LINES <= rows else here
                if columns == vectors * LANES:
                    fill(vectors, here, a_line, strip, there, out_line, inner, ahead)
                else:
                    fill(vectors, here, a_line, strip, tile, vectors * BYTES, inner, ahead)
                    copy(tile, vectors * BYTES, there, out_line, columns)
            strip += inner * vectors * BYTES
