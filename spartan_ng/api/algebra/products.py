"""Products of arrays: contractions of two operands, and what is made of their diagonals."""

from __future__ import annotations

import operator
from collections.abc import Callable
from itertools import zip_longest
from math import prod
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra.small_products import at_once, beside_scipys, quick
from spartan_ng.api.base import joining, manipulation, reductions
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import array_of, as_handle, numbers_here
from spartan_ng.api.core.dispatch import by_numpy, gathered, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.kinds import NUMBER_KINDS, without_details
from spartan_ng.api.core.layouts import lie
from spartan_ng.api.core.operands import small_values, stored
from spartan_ng.api.core.overlaps import contract_windows, has_windows, over_each_other
from spartan_ng.api.core.quick import AS_CONTRACTED, AS_OUTER, shortened
from spartan_ng.api.core.telling import applied
from spartan_ng.api.core.wrapping import wrap, wrap_array, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.generalized import generalized
from spartan_ng.callers import for_user
from spartan_ng.error_state import error_state
from spartan_ng.errors import ShapeError, alone
from spartan_ng.graph import build
from spartan_ng.graph.evaluation import in_process

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def _product_dtype(one: np.dtype[Any], other: np.dtype[Any], dtype: Any = None) -> np.dtype[Any]:
    if dtype is not None:
        return np.dtype(dtype)  # type: ignore[no-any-return]
    return one if one == other and one.isnative else np.result_type(one, other)


def _is_watched(a: Handle, b: Handle) -> bool:
    """Whether errors of floating-point numbers are to be seen at the call."""
    return error_state().is_strict and bool({a.dtype.kind, b.dtype.kind} & {"f", "c"})


def _watched(numpys: Any, *args: Any, **keywords: Any) -> ndarray:
    """NumPy's own product, at once, which sees the errors."""
    return (by_numpy if in_process() else gathered)(numpys, *args, **keywords)  # type: ignore[no-any-return]


@generalized(np.matmul, operator.matmul)
@numpy_function(np.matmul)
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    axes: Any = None,
    subok: bool = True,
) -> ndarray:
    """The matrix product; leading axes are batches, `axes` says where the matrices lie otherwise."""
    a, b = x1, x2
    if not (isinstance(a, Handle) and isinstance(b, Handle)):
        found = beside_scipys(a, b) if out is dtype is axes is None else None
        if found is not None:
            return found
        a, b = as_handle(a), as_handle(b)
    if axes is not None:
        cores = (min(a.ndim, 2), min(b.ndim, 2), min(a.ndim, 2) + min(b.ndim, 2) - 2)
        found = _on_axes(lambda x, y: matmul(x, y, casting=casting, dtype=dtype), a, b, axes, cores)
        return stored("matmul", found, out, casting=casting, broadcast=True)
    if error_state().is_strict and _is_watched(a, b):
        return _watched(np.matmul, a, b, out=out, casting=casting, dtype=dtype)
    quickly = quick(np.matmul, a, b, out) if dtype is None and casting == "same_kind" else None
    return _larger(a, b, out, casting, dtype) if quickly is None else quickly


def _larger(a: ndarray, b: ndarray, out: Any, casting: str = "same_kind", dtype: Any = None) -> ndarray:
    """The matrix product where it is not done without further questions."""
    if a.ndim == 0 or b.ndim == 0:
        np.matmul.resolve_dtypes((a.dtype, b.dtype, None))  # NumPy looks at dtypes first
        raise ShapeError(
            f"matmul: an operand has no axes (shapes {a.shape} and {b.shape}); use multiply for scalars"
        )
    known = small_values((a, b), broadcast=False)
    if known is None and dtype is None and casting == "same_kind" and has_windows((a, b)):
        found = contract_windows((a, b), *_labels(a.ndim, b.ndim))
        if found is not None:
            return stored("matmul", wrap(found), out, casting=casting, broadcast=True)
    if known is not None:
        rows, columns = a.shape[-2] if a.ndim > 1 else 1, b.shape[-1] if b.ndim > 1 else 1
        batch = max(prod(a.shape[:-2]), prod(b.shape[:-2]))
        made = batch * rows * columns
        if door.is_little_product(made, made * a.shape[-1]):
            try:
                product = wrap(applied(np.matmul, known, dtype=dtype, casting=casting))
                return stored("matmul", product, out, casting=casting, broadcast=True)
            except ValueError:
                with alone():
                    build.matmul(a._node(), b._node(), a.dtype)
                raise
    one, other = a.dtype, b.dtype
    are_numbers = one.kind in NUMBER_KINDS and other.kind in NUMBER_KINDS
    if dtype is not None:  # NumPy's error, where the rule forbids it
        nothing = (np.zeros((0, 0), of) for of in (one, other))
        np.matmul(*nothing, dtype=dtype, casting=casting)  # type: ignore[call-overload]
    elif not are_numbers:
        np.matmul.resolve_dtypes((one, other, None))  # NumPy's error, of dates and durations
    kind = _product_dtype(one, other, dtype)
    if kind.kind == "O" or not are_numbers:
        asked = {} if dtype is None else {"dtype": dtype, "casting": casting}
        return stored("matmul", gathered(np.matmul, a, b, **asked), out, casting=casting, broadcast=True)
    x, y = a._node(), b._node()
    if one != kind or other != kind:
        x, y = build.cast(x, kind), build.cast(y, kind)
    result = wrap_node(build.matmul(x, y, kind))
    return result if out is None else stored("matmul", result, out, casting=casting, broadcast=True)


