"""Windows for signals: cosines, triangles and Bessel functions over a range."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from spartan_ng.api.base import constants, creation
from spartan_ng.api.core.conversion import forced
from spartan_ng.api.core.quick import AS_SHAPE, shortened
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.api.elementwise.logic import i0, where

if TYPE_CHECKING:
    from spartan_ng.api.ndarray.array import ndarray


def _length(M: Any) -> Any:
    """A window's length as a float, double or longer: its type is the window's."""
    return np.array([0.0, forced(M)])[1]


def _window(M: Any, made: Callable[[Any, ndarray], Any]) -> ndarray:
    """What is made of a window's length and its indices, from 1 - M to M - 1 by twos; 1 for a single one."""
    M = _length(M)
    if M < 1:
        return constants.zeros(0, M.dtype)
    if M == 1:
        return constants.ones(1, M.dtype)
    return made(M, creation.arange(1 - M, M, 2, dtype=M.dtype))  # type: ignore[no-any-return]


def _cosines(*weights: float) -> Callable[[Any, ndarray], Any]:
    """A sum of cosines of one more half-wave each."""

    def made(M: Any, n: ndarray) -> Any:
        total: Any = weights[0]
        for k, weight in enumerate(weights[1:], 1):
            total = total + weight * ufuncs.cos(k * np.pi * n / (M - 1))
        return total

    return made


@shortened(np.hanning, 1, AS_SHAPE)
def hanning(M: Any) -> ndarray:
    """The Hann window."""
    return _window(M, _cosines(0.5, 0.5))


@shortened(np.hamming, 1, AS_SHAPE)
def hamming(M: Any) -> ndarray:
    """The Hamming window."""
    return _window(M, _cosines(0.54, 0.46))


@shortened(np.blackman, 1, AS_SHAPE)
def blackman(M: Any) -> ndarray:
    """The Blackman window."""
    return _window(M, _cosines(0.42, 0.5, 0.08))


@shortened(np.bartlett, 1, AS_SHAPE)
def bartlett(M: Any) -> ndarray:
    """The triangular window."""
    return _window(M, lambda M, n: where(ufuncs.less_equal(n, 0), 1 + n / (M - 1), 1 - n / (M - 1)))


@shortened(np.kaiser, 2, AS_SHAPE)
def kaiser(M: Any, beta: float) -> ndarray:
    """The Kaiser window, made of Bessel functions."""
    M = _length(M)
    if M == 1:
        return constants.ones(1, M.dtype)
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
