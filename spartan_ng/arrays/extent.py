"""Boxes of global indices: an extent `[ul, lr)` as one half-open interval for each axis.

Spartan (ATC '15), section 4: tiles are addressed by where they lie in the global array.
"""

from __future__ import annotations

from collections.abc import Sequence

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
