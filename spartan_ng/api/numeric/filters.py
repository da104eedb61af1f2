"""Convolutions, correlations of sequences, and piecewise linear functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import joining, reductions
from spartan_ng.api.core.conversion import as_handle, values
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.kinds import NUMBER_KINDS
from spartan_ng.api.core.operands import converted, small_values
from spartan_ng.api.core.wrapping import wrap, wrap_node
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.errors import ShapeError
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


_TAPS = 512
"""A filter up to so long slides as shifted multiples; each piece of a signal meets a longer one whole."""


def _convolved(extents: Any, tiles: Any) -> Any:
    """A piece of a signal against the whole filter: pieces overlap, and overlaps add up."""
    return (extents[0][0][0],), np.convolve(tiles[0], tiles[1])


_CONVOLVED = UserFunction(_convolved, origin="convolve")


@numpy_function(np.convolve, whole=True)
def convolve(a: Any, v: Any, mode: str = "full") -> ndarray:
    """The discrete convolution of two 1-d arrays; a short one slides over a long one in pieces."""
    a, v = (_lines(o, "convolve") for o in (a, v))
    if _are_others(a, v):
        return by_numpy(np.convolve, a, v, mode)  # type: ignore[no-any-return]
    if not (a.size and v.size):
        raise ValueError(
            f"convolve: {'v' if a.size else 'a'} cannot be empty (shapes {a.shape} and {v.shape})"
        )
    if v.size > a.size:
        a, v = v, a
    if mode is None:
        raise TypeError("convolve() mode must be a string or an integer, not None")
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)  # type: ignore[call-overload]
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    kind = np.result_type(a.dtype, v.dtype)
    with np.errstate(all="ignore"):  # NumPy's loops tell nobody
        if kind.type is not np.float16:
            return _convolution(a, v, mode)
        found = _convolution(a.astype(np.float32), v.astype(np.float32), mode)
        return found.astype(kind)  # NumPy rounds the sum alone


def _convolution(a: ndarray, v: ndarray, mode: str) -> ndarray:
    """The convolution of numbers, of which `v` are not more than `a`."""
    n, m = a.size, v.size
    cut = {"full": (0, n + m - 1), "same": ((m - 1) // 2, (m - 1) // 2 + n), "valid": (m - 1, n)}[mode]
    if m > _TAPS:
        kind = np.result_type(a.dtype, v.dtype)
        nodes = [build.cast(a._node(), kind), build.cast(v._node(), kind)]
        whole = build.join_update(_CONVOLVED, nodes, (0, -1), (n + m - 1,), kind)
        return wrap_node(whole)[cut[0] : cut[1]].copy()  # type: ignore[no-any-return]
    found = _slid(a, v)
    if m > 1 and mode != "valid":
        before = _margin(a[: m - 1], v[:-1])[cut[0] :]
        after = _margin(a[::-1][: m - 1], v[::-1][:-1])[::-1][: cut[1] - n]
        found = joining.concatenate([before, found, after])
    return found + 0.0 if found.dtype.kind in "fc" else found  # NumPy adds to zeros: -0.0 becomes 0.0


def _slid(a: ndarray, v: ndarray) -> ndarray:
    """The convolution where the whole filter meets the signal: its shifted multiples, added up."""
    m, out = v.size, None
    for j in range(m):
        part = a[m - 1 - j : a.size - j] * v[j]
        out = part if out is None else out + part
    return out  # type: ignore[return-value]


def _margin(a: ndarray, v: ndarray) -> ndarray:
    """The first elements of a convolution of two equally long arrays: the filter has not come in wholly.

    Nothing is multiplied by what is beyond the signal: zeros there would make NaN of a filter's infinities.
    """
    places = np.arange(v.size)
    back = places[:, None] - places
    products = a[np.maximum(back, 0)] * v
    return reductions.reduce("add", products, 1, products.dtype, where=back >= 0)


@numpy_function(np.correlate, whole=True)
def correlate(a: Any, v: Any, mode: str = "valid") -> ndarray:
    """The cross-correlation of two 1-d arrays."""
    a, v = (_lines(o, "correlate", 1) for o in (a, v))
    if _are_others(a, v):
        return by_numpy(np.correlate, a, v, mode)  # type: ignore[no-any-return]
    taps = (ufuncs.conjugate(v) if v.dtype.kind == "c" else v)[::-1]
    if v.size > a.size and mode == "same":  # an even number of taps leans to the other side
        return convolve(a, taps)[a.size // 2 : a.size // 2 + v.size].copy()  # type: ignore[no-any-return]
    return convolve(a, taps, mode)


def _are_others(a: ndarray, v: ndarray) -> bool:
    """Whether operands are neither numbers nor objects: NumPy has its own word for each kind of them."""
    return any(x.dtype.kind not in NUMBER_KINDS and not x.dtype.hasobject for x in (a, v))


def _lines(operand: Any, name: str, least: int = 0) -> ndarray:
    """An operand with one axis; where so many are enough, one without axes as a line of one element."""
    a = as_handle(operand)
    if not least <= a.ndim <= 1:
        raise ShapeError(f"{name}: an operand has shape {a.shape}, not one axis")
    return a.reshape(-1)


@numpy_function(np.interp, whole=True)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> ndarray:
    """Piecewise linear interpolation through given points, which stay on the driver."""
    # What comes again NumPy casts by force.
    xp = as_handle(xp) if period is None else converted(xp, np.float64, "unsafe")
    knots, heights = values(xp, as_handle(fp))
    x = converted(x, np.float64, "safe" if period is None else "unsafe")
    if knots.shape != heights.shape or knots.ndim != 1 or not knots.size:
        raise ShapeError(
            f"interp: fp and xp are not of the same length, 1-d and not empty: {heights.shape}, {knots.shape}"
        )
    known = small_values((x,))
    if known is not None:
        return wrap(np.interp(known[0], knots, heights, left, right, period))
    knots, heights = np.array(knots), np.array(heights)  # as they are now
    kind = np.interp(np.empty(0), knots, heights, left, right, period).dtype  # or what NumPy says of them

    def line(block: Any) -> Any:
        return np.interp(block, knots, heights, left, right, period)

    return wrap_node(build.map_(UserFunction(line, origin="interp"), x._node(), dtype=kind))


__all__ = [
    "convolve",
    "correlate",
    "interp",
]
