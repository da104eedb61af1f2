"""Matrices in compressed columns: `compress_columns`, and when it leaves a matrix dense.

"On Optimizing Operator Fusion Plans", section 5.2 (Compressed Linear Algebra).
"""

from __future__ import annotations

from typing import Any

from spartan_ng import compressed
from spartan_ng.api.core.cell import Cell
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.wrapping import make
from spartan_ng.api.ndarray.array import ndarray
from spartan_ng.arrays import ArrayRef
from spartan_ng.callers import warn_user
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build

GAIN = 1.5
"""How many times smaller a compressed matrix has to be: what is done on its elements decompresses them, block
by block, each time."""
SLOWDOWN = 2.0
"""How many times as long a product with a vector may take: look-ups lose where the cache holds the matrix."""


class CompressionWarning(UserWarning):
    """A matrix was left dense, since compressed it would hardly be smaller, or products much slower."""


def compress_columns(a: Any, *, always: bool = False) -> ndarray:
    """A matrix with its columns compressed: the distinct values, and codes, offsets or runs that say where.

    Functions of the matrix and scalars, sums and extremes of columns or of all elements go over distinct
    values; products with dense vectors and matrices, and sums of rows, over distinct values and then once
    over the rows' codes. What has no such rule sees the elements, a block at a time, and `explain` says so.

    A sample of the rows says first how large the result will be, and what products will cost: where it is not
    at least 1.5 times smaller, or a product with a vector would take more than twice as long (the cache holds
    the dense matrix), the matrix stays dense, with a warning that names both sizes.

    Parameters
    ----------
    a : the matrix; bools, integers and floats of up to eight bytes are compressed
    always : whether to compress it all the same

    Raises
    ------
    ShapeError : `a` does not have two axes

    "On Optimizing Operator Fusion Plans", section 5.2 (Compressed Linear Algebra).
    """
    dense = as_handle(a)
    values = dense._force()
    if values.ndim != 2:
        raise ShapeError(f"compress_columns: an array of shape {values.shape} does not have rows and columns")
    enough = values.nbytes if always or not values.size else values.nbytes / GAIN
    sampled = compressed.sample_columns(values)
    if not always and (sampled.nbytes > enough or sampled.slowdown > SLOWDOWN):
        return _left_dense(dense, sampled.nbytes, sampled.slowdown)
    matrix = compressed.compress_columns(values, sampled)
    if matrix.nbytes > enough and not always:
        return _left_dense(dense, matrix.nbytes, sampled.slowdown)
    ref = ArrayRef(matrix.shape, matrix.dtype, value=matrix, format="compressed")
    return make(Cell(node=build.data(ref)))


def _left_dense(a: ndarray, nbytes: int, slowdown: float) -> ndarray:
    warn_user(
        f"compress_columns: a matrix of shape {a.shape} and {a.nbytes:,} bytes stays dense: compressed, it "
        f"would take {nbytes:,} bytes, and products {slowdown:.1f} times as long; always=True compresses it "
        "all the same",
        CompressionWarning,
    )
    return a


__all__ = ["CompressionWarning", "compress_columns"]