def _labels(a: int, b: int) -> tuple[tuple[list[int], list[int]], list[int]]:
    """The axes of a matrix product's operands, with so many, and those of its result, as a contraction's."""
    inner, row, column = range(3)
    stack = list(range(3, 1 + max(a, b, 2)))
    rows, columns = [row] * (a > 1), [column] * (b > 1)
    first, second = stack[len(stack) - max(a - 2, 0) :], stack[len(stack) - max(b - 2, 0) :]
    return ([*first, *rows, inner], [*second, inner, *columns]), [*stack, *rows, *columns]


@numpy_function(np.dot, few=2)
def dot(a: Any, b: Any, out: Any = None) -> ndarray:
    """The dot product: a sum over the last axis of `a` and the second-to-last of `b`."""
    a, b = as_handle(a), as_handle(b)
    if out is not None:
        _check_exactly(a, b, out)
    if not _are_numbers(a, b):  # durations, which `matmul` refuses
        return gathered(np.dot, a, b, out=out)  # type: ignore[no-any-return]
    if _is_watched(a, b):
        return _watched(np.dot, a, b, out=out)
    known = quick(np.dot, a, b, out)
    if known is not None:
        return known
    if a.ndim == 0 or b.ndim == 0:
        return stored("dot", ufuncs.multiply(a, b), out)
    if b.ndim <= 2 and a.ndim <= 2:
        inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
        if a.shape[-1] != inner:
            raise ShapeError(f"dot: shapes {a.shape} and {b.shape} not aligned: {a.shape[-1]} != {inner}")
        if _are_single(a, b):
            shape = a.shape[:-1] + b.shape[:-2] + b.shape[-1:] if b.ndim > 1 else a.shape[:-1]
            return stored("dot", ufuncs.multiply(a.reshape(shape), b.reshape(shape)), out)
        return _larger(a, b, out)
    here = small_values((a, b), broadcast=False)
    if here is not None and out is None and door.is_small(8 * a.size * (b.size // max(b.shape[-2:][0], 1))):
        try:
            return wrap(np.dot(*here))  # line by line, and no product of matrices
        except ValueError:  # ours names the shapes
            pass
    return stored("dot", tensordot(a, b, ((a.ndim - 1,), (b.ndim - 2 if b.ndim > 1 else 0,))), out)


def _are_numbers(a: ndarray, b: ndarray) -> bool:
    """Whether both operands have numbers, or truth values."""
    return a.dtype.kind in NUMBER_KINDS and b.dtype.kind in NUMBER_KINDS


def _are_single(a: ndarray, b: ndarray) -> bool:
    """Whether operands have one element each, whose product `dot` adds to no zero: -0.0 is kept."""
    return a.size == b.size == 1 and a.dtype.char in "fdFD" and b.dtype.char in "fdFD"


def _check_exactly(a: ndarray, b: ndarray, out: Any) -> None:
    """`dot` takes only what it would have made itself as its `out`."""
    shape = a.shape[:-1] + b.shape[:-2] + b.shape[-1:] if a.ndim and b.ndim > 1 else a.shape[:-1]
    shape = shape if a.ndim and b.ndim else a.shape or b.shape
    kind = _product_dtype(a.dtype, b.dtype)
    if out.shape != shape or out.dtype != kind or not out.flags.c_contiguous:
        raise ValueError(
            f"output array is not acceptable (must have the right datatype, number of dimensions, and be "
            f"a C-Array): {out.dtype} of shape {out.shape} for {kind} of shape {shape}"
        )


@numpy_function(np.vdot, few=2)
def vdot(a: Any, b: Any, /) -> ndarray:
    """The dot product of flat vectors, the first one conjugated."""
    known = small_values((a, b), broadcast=False)
    if known is not None:
        return wrap(np.vdot(*known))
    a, b = as_handle(a).ravel(), as_handle(b).ravel()
    if not _are_numbers(a, b):
        return gathered(np.vdot, a, b)  # type: ignore[no-any-return]
    with np.errstate(all="ignore"):  # NumPy's loops tell nobody
        return matmul(ufuncs.conjugate(a) if a.dtype.kind == "c" else a, b)  # type: ignore[no-any-return]


@numpy_function(np.inner, few=2)
def inner(a: Any, b: Any, /) -> ndarray:
    """A sum of products over the last axes."""
    a, b = as_handle(a), as_handle(b)
    if a.ndim == 0 or b.ndim == 0:
        return ufuncs.multiply(a, b)  # type: ignore[no-any-return]
    result = tensordot(a, b, ((-1,), (-1,)))
    return result if result.ndim else result[()]


@numpy_function(np.outer, front=shortened(np.outer, 2, AS_OUTER))
def outer(a: Any, b: Any, out: Any = None) -> ndarray:
    """All products of two flat vectors' elements."""
    x, y = numbers_here(a), numbers_here(b)
    here = out is None and x is not None and y is not None
    if here and door.is_small(max(x.itemsize, y.itemsize) * x.size * y.size):
        return wrap(np.outer(x, y))
    return ufuncs.multiply(as_handle(a).reshape(-1, 1), as_handle(b).reshape(1, -1), out=out)  # type: ignore[no-any-return]


def _on_axes(
    function: Callable[..., ndarray], a: ndarray, b: ndarray, axes: Any, cores: tuple[int, int, int]
) -> ndarray:
    """A product whose operands and result have their core axes, so many of the last ones, elsewhere."""
    entries = [e if isinstance(e, tuple) else (operator.index(e),) for e in axes]
    if len(entries) == 2 and cores[2] == 0:
        entries.append(())
    x, y = (
        manipulation.moveaxis(v, e, range(-len(e), 0)) if e else v
        for v, e in zip((a, b), entries[:2], strict=True)
    )
    found = function(x, y)
    return manipulation.moveaxis(found, range(-cores[2], 0), entries[2]) if cores[2] else found


@generalized(np.vecdot)
@numpy_function(np.vecdot)
def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    axis: int = -1,
    axes: Any = None,
    keepdims: bool = False,
    dtype: Any = None,
    casting: str = "same_kind",
) -> ndarray:
    """Dot products of vectors along an axis, the first ones conjugated."""
    if axes is not None and axis != -1:
        raise TypeError("cannot specify both 'axis' and 'axes'")
    axis = operator.index(axis)
    a, b = as_handle(x1), as_handle(x2)
    if axes is not None:
        kept = axes[2] if keepdims and len(axes) > 2 else -1
        found = _on_axes(lambda x, y: vecdot(x, y, dtype=dtype, casting=casting), a, b, axes[:2], (1, 1, 0))
        found = manipulation.expand_dims(found, kept) if keepdims else found
        return stored("vecdot", found, out, casting=casting, broadcast=True)
    if a.ndim == 0 or b.ndim == 0 or a.shape[axis] != b.shape[axis]:
        raise ShapeError(f"vecdot: shapes {a.shape} and {b.shape} differ along axis {axis}")
    known = small_values((a, b))
    if known is None:
        pairs = zip_longest(a.shape[::-1], b.shape[::-1], fillvalue=1)
        known = over_each_other((a, b), prod(map(max, pairs)) // max(a.shape[axis], 1))
    if known is not None:
        found = wrap(applied(np.vecdot, known, axis=axis, keepdims=keepdims, dtype=dtype, casting=casting))
        return stored("vecdot", found, out, casting=casting, broadcast=True)
    if _product_dtype(a.dtype, b.dtype, dtype).type is np.float16:  # NumPy rounds the sum alone
        a, b = (x.astype(np.float16, casting=casting).astype(np.float32) for x in (a, b))
        found = vecdot(a, b, axis=axis, keepdims=keepdims).astype(np.float16)
        return stored("vecdot", found, out, casting=casting, broadcast=True)
    if axis != -1:
        a, b = (manipulation.moveaxis(x, axis, -1) for x in (a, b))
    a = ufuncs.conjugate(a) if a.dtype.kind in "cO" else a
    product = ufuncs.multiply(a, b, dtype=dtype, casting=casting)
    found = reductions.sum(product, -1, product.dtype)
    found = manipulation.expand_dims(found, axis) if keepdims else found
    return stored("vecdot", found, out, casting=casting, broadcast=True)


@generalized(np.matvec)
@numpy_function(np.matvec)
def matvec(
    x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Matrices times vectors."""
    a, b = as_handle(x1), as_handle(x2)
    if axes is not None:
        found = _on_axes(lambda x, y: matvec(x, y, dtype=dtype, casting=casting), a, b, axes, (2, 1, 1))
    elif not _are_numbers(a, b):  # a sum of no objects is None
        return by_numpy(np.matvec, a, b, out=out, dtype=dtype, casting=casting)  # type: ignore[no-any-return]
    else:
        _check_axes("matvec", a, 2, b, 1)
        found = matmul(a, b[..., None], dtype=dtype, casting=casting)[..., 0]
    return stored("matvec", found, out, casting=casting, broadcast=True)


@generalized(np.vecmat)
@numpy_function(np.vecmat)
def vecmat(
    x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, dtype: Any = None, casting: str = "same_kind"
) -> ndarray:
    """Conjugated vectors times matrices."""
    a, b = as_handle(x1), as_handle(x2)
    if axes is not None:
        found = _on_axes(lambda x, y: vecmat(x, y, dtype=dtype, casting=casting), a, b, axes, (1, 2, 1))
    elif not _are_numbers(a, b):
        return by_numpy(np.vecmat, a, b, out=out, dtype=dtype, casting=casting)  # type: ignore[no-any-return]
    else:
        _check_axes("vecmat", a, 1, b, 2)
        a = ufuncs.conjugate(a) if a.dtype.kind == "c" else a
        found = matmul(a[..., None, :], b, dtype=dtype, casting=casting)[..., 0, :]
    return stored("vecmat", found, out, casting=casting, broadcast=True)


def _check_axes(name: str, a: ndarray, least: int, b: ndarray, other: int) -> None:
    """ShapeError for operands with fewer axes than a function of sub-arrays works on."""
    if a.ndim < least or b.ndim < other:
        raise ShapeError(
            f"{name}: operands of shapes {a.shape} and {b.shape} need at least {least} and {other} axes"
        )


GUFUNCS = {f.np: f for f in (matmul, vecdot, matvec, vecmat)}
"""Those of sub-arrays, by NumPy's objects."""


@numpy_function(np.tensordot, front=shortened(np.tensordot, 3, AS_CONTRACTED, frozenset({"axes"})))
def tensordot(a: Any, b: Any, axes: Any = 2) -> ndarray:
    """A sum of products over pairs of axes."""
    a, b = as_handle(a), as_handle(b)
    if not _are_numbers(a, b):
        return by_numpy(np.tensordot, a, b, axes)  # type: ignore[no-any-return]
    try:
        n = int(axes.__index__())
    except AttributeError:
        first, second = axes
        first = list(first) if np.ndim(first) else [first]
        second = list(second) if np.ndim(second) else [second]
    else:
        first, second = list(range(-n, 0)), list(range(n))
    pairs: list[tuple[int, int]] = []
    for i, j in zip_longest(first, second):  # NumPy finds an axis that is not there when it comes to it
        pair = None if None in (i, j) else (build.axis_index(i, a.ndim), build.axis_index(j, b.ndim))
        if pair is None or a.shape[pair[0]] != b.shape[pair[1]]:
            raise ShapeError(
                f"tensordot: shape-mismatch for sum: shapes {a.shape} and {b.shape}, axes {first}, {second}"
            )
        pairs.append(pair)
    first, second = [i for i, _ in pairs], [j for _, j in pairs]
    if len(set(first)) < len(first) or len(set(second)) < len(second):
        raise ValueError(f"tensordot: an axis is named twice: {first} and {second}")
    kind = _product_dtype(a.dtype, b.dtype)
    size = prod(n for i, n in enumerate(a.shape) if i not in first) * prod(
        n for j, n in enumerate(b.shape) if j not in second
    )
    if at_once(a, b, size, size * prod(a.shape[i] for i in first)):
        return wrap(np.asarray(np.tensordot(a._peek(), b._peek(), (first, second))))
    labels_a = list(range(a.ndim))
    labels_b = [a.ndim + j for j in range(b.ndim)]
    for i, j in zip(first, second, strict=True):
        labels_b[j] = labels_a[i]
    out = [x for i, x in enumerate(labels_a) if i not in first] + [
        x for j, x in enumerate(labels_b) if j not in second
    ]
    over = contract_windows((a, b), (labels_a, labels_b), out)
    if over is not None:
        return wrap(np.asarray(over, order="C"))
    single = _are_single(a, b)
    if not first or single:
        rows = tuple(n for i, n in enumerate(a.shape) if i not in first)
        columns = tuple(n for j, n in enumerate(b.shape) if j not in second)
        found = ufuncs.multiply(a.reshape(rows + (1,) * len(columns)), b.reshape(columns))
        return array_of(found if single or found.dtype.kind not in "fc" else found + 0.0)
    nodes = build.cast(a._node(), kind), build.cast(b._node(), kind)
    return wrap_array(build.contract(*nodes, tuple(labels_a), tuple(labels_b), tuple(out), kind))


# --- einsum ----------------------------------------------------------------------------------------


@numpy_function(np.trace, few=2)
def trace(
    a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None
) -> ndarray:
    """The sum of the diagonal."""
    if isinstance(a, str | PathLike):
        raise ValueError(f"trace: {a!r} is no matrix; np.tracing({a!r}) records what runs")
    lines = manipulation.diagonal(a, offset, axis1, axis2)
    return reductions.sum(lines, -1, without_details(dtype), out)


@numpy_function(np.kron)
def kron(a: Any, b: Any) -> ndarray:
    """The Kronecker product."""
    a, b = as_handle(a), as_handle(b)
    if not a.ndim or not b.ndim:
        return a * b  # type: ignore[no-any-return]
    n = max(a.ndim, b.ndim)
    left, right = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    x = a.reshape([k for pair in zip(left, (1,) * n, strict=True) for k in pair])
    y = b.reshape([k for pair in zip((1,) * n, right, strict=True) for k in pair])
    return (x * y).reshape([p * q for p, q in zip(left, right, strict=True)])  # type: ignore[no-any-return]


@numpy_function(np.cross, few=2)
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> ndarray:
    """The cross product of vectors of length 2 or 3."""
    if axis is not None:
        axisa = axisb = axisc = axis
    if as_handle(a).ndim < 1 or as_handle(b).ndim < 1:
        raise ValueError(f"At least one array has zero dimension: shapes {np.shape(a)} and {np.shape(b)}")
    x = manipulation.moveaxis(as_handle(a), axisa, -1)
    y = manipulation.moveaxis(as_handle(b), axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ShapeError(f"cross: vectors have 2 or 3 elements, not shapes {x.shape} and {y.shape}")
    if 2 in (x.shape[-1], y.shape[-1]):
        for_user(np.cross, [0, 0], [0, 0])  # NumPy's warning, that they are deprecated
    if x.shape[-1] == y.shape[-1] == 2:
        return lie(array_of(x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]), None)
    both: Any = ([w[..., i : i + 1] if i < w.shape[-1] else None for i in range(3)] for w in (x, y))
    u, v = both

    def minor(i: int, j: int) -> Any:
        if u[i] is None or v[j] is None:
            return -(u[j] * v[i])
        return u[i] * v[j] if u[j] is None or v[i] is None else u[i] * v[j] - u[j] * v[i]

    parts = manipulation.broadcast_arrays(minor(1, 2), minor(2, 0), minor(0, 1))
    return manipulation.moveaxis(lie(joining.concatenate(parts, -1), None), -1, axisc)


__all__ = [
    "cross",
    "dot",
    "inner",
    "kron",
    "matmul",
    "matvec",
    "outer",
    "tensordot",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
]
