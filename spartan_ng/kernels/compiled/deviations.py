"""Compiled sum and squared deviations of a block, in one pass over strips of rows.

What `ops.folds.DeviationFold` makes of contiguous blocks whose folded axes are neighbours. A strip's
distances from an origin give both its sum and its squares; the strip is read a second time, out of the cache,
only where its own mean turns out to lie so far away that five bits of the squares would cancel (or something
is not finite). The origin is the first row, then the mean so far, rounded to a power of two of the size of
the spread: whole numbers keep whole distances, and sums of them stay exact.
A strip's mean is kept with what its rounding leaves out, so that no large mean blurs the distances between
strips. Several short rows make one line, each with running values of its own: long enough for vectors, and
short enough for its running values to stay in the first level of the cache. Rows that are longer than that
are folded a panel of columns at a time.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.trial import end_of, first_flaw, largest
from spartan_ng.kernels.compiled.trust import at_hand
from spartan_ng.ops.folds import FOLDS, DeviationFold, State

LEAST = 1 << 12
"""Elements from which a compiled block is worth having."""
_STRIP = 1 << 15
"""Elements of a strip, which is read twice where it has to be: a part of a core's second-level cache."""
_PANEL = 512
"""Elements of a line at most. There are four running values for each."""
_LINE_BYTES = 64
"""A line of the cache: vectors that lie across two take longer."""
_TYPES = {"f4": "np.float32", "f8": "np.float64"}
_LIMITS = {"f4": 1e30, "f8": 1e300}
"""First elements beyond these are no good as a strip's origin: the distance from them may overflow."""
_EXPONENT = 0x7FF0000000000000
"""The bits of a double that make its power of two."""
_TEXT = """\
import numpy as np

from spartan_ng.kernels.compiled.intrinsics import (
    accumulate_add, array_at, compiled, from_bits, multiply_add, rint, sqrt, to_bits,
)


@compiled
def distances(x, length, step, shift, total, squares):
    for i in range(0, len(x), step):
        a = x[i:min(i + length, len(x))]
        for j in range(len(a)):
            d = a[j] - shift[j]
            total[j] += d
            squares[j] += d * d


@compiled
def squared_distances(x, length, step, mean, squares):
    for i in range(0, len(x), step):
        a = x[i:min(i + length, len(x))]
        for j in range(len(a)):
            d = a[j] - mean[j]
            squares[j] += d * d


@compiled
def spread(values, width):
    # the first row's, for every row of a line
    for i in range(width, len(values), width):
        for j in range(width):
            values[i + j] = values[j]


@compiled
def gather(values, width):
    # the sum of a line's rows, in the first; there are a power of two of them
    half = len(values) // 2
    while half >= width:
        for j in range(half):
            values[j] += values[half + j]
        half //= 2


@compiled
def line(x, shift, total, squares):
    m = shift[0]
    for s in range(0, len(x), 1024):
        piece = x[s:min(s + 1024, len(x))]
        part, square = {type}(0), {type}(0)
        for i in range(len(piece)):
            d = piece[i] - m
            part = accumulate_add(part, d)
            square = multiply_add(square, d, d)
        total[0] += part
        squares[0] += square


@compiled
def move(shift, mean, squares, count):
    for j in range(len(shift)):
        spread = np.float64(sqrt(squares[j] / count))
        if 0 < spread < np.inf and abs(mean[j]) < {limit}:
            step = {type}(from_bits(to_bits(spread) & {exponent}))
            shift[j] = rint(mean[j] / step) * step


@compiled
def fold(x, rows, width, step, buffers, total, mean, rest, squares):
    repeat = 1
    while 1 < width == step and 2 * repeat * width <= {panel} and 8 * repeat <= rows:
        repeat *= 2
    length = repeat * width
    strip = max({strip} // length, 1) * repeat
    shift, off = buffers[0, :length], buffers[1, :length]
    middle, square = buffers[2, :length], buffers[3, :length]
    for j in range(width):
        shift[j] = x[j] if abs(x[j]) < {limit} else {type}(0)
    spread(shift, width)
    far = False
    for s in range(0, rows, strip):
        n = min(strip, rows - s)
        here = x[s * step:(s + n - 1) * step + width]
        if far:
            move(shift[:width], mean, squares, {type}(s))
            spread(shift, width)
        off[:] = {type}(0)
        square[:] = {type}(0)
        if step == 1:
            line(here, shift, off, square)
        else:
            distances(here, length, repeat * step, shift, off, square)
            gather(off, width)
            gather(square, width)
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
            square[:] = {type}(0)
            spread(middle, width)
            squared_distances(here, length, repeat * step, middle, square)
            gather(square, width)
            for j in range(width):
                square[j] -= off[j] * off[j] * {type}(n)
        if s == 0:
            for j in range(width):
                mean[j], rest[j], squares[j] = middle[j], off[j], square[j]
            continue
        share, count = {type}(n / (s + n)), {type}(s)
        for j in range(width):
            distance = (middle[j] - mean[j]) + (off[j] - rest[j])
            onward = distance * share
            high = mean[j] + onward
            rest[j] = ((mean[j] - high) + onward) + rest[j]
            mean[j] = high
            squares[j] += square[j] + distance * onward * count


@compiled
def kernel(t):
    outer, rows, width = t[0, 0], t[0, 1], t[0, 2]
    buffers = array_at(t[0, 8], (4, {panel}), {type})
    for o in range(outer):
        for c in range(0, width, {panel}):
            n = min(width - c, {panel})
            x = array_at(t[0, 3] + (o * rows * width + c) * {size}, ((rows - 1) * width + n,), {type})
            at = (o * width + c) * {size}
            total = array_at(t[0, 4] + at, (n,), {type})
            mean = array_at(t[0, 5] + at, (n,), {type})
            rest = array_at(t[0, 6] + at, (n,), {type})
            squares = array_at(t[0, 7] + at, (n,), {type})
            fold(x, rows, n, width, buffers, total, mean, rest, squares)
"""
_SOURCES = {
    code: _TEXT.format(
        type=name,
        size=np.dtype(code).itemsize,
        strip=_STRIP,
        panel=_PANEL,
        limit=_LIMITS[code],
        exponent=_EXPONENT,
    )
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
    kernel = at_hand(_SOURCES[code], None, lambda f: _flaw(f, x, axes, out), "squared deviations")
    return None if kernel is None else _folded(kernel, x, axes, out)


def _flaw(kernel: Function, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> str:
    """What the kernel makes otherwise than NumPy of the end of a block."""
    part, fold = end_of(x), FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold), "the row says how NumPy does it"
    (total,), (_, mean, rest, squares) = _folded(kernel, part, axes, out)
    (sums,), (_, center, off, spread) = fold.block_and_sum(part, axes, out)
    middle = center + off
    pairs = [(total, sums), (squares, spread), (np.where(np.isfinite(middle), mean + rest, middle), middle)]
    return first_flaw(pairs, largest([part, sums, spread]))


def _folded(kernel: Function, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[State, State]:
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    outer, rows = prod(x.shape[: axes[0]]), prod(x.shape[a] for a in axes)
    total, mean, rest, squares = (np.zeros(shape, out) for _ in range(4))
    # Were the buffers `local`, LLVM would take four times as long over the loops.
    buffers = np.empty(4 * _PANEL * out.itemsize + _LINE_BYTES, np.uint8)
    *addresses, free = (
        int(a.__array_interface__["data"][0]) for a in (x, total, mean, rest, squares, buffers)
    )
    line = -(-free // _LINE_BYTES) * _LINE_BYTES
    kernel(np.array([[outer, rows, x.size // (outer * rows), *addresses, line]], np.int64))
    return (total,), (np.full(shape, rows, np.float64), mean, rest, squares)
