"""Indices of arrays without elements, and where indices lie in memory, are NumPy's."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

SHAPES = [shape for n in (1, 2, 3) for shape in product((0, 2, 3), repeat=n) if 0 in shape]
INDICES = [[], [0], [3], [0, 7], [-1]]
MASKS = [[], [True], [False, False, False, False, True], [False], [True, True, True]]


def came(call):
    """The shape of what a call gives, or None for its error."""
    try:
        return call().shape
    except (IndexError, ValueError):
        return None


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "default"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_indices_of_arrays_without_elements(shape, small):
    x = numpy.zeros(shape)
    with config.override(small_bytes=small):
        for axis in range(len(shape)):
            for indices in INDICES:
                wanted = came(lambda i=indices, a=axis: x.take(numpy.array(i, int), a))
                found = came(lambda i=indices, a=axis: np.array(x).take(numpy.array(i, int), a))
                assert found == wanted, (axis, indices)
            for mask in MASKS:
                wanted = came(lambda m=mask, a=axis: x.compress(m, a))
                found = came(lambda m=mask, a=axis: np.array(x).compress(m, a))
                assert found == wanted, (axis, mask)


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "default"])
@pytest.mark.parametrize("shape", list(product((0, 1, 3), repeat=2)), ids=str)
def test_indices_beside_indices_without_elements(shape, small):
    x = numpy.zeros(shape)
    with config.override(small_bytes=small):
        for keys in product([[], [0], [3], [-4], [[0], [7]], 0, 5, slice(None)], repeat=2):
            wanted = came(lambda k=keys: x[tuple(numpy.array(i, int) if type(i) is list else i for i in k)])
            found = came(
                lambda k=keys: np.array(x)[tuple(np.array(i, int) if type(i) is list else i for i in k)]
            )
            assert found == wanted, keys


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "default"])
def test_indices_lie_in_memory_as_numpys_do(small):
    x = numpy.array([[1, 0, 2], [3, 4, 0]])
    with config.override(small_bytes=small):
        found, wanted = np.argwhere(np.array(x)), numpy.argwhere(x)
        lines, numpys = found.ravel(), wanted.ravel()
        found.T[...] = 7
        wanted.T[...] = 7
        numpy.testing.assert_array_equal(lines, numpys)
        assert found.strides == wanted.strides


@pytest.mark.parametrize("other", [True, numpy.True_, 1, numpy.int8(1), numpy.float32(1), 1.0, 1 + 0j])
@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f4", "f8", "c8"])
def test_numbers_are_close_to_every_dtype(dtype, other):
    x = numpy.array([0, 1, 1]).astype(dtype)
    with config.override(small_bytes=0):
        numpy.testing.assert_array_equal(np.isclose(np.array(x), other), numpy.isclose(x, other))


@pytest.mark.parametrize("x", [1.5, 1, True, "a", [1], None])
def test_what_is_no_array_is_not_cast(x):
    kind = AttributeError if numpy.isscalar(x) else TypeError
    for xp in (numpy, np):
        with pytest.raises(kind, match=r"astype|array"):
            xp.astype(x, "f4")


def test_weights_of_no_elements_are_not_added():
    empty, none = numpy.zeros(0), numpy.zeros(0, bool)
    with config.override(small_bytes=0):
        found = np.histogram(np.array(empty), bins=[-3, -1, 4], weights=np.array(none))[0]
    numpy.testing.assert_array_equal(found, numpy.histogram(empty, bins=[-3, -1, 4], weights=none)[0])


@pytest.mark.parametrize("small_bytes", [1 << 20, 0])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (3,)])
@pytest.mark.parametrize("count", [-2, [-1], 0, [2], [], [1, -1]], ids=str)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_nothing_is_repeated_as_numpy_does(small_bytes, shape, count, axis):
    """How often is not asked where there is nothing along the axis: a negative number was an error."""
    with config.override(small_bytes=small_bytes):
        found = came(lambda: np.repeat(np.ones(shape), count, axis=axis))
    assert found == came(lambda: numpy.repeat(numpy.ones(shape), count, axis=axis))
