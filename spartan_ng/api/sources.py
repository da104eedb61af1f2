"""Arrays that lie outside: read where they are worked on, box by box, and never as a whole unless asked
for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.cell import Cell
from spartan_ng.api.handle import Handle, make, shape_tuple, wrap_node
from spartan_ng.arrays import ArrayRef
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction
from spartan_ng.sources import BoxFunction, Indexed, Source, checked_dtype

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


def over(source: Source) -> ndarray:
    """An array of what a source has: lazy, or of a mapped file the map, which counts as no memory."""
    mapped = source.mapped()
    if mapped is None:
        ref = ArrayRef(source.shape, source.dtype, source=source)
        return wrap_node(build.data(ref))
    cell = Cell(mapped, borrowed=True)
    cell.source = source
    return make(cell)


def from_function(
    read: Callable[[tuple[tuple[int, int], ...]], Any],
    shape: Any,
    dtype: Any = float,
    *,
    chunks: Any = None,
) -> ndarray:
    """An array whose elements a function gives, box by box, where and when they are worked on.

    Parameters
    ----------
    read : of a box, one `(lo, hi)` an axis, gives its elements: an array of the box's shape, made one of
        `dtype`. It is called in any order, on any worker, in several threads at a time, and gives the same
        each time
    shape, dtype : of the whole array; elements that are objects are a TypeError
    chunks : the shape of boxes that it is best asked for; boxes are made of whole ones where they fit

    Raises
    ------
    ShapeError : `chunks` has not one length of at least 1 for each axis
    UserFunctionError : `read` raises, when the elements are needed
    SourceError : it gives an array of another shape
    """
    full = shape_tuple(shape)
    if chunks is not None:
        chunks = shape_tuple(chunks)
        if len(chunks) != len(full) or min(chunks, default=1) < 1:
            raise ShapeError(f"from_function: chunks {chunks} do not fit the shape {full}")
    return over(BoxFunction(UserFunction(read), full, checked_dtype(dtype, "from_function"), chunks))


def from_source(source: Any, *, serial: bool = False) -> ndarray:
    """An array of anything that has `shape`, `dtype` and `__getitem__` of a tuple of slices.

    What it has is read where and when it is worked on: its `chunks`, if there are any, at a time. Workers get
    a pickled copy of the object, which should say where the elements are, not have them. NumPy's arrays are
    taken as they are, as by `asarray`.

    Parameters
    ----------
    source : the object, or a `spartan_ng.sources.Source`
    serial : whether it may be asked by one thread at a time only
    """
    if isinstance(source, Source):
        return over(source)
    if isinstance(source, np.ndarray | Handle):
        from spartan_ng.api.creation import asarray

        return asarray(source)
    return over(Indexed(source, serial))


__all__ = ["from_function", "from_source"]
