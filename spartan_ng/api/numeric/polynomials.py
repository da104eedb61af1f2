"""Polynomials as arrays of coefficients, the highest power first: NumPy's functions as compositions.

Leading zeros count where NumPy counts them. Roots and least squares are those of linear algebra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import linalg, matrices
from spartan_ng.api.base import constants, creation, joining, manipulation, reductions
from spartan_ng.api.base.stacks import on_stack
from spartan_ng.api.core.conversion import as_handle, forced
from spartan_ng.api.core.dispatch import by_numpy, numpy_function
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.elementwise import logic
from spartan_ng.api.numeric import filters
from spartan_ng.api.places import rearranging
from spartan_ng.callers import warn_user

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def _vector(a: Any) -> ndarray:
    return manipulation.atleast_1d(as_handle(a))  # type: ignore[no-any-return]


def _check_sequence(name: str, a: Any) -> None:
    if np.ndim(a) == 0:  # as NumPy's functions that iterate over what they are given
        raise TypeError(f"{name}: a sequence or an array with an axis is needed, not {a!r}")


def _is_poly1d(*operands: Any) -> bool:
    """Whether NumPy gives an object of its own."""
    return any(isinstance(p, np.poly1d) for p in operands)


def _of_poly1d(function: Any, *operands: Any) -> Any:
    return function(*(forced(p) for p in operands))


@numpy_function(np.poly, eager=True)
def poly(seq_of_zeros: Any) -> Any:
    """The coefficients of the polynomial with given roots, or of a matrix's characteristic one."""
    _check_sequence("poly", seq_of_zeros)
    zeros = _vector(seq_of_zeros)
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1] != 0:
        zeros = linalg.eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError(f"input must be 1d or non-empty square 2d array, not of shape {zeros.shape}")
    if zeros.dtype.kind == "c":  # real where the zeros are pairs
        return by_numpy(np.poly, zeros)
    kind = np.poly(np.ones(1, zeros.dtype)).dtype
    return on_stack("poly", [zeros.reshape(1, -1)], (((zeros.size + 1,), kind),), check=False)[0]


@numpy_function(np.roots, eager=True)
def roots(p: Any) -> Any:
    """The roots, as the eigenvalues of the companion matrix."""
    _check_sequence("roots", p)
    p = _vector(p)
    if p.ndim != 1:
        raise ValueError(f"Input must be a rank-1 array, not of shape {p.shape}")
    first, last = rearranging.nonzero_ends(p)
    if last <= first:
        return constants.zeros(0)
    trailing = p.size - last
    p = p[first:last]
    p = p if p.dtype.kind in "fc" else p.astype(float)
    n = p.size
    if n < 2:
        return constants.zeros(trailing)
    below = matrices.eye(n - 2, n - 1, dtype=p.dtype)
    companion = joining.concatenate([(-p[1:] / p[0]).reshape(1, -1), below])
    found = linalg.eigvals(companion)
    return joining.concatenate([found, constants.zeros(trailing, found.dtype)]) if trailing else found


def _sum(name: str, a1: Any, a2: Any) -> Any:
    """A sum or difference of coefficients, the shorter filled with leading zeros."""
    a, b = _vector(a1), _vector(a2)
    n = max(len(a), len(b))
    a, b = (
        x if len(x) == n else joining.concatenate([constants.zeros(n - len(x), x.dtype), x]) for x in (a, b)
    )
    return a + b if name == "polyadd" else a - b


@numpy_function(np.polyadd, eager=True)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    return _of_poly1d(np.polyadd, a1, a2) if _is_poly1d(a1, a2) else _sum("polyadd", a1, a2)


@numpy_function(np.polysub, eager=True)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    return _of_poly1d(np.polysub, a1, a2) if _is_poly1d(a1, a2) else _sum("polysub", a1, a2)


