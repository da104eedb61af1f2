"""Random indexing expressions, read and written, against NumPy."""

from __future__ import annotations

from itertools import product

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import spartan_ng as np
from spartan_ng.config import config
from tests.sampling import examples

SETTINGS = examples(150)


@st.composite
def keys(draw, shape):
    """A key of slices, integers, None, an ellipsis, integer arrays and masks, for `shape`."""
    parts = []
    axis = 0
    broadcast = draw(st.sampled_from([(), (3,), (2, 1), (1, 3), (2, 3)]))
    dots = False
    while axis < len(shape):
        n = shape[axis]
        kind = draw(st.sampled_from(["slice", "int", "array", "mask", "none", "dots", "stop"]))
        if kind == "slice":
            parts.append(draw(st.slices(n)))
            axis += 1
        elif kind == "int" and n:
            parts.append(draw(st.integers(-n, n - 1)))
            axis += 1
        elif kind == "array" and n:
            parts.append(draw(hnp.arrays(numpy.int64, broadcast, elements=st.integers(-n, n - 1))))
            axis += 1
        elif kind == "mask":
            size = draw(st.integers(1, len(shape) - axis))
            mask = draw(hnp.arrays(bool, shape[axis : axis + size]))
            parts.append(mask)
            axis += size
        elif kind == "none":
            parts.append(None)
        elif kind == "dots" and not dots:
            parts.append(Ellipsis)
            dots = True
            axis += draw(st.integers(0, len(shape) - axis))
            continue
        elif kind == "stop":
            break
    return tuple(parts)


def _lazy(k):
    """An index array as the result of an operation."""
    if not isinstance(k, numpy.ndarray):
        return k
    return np.asarray(k) & True if k.dtype == bool else np.asarray(k) + 0


def both(shape):
    theirs = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) * 2
    return np.array(theirs), theirs.copy()


@given(
    data=st.data(), shape=st.sampled_from([(4,), (3, 4), (2, 3, 4), (2, 1, 3, 2), (0, 3)]), lazy=st.booleans()
)
@SETTINGS
def test_reading(mode, data, shape, lazy):
    ours, theirs = both(shape)
    key = data.draw(keys(shape))
    wrapped = tuple(_lazy(k) if lazy else k for k in key)
    try:
        wanted = theirs[key]
    except IndexError:
        with pytest.raises(IndexError):
            np.compute(ours[wrapped])
        return
    got = ours[wrapped]
    assert got.shape == numpy.shape(wanted)
    numpy.testing.assert_array_equal(got, wanted)


@given(data=st.data(), shape=st.sampled_from([(4,), (3, 4), (2, 3, 4), (2, 1, 3, 2)]), scalar=st.booleans())
@SETTINGS
def test_writing(mode, data, shape, scalar):
    ours, theirs = both(shape)
    key = data.draw(keys(shape))
    try:
        selected = theirs[key]
    except IndexError:
        with pytest.raises(IndexError):
            ours[key] = 1
        return
    value = -1 if scalar else -numpy.arange(1, numpy.size(selected) + 1).reshape(numpy.shape(selected))
    theirs[key] = value
    ours[key] = value
    numpy.testing.assert_array_equal(ours.compute(), theirs)


def test_a_read_element_is_a_snapshot_and_a_row_is_a_view(mode):
    a = np.arange(6).reshape(2, 3)
    element, row = a[0, 1], a[0]
    a[0, 1] = 50
    assert element == 1
    assert row.tolist() == [0, 50, 2]
    element += 1
    assert a[0, 1] == 50


def test_masked_folds_never_bring_elements_together(mode):
    x = np.arange(10.0)
    kept = x[x > 4]
    assert float(kept.sum()) == 35
    assert float(kept.mean()) == 7
    assert float((kept * 2).max()) == 18
    assert float(kept.min()) == 5
    assert bool((kept > 4).all())
    assert float(kept.var()) == numpy.arange(5.0, 10).var()
    assert kept.shape == (5,)
    if mode == "lazy":
        assert x[x > 4]._masked() is not None
        assert ((x[x > 4]) + 1)._masked() is None or True


def test_a_filter_stays_a_filter_through_maps():
    from spartan_ng.config import config

    with config.override(small_bytes=0):
        x = np.arange(10.0)
        mask = x > 4
        assert (x[mask] * 2 + x[mask])._masked() is not None
        assert (x[mask] * 2).sum()._node().op.value == "fold"
        with pytest.raises(ValueError, match="zero-size array"):
            x[x > 100].min()
        assert float(x[x > 100].sum()) == 0


def test_rows_by_a_mask(mode):
    x = np.arange(12.0).reshape(4, 3)
    rows = np.asarray([True, False, True, True])
    wanted = numpy.arange(12.0).reshape(4, 3)[[0, 2, 3]]
    numpy.testing.assert_array_equal(x[rows].sum(axis=0).compute(), wanted.sum(0))
    numpy.testing.assert_array_equal(x[rows].sum(axis=1).compute(), wanted.sum(1))
    numpy.testing.assert_array_equal(
        x[rows].mean(axis=0, keepdims=True).compute(), wanted.mean(0, keepdims=True)
    )
    numpy.testing.assert_array_equal(x[rows].compute(), wanted)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ((0, -5), "index -5 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), "too many indices for array: array is 2-dimensional, but 3 were indexed"),
        ((Ellipsis, Ellipsis), "an index can only have a single ellipsis"),
        ([0, 3], "index 3 is out of bounds for axis 0 with size 3"),
        (1.5, "only integers, slices"),
        ([1.5], "arrays used as indices must be of integer"),
        (([0, 1], [0, 1, 2]), "shape mismatch: indexing arrays could not be broadcast together"),
        (numpy.ones((3, 3), bool), "boolean index did not match indexed array along axis 1"),
    ],
)
def test_errors_come_at_the_call(mode, key, message):
    a = np.arange(12).reshape(3, 4)
    with pytest.raises(IndexError, match=message.replace("(", r"\(").replace(")", r"\)")):
        a[key]
    with pytest.raises(IndexError):
        a[key] = 0


