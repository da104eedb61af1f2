"""Progressions between arrays that are not here, or too large for NumPy to take them whole."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

KINDS: dict[str, Any] = {
    "double": lambda x: x,
    "single": lambda x: x.astype("f4"),
    "integer": lambda x: (x * 10).astype(int) + 1,
    "complex": lambda x: x + 1j * x[..., ::-1],
    "negative": lambda x: -x,
}


def _ends(kind: str, shape: Any) -> Any:
    return KINDS[kind](numpy.random.default_rng(0).random((*shape, 4)) * 5 + 0.5)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.some(60)
@pytest.mark.parametrize("name", ["linspace", "geomspace", "logspace"])
@pytest.mark.parametrize("num", [0, 1, 2, 5])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("low", KINDS)
@pytest.mark.parametrize("high", KINDS)
@pytest.mark.parametrize("dtype", [None, "f4"])
def test_between_arrays(name: str, num: int, endpoint: bool, low: str, high: str, dtype: Any) -> None:
    for rows, axis in (((3,), 0), ((), -1)):
        a, b = _ends(low, (3,)), _ends(high, rows)
        with numpy.errstate(all="ignore"):
            expected = getattr(numpy, name)(a, b, num, endpoint, dtype=dtype, axis=axis)
            with config.override(small_bytes=0):
                found = getattr(np, name)(np.asarray(a), np.asarray(b), num, endpoint, dtype=dtype, axis=axis)
                seen = numpy.asarray(found)
        assert seen.dtype == expected.dtype
        numpy.testing.assert_allclose(seen, expected, rtol=1e-5, atol=1e-6)


def test_a_geometric_progression_has_no_zero() -> None:
    with config.override(small_bytes=0):
        x = np.arange(5.0)
        with pytest.raises(ValueError, match="cannot include zero"):
            np.geomspace(x, 3)
        with pytest.raises(ValueError, match="cannot include zero"):
            np.geomspace(3, x)


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("kind", ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_ranges_up_to_sums(kind: str) -> None:
    """Numbers of every class that a fold has."""
    for few in ([], [0], [1], [1, 3]):
        found, expected = (xp.arange(xp.array(few, kind).sum()) for xp in (np, numpy))
        assert found.dtype == expected.dtype
        numpy.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_powers_of_complex_numbers_have_numpys_zeros(small: int) -> None:
    """They are products there: zeros have other signs in powers."""
    x = numpy.array([2, -1, 1, -1j, 0, -2 + 0.0j])
    with config.override(small_bytes=small):
        found = np.vander(np.asarray(x), 5)
    numpy.testing.assert_array_equal(found, numpy.vander(x, 5))
    if small:
        assert numpy.asarray(found).tobytes() == numpy.vander(x, 5).tobytes()
