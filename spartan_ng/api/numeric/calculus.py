"""Differences, gradients and integrals along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import cumulative, joining, manipulation, reductions
from spartan_ng.api.core.conversion import as_handle
from spartan_ng.api.core.dispatch import gathered, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.operands import check_cast
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.logic import where
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_NONE: Any = np._NoValue


@numpy_function(np.diff, few=1)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = _NONE, append: Any = _NONE) -> ndarray:
    """Differences of neighbours along an axis."""
    if n == 0:
        return a  # type: ignore[no-any-return]
    a = as_handle(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n!r}")
    if a.ndim == 0:
        raise ValueError("diff requires input that is at least one dimensional")
    where = build.axis_index(axis, a.ndim)
    parts = []
    for part in (prepend, a, append):
        if part is _NONE:
            continue
        h = as_handle(part)
        if h.ndim == 0:
            h = manipulation.broadcast_to(h, (*a.shape[:where], 1, *a.shape[where + 1 :]))
        parts.append(h)
    if n == 0:
        return a  # type: ignore[no-any-return]
    value = a._peek()
    if value is not None and len(parts) == 1 and reductions.is_prompt(value):
        return wrap(np.diff(value, n, where))
    if len(parts) > 1:
        a = joining.concatenate(parts, where)
    before = (slice(None),) * where
    for _ in range(n):
        high, low = a[(*before, slice(1, None))], a[(*before, slice(None, -1))]
        a = ufuncs.not_equal(high, low) if a.dtype == bool else ufuncs.subtract(high, low)
    return a  # type: ignore[no-any-return]


@numpy_function(np.ediff1d, few=1)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> ndarray:
    """Differences of neighbours of the flat array, with values before and after them."""
    a = as_handle(ary).ravel()
    parts = [a[1:] - a[:-1]]
    for name, more in (("to_begin", to_begin), ("to_end", to_end)):
        if more is None:
            continue
        ends = as_handle(more)
        if not np.can_cast(ends.dtype, a.dtype, "same_kind"):
            raise TypeError(
                f"dtype of `{name}` must be compatible with input `ary` under the `same_kind` rule."
            )
        parts.insert(0 if name == "to_begin" else len(parts), ends.ravel().astype(a.dtype))
    if len(parts) == 1:
        return parts[0]  # type: ignore[no-any-return]
    check_cast("subtract", parts[0 if to_begin is None else 1].dtype, a.dtype)
    return joining.concatenate(parts, dtype=a.dtype)


@numpy_function(np.trapezoid, few=2)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> ndarray:
    """The integral by the trapezoidal rule."""
    y = as_handle(y)
    where = build.axis_index(axis, y.ndim)
    before = (slice(None),) * where
    step = dx
    if x is not None:
        x = as_handle(x)
        step = diff(x) if x.ndim == 1 else diff(x, axis=axis)
        if x.ndim == 1:
            step = step.reshape((1,) * where + (-1,) + (1,) * (y.ndim - where - 1))
    areas = step * (y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]) / 2.0
    return reductions.sum(areas, axis)  # which may have more axes than y


@numpy_function(np.gradient, few=2)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The gradient by second-order central one array an axis.

    Parameters
    ----------
    varargs : the spacing, or the coordinates, of all axes or of each
    edge_order : 1 or 2, the order of accuracy at the ends
    """
    f = as_handle(f)
    if f.dtype.kind in "mM":
        return gathered(np.gradient, f, *varargs, axis=axis, edge_order=edge_order)
    axes = tuple(range(f.ndim)) if axis is None else build.axes_tuple(axis, f.ndim)
    if isinstance(axis, tuple):
        axes = tuple(build.axis_index(a, f.ndim) for a in axis)
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    kind = f.dtype if f.dtype.kind in "fc" else np.dtype(np.float64)
    if f.dtype.kind in "iu":
        f = f.astype(kind)
    steps = [_spacing(h, f.shape[a]) for h, a in zip(_each(varargs, len(axes)), axes, strict=True)]
    short = [f.shape[a] for a in axes if f.shape[a] < edge_order + 1]
    if short:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            f"elements are required: shape {f.shape}"
        )
    along = (_along(f, a, h, edge_order) for a, h in zip(axes, steps, strict=True))
    found = tuple(part.astype(kind, copy=False) for part in along)
    return found[0] if len(found) == 1 else found


