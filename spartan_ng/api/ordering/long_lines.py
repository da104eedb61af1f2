"""Sorts along an axis whose lines memory has no room for: line by line, each as an array of its own.

An array of one axis is sorted in runs that fit (`SortParts`), on disk where it has to; of several lines, each
would be work that cannot be cut. There are few lines that long, and each is read by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import joining, manipulation
from spartan_ng.api.base.room import work_fits
from spartan_ng.api.core.wrapping import wrap_node
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_AT_WORK = 2
"""Lines that are at work at a time."""
_BESIDE, _BY_RADIX, _SHORT = 2, 3, 2
"""Of indices, so many times what a line has of them are there: the last result is written while the next is
made, and a stable sort has half of them aside, or, of numbers of up to two bytes (by radix), all."""


def are_long(a: ndarray, axis: int, gives_indices: bool) -> bool:
    """Whether there is no room for the lines along an axis beside what is made of them, the elements or their
    indices in order; the only line of an array is never one of those."""
    each = 2 * a.dtype.itemsize
    if gives_indices:
        beside = _BY_RADIX if a.dtype.itemsize <= _SHORT else _BESIDE
        each = a.dtype.itemsize + beside * build.INTP.itemsize
    nbytes = _AT_WORK * a.shape[axis] * each
    return a.ndim > 1 and not a.dtype.hasobject and a.size > 0 and not work_fits([a], nbytes)


def line_by_line(name: str, a: ndarray, axis: int, made: np.dtype[Any]) -> ndarray:
    """What "sort" or "argsort" makes of each line along an axis, elements of a dtype, where the line was.

    All lines are computed together, on the workers: at once, as NumPy does what is small, each might be in
    the program's own memory, and so all of them.
    """
    # In the machine's byte order numbers are compared many at a time, and put together without a copy.
    given = a.astype(a.dtype.newbyteorder("="), copy=False)
    native = made.newbyteorder("=")
    moved = manipulation.moveaxis(given, axis, -1)
    lines = (moved[place]._node() for place in np.ndindex(*moved.shape[:-1]))
    found = joining.stack([wrap_node(build.along_axis(name, [n], 0, dtype=native)) for n in lines])
    return manipulation.moveaxis(found.reshape(moved.shape), -1, axis).astype(made, copy=False)
