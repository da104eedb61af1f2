"""Rows of multivariate normals: independent normals, turned and stretched by a factor of the covariance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.core.conversion import shape_tuple

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def _by_values(cov: Any) -> Any:
    u, s, _ = np.linalg.svd(cov)
    return (u * np.sqrt(s)).T


def _by_vectors(cov: Any) -> Any:
    s, u = np.linalg.eigh(cov)
    return (u * np.sqrt(abs(s))).T


def _by_rows(cov: Any) -> Any:
    _, s, rows = np.linalg.svd(cov)
    return np.sqrt(s)[:, None] * rows


_FACTORS: dict[str, Callable[[Any], Any]] = {
    "svd": _by_values,
    "eigh": _by_vectors,
    "cholesky": lambda cov: np.linalg.cholesky(cov).T,
    "legacy": _by_rows,
}
"""NumPy's, by its methods; legacy generators have one."""


def normal_rows(
    independent: Callable[[Any], ndarray], given: tuple[Any, Any], size: Any, how: str
) -> ndarray:
    """So many rows as NumPy draws them, once it has no objection to the mean and the covariance.

    Parameters
    ----------
    independent : draws standard normals of a shape, as many as NumPy would
    given : the mean and the covariance
    how : the factor that is taken, "svd", "eigh", "cholesky" or "legacy"
    """
    mean, cov = map(np.array, given)
    found: ndarray = independent((*shape_tuple(size), len(mean))) @ _FACTORS[how](cov) + mean
    return found
