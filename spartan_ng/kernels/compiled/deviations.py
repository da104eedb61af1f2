"""Compiled sum and squared deviations of a block: two passes over strips of rows that lie in the cache.

What `ops.folds.DeviationFold` makes of contiguous blocks whose folded axes are neighbours. A strip's mean is
found as the mean distance from its first row, and kept with what its rounding leaves out, so that no
large mean blurs the distances between strips. Columns are folded four rows at a time: their running values
are loaded and stored once for four elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.compile import at_hand
from spartan_ng.ops.folds import State

LEAST = 1 << 12
"""Elements from which a compiled block is worth having."""
_STRIP = 1 << 15
"""Elements of a strip: a quarter of a core's second-level cache."""

_TYPES = {"f4": "np.float32", "f8": "np.float64"}
_LIMITS = {"f4": 1e30, "f8": 1e300}
"""First elements beyond these are no good as a strip's origin: the distance from them may overflow."""
_TEXT = """\
import numpy as np
from numba import carray, njit

from spartan_ng.kernels.compiled.intrinsics import accumulate_add, multiply_add, pointer


@njit(nogil=True, error_model='numpy')
def distances(x, rows, width, shift, total):
    for i in range(0, rows // 4 * 4, 4):
        a = x[i * width:(i + 1) * width]
        b = x[(i + 1) * width:(i + 2) * width]
        c = x[(i + 2) * width:(i + 3) * width]
        d = x[(i + 3) * width:(i + 4) * width]
        for j in range(width):
            m = shift[j]
            total[j] += ((a[j] - m) + (b[j] - m)) + ((c[j] - m) + (d[j] - m))
    for i in range(rows // 4 * 4, rows):
        for j in range(width):
            total[j] += x[i * width + j] - shift[j]


@njit(nogil=True, error_model='numpy')
def squared_distances(x, rows, width, mean, squares):
    for i in range(0, rows // 4 * 4, 4):
        a = x[i * width:(i + 1) * width]
        b = x[(i + 1) * width:(i + 2) * width]
        c = x[(i + 2) * width:(i + 3) * width]
        d = x[(i + 3) * width:(i + 4) * width]
        for j in range(width):
            m = mean[j]
            p, q, r, s = a[j] - m, b[j] - m, c[j] - m, d[j] - m
            squares[j] += (p * p + q * q) + (r * r + s * s)
    for i in range(rows // 4 * 4, rows):
        for j in range(width):
            d = x[i * width + j] - mean[j]
            squares[j] += d * d


@njit(nogil=True, error_model='numpy')
def line(x, rows, shift, total, squares, squared):
    m = shift[0]
    for s in range(0, rows, 1024):
        part = {type}(0)
        if squared:
            for i in range(s, min(s + 1024, rows)):
                d = x[i] - m
                part = multiply_add(part, d, d)
            squares[0] += part
        else:
            for i in range(s, min(s + 1024, rows)):
                part = accumulate_add(part, x[i] - m)
            total[0] += part


@njit(nogil=True, error_model='numpy')
def fold(x, rows, width, total, mean, rest, squares):
    strip = max(1, {strip} // width)
    shift, off = np.empty(width, {type}), np.empty(width, {type})
    middle, square = np.empty(width, {type}), np.empty(width, {type})
    for s in range(0, rows, strip):
        n = min(strip, rows - s)
        here = x[s * width:(s + n) * width]
        for j in range(width):
            shift[j] = here[j] if abs(here[j]) < {limit} else {type}(0)
            off[j] = square[j] = {type}(0)
        if width == 1:
            line(here, n, shift, off, square, False)
        else:
            distances(here, n, width, shift, off)
        for j in range(width):
            total[j] += shift[j] * {type}(n) + off[j]
            off[j] = off[j] / {type}(n)
            middle[j] = shift[j] + off[j]
            off[j] = (shift[j] - middle[j]) + off[j]
        if width == 1:
            line(here, n, middle, off, square, True)
        else:
            squared_distances(here, n, width, middle, square)
        share, count = {type}(n / (s + n)), {type}(s)
        for j in range(width):
            distance = (middle[j] - mean[j]) + (off[j] - rest[j])
            step = distance * share
            high = mean[j] + step
            rest[j] = ((mean[j] - high) + step) + rest[j]
            mean[j] = high
            squares[j] += (square[j] - off[j] * off[j] * {type}(n)) + distance * step * count


@njit(nogil=True, error_model='numpy')
def kernel(t):
    outer, rows, width = t[0, 0], t[0, 1], t[0, 2]
    for o in range(outer):
        x = carray(pointer(t[0, 3] + o * rows * width * {size}), (rows * width,), {type})
        total = carray(pointer(t[0, 4] + o * width * {size}), (width,), {type})
        mean = carray(pointer(t[0, 5] + o * width * {size}), (width,), {type})
        rest = carray(pointer(t[0, 6] + o * width * {size}), (width,), {type})
        squares = carray(pointer(t[0, 7] + o * width * {size}), (width,), {type})
        fold(x, rows, width, total, mean, rest, squares)
"""
_SOURCES = {
    code: _TEXT.format(type=name, size=np.dtype(code).itemsize, strip=_STRIP, limit=_LIMITS[code])
    for code, name in _TYPES.items()
}


def sum_and_deviations(x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[State, State] | None:
    """The states of a contiguous block's sum and deviations, as from `DeviationFold.block_and_sum`, or None:
    NumPy has to make them (for now)."""
    code = out.str[1:]
    if x.size < LEAST or x.dtype != out or code not in _TYPES or not x.flags.c_contiguous:
        return None
    if axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    kernel = at_hand(_SOURCES[code])
    if kernel is None:
        return None
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    outer, rows = prod(x.shape[: axes[0]]), prod(x.shape[a] for a in axes)
    total, mean, rest, squares = (np.zeros(shape, out) for _ in range(4))
    addresses = [int(a.__array_interface__["data"][0]) for a in (x, total, mean, rest, squares)]
    kernel(np.array([[outer, rows, x.size // (outer * rows), *addresses]], np.int64))
    return (total,), (np.full(shape, rows, np.float64), mean, rest, squares)