@numpy_function(np.polymul, eager=True)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials, leading zeros left out."""
    if _is_poly1d(a1, a2):
        return _of_poly1d(np.polymul, a1, a2)
    parts = []
    for p in (_vector(a1), _vector(a2)):
        first, last = rearranging.nonzero_ends(p)
        parts.append(p[first:] if first < last else constants.zeros(1, p.dtype))
    return filters.convolve(parts[0], parts[1])


@numpy_function(np.polydiv, eager=True)
def polydiv(u: Any, v: Any) -> Any:
    """The quotient and the remainder."""
    if _is_poly1d(u, v):
        return _of_poly1d(np.polydiv, u, v)
    a, b = _vector(u), _vector(v)
    if max(a.ndim, b.ndim) > 1 or 0 in (a.size, b.size):  # NumPy refuses most of them
        return by_numpy(np.polydiv, a, b)
    a, b = a + 0.0, b + 0.0
    kind = np.result_type(a.dtype, b.dtype)
    m, n = len(a) - 1, len(b) - 1
    count = max(m - n + 1, 1)
    outputs = (((count,), kind), ((m + 1,), kind))
    q, r = on_stack("polydiv", [a.reshape(1, -1), b.reshape(1, -1)], outputs, check=False)
    # What is left of the remainder begins with its first coefficient that is not almost zero.
    kept = ~logic.isclose(r, 0, rtol=1e-14)
    first = min(int(reductions.argmax(kept)) if bool(kept.any()) else m, m)
    return q, r[first:]


@numpy_function(np.polyder, eager=True)
def polyder(p: Any, m: int = 1) -> Any:
    """The derivative of order `m`."""
    if _is_poly1d(p):
        return np.polyder(p, m)
    if int(m) < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    p = as_handle(p)
    if p.ndim > 1:  # NumPy takes them as far as they broadcast, and by one derivative further
        return by_numpy(np.polyder, p, m)
    for _ in range(int(m)):
        n = len(p) - 1
        p = p[:-1] * creation.arange(n, 0, -1)
    return p


@numpy_function(np.polyint, eager=True)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The antiderivative of order `m`, with integration constants `k`."""
    if _is_poly1d(p):
        return np.polyint(p, m, k)
    m = int(m)
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = np.zeros(m) if k is None else np.atleast_1d(forced(k))
    if len(constants) == 1 and m > 1:
        constants = constants[0] * np.ones(m)
    if len(constants) < m:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    p = as_handle(p)
    for c in constants[:m]:
        p = joining.concatenate([p / creation.arange(len(p), 0, -1), as_handle([c])])
    return p


@numpy_function(np.polyfit, eager=True)
def polyfit(
    x: Any, y: Any, deg: Any, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False
) -> Any:
    """The least squares fit of a polynomial of degree `deg`."""
    x, y = as_handle(x) + 0.0, as_handle(y) + 0.0
    order = int(deg) + 1
    if order < 1:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError(f"expected 1D vector for x, not shape {x.shape}")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if not 1 <= y.ndim <= 2:
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError(f"expected x and y to have same length, not {x.shape[0]} and {y.shape[0]}")
    rcond = len(x) * np.finfo(x.dtype).eps if rcond is None else rcond
    left = matrices.vander(x, order)
    if w is not None:
        weights = as_handle(w) + 0.0
        if weights.ndim != 1 or weights.shape[0] != y.shape[0]:
            raise TypeError(f"expected a 1-d array for weights, as long as y: {weights.shape} and {y.shape}")
        left = left * weights[:, None]
        y = y * (weights[:, None] if y.ndim == 2 else weights)
    scale = ((left * left).sum(axis=0)) ** 0.5
    left = left / scale
    found, residuals, rank, s = linalg.lstsq(left, y, rcond)
    if int(rank) != order and not full:
        warn_user("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    found = (found.T / scale).T
    if full:
        return found, residuals, rank, s, rcond
    if not cov:
        return found
    base = linalg.inv(left.T @ left) / (scale[:, None] * scale)
    factor: Any = 1
    if cov != "unscaled":
        if x.shape[0] <= order:
            raise ValueError("the number of data points must exceed order to scale the covariance matrix")
        factor = residuals / (x.shape[0] - order)
    return found, (base if y.ndim == 1 else base[:, :, None]) * factor


@numpy_function(np.polyval, eager=True)
def polyval(p: Any, x: Any) -> Any:
    """A polynomial's values, its coefficients given from the highest power on."""
    if isinstance(x, np.poly1d):
        return np.polyval(forced(p), x)
    coefficients = p._force() if isinstance(p, Handle) else np.asarray(p)
    x = as_handle(x)
    y = constants.zeros_like(x)
    for c in coefficients:
        y = y * x + c
    return y


__all__ = [
    "poly",
    "polyadd",
    "polyder",
    "polydiv",
    "polyfit",
    "polyint",
    "polymul",
    "polysub",
    "polyval",
    "roots",
]
