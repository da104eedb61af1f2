"""Folds over what sparse and compressed arrays store, without their dense form."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.compressed import is_compressed
from spartan_ng.kernels.compiled import dictionaries
from spartan_ng.kernels.formats import dense


def sparse_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A fold over a sparse or compressed block; None for those that need the dense one."""
    if not axes:
        return None
    if is_compressed(x):
        return _compressed_fold(name, x, axes, dtype)
    axis = None if len(axes) == 2 else axes[0]
    if name in ("maximum", "minimum") and x.dtype == dtype and dtype.kind != "c":
        found = x.max(axis=axis) if name == "maximum" else x.min(axis=axis)
        return np.asarray(dense(found), dtype)[()]
    if name != "add":
        return None
    return np.asarray(x.sum(axis=axis, dtype=dtype))[()]


def _compressed_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Over rows by distinct values and their counts; a sum of each row is a product with ones."""
    if name == "add" and axes == (0 if x.turned else 1,):
        rows = x.T if x.turned else x
        return dictionaries.multiply(rows.astype(dtype), np.ones(x.width, dtype))
    return x.fold(name, axes, dtype)
