"""Sum and squared deviations of a block, in one pass over strips of rows; see `compiled.deviations`."""

from typing import Any

import numpy as np

from spartan_ng.kernels.compiled.intrinsics import (
    accumulate_add,
    array_at,
    compiled,
    from_bits,
    multiply_add,
    rint,
    sqrt,
    to_bits,
)

NUMBER = np.float64
NBYTES = 8
LIMIT = 1e300
EXPONENT = 0x7FF0000000000000
"""The bits of a double that make its power of two."""
STRIP = 1 << 15
"""Elements of a strip, which is read twice where it has to be: a part of a core's second-level cache."""
PANEL = 512
"""Elements of a line at most. There are four running values for each."""


@compiled
def distances(x: Any, length: Any, step: Any, shift: Any, total: Any, squares: Any) -> None:
    """Sums of lines' distances from `shift`, and of their squares."""
    for i in range(0, len(x), step):
        a = x[i : min(i + length, len(x))]
        for j in range(len(a)):
            d = a[j] - shift[j]
            total[j] += d
            squares[j] += d * d


@compiled
def squared_distances(x: Any, length: Any, step: Any, mean: Any, squares: Any) -> None:
    """Sums of squares of lines' distances from `mean`."""
    for i in range(0, len(x), step):
        a = x[i : min(i + length, len(x))]
        for j in range(len(a)):
            d = a[j] - mean[j]
            squares[j] += d * d


@compiled
def spread(values: Any, width: Any) -> None:
    """The first row's values, for every row of a line."""
    for i in range(width, len(values), width):
        for j in range(width):
            values[i + j] = values[j]


@compiled
def gather(values: Any, width: Any) -> None:
    """The sums over a line's rows, in the first; there are a power of two of them."""
    half = len(values) // 2
    while half >= width:
        for j in range(half):
            values[j] += values[half + j]
        half //= 2


@compiled
def line(x: Any, shift: Any, total: Any, squares: Any) -> None:
    """As `distances`, for a single column."""
    m = shift[0]
    for s in range(0, len(x), 1024):
        piece = x[s : min(s + 1024, len(x))]
        part, square = NUMBER(0), NUMBER(0)
        for i in range(len(piece)):
            d = piece[i] - m
            part = accumulate_add(part, d)
            square = multiply_add(square, d, d)
        total[0] += part
        squares[0] += square


@compiled
def move(shift: Any, mean: Any, squares: Any, count: Any) -> None:
    """A new origin: the mean so far, rounded to a power of two of the size of the spread."""
    for j in range(len(shift)):
        spread = np.float64(sqrt(squares[j] / count))
        if 0 < spread < np.inf and abs(mean[j]) < LIMIT:
            step = NUMBER(from_bits(to_bits(spread) & EXPONENT))
            shift[j] = rint(mean[j] / step) * step


@compiled
def fold(
    x: Any, rows: Any, width: Any, step: Any, buffers: Any, total: Any, mean: Any, rest: Any, squares: Any
) -> None:
    """The states of `rows` rows of a panel of columns, strip by strip."""
    repeat = 1
    while 1 < width == step and 2 * repeat * width <= PANEL and 8 * repeat <= rows:
        repeat *= 2
    length = repeat * width
    strip = max(STRIP // length, 1) * repeat
    shift, off = buffers[0, :length], buffers[1, :length]
    middle, square = buffers[2, :length], buffers[3, :length]
    for j in range(width):
        shift[j] = x[j] if abs(x[j]) < LIMIT else NUMBER(0)
    spread(shift, width)
    far = False
    for s in range(0, rows, strip):
        n = min(strip, rows - s)
        here = x[s * step : (s + n - 1) * step + width]
        if far:
            move(shift[:width], mean, squares, NUMBER(s))
            spread(shift, width)
        off[:] = NUMBER(0)
        square[:] = NUMBER(0)
        if step == 1:
            line(here, shift, off, square)
        else:
            distances(here, length, repeat * step, shift, off, square)
            gather(off, width)
            gather(square, width)
        cancels = far = False
        for j in range(width):
            total[j] += shift[j] * NUMBER(n) + off[j]
            off[j] = off[j] / NUMBER(n)
            apart = off[j] * off[j] * NUMBER(n)
            far |= not apart <= NUMBER(0.5) * square[j]
            cancels |= not apart <= NUMBER(0.96875) * square[j]
            square[j] -= apart
            middle[j] = shift[j] + off[j]
            off[j] = (shift[j] - middle[j]) + off[j]
        if cancels:
            square[:] = NUMBER(0)
            if step == 1:
                line(here, middle, buffers[0, 1:2], square)  # their sum is of no use
            else:
                spread(middle, width)
                squared_distances(here, length, repeat * step, middle, square)
                gather(square, width)
            for j in range(width):
                square[j] -= off[j] * off[j] * NUMBER(n)
        if s == 0:
            for j in range(width):
                mean[j], rest[j], squares[j] = middle[j], off[j], square[j]
            continue
        share, count = NUMBER(n / (s + n)), NUMBER(s)
        for j in range(width):
            distance = (middle[j] - mean[j]) + (off[j] - rest[j])
            onward = distance * share
            high = mean[j] + onward
            rest[j] = ((mean[j] - high) + onward) + rest[j]
            mean[j] = high
            squares[j] += square[j] + distance * onward * count


@compiled
def kernel(t: Any) -> None:
    """All panels of all stacked blocks."""
    outer, rows, width = t[0, 0], t[0, 1], t[0, 2]
    buffers = array_at(t[0, 8], (4, PANEL), NUMBER)
    for o in range(outer):
        for c in range(0, width, PANEL):
            n = min(width - c, PANEL)
            x = array_at(t[0, 3] + (o * rows * width + c) * NBYTES, ((rows - 1) * width + n,), NUMBER)
            at = (o * width + c) * NBYTES
            total = array_at(t[0, 4] + at, (n,), NUMBER)
            mean = array_at(t[0, 5] + at, (n,), NUMBER)
            rest = array_at(t[0, 6] + at, (n,), NUMBER)
            squares = array_at(t[0, 7] + at, (n,), NUMBER)
            fold(x, rows, n, width, buffers, total, mean, rest, squares)
