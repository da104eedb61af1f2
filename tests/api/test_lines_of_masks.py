"""Lines that a mask keeps: NumPy's, as they lie, of every dtype."""

from __future__ import annotations

import sys

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick

DTYPES = [
    "?",
    "i1",
    "u2",
    "i4",
    "f8",
    "g",
    "c8",
    "G",
    "S3",
    "U2",
    "M8[s]",
    "m8[D]",
    ">i4",
    "O",
    "i4,f8",
    "i2,O",
    "S0",
]


def _array(shape, dtype):
    values = numpy.arange(int(numpy.prod(shape))).reshape(shape)
    if numpy.dtype(dtype).names:
        found = numpy.zeros(shape, dtype)
        found[found.dtype.names[1]] = values
        return found
    return values.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(6, 4), (300, 5), (7, 3, 2), (9, 1), (5, 0), (0, 4), (4, 2, 0, 3), (5000, 3)]
)
@pytest.mark.parametrize("lies", ["C", "F", "every other", "turned"])
def test_lines_are_numpys(dtype, shape, lies):
    x = _array(shape, dtype)
    x = {"C": x, "F": numpy.asfortranarray(x), "every other": numpy.repeat(x, 2, 0)[::2], "turned": x.T}[lies]
    random = numpy.random.default_rng(0)
    a = np.array(x, order="K")
    for share in (0, 0.01, 0.5, 1):
        mask = random.random(len(x)) < share
        expected = x[mask]
        for found in (quick.selected(x, mask), a[mask], a[np.array(mask)]):
            assert found.dtype == expected.dtype
            assert found.shape == expected.shape
            assert found.tolist() == expected.tolist()
            assert found.flags.owndata
        assert quick.selected(x, mask).strides == expected.strides
    with pytest.raises(IndexError):
        a[numpy.ones(len(x) + 1, bool)]


def test_objects_are_counted():
    one = object()
    x = numpy.full((10, 3), one)
    before = sys.getrefcount(one)
    found = quick.selected(x, numpy.arange(10) < 4)
    assert sys.getrefcount(one) == before + 12
    del found
    assert sys.getrefcount(one) == before