def _each(varargs: tuple[Any, ...], n: int) -> list[Any]:
    """The spacing argument of each of `n` axes."""
    given = [v if isinstance(v, Handle) and v.ndim else _plain(v) for v in varargs]
    if not given:
        return [1.0] * n
    if len(given) == 1 and getattr(given[0], "ndim", 0) == 0:
        return given * n
    if len(given) != n:
        raise TypeError("invalid number of arguments")
    return given


def _plain(v: Any) -> Any:
    """A spacing as NumPy's value; a number of Python's stays one, which leaves the elements' dtype alone."""
    if isinstance(v, Handle):
        return v._force()
    return v if isinstance(v, int | float) else np.asarray(v)


def _spacing(h: Any, length: int) -> Any:
    """One number for evenly spaced points, else the gaps between them."""
    if np.ndim(h) == 0:
        return h if isinstance(h, int | float) else h[()]
    if h.ndim != 1:
        raise ValueError(f"distances must be either scalars or 1d, not of shape {h.shape}")
    if len(h) != length:
        raise ValueError(
            f"when 1d, distances must match the length of the corresponding dimension: {len(h)} and {length}"
        )
    points = as_handle(h)
    gaps = diff(points.astype(np.float64) if h.dtype.kind in "iu" else points)
    return gaps[0] if reductions.all(gaps == gaps[0]) else gaps


def _along(f: ndarray, axis: int, h: Any, edge_order: int) -> ndarray:
    """The gradient along one axis: the first line, the inner ones, the last."""
    before = (slice(None),) * axis

    def at(start: int | None, stop: int | None) -> Any:
        return f[(*before, slice(start, stop))]

    even = np.ndim(h) == 0
    first, last = (h, h) if even else (h[0], h[-1])
    if even:
        inner = (at(2, None) - at(None, -2)) / (2.0 * h)
    else:
        line = (-1,) + (1,) * (f.ndim - axis - 1)
        a, b, c = (w.reshape(line) for w in _weights(h[:-1], h[1:]))
        inner = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
    if edge_order == 1:
        head, tail = (at(1, 2) - at(0, 1)) / first, (at(-1, None) - at(-2, -1)) / last
    else:
        a, b, c = (-1.5 / h, 2.0 / h, -0.5 / h) if even else _edge(h[0], h[1])
        head = a * at(0, 1) + b * at(1, 2) + c * at(2, 3)
        c, b, a = (1.5 / h, -2.0 / h, 0.5 / h) if even else tuple(-w for w in _edge(h[-1], h[-2]))
        tail = a * at(-3, -2) + b * at(-2, -1) + c * at(-1, None)
    return joining.concatenate([head, inner, tail], axis)


def _weights(d1: Any, d2: Any) -> tuple[Any, Any, Any]:
    """Weights of three uneven neighbours for the derivative in the middle."""
    return -d2 / (d1 * (d1 + d2)), (d2 - d1) / (d1 * d2), d1 / (d2 * (d1 + d2))


def _edge(d1: Any, d2: Any) -> tuple[Any, Any, Any]:
    """Weights of three uneven neighbours for the derivative at the first."""
    return -(2.0 * d1 + d2) / (d1 * (d1 + d2)), (d1 + d2) / (d1 * d2), -d1 / (d2 * (d1 + d2))


@numpy_function(np.unwrap, eager=True)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> ndarray:
    """Neighbours whose distance is a half period or more, moved by whole periods towards each other."""
    p = as_handle(p)
    where_axis = build.axis_index(axis, p.ndim)
    step = diff(p, axis=where_axis)
    discont = period / 2 if discont is None else discont
    kind = np.result_type(step.dtype, period)
    if kind.kind in "iu":
        high, rest = divmod(period, 2)
        ambiguous = rest == 0
    else:
        high, ambiguous = period / 2, True
    low = -high
    moved = (step - low) % period + low
    if ambiguous:
        moved = where((moved == low) & (step > 0), high, moved)
    correction = where(ufuncs.absolute(step) < discont, 0, moved - step)
    before = (slice(None),) * where_axis
    head = p[(*before, slice(0, 1))].astype(kind)
    tail = p[(*before, slice(1, None))] + cumulative.cumsum(correction, where_axis)
    return joining.concatenate([head, tail.astype(kind)], where_axis)


# --- windows ---------------------------------------------------------------------------------------


__all__ = [
    "diff",
    "ediff1d",
    "gradient",
    "trapezoid",
    "unwrap",
]
