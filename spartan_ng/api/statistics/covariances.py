"""Covariances and correlations: products of what deviates from the mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.algebra import products
from spartan_ng.api.base import joining, manipulation, reductions
from spartan_ng.api.core.conversion import as_handle, values
from spartan_ng.api.core.dispatch import numpy_function
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.elementwise import logic, ufuncs
from spartan_ng.api.statistics.statistics import mean
from spartan_ng.callers import warn_user

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


@numpy_function(np.cov, whole=True)
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> ndarray:
    """The covariance matrix of variables in rows (or in columns)."""
    if ddof is not None and ddof != int(ddof):
        raise ValueError("ddof must be integer")
    x = as_handle(m)
    if x.ndim > 2:
        raise ValueError(f"m has more than 2 dimensions: shape {x.shape}")
    x = manipulation.atleast_2d(x)
    if not rowvar and as_handle(m).ndim != 1:
        x = x.T
    if not x.shape[0]:  # of no variables, NumPy's matrix is one of real numbers, whatever they would be
        return wrap(np.zeros((0, 0)))
    if y is not None:
        other = manipulation.atleast_2d(as_handle(y))
        if not rowvar and other.shape[0] != 1:
            other = other.T
        x = joining.concatenate((x, other), 0)
    kind = np.result_type(x.dtype, np.float64) if dtype is None else np.dtype(dtype)
    if kind.kind not in "fc":
        np.cov(np.ones((2, 2)), dtype=kind)  # NumPy's error, which has nowhere to put the means
    x = x.astype(kind)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights = _observed(fweights, aweights, x.shape[1])
    n: float = x.shape[1] - ddof
    if weights is None:
        x = x - mean(x, 1, None, None, True)
        weighted = x
    else:
        squares = reductions.sum(weights if aweights is None else weights * as_handle(aweights))
        total, excess = map(float, values(reductions.sum(weights), squares))
        if total == 0:
            raise ZeroDivisionError("Weights sum to zero, can't be normalized")
        n = total - ddof * excess / total
        x = x - reductions.sum(x * weights, 1, None, None, True) / total
        weighted = x * weights
    if n <= 0:
        warn_user("Degrees of freedom <= 0 for slice", RuntimeWarning)
        n = 0.0
    other = weighted.T if kind.kind != "c" else ufuncs.conjugate(weighted.T)
    return (products.matmul(x, other) * ufuncs.divide(1, kind.type(n))).squeeze()  # type: ignore[no-any-return]


def _observed(fweights: Any, aweights: Any, n: int) -> ndarray | None:
    """How much each of `n` observations counts, by how often it was made and how far it is trusted."""
    found: Any = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        w = as_handle(given).astype(np.float64)
        if name == "fweights" and reductions.any(w != ufuncs.rint(w)):
            raise TypeError("fweights must be integer")
        if w.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}: shape {w.shape}")
        if w.shape != (n,):
            raise RuntimeError(f"incompatible numbers of samples and {name}: {n} and shape {w.shape}")
        if reductions.any(w < 0):
            raise ValueError(f"{name} cannot be negative")
        found = w if found is None else found * w
    return found  # type: ignore[no-any-return]


@numpy_function(np.corrcoef, whole=True)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> ndarray:
    """The matrix of correlation coefficients."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    spread = ufuncs.sqrt(manipulation.diagonal(c).real)
    return (
        logic.clip(c / spread.reshape(-1, 1) / spread.reshape(1, -1), -1, 1)
        if c.dtype.kind != "c"
        else (c / spread.reshape(-1, 1) / spread.reshape(1, -1))
    )


__all__ = [
    "corrcoef",
    "cov",
]
