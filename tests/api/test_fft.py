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


def padded(x: numpy.ndarray, n: int, axis: int) -> numpy.ndarray:
    wide = [(0, n - x.shape[axis] if a == axis else 0) for a in range(x.ndim)]
    return numpy.pad(x, wide)


@pytest.mark.parametrize("kind", ["i2", "f4", "f8", ">f8", "c16"])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_lines_become_longer_or_shorter(mode, name, axis, kind):
    """Whatever is fused before and behind, of turned arrays and parts, too."""
    x = (X * 9).astype(kind)
    if kind == "c16" and name in ("rfft", "ihfft"):
        pytest.skip("of real numbers")
    for n in (None, 1, 2, 5, 8, 11):
        for norm in (None, "ortho"):
            mine, theirs = (
                getattr(m.fft, name)(a * 2, n, axis, norm) for m, a in ((np, np.array(x)), (numpy, x))
            )
            assert mine.dtype == theirs.dtype
            close = 1e-4 if kind == "f4" else 1e-9
            for way in (lambda a: (a + 1)[::-1, 1:], lambda a: a.T, lambda a: a.sum(axis=axis)):
                numpy.testing.assert_allclose(way(mine).compute(), way(theirs), rtol=close, atol=close)


def test_no_more_is_made_than_half_a_spectrum_nor_are_lines_filled_up_first(tmp_path):
    numpy.save(tmp_path / "x.npy", numpy.zeros((40, 1000)))
    with np.config.override(small_bytes=0):
        x = np.load(tmp_path / "x.npy")
        for made, length in (
            (np.fft.rfft(x), 501),
            (np.fft.ihfft(x.T, axis=0), 501),
            (np.fft.fft(x, 2048), 2048),
            (np.fft.irfft(np.fft.rfft(x), 4000), 4000),
            (abs(np.fft.rfft(x, axis=1)).sum(axis=0), 501),
        ):
            made_slots = [s for s in np.explain(made).slots if s.role != "input"]
            assert max(s.nbytes for s in made_slots) <= 16 * 40 * length, made_slots
