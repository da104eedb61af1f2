"""Margins have the dtype of the array, with its order of bytes."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

MODES = ["constant", "edge", "wrap", "reflect", "symmetric", "mean", "maximum", "linear_ramp"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [">f8", ">i4", ">c16", "<u2", ">f4"])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
def test_the_order_of_bytes_is_the_arrays(mode: Any, dtype: str, small_bytes: int) -> None:
    value = numpy.arange(12).reshape(3, 4).astype(dtype)
    with config.override(small_bytes=small_bytes):
        for width in (1, ((0, 0), (2, 1)), 0):
            expected = numpy.pad(value, width, mode=mode)
            found = np.pad(np.array(value), width, mode=mode)
            assert found.dtype == expected.dtype == value.dtype
            numpy.testing.assert_array_equal(found.compute(), expected)
