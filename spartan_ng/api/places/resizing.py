"""Arrays in another size: cut, repeated, or followed by zeros."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, joining, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import shape_tuple
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.quick import AS_TILED, shortened
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.places.rearranging import tile
from spartan_ng.memory import copied_bytes

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray

_UNIT_BYTES = 1 << 18
"""What is repeated at a time, at most: caches hold it."""


@numpy_function(np.resize, front=shortened(np.resize, 2, AS_TILED))
def resize(a: Any, new_shape: Any) -> ndarray:
    """Another size, the elements repeated as needed."""
    found = resized(a := manipulation.ravel(a), shape_tuple(new_shape), True)
    joined = "=" if a.size and found.size else "|"  # NumPy joins repetitions, where there are elements
    return found.astype(found.dtype.newbyteorder(joined), copy=False)


def resized(a: Handle, shape: Any, repeated: bool = False) -> ndarray:
    """Elements in another size: repeated, or followed by zeros (`ndarray.resize`)."""
    lengths = shape_tuple(shape)
    size = prod(lengths)
    flat = manipulation.ravel(a)
    if size <= flat.size:
        return flat[:size].reshape(lengths).copy()  # type: ignore[no-any-return]
    value = flat._peek() if repeated and flat.size and flat.format == "dense" else None
    if value is not None and door.works_here() and size * value.itemsize <= copied_bytes():
        return wrap(_again_and_again(value, size).reshape(lengths))
    if repeated and flat.size:
        return tile(flat, -(-size // flat.size))[:size].reshape(lengths).copy()  # type: ignore[no-any-return]
    if not flat.size:
        return constants.zeros(lengths, flat.dtype)
    return joining.concatenate([flat, constants.zeros(size - flat.size, flat.dtype)]).reshape(lengths)


def _again_and_again(value: Any, size: int) -> Any:
    """So many elements, those of a line over and over: each is written once, from what the cache has."""
    line = np.empty(size, value.dtype)
    line[: len(value)] = value
    there = unit = len(value)
    while there < size:
        step = min(unit, size - there)
        line[there : there + step] = line[:step]
        there += step
        if 2 * unit * value.itemsize <= _UNIT_BYTES:
            unit = there
    return line


__all__ = ["resize"]
