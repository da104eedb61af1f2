"""Norms of vectors and matrices: folds, and singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra.factorizations import is_tall, triangle
from spartan_ng.api.algebra.products import dot
from spartan_ng.api.base import manipulation, reductions
from spartan_ng.api.base.stacks import on_stack, probed
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.quick import AS_GIVEN, ASKING, shortened
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.config import config
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.linalg.norm, few=1, front=shortened(np.linalg.norm, 2, AS_GIVEN, ASKING | {"ord"}))
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> ndarray:
    """The norm of a vector or a matrix."""
    x = as_handle(x)
    if x.dtype.hasobject:
        return by_numpy(np.linalg.norm, x, ord, axis, keepdims)  # type: ignore[no-any-return]
    value = x._peek()
    if value is not None and ord is None and axis is None and not keepdims and _runs_at_once(value):
        return wrap(np.linalg.norm(value))
    if x.dtype.kind not in "fc":
        x = as_handle(x.astype(float))
    if axis is None and (ord is None or (ord in ("f", "fro") and x.ndim == 2) or (ord == 2 and x.ndim == 1)):
        flat = x.ravel()
        total = dot(flat, flat) if _is_vector_here(flat) else _squares(flat, None)
        result = ufuncs.sqrt(total)
        return result.reshape((1,) * x.ndim) if keepdims else result  # type: ignore[no-any-return]
    if axis is not None and not isinstance(axis, tuple):
        try:
            axis = int(axis)
        except (TypeError, ValueError):
            raise TypeError(f"'axis' must be None, an integer or a tuple of integers, not {axis!r}") from None
    axes = build.axes_tuple(axis, x.ndim) if not isinstance(axis, int) else (build.axis_index(axis, x.ndim),)
    if isinstance(axis, tuple):
        axes = tuple(build.axis_index(i, x.ndim) for i in axis)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"Improper number of dimensions to norm: axes {axes} of shape {x.shape}")


def _runs_at_once(value: Any) -> bool:
    """Whether NumPy folds a value at the memory's speed, by its dot product with itself, and where it is."""
    if door.is_small(value.nbytes):
        return True
    return value.dtype.kind == "f" and value.flags.forc and door.works_here()


def _is_vector_here(x: ndarray) -> bool:
    """Whether a norm is a dot product of a vector with itself, as NumPy has it: nothing would be fused.

    BLAS adds in an order of its own.
    """
    return x.dtype.kind == "f" and x.size > 0 and x._peek() is not None and not config.reproducible


def _squares(x: ndarray, axis: Any, keepdims: bool = False) -> ndarray:
    if x.dtype.kind == "c":
        return reductions.sum(ufuncs.square(x.real) + ufuncs.square(x.imag), axis, None, None, keepdims)
    return reductions.sum(ufuncs.square(x), axis, None, None, keepdims)


def _vector_norm(x: ndarray, order: Any, axis: int, keepdims: bool) -> ndarray:
    size = ufuncs.absolute(x)
    if order in (None, 2):
        return ufuncs.sqrt(_squares(x, axis, keepdims))  # type: ignore[no-any-return]
    if isinstance(order, str):
        raise ValueError(f"Invalid norm order {order!r} for vectors")
    if order == np.inf:
        return reductions.max(size, axis, None, keepdims, **_of_none(x.shape[axis]))
    if order == -np.inf:
        return reductions.min(size, axis, None, keepdims)
    if order == 0:
        return reductions.sum((x != 0).astype(size.dtype), axis, None, None, keepdims)
    if order == 1:
        return reductions.sum(size, axis, None, None, keepdims)
    return reductions.sum(size**order, axis, None, None, keepdims) ** (1.0 / order)  # type: ignore[no-any-return]


def _of_none(n: int) -> dict[str, Any]:
    """The keyword by which the greatest of no sizes is 0."""
    return {} if n else {"initial": 0}


@numpy_function(np.linalg.svdvals, whole=True)
def svdvals(x: Any, /) -> Any:
    """Singular values, which a matrix that is turned has, too."""
    a = as_handle(x)
    outputs = probed(np.linalg.svdvals, [a])
    tall = next((m for m in (a, a.T) if is_tall(m)), None)
    return on_stack("svdvals", [a if tall is None else triangle(tall)], outputs)[0]


def _matrix_norm(x: ndarray, order: Any, axes: tuple[int, ...], keepdims: bool) -> ndarray:
    row, column = axes
    if order in (None, "f", "fro"):
        return ufuncs.sqrt(_squares(x, axes, keepdims))  # type: ignore[no-any-return]
    if order in (1, -1, np.inf, -np.inf):
        first, second = (row, column) if abs(order) == 1 else (column, row)
        sums = reductions.sum(ufuncs.absolute(x), first, None, None, True)
        if order > 0:
            result = reductions.max(sums, second, None, True, **_of_none(x.shape[second]))
        else:
            result = reductions.min(sums, second, None, True)
        return result if keepdims else result.squeeze(axes)[()]
    if order not in (2, -2, "nuc"):
        raise ValueError(f"Invalid norm order {order!r} for matrices")

    values = svdvals(manipulation.moveaxis(x, axes, (-2, -1)))
    folding: dict[Any, Any] = {2: reductions.max, -2: reductions.min, "nuc": reductions.sum}
    result = folding[order](values, -1, **(_of_none(values.shape[-1]) if order == 2 else {}))
    shape = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    return result.reshape(shape) if keepdims else result  # type: ignore[no-any-return]


@numpy_function(np.linalg.vector_norm, few=1)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> ndarray:
    """The norm of all elements, or along axes."""
    x = as_handle(x)
    shape = x.shape
    if axis is None:
        result = norm(x.ravel(), ord)
        return result.reshape((1,) * len(shape)) if keepdims else result
    if isinstance(axis, tuple):
        axes = build.axes_tuple(axis, x.ndim)
        moved = manipulation.moveaxis(x, axes, range(len(axes)))
        result = norm(moved.reshape((-1, *moved.shape[len(axes) :])), ord, 0)
        return (
            result.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdims else result
        )
    return norm(x, ord, axis, keepdims)


@numpy_function(np.linalg.matrix_norm, few=1)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> ndarray:
    """The norm of the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)
