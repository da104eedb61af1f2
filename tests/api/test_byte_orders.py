"""Numbers of arrays of the other byte order are the machine's, as NumPy's elements are."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np

NUMBERS = {
    "an element": lambda xp, a: a[1, 1],
    "the only element": lambda xp, a: a[1:2, 1:2].sum(),
    "max": lambda xp, a: a.max(),
    "sum": lambda xp, a: a.sum(),
    "mean": lambda xp, a: a.mean(),
    "median": lambda xp, a: xp.median(a.real),
    "sorted": lambda xp, a: xp.sort(a, axis=None)[2],
    "take": lambda xp, a: xp.take(a, 3),
    "roll": lambda xp, a: xp.roll(a, 1)[0, 0],
    "masked max": lambda xp, a: xp.max(a.real, where=a.real > 2, initial=0),
    "argmax": lambda xp, a: a.argmax(),
}


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">i8", ">u4", ">c16", "<f4", "<i8"])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_the_machines_order(dtype, small_bytes, name):
    values = numpy.arange(1, 7).reshape(2, 3)
    with np.config.override(small_bytes=small_bytes):
        found = NUMBERS[name](np, np.array(values).astype(dtype))
        expected = NUMBERS[name](numpy, values.astype(dtype))
        assert found.dtype.str == expected.dtype.str
        assert found == expected
