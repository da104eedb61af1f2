"""Building matrices: identities, triangles and diagonals, as maps of the index."""

from __future__ import annotations

import operator
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, joining, manipulation
from spartan_ng.api.core import door
from spartan_ng.api.core.conversion import as_handle, in_order
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.operands import small_values
from spartan_ng.api.core.quick import AS_SQUARE, shortened
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_MADE = frozenset({"dtype", "k"})


@numpy_function(np.eye, front=shortened(np.eye, 3, AS_SQUARE, _MADE))
def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: Any = float,
    order: str = "C",
    *,
    device: Any = None,
    like: Any = None,
) -> ndarray:
    """Ones on a diagonal, zeros elsewhere."""
    rows, columns = operator.index(N), operator.index(N if M is None else M)
    kind = np.dtype(dtype)
    if (door.is_open() and door.is_small(rows * columns * kind.itemsize)) or kind.kind not in "biufc":
        return wrap(np.eye(rows, columns, k, kind, order))  # type: ignore[call-overload]
    i = build.reshape(build.iota(rows), (rows, 1))
    shifted = build.map_("add", i, build.constant(_within(k, rows, columns)), dtype=i.dtype)
    ones = wrap_node(build.cast(build.map_("equal", shifted, build.iota(columns)), kind))
    return in_order(ones, order)


def _within(k: Any, rows: int, columns: int) -> np.int64:
    """A diagonal's offset, moved to just outside the matrix if it lies farther out."""
    return np.int64(min(max(operator.index(k), -rows), columns))


@numpy_function(np.identity, front=shortened(np.identity, 2, AS_SQUARE, _MADE))
def identity(n: int, dtype: Any = None, *, like: Any = None) -> ndarray:
    """The identity matrix."""
    return eye(n, dtype=float if dtype is None else dtype)


@numpy_function(np.tri, front=shortened(np.tri, 3, AS_SQUARE, _MADE))
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, like: Any = None) -> ndarray:
    """Ones at and below a diagonal."""
    rows, columns = (max(0, ceil(n)) for n in (N, N if M is None else M))
    kind = np.dtype(dtype)
    if type(k) is int and door.is_open() and door.is_small(rows * columns * kind.itemsize):
        return wrap(np.tri(rows, columns, k, kind))
    i = build.reshape(build.iota(rows), (rows, 1))
    first, second = np.arange(-k, 2 - k, dtype=np.int64)[:2].tolist()  # of a fraction, NumPy's first columns
    offset = _within(-first, rows, columns) if first < second else np.int64(columns)
    shifted = build.map_("add", i, build.constant(offset), dtype=i.dtype)
    return wrap_node(build.cast(build.map_("greater_equal", shifted, build.iota(columns)), kind))


@numpy_function(np.tril, few=2)
def tril(m: Any, k: int = 0) -> ndarray:
    """The lower triangle, zeros above it."""
    return _triangle(m, k, True)


@numpy_function(np.triu, few=2)
def triu(m: Any, k: int = 0) -> ndarray:
    """The upper triangle, zeros below it."""
    return _triangle(m, k - 1, False)


def _triangle(m: Any, k: int, lower: bool) -> ndarray:
    m = as_handle(m)
    if not m.ndim:
        raise TypeError("a triangle needs an array of one axis at least, not a number")
    if m.ndim == 1:
        m = m.reshape(1, -1)[[0] * m.shape[0]]
    rows, columns = m.shape[-2:]
    mask = tri(rows, columns, k, bool)
    if not lower:
        mask = ~mask
    native = m.dtype.newbyteorder("=")  # as what NumPy selects
    zero = build.constant(np.zeros((), native))
    return wrap_node(build.map_("where", mask._node(), m._node(), zero, dtype=native))


@numpy_function(np.diag, front=shortened(np.diag, 2, AS_SQUARE, _MADE))
def diag(v: Any, k: int = 0) -> ndarray:
    """The diagonal of a matrix, or a matrix with a diagonal."""
    v, k = as_handle(v), operator.index(k)
    if v.ndim == 2:
        return manipulation.diagonal(v, k)
    if v.ndim != 1:
        raise ValueError(f"Input must be 1- or 2-d, not of shape {v.shape}.")
    n = v.shape[0] + abs(k)
    value = v._peek()
    if value is not None and not value.dtype.hasobject and door.is_small(n * n * value.itemsize):
        return wrap(np.diag(value, k))
    out = constants.zeros((n, n), v.dtype)
    flat = out.reshape(-1)
    start = k if k >= 0 else -k * n
    flat[start : start + v.shape[0] * (n + 1) : n + 1][: v.shape[0]] = v
    return out


@numpy_function(np.diagflat, front=shortened(np.diagflat, 2, AS_SQUARE, _MADE))
def diagflat(v: Any, k: int = 0) -> ndarray:
    """A matrix with the flat elements on a diagonal."""
    return diag(as_handle(v).ravel(), k)


@numpy_function(np.vander, front=shortened(np.vander, 2, AS_SQUARE, frozenset({"increasing"})))
def vander(x: Any, N: int | None = None, increasing: bool = False) -> ndarray:
    """A Vandermonde matrix."""
    x = as_handle(x)
    if x.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array or sequence, not of shape {x.shape}.")
    n = x.shape[0] if N is None else N
    if n == 0:
        return constants.zeros((x.shape[0], 0), np.promote_types(x.dtype, int))
    kind = np.promote_types(x.dtype, int)
    known = small_values((x,))
    if known is not None and door.is_small(x.size * n * kind.itemsize):
        return wrap(np.vander(known[0], N, increasing))  # products sign zeros in another way than powers
    line = x.astype(kind)
    columns = [constants.ones(x.shape, kind), *(line**p for p in range(1, n))]  # times have no powers
    return joining.stack(columns if increasing else columns[::-1], axis=1)


__all__ = [
    "diag",
    "diagflat",
    "eye",
    "identity",
    "tri",
    "tril",
    "triu",
    "vander",
]
