"""Products of a few lines with a matrix that is read once, as it lies; see `compiled.few_lines`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import array_at, compiled, load, multiply_add, prefetch

NUMBER = np.float64
WIDTH = 8
COLUMNS = 256
STEPS = 256


@compiled
def add_rows(
    x: Any, x_line: Any, x_step: Any, b: Any, b_line: Any, sums: Any, lines: Any, steps: Any, n: Any
) -> None:
    """To `sums` the products of so many numbers of each line with rows of a strip `n` wide, four rows for up
    to four lines at a time; the next four are asked for meanwhile."""
    p = 0
    while p + 3 < steps:
        at = b + p * b_line
        b0, b1 = array_at(at, (n,), NUMBER), array_at(at + b_line, (n,), NUMBER)
        b2, b3 = array_at(at + 2 * b_line, (n,), NUMBER), array_at(at + 3 * b_line, (n,), NUMBER)
        for ahead in range(0, n * WIDTH, 64):
            prefetch(at + 4 * b_line + ahead)
            prefetch(at + 5 * b_line + ahead)
            prefetch(at + 6 * b_line + ahead)
            prefetch(at + 7 * b_line + ahead)
        r = 0
        while r + 3 < lines:
            at = x + r * x_line + p * x_step
            k0, k1 = load(at, NUMBER), load(at + x_step, NUMBER)
            k2, k3 = load(at + 2 * x_step, NUMBER), load(at + 3 * x_step, NUMBER)
            at += x_line
            l0, l1 = load(at, NUMBER), load(at + x_step, NUMBER)
            l2, l3 = load(at + 2 * x_step, NUMBER), load(at + 3 * x_step, NUMBER)
            at += x_line
            m0, m1 = load(at, NUMBER), load(at + x_step, NUMBER)
            m2, m3 = load(at + 2 * x_step, NUMBER), load(at + 3 * x_step, NUMBER)
            at += x_line
            n0, n1 = load(at, NUMBER), load(at + x_step, NUMBER)
            n2, n3 = load(at + 2 * x_step, NUMBER), load(at + 3 * x_step, NUMBER)
            s0, s1, s2, s3 = sums[r], sums[r + 1], sums[r + 2], sums[r + 3]
            for c in range(n):
                y0, y1, y2, y3 = b0[c], b1[c], b2[c], b3[c]
                v = multiply_add(multiply_add(s0[c], k0, y0), k1, y1)
                s0[c] = multiply_add(multiply_add(v, k2, y2), k3, y3)
                v = multiply_add(multiply_add(s1[c], l0, y0), l1, y1)
                s1[c] = multiply_add(multiply_add(v, l2, y2), l3, y3)
                v = multiply_add(multiply_add(s2[c], m0, y0), m1, y1)
                s2[c] = multiply_add(multiply_add(v, m2, y2), m3, y3)
                v = multiply_add(multiply_add(s3[c], n0, y0), n1, y1)
                s3[c] = multiply_add(multiply_add(v, n2, y2), n3, y3)
            r += 4
        while r < lines:
            at = x + r * x_line + p * x_step
            k0, k1 = load(at, NUMBER), load(at + x_step, NUMBER)
            k2, k3 = load(at + 2 * x_step, NUMBER), load(at + 3 * x_step, NUMBER)
            s0 = sums[r]
            for c in range(n):
                v = multiply_add(multiply_add(s0[c], k0, b0[c]), k1, b1[c])
                s0[c] = multiply_add(multiply_add(v, k2, b2[c]), k3, b3[c])
            r += 1
        p += 4
    while p < steps:
        b0 = array_at(b + p * b_line, (n,), NUMBER)
        for r in range(lines):
            k0, s0 = load(x + r * x_line + p * x_step, NUMBER), sums[r]
            for c in range(n):
                s0[c] = multiply_add(s0[c], k0, b0[c])
        p += 1


@compiled
def multiply(t: Any) -> None:
    """Strips of the matrix, COLUMNS wide; STEPS of their rows are added up in memory that stays near before
    the result is touched."""
    x, x_line, x_step = t[0], t[1], t[2]
    b, b_line, out, out_line = t[3], t[4], t[5], t[6]
    lines, inner, width = t[8], t[9], t[10]
    sums = array_at(t[7], (lines, COLUMNS), NUMBER)
    for first in range(0, inner, STEPS):
        steps = min(STEPS, inner - first)
        for left in range(0, width, COLUMNS):
            n = min(width - left, COLUMNS)
            for r in range(lines):
                for c in range(n):
                    sums[r, c] = 0.0
            strip = b + first * b_line + left * WIDTH
            add_rows(x + first * x_step, x_line, x_step, strip, b_line, sums, lines, steps, n)
            for r in range(lines):
                o, s0 = array_at(out + r * out_line + left * WIDTH, (n,), NUMBER), sums[r]
                if first == 0:
                    for c in range(n):
                        o[c] = s0[c]
                else:
                    for c in range(n):
                        o[c] += s0[c]


@compiled
def kernel(table: Any) -> None:
    """The products that the table names."""
    for i in range(table.shape[0]):
        multiply(table[i])
