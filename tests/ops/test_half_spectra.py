"""Transforms to half a spectrum, as functions of whole lines: NumPy's numbers bit by bit, written where they
belong, and zeros behind them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from spartan_ng.ops.joins import AXIS_FUNCTIONS

SHAPES = [(1,), (2,), (7,), (8, 3), (3, 8), (5, 7, 4), (4, 1), (130, 50)]
DTYPES = ["?", "i1", "i8", "u8", "f2", "f4", "f8", "g", ">f4", ">f8"]


@pytest.mark.parametrize("name", ["rfft", "ihfft"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_half_a_spectrum_is_numpys(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    for shape in SHAPES:
        x: Any = random.integers(0, 9, shape).astype(dtype)
        for axis in range(len(shape)):
            for norm in (None, "ortho", "forward"):
                for value in (x, np.asfortranarray(x)):
                    wanted = getattr(np.fft, name)(value, axis=axis, norm=norm)
                    found = AXIS_FUNCTIONS[f"fft.{name}"].function(value, axis, norm=norm)
                    half, rest = np.split(found, [shape[axis] // 2 + 1], axis)
                    assert half.dtype == wanted.dtype
                    np.testing.assert_array_equal(half, wanted)
                    assert not rest.any()
                    assert found.shape == shape


def test_no_copy_of_it_is_made() -> None:
    x = np.random.default_rng(0).random((2000, 100))
    tracemalloc.start()
    found = AXIS_FUNCTIONS["fft.rfft"].function(x, 1)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < found.nbytes * 1.2
