"""Folds over what sparse and compressed arrays store, without their dense form."""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.compressed import is_compressed
from spartan_ng.kernels.formats import dense


def sparse_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """A fold over a sparse or compressed block; None for those that need the dense one."""
    if not axes:
        return None
    if is_compressed(x):
        return _compressed_fold(name, x, axes, dtype)
    axis = None if len(axes) == 2 else axes[0]
    if name in ("maximum", "minimum") and x.dtype == dtype and dtype.kind != "c":
        found = _extreme(getattr(np, name), x, axis)
        if found is None:
            found = dense(x.max(axis=axis) if name == "maximum" else x.min(axis=axis))
        return np.asarray(found, dtype)[()]
    if name != "add":
        return None
    found = _sum(x, axis, dtype)
    return np.asarray(x.sum(axis=axis, dtype=dtype))[()] if found is None else found


# SciPy's own sums are products with ones, and its extremes look at the order of all places first.


def _sum(x: Any, axis: int | None, dtype: np.dtype[Any]) -> Any:
    """The sums along an axis, or of everything; None where SciPy is to make them."""
    if axis is None:
        return x.data.sum(dtype=dtype)
    if _is_along_lines(x, axis):
        return _of_lines(np.add, x, dtype)
    if x.format in ("csr", "csc") and x.dtype.kind == "f" and x.dtype.itemsize <= dtype.itemsize <= 8:
        return np.bincount(x.indices, x.data, x.shape[1 - axis]).astype(dtype, copy=False)
    return None


def _extreme(ufunc: Any, x: Any, axis: int | None) -> Any:
    """The extremes along an axis, or of everything; None where SciPy is to find them."""
    if axis is None:
        nothing_else = x.nnz == x.shape[0] * x.shape[1]
        found = ufunc.reduce(x.data) if x.nnz else x.dtype.type(0)
        return found if nothing_else else ufunc(found, x.dtype.type(0))
    if not _is_along_lines(x, axis):
        return None
    found = _of_lines(ufunc, x, x.dtype)
    is_full = np.diff(x.indptr) == x.shape[axis]
    return np.where(is_full, found, ufunc(found, x.dtype.type(0)))


def _is_along_lines(x: Any, axis: int) -> bool:
    """Whether an axis is that in which non-zeros are stored one after the other."""
    return bool(x.format == ("csr" if axis == 1 else "csc"))


def _of_lines(ufunc: Any, x: Any, dtype: np.dtype[Any]) -> Any:
    """The fold of what each stored line has; zero where it has nothing."""
    out = np.zeros(len(x.indptr) - 1, dtype)
    filled = np.flatnonzero(np.diff(x.indptr))
    if len(filled):
        out[filled] = ufunc.reduceat(x.data, x.indptr[filled], dtype=dtype)
    return out


def _compressed_fold(name: str, x: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Over rows by distinct values and their counts; a sum of each row is a product with ones."""
    if name == "add" and axes == (0 if x.turned else 1,):
        from spartan_ng.kernels.compiled import dictionaries

        rows = x.T if x.turned else x
        return dictionaries.multiply(rows.astype(dtype), np.ones(x.width, dtype))
    return x.fold(name, axes, dtype)
