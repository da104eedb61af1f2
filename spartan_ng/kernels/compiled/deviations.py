"""Compiled mean and squared deviations of a block: two passes over rows that lie in the cache.

The state of `ops.folds.DeviationFold`, for contiguous blocks whose folded axes are neighbours.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.compile import at_hand
from spartan_ng.ops.folds import State

LEAST = 1 << 12
"""Elements from which a compiled block is worth having."""

_TYPES = {"f4": "np.float32", "f8": "np.float64"}
_TEXT = """\
import numpy as np
from numba import carray, njit

from spartan_ng.kernels.compiled.intrinsics import accumulate_add, multiply_add, pointer


@njit(nogil=True, error_model='numpy')
def columns(x, mean, squares, rows, width):
    for i in range(rows):
        for j in range(width):
            mean[j] = accumulate_add(mean[j], x[i * width + j])
    for j in range(width):
        mean[j] = mean[j] / rows
    for i in range(rows):
        for j in range(width):
            d = x[i * width + j] - mean[j]
            squares[j] = multiply_add(squares[j], d, d)


@njit(nogil=True, error_model='numpy')
def line(x, mean, squares, rows):
    total = {type}(0)
    for s in range(0, rows, 1024):
        part = {type}(0)
        for i in range(s, min(s + 1024, rows)):
            part = accumulate_add(part, x[i])
        total += part
    middle = total / {type}(rows)
    total = {type}(0)
    for s in range(0, rows, 1024):
        part = {type}(0)
        for i in range(s, min(s + 1024, rows)):
            d = x[i] - middle
            part = multiply_add(part, d, d)
        total += part
    mean[0] = middle
    squares[0] = total


@njit(nogil=True, error_model='numpy')
def kernel(t):
    outer, rows, width = t[0, 0], t[0, 1], t[0, 2]
    for o in range(outer):
        x = carray(pointer(t[0, 3] + o * rows * width * {size}), (rows * width,), {type})
        mean = carray(pointer(t[0, 4] + o * width * {size}), (width,), {type})
        squares = carray(pointer(t[0, 5] + o * width * {size}), (width,), {type})
        if width == 1:
            line(x, mean, squares, rows)
        else:
            columns(x, mean, squares, rows, width)
"""


def deviation_state(x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> State | None:
    """Count, mean and squares of a contiguous block, or None: NumPy has to do it (for now)."""
    code = out.str[1:]
    if x.size < LEAST or x.dtype != out or code not in _TYPES or not x.flags.c_contiguous:
        return None
    if axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    kernel = at_hand(_TEXT.format(type=_TYPES[code], size=out.itemsize))
    if kernel is None:
        return None
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    outer, rows = prod(x.shape[: axes[0]]), prod(x.shape[a] for a in axes)
    mean, squares = np.zeros(shape, out), np.zeros(shape, out)
    addresses = [int(a.__array_interface__["data"][0]) for a in (x, mean, squares)]
    kernel(np.array([[outer, rows, x.size // (outer * rows), *addresses]], np.int64))
    return (np.full(shape, rows, np.float64), mean, squares)
