"""Gradients by differences of neighbours, phases without jumps, and windows of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import creation, histograms, manipulation, reductions, ufuncs
from spartan_ng.api.dispatch import gathered, numpy_function
from spartan_ng.api.handle import Handle, as_handle
from spartan_ng.api.logic import i0, where
from spartan_ng.graph import build

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


@numpy_function(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """The gradient by second-order central differences, one array an axis.

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
    if f.dtype.kind in "iub":
        f = f.astype(np.float64)
    steps = [_spacing(h, f.shape[a]) for h, a in zip(_each(varargs, len(axes)), axes, strict=True)]
    short = [f.shape[a] for a in axes if f.shape[a] < edge_order + 1]
    if short:
        raise ValueError(
            "Shape of array too small to calculate a numerical gradient, at least (edge_order + 1) "
            f"elements are required: shape {f.shape}"
        )
    found = tuple(_along(f, a, h, edge_order) for a, h in zip(axes, steps, strict=True))
    return found[0] if len(found) == 1 else found


def _each(varargs: tuple[Any, ...], n: int) -> list[Any]:
    """The spacing argument of each of `n` axes."""
    given = [v if isinstance(v, Handle) and v.ndim else _plain(v) for v in varargs]
    if not given:
        return [np.float64(1.0)] * n
    if len(given) == 1 and given[0].ndim == 0:
        return given * n
    if len(given) != n:
        raise TypeError("invalid number of arguments")
    return given


def _plain(v: Any) -> Any:
    return v._force() if isinstance(v, Handle) else np.asarray(v)


def _spacing(h: Any, length: int) -> Any:
    """One number for evenly spaced points, else the gaps between them."""
    if h.ndim == 0:
        return h[()]
    if h.ndim != 1:
        raise ValueError("distances must be either scalars or 1d")
    if len(h) != length:
        raise ValueError(
            f"when 1d, distances must match the length of the corresponding dimension: {len(h)} and {length}"
        )
    points = as_handle(h)
    gaps = histograms.diff(points.astype(np.float64) if h.dtype.kind in "iu" else points)
    return gaps[0] if len(gaps) and reductions.all(gaps == gaps[0]) else gaps


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
    return manipulation.concatenate([head, inner, tail], axis)


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
    step = histograms.diff(p, axis=where_axis)
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
    tail = p[(*before, slice(1, None))] + reductions.cumsum(correction, where_axis)
    return manipulation.concatenate([head, tail.astype(kind)], where_axis)


# --- windows ---------------------------------------------------------------------------------------


def _length(M: Any) -> Any:
    """A window's length as a float, double or longer: its type is the window's."""
    return np.array([0.0, M._force() if isinstance(M, Handle) else M])[1]


def _steps(M: Any) -> ndarray:
    """The index of a window, from 1 - M to M - 1 by twos."""
    return creation.arange(1 - M, M, 2, dtype=M.dtype)


def _cosine(M: Any, *weights: float) -> ndarray:
    """A sum of cosines over a window."""
    M = _length(M)
    if M < 1:
        return creation.zeros(0, M.dtype)
    if M == 1:
        return creation.ones(1, M.dtype)
    n = _steps(M)
    total = weights[0] + weights[1] * ufuncs.cos(np.pi * n / (M - 1))
    if len(weights) == 3:
        total = total + weights[2] * ufuncs.cos(2.0 * np.pi * n / (M - 1))
    return total  # type: ignore[no-any-return]


def hanning(M: Any) -> ndarray:
    """The Hann window."""
    return _cosine(M, 0.5, 0.5)


def hamming(M: Any) -> ndarray:
    """The Hamming window."""
    return _cosine(M, 0.54, 0.46)


def blackman(M: Any) -> ndarray:
    """The Blackman window."""
    return _cosine(M, 0.42, 0.5, 0.08)


def bartlett(M: Any) -> ndarray:
    """The triangular window."""
    M = _length(M)
    if M < 1:
        return creation.zeros(0, M.dtype)
    if M == 1:
        return creation.ones(1, M.dtype)
    n = _steps(M)
    return where(ufuncs.less_equal(n, 0), 1 + n / (M - 1), 1 - n / (M - 1))  # type: ignore[no-any-return]


def kaiser(M: Any, beta: float) -> ndarray:
    """The Kaiser window, made of Bessel functions."""
    M = _length(M)
    if M == 1:
        return creation.ones(1, M.dtype)
    n = creation.arange(0, M, dtype=M.dtype)
    alpha = (M - 1) / 2.0
    return i0(beta * ufuncs.sqrt(1 - ((n - alpha) / alpha) ** 2.0)) / np.i0(beta)


__all__ = ["bartlett", "blackman", "gradient", "hamming", "hanning", "kaiser", "unwrap"]
