"""Gradients, polynomials, windows and functions of lines against NumPy."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

X = numpy.random.default_rng(3).random((5, 6))
UNEVEN = numpy.array([0.0, 1, 3, 4, 7, 9])

CASES = {
    "gradient": lambda np, x: np.gradient(x)[1],
    "gradient line": lambda np, x: np.gradient(x[0], 0.5),
    "gradient axis": lambda np, x: np.gradient(x, axis=0, edge_order=2),
    "gradient uneven": lambda np, x: np.gradient(x, UNEVEN, axis=1),
    "gradient uneven 2": lambda np, x: np.gradient(x, UNEVEN, axis=-1, edge_order=2),
    "gradient both": lambda np, x: np.gradient(x, 2.0, UNEVEN)[0],
    "gradient int": lambda np, x: np.gradient((x * 9).astype(int), axis=1),
    "polyval": lambda np, x: np.polyval([1.0, -2.0, 3.0], x),
    "i0": lambda np, x: np.i0(x),
    "apply_along_axis": lambda np, x: np.apply_along_axis(numpy.cumsum, 0, x),
    "apply_along_axis scalar": lambda np, x: np.apply_along_axis(numpy.median, 1, x),
    "apply_along_axis longer": lambda np, x: np.apply_along_axis(lambda v, k: numpy.tile(v, k), 1, x, 2),
    "apply_along_axis matrix": lambda np, x: np.apply_along_axis(lambda v: numpy.outer(v, v), 0, x),
    "hanning": lambda np, x: np.hanning(7),
    "hamming": lambda np, x: np.hamming(1),
    "blackman": lambda np, x: np.blackman(8),
    "bartlett": lambda np, x: np.bartlett(9),
    "no window": lambda np, x: np.bartlett(0),
}


@pytest.mark.parametrize("name", CASES)
def test_against_numpy(mode, name):
    got, wanted = CASES[name](np, np.array(X)), CASES[name](numpy, X)
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    numpy.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-14)


def test_errors(mode):
    with pytest.raises(ValueError, match=r"too small.*\(1,\)"):
        np.gradient(np.ones(1))
    with pytest.raises(TypeError, match="number of arguments"):
        np.gradient(np.ones((3, 3)), 1.0, 2.0, 3.0)
    with pytest.raises(np.exceptions.AxisError):
        np.apply_along_axis(numpy.sum, 2, np.ones((3, 3)))
