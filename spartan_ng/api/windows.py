"""Windows for signals: cosines, triangles and Bessel functions over a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api import creation, ufuncs
from spartan_ng.api.handle import forced
from spartan_ng.api.logic import i0, where

if TYPE_CHECKING:
    from spartan_ng.api.array import ndarray


def _length(M: Any) -> Any:
    """A window's length as a float, double or longer: its type is the window's."""
    return np.array([0.0, forced(M)])[1]


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


__all__ = [
    "bartlett",
    "blackman",
    "hamming",
    "hanning",
    "kaiser",
]
