"""Fourier transforms and frequencies against NumPy."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

X = numpy.random.default_rng(3).random((4, 6, 5))
Z = X + 1j * X[::-1]

CASES = {
    "fft": lambda np, x, z: np.fft.fft(z),
    "fft first axis": lambda np, x, z: np.fft.fft(x, axis=0),
    "fft longer": lambda np, x, z: np.fft.fft(x, 9, 1, "ortho"),
    "fft float32": lambda np, x, z: np.fft.fft(x.astype("f4")),
    "ifft": lambda np, x, z: np.fft.ifft(z, 3, norm="forward"),
    "rfft": lambda np, x, z: np.fft.rfft(x, axis=1),
    "irfft": lambda np, x, z: np.fft.irfft(z),
    "irfft odd": lambda np, x, z: np.fft.irfft(z, 7, 0),
    "hfft": lambda np, x, z: np.fft.hfft(z),
    "ihfft": lambda np, x, z: np.fft.ihfft(x),
    "fftn": lambda np, x, z: np.fft.fftn(z),
    "fftn some": lambda np, x, z: np.fft.fftn(z, (3, 8), (0, 2)),
    "ifftn": lambda np, x, z: np.fft.ifftn(z, axes=(0, 1)),
    "rfftn": lambda np, x, z: np.fft.rfftn(x),
    "irfftn": lambda np, x, z: np.fft.irfftn(z),
    "irfftn lengths": lambda np, x, z: np.fft.irfftn(z, (4, 7), (0, 1)),
    "fft2": lambda np, x, z: np.fft.fft2(x),
    "irfft2": lambda np, x, z: np.fft.irfft2(z),
    "fftshift": lambda np, x, z: np.fft.fftshift(x),
    "ifftshift": lambda np, x, z: np.fft.ifftshift(x, (1, 2)),
    "fftfreq": lambda np, x, z: np.fft.fftfreq(7, 0.1),
    "rfftfreq": lambda np, x, z: np.fft.rfftfreq(8),
}


@pytest.mark.parametrize("name", CASES)
def test_transforms(mode, name):
    got, wanted = CASES[name](np, np.array(X), np.array(Z)), CASES[name](numpy, X, Z)
    assert got.dtype == wanted.dtype
    numpy.testing.assert_allclose(got.compute(), wanted, rtol=1e-5 if "32" in name else 1e-10, atol=1e-12)


def test_standard_dtype(mode):
    assert np.fft.fftfreq(5, dtype=np.float32).dtype == numpy.float32


def test_errors(mode):
    with pytest.raises(ValueError, match="data points"):
        np.fft.fft(np.array(X), 0)
    with pytest.raises(IndexError):
        np.fft.fft(np.array(X), axis=3)


@pytest.mark.parametrize("stable", [True, False])
def test_descending(mode, stable):
    a = numpy.array([[3, 1, 3, 2], [5, 5, 4, 9]])
    numpy.testing.assert_array_equal(np.sort(np.array(a), descending=True), -numpy.sort(-a))
    wanted = numpy.argsort(-a, stable=True)
    numpy.testing.assert_array_equal(np.argsort(np.array(a), descending=True, stable=stable), wanted)
