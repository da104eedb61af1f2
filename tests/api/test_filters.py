"""Convolutions and correlations against NumPy, where elements are infinite or not a number, too."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

RNG = numpy.random.default_rng(8)
LENGTHS = ((1, 1), (6, 2), (6, 3), (3, 6), (5, 5), (1, 4), (30, 12), (1300, 600))
KINDS = ("dd", "fd", "DD", "if", "di", "??", "bB", "ee")
ODD = (numpy.inf, -numpy.inf, numpy.nan)


def line(dtype: str, n: int, odd: bool) -> numpy.ndarray:
    """Small whole numbers, whose sums are exact, and perhaps one that is not finite."""
    x = RNG.integers(0, 5, n).astype(dtype)
    if odd and x.dtype.kind in "fc":
        x[RNG.integers(n)] = RNG.choice(ODD)
    return x


@pytest.mark.some(8)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("odd", ["", "a", "v", "av"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_every_length_and_dtype(mode, name, odd):
    for n, m in LENGTHS:
        for first, second in RNG.choice(KINDS, 2, replace=False):
            a, v = line(first, n, "a" in odd), line(second, m, "v" in odd)
            for how in ("full", "same", "valid"):
                wanted = getattr(numpy, name)(a, v, how)
                got = getattr(np, name)(np.asarray(a), np.asarray(v), how)
                assert got.dtype == wanted.dtype
                numpy.testing.assert_array_equal(got.compute(), wanted, f"{n} {m} {how} {a} {v}")


@pytest.mark.filterwarnings("ignore")
def test_a_filter_that_is_not_computed_yet(mode):
    steps = numpy.array([-3, 4, 9, -1, 16], "i2")
    for how in ("full", "same", "valid"):
        wanted = numpy.convolve(numpy.sqrt(steps), numpy.sqrt(steps), how)
        lazy = np.sqrt(np.asarray(steps))
        numpy.testing.assert_allclose(np.convolve(lazy, lazy, how).compute(), wanted, rtol=1e-6)
