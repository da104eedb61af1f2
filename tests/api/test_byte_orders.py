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


@pytest.mark.some(40)
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


CONVERSIONS = {
    "itself": lambda xp, a: a,
    "copy": lambda xp, a: a.copy(),
    "tril": lambda xp, a: xp.tril(a) if a.ndim else a,
    "triu": lambda xp, a: xp.triu(a) if a.ndim else a,
    "view": lambda xp, a: a.view(),
    "whole": lambda xp, a: a[...],
    "reshape": lambda xp, a: a.reshape(a.shape),
    "transpose": lambda xp, a: a.T,
    "squeeze": lambda xp, a: a.reshape((1, *a.shape)).squeeze(0),
    "array": lambda xp, a: xp.array(a),
    "asarray of a kind": lambda xp, a: xp.asarray(a, dtype=">i4"),
    "to narrower": lambda xp, a: a.astype(">f4"),
    "to complex": lambda xp, a: a.astype(">c16"),
    "to native": lambda xp, a: a.astype("=f8"),
    "real": lambda xp, a: a.real,
    "imag": lambda xp, a: a.imag,
    "a part, written": lambda xp, a: _written_part(a.copy()),
    "empty_like": lambda xp, a: xp.zeros_like(a),
    "full": lambda xp, a: xp.full(a.shape, 3, a.dtype),
    "broadcast": lambda xp, a: xp.broadcast_to(a, a.shape),
    "where": lambda xp, a: xp.where(xp.ones(a.shape, bool), a, a),
    "clip": lambda xp, a: a.clip(-1, a),
    "out": lambda xp, a: xp.add(a, 1, out=a.copy()),
    "written": lambda xp, a: _written(a.copy()),
}


def _written_part(a):
    a.real[...] = 7
    return a


def _written(a):
    a[...] = 7
    return a


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.some(60)
@pytest.mark.parametrize("dtype", [">f8", ">i8", "<u2", ">c8"])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_arrays_keep_their_order_whether_they_have_axes_or_not(dtype, shape, small_bytes, name):
    values = numpy.arange(1, 1 + numpy.prod(shape, dtype=int)).reshape(shape)
    convert = CONVERSIONS[name]
    with np.config.override(small_bytes=small_bytes):
        expected = convert(numpy, values.astype(dtype))
        found = convert(np, np.array(values).astype(dtype))
        assert found.dtype.str == expected.dtype.str
        assert found.shape == expected.shape
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)
