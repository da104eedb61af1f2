"""Compiled sum and squared deviations of a block, in one pass over strips of rows.

What `ops.folds.DeviationFold` makes of contiguous blocks whose folded axes are neighbours. A strip's
distances from an origin give both its sum and its squares; the strip is read a second time, out of the cache,
only where its own mean turns out to lie so far away that five bits of the squares would cancel (or something
is not finite). The origin is the first row, then the mean so far, rounded to a power of two of the size of
the spread: whole numbers keep whole distances, and sums of them stay exact.
A strip's mean is kept with what its rounding leaves out, so that no large mean blurs the distances between
strips. Columns are folded four rows at a time: their running values are loaded and stored once for four
elements.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.compile import at_hand
from spartan_ng.ops.folds import State

LEAST = 1 << 12
"""Elements from which a compiled block is worth having."""
_STRIP = 1 << 14
"""Elements of a strip, which is read twice where it has to be: a part of a core's second-level cache."""

_TYPES = {"f4": "np.float32", "f8": "np.float64"}
_LIMITS = {"f4": 1e30, "f8": 1e300}
"""First elements beyond these are no good as a strip's origin: the distance from them may overflow."""
_TEXT = """\
import math

import numpy as np
from numba import carray, njit

from spartan_ng.kernels.compiled.intrinsics import accumulate_add, multiply_add, pointer


@njit(nogil=True, error_model='numpy')
def distances(x, rows, width, shift, total, squares):
    for i in range(0, rows // 4 * 4, 4):
        a = x[i * width:(i + 1) * width]
        b = x[(i + 1) * width:(i + 2) * width]
        c = x[(i + 2) * width:(i + 3) * width]
        d = x[(i + 3) * width:(i + 4) * width]
        for j in range(width):
            m = shift[j]
            p, q, r, s = a[j] - m, b[j] - m, c[j] - m, d[j] - m
            total[j] += (p + q) + (r + s)
            squares[j] += (p * p + q * q) + (r * r + s * s)
    for i in range(rows // 4 * 4, rows):
        for j in range(width):
            d = x[i * width + j] - shift[j]
            total[j] += d
            squares[j] += d * d


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
def line(x, rows, shift, total, squares):
    m = shift[0]
    for s in range(0, rows, 1024):
        part = square = {type}(0)
        for i in range(s, min(s + 1024, rows)):
            d = x[i] - m
            part = accumulate_add(part, d)
            square = multiply_add(square, d, d)
        total[0] += part
        squares[0] += square


@njit(nogil=True, error_model='numpy')
def move(shift, mean, squares, count):
    for j in range(len(shift)):
        spread = math.sqrt(squares[j] / count)
        if spread > 0 and abs(mean[j]) < {limit}:
            step = {type}(math.ldexp(1.0, math.frexp(spread)[1] - 1))
            shift[j] = {type}(np.rint(mean[j] / step)) * step


@njit(nogil=True, error_model='numpy')
def fold(x, rows, width, total, mean, rest, squares):
    strip = max(1, {strip} // width)
    shift, off = np.empty(width, {type}), np.empty(width, {type})
    middle, square = np.empty(width, {type}), np.empty(width, {type})
    for j in range(width):
        shift[j] = x[j] if abs(x[j]) < {limit} else {type}(0)
    far = False
    for s in range(0, rows, strip):
        n = min(strip, rows - s)
        here = x[s * width:(s + n) * width]
        if far:
            move(shift, mean, squares, {type}(s))
        for j in range(width):
            off[j] = square[j] = {type}(0)
        if width == 1:
            line(here, n, shift, off, square)
        else:
            distances(here, n, width, shift, off, square)
        cancels = far = False
        for j in range(width):
            total[j] += shift[j] * {type}(n) + off[j]
            off[j] = off[j] / {type}(n)
            apart = off[j] * off[j] * {type}(n)
            far |= not apart <= {type}(0.5) * square[j]
            cancels |= not apart <= {type}(0.96875) * square[j]
            square[j] -= apart
            middle[j] = shift[j] + off[j]
            off[j] = (shift[j] - middle[j]) + off[j]
        if cancels:
            for j in range(width):
                square[j] = {type}(0)
            squared_distances(here, n, width, middle, square)
            for j in range(width):
                square[j] -= off[j] * off[j] * {type}(n)
        share, count = {type}(n / (s + n)), {type}(s)
        for j in range(width):
            distance = (middle[j] - mean[j]) + (off[j] - rest[j])
            step = distance * share
            high = mean[j] + step
            rest[j] = ((mean[j] - high) + step) + rest[j]
            mean[j] = high
            squares[j] += square[j] + distance * step * count


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