def test_shape_errors_of_assignments(mode):
    a = np.zeros((3, 4))
    for key, value in [(0, [1, 2]), ((slice(None), 0), [1, 2]), ([0, 1], numpy.ones((3, 4)))]:
        with pytest.raises(ValueError, match="broadcast"):
            a[key] = value
    with pytest.raises(ValueError, match="mask is true"):
        a[a == 0] = [1, 2]


def test_aliased_updates(mode):
    ours, theirs = np.arange(6.0), numpy.arange(6.0)
    ours[1:] += ours[:-1]
    theirs[1:] += theirs[:-1]
    numpy.testing.assert_array_equal(ours.compute(), theirs)
    ours[::-1] = ours
    theirs[::-1] = theirs.copy()
    numpy.testing.assert_array_equal(ours.compute(), theirs)


def test_last_write_to_an_element_wins(mode):
    a = np.zeros(3)
    a[[0, 0, 1]] = [1, 2, 3]
    assert a.tolist() == [2, 3, 0]
    np.add.at(a, [0, 0, 2], 1)
    assert a.tolist() == [4, 3, 1]


def test_lazy_index_arrays_are_checked(mode):
    a = np.arange(5)
    index = np.asarray([1, 2]) * 3
    with pytest.raises(IndexError, match="index 6 is out of bounds for axis 0 with size 5"):
        a[index]
    assert a[np.asarray([1, 2]) - 3].tolist() == [3, 4]


@pytest.mark.parametrize("name", ["negative", "square", "sqrt"])
@pytest.mark.parametrize("index", [[0, 1, 1, 5, 5, 5], 3, (slice(2, 8),), "lazy"], ids=str)
def test_a_function_of_one_operand_is_applied_as_often_as_its_index_occurs(name, index, mode):
    plain = numpy.random.default_rng(0).integers(0, 20, 50) if index == "lazy" else index
    expected = numpy.arange(20.0) + 1
    found = np.arange(20.0) + 1
    getattr(numpy, name).at(expected, plain)
    getattr(np, name).at(found, np.asarray(plain) + 0 if index == "lazy" else index)
    numpy.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


AT = ["add", "subtract", "multiply", "maximum", "fmin", "ldexp", "less", "logical_or", "power", "left_shift"]
KINDS = ["f8", "f4", "i8", "u1", "?", "M8[s]", "m8[s]"]


@pytest.mark.filterwarnings("ignore:.*is not distributed")
@pytest.mark.some(40)
@pytest.mark.parametrize("name", AT)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["i8", "f8", "?", "m8[s]", "M8[s]"])
def test_updates_of_other_dtypes_are_numpys(name, kind, of, mode):
    """Those of a lazy array, too: some functions take a second operand of another dtype than they give."""
    start = numpy.array([1, 5, 0, 3, 2, 7]).astype(kind)
    updates = numpy.array([2, 3, 1, 0]).astype(of)
    index = [0, 0, 4, 1]
    expected = start.copy()
    found = np.concat([np.asarray(start)[:3], np.asarray(start)[3:]])
    try:
        getattr(numpy, name).at(expected, index, updates)
    except TypeError as error:
        if kind in "?u1" and "casting" in str(error):
            return  # NumPy writes until it raises
        with pytest.raises(TypeError):
            getattr(np, name).at(found, index, updates)
        return
    getattr(np, name).at(found, index, updates)
    assert found.dtype == expected.dtype
    numpy.testing.assert_array_equal(found, expected)


def test_a_text_by_a_lazy_index_is_as_long_as_it_is(mode):
    words, index = np.asarray(["the", "quick"]), np.asarray([3, 5]) - 3
    for found in (words[index[0]], np.take(words, index[0]), words[np.asarray([2, 1]).argmax()]):
        assert type(found) is numpy.str_
        assert str(found) == "the"
        assert found.dtype == "U3"


def test_numbers_that_are_computed_and_plain_ones_are_one_key() -> None:
    """Also where the lazy array that a number is of lies here already, and the number is NumPy's."""
    made = (
        lambda m: m.random.default_rng(0).random((50, 3)),
        lambda m: m.arange(150.0).reshape(50, 3) / 150,
        lambda m: m.sin(m.arange(150.0).reshape(50, 3)) ** 2,
    )
    for found in (
        lambda m, a, p: a[p[3], 0],
        lambda m, a, p: a[p[3], p[4] % 3],
        lambda m, a, p: a[1, p[3] % 3],
        lambda m, a, p: a[p[3]],
        lambda m, a, p: a[[p[3], 2], 1],
        lambda m, a, p: a[p[3], m.newaxis, 1],
    ):
        for integers in (
            lambda m, a: (a[:, 0] * 40).astype(int),
            lambda m, a: m.arange(50)[::-1][m.argsort(a[:, 0])],
        ):
            for small, make in product((0, 64, 1 << 20), made):
                with config.override(small_bytes=small):
                    ours = make(np)
                    answer = numpy.asarray(found(np, ours, integers(np, ours)))
                x = make(numpy)
                numpy.testing.assert_allclose(answer, found(numpy, x, integers(numpy, x)), rtol=1e-14)
