"""What NumPy has in memory while it works on whole lines, or on matrices: more than it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.ops.joins import worked_length
from spartan_ng.ops.transforms import transform_bytes

_COPIES = 2
"""Values that a call on lines has at a time for each that it gives: NumPy's sorts and transforms work on
copies."""
_LINES = ("along_axis", "matrices")


def worked_bytes(
    kind: str, params: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype[Any], elements: int
) -> int:
    """Bytes that are there while so many elements of a value are made, they among it; `kind` is what makes
    it, with the parameters of that, and `shape` and `dtype` are the whole value's."""
    if kind == "along_axis" and str(params[0]).startswith("fft."):
        given: int = max(shape[params[1]], 1)
        return transform_bytes(worked_length(params, shape)) * -(-elements // given)
    return (_COPIES if kind in _LINES else 1) * elements * dtype.itemsize


def line_bytes(params: tuple[Any, ...], shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The same of one line of a function of whole lines."""
    return worked_bytes("along_axis", params, shape, dtype, shape[params[1]])
