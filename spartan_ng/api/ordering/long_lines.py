"""Sorts along an axis whose lines memory has no room for: line by line, each as an array of its own.

An array of one axis is sorted in runs that fit (`SortParts`), on disk where it has to; of several lines, each
would be work that cannot be cut. There are few lines that long, and each is read by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import joining, manipulation
from spartan_ng.api.base.room import has_room

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_COPIES = 2
"""Lines that are at work at a time: what is read of each and what is made."""


def are_long(a: ndarray, axis: int, made: np.dtype[Any]) -> bool:
    """Whether there is no room for the lines along an axis beside what is made of them, elements of a dtype;
    the only line of an array is never one of those."""
    line = a.shape[axis] * (a.dtype.itemsize + made.itemsize)
    return a.ndim > 1 and not a.dtype.hasobject and a.size > 0 and not has_room([a], _COPIES * line)


def one_by_one(function: Callable[[ndarray], ndarray], a: ndarray, axis: int) -> ndarray:
    """The function of each line along an axis, of as many elements, where the line was."""
    moved = manipulation.moveaxis(a, axis, -1)
    found = joining.stack([function(moved[place]) for place in np.ndindex(*moved.shape[:-1])])
    return manipulation.moveaxis(found.reshape(moved.shape), -1, axis)
