"""Margins have the dtype of the array, with its order of bytes."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.graph.node import topological
from tests.sampling import examples

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


SIDES = st.integers(0, 7)
REPEATING = ["edge", "wrap", "reflect", "symmetric"]


@examples(120)
@given(
    st.lists(st.tuples(st.integers(1, 5), SIDES, SIDES), min_size=1, max_size=3),
    st.sampled_from(REPEATING),
    st.sampled_from(["f8", "i2", "U3", "?"]),
)
def test_margins_are_shorter_and_longer_than_the_array(
    axes: list[tuple[int, int, int]], mode: Any, dtype: str
) -> None:
    shape, widths = [n for n, _, _ in axes], [(lo, hi) for _, lo, hi in axes]
    value = (numpy.arange(numpy.prod(shape)) % 251).reshape(shape).astype(dtype)
    expected = numpy.pad(value, widths, mode=mode)
    with config.override(small_bytes=0):
        given = np.array(value)
        found = np.pad(given, widths, mode=mode)
        assert found.dtype == expected.dtype
        assert numpy.array_equal(found.compute(), expected)
        assert numpy.array_equal(given.compute(), value)


@pytest.mark.parametrize("mode", REPEATING)
def test_short_margins_are_parts_and_no_elements_are_looked_up(mode: Any) -> None:
    with config.override(small_bytes=0):
        found = np.pad(np.array(numpy.ones((30, 40))), 3, mode=mode)
        assert not [n for n in topological([found._node()]) if n.fn == "take"]
