"""Boxes of global indices: an extent `[ul, lr)` as one half-open interval for each axis.

Spartan (ATC '15), section 4: tiles are addressed by where they lie in the global array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

Box = tuple[tuple[int, int], ...]
"""One `(lo, hi)` for each axis, `lo <= hi`, in global indices."""


def box_of(shape: tuple[int, ...]) -> Box:
    """The box that covers a whole array of `shape`."""
    return tuple((0, n) for n in shape)


def box_shape(box: Box) -> tuple[int, ...]:
    """The shape of the data inside `box`."""
    return tuple([hi - lo for lo, hi in box])


def box_slices(box: Box) -> tuple[slice, ...]:
    """The key that selects what lies inside `box`."""
    return tuple([slice(lo, hi) for lo, hi in box])


def slices_within(box: Box, outer: Box) -> tuple[slice, ...]:
    """The key that selects `box` from the data inside `outer`."""
    return tuple([slice(a - lo, b - lo) for (a, b), (lo, _) in zip(box, outer, strict=True)])


def box_size(box: Sequence[tuple[int, int]]) -> int:
    """The number of elements inside `box`."""
    size = 1
    for lo, hi in box:
        size *= hi - lo
    return size


def is_empty(box: Box) -> bool:
    """Whether no element lies inside `box`."""
    return any(hi <= lo for lo, hi in box)


def intersect(a: Box, b: Box) -> Box | None:
    """The common part of two boxes of one array, or None where they share no element."""
    out = tuple((max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True))
    return None if is_empty(out) else out


def cover(shape: tuple[int, ...], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The box of all indices whose flat position lies in `[first, last]`, made rectangular."""
    inside = prod(shape)
    one_line = True
    for n in shape:
        inside //= max(n, 1)
        if not one_line:
            yield (0, n)
            continue
        a, b = first // inside % n, last // inside % n
        yield (a, b + 1)
        # Once a run goes over the end of a line it has all of the axes behind.
        one_line = a == b
