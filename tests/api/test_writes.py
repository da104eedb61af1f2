"""Writes go to where the array lies, whoever has yet to compute from it."""

from __future__ import annotations

import itertools

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError

ROWS, COLUMNS = 30, 20
LARGE = ROWS * COLUMNS * 8 - 1
"""An array is just too large for NumPy at once, and what is read of it may be."""


def address(a):
    return numpy.asarray(a._peek()).__array_interface__["data"][0]


def whole():
    return numpy.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)


WRITES = {
    "row": lambda xp, a, v: a.__setitem__(3, v[0]),
    "column": lambda xp, a, v: a.__setitem__((slice(None), 2), v[:, 1]),
    "block": lambda xp, a, v: a.__setitem__((slice(2, 9), slice(1, 5)), v[2:9, 1:5]),
    "shifted": lambda xp, a, v: a.__setitem__(slice(1, None), a[:-1] * 2),
    "strided": lambda xp, a, v: a.__setitem__(slice(None, None, -3), 7.0),
    "element": lambda xp, a, v: a.__setitem__((4, 5), v[0, 0]),
    "rows by index": lambda xp, a, v: a.__setitem__([3, 7, 3], v[:3]),
    "rows swapped": lambda xp, a, v: a.__setitem__([1, 4], a[[4, 1]]),
    "in place": lambda xp, a, v: a[2:5].__iadd__(v[2:5]),
    "transposed": lambda xp, a, v: a.T.__setitem__(3, v[0, 0]),
    "mask": lambda xp, a, v: a.__setitem__(a > 300, 0.0),
    "mask of rows": lambda xp, a, v: a.__setitem__(v[:, 0] > 100, -1.0),
    "out": lambda xp, a, v: xp.add(a[1], v[1], out=a[0]),
    "at": lambda xp, a, v: xp.add.at(a, [1, 1, 2], v[:3]),
    "triangle": lambda xp, a, v: a.__setitem__(xp.tril_indices_from(a), v[0, 1]),
    "diagonal": lambda xp, a, v: xp.fill_diagonal(a, v[0, 1]),
    "flat": lambda xp, a, v: a.flat.__setitem__(slice(3, 9), 5.0),
}


def run(xp, writes, reads_between):
    a = xp.array(whole())
    v = xp.array(whole() * 2)
    earlier = []
    for k, name in enumerate(writes):
        if reads_between[k % len(reads_between)]:
            earlier += [a * (k + 2), a[:, k] + 1, a.sum(axis=0), v - a]
        if k % 3 == 2:
            v = v + 1.5
        WRITES[name](xp, a, v)
    return [a, v, *earlier]


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.sampled_from(sorted(WRITES)), min_size=1, max_size=8), st.lists(st.booleans(), min_size=1))
def test_what_was_built_before_a_write_keeps_what_it_read(writes, reads_between):
    with np.config.override(small_bytes=LARGE):
        found = run(np, writes, reads_between)
    for ours, theirs in zip(found, run(numpy, writes, reads_between), strict=True):
        numpy.testing.assert_allclose(ours, theirs, rtol=1e-12)


FORMATS = {
    "csr": lambda a: np.asarray(sparse.csr_array(a)),
    "a csr result": lambda a: np.asarray(sparse.csr_array(a / 2)) * 2.0,
    "compressed": lambda a: np.compress_columns(a, always=True),
}


def _increased(a, mask, by):
    a[mask] += by


SELECTED = {
    "one for all": lambda xp, a: a.__setitem__(a != 0, xp.array([9.0])),
    "added to": lambda xp, a: a.__setitem__(a > 1, a[a > 1] + xp.array([1.0])),
    "one for each": lambda xp, a: a.__setitem__(a < 0, xp.arange(float((a < 0).sum()))),
    "a list": lambda xp, a: a.__setitem__(a == 2, [5.0]),
    "in place": lambda xp, a: _increased(a, a != 0, xp.array([16.0])),
    "where": lambda xp, a: xp.copyto(a, xp.array([[3.0]]), where=a != 0),
    "put": lambda xp, a: xp.place(a, a != 0, [1.0, 2.0]),
}


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@pytest.mark.parametrize("select", SELECTED)
@pytest.mark.parametrize("form", FORMATS)
def test_few_elements_are_written_by_a_mask(select, form, small_bytes):
    wanted = numpy.zeros((40, 3))
    wanted[[1, 5, 7], [0, 2, 1]] = 2.0, -1.0, 3.0
    with config.override(small_bytes=small_bytes):
        a = FORMATS[form](wanted)
        wanted = numpy.array(a)
        SELECTED[select](np, a)
        found = numpy.asarray(a)
    SELECTED[select](numpy, wanted)
    numpy.testing.assert_array_equal(found, wanted)


@pytest.mark.some(40)
@pytest.mark.parametrize("small_bytes", [0, LARGE, 1 << 20])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", [*WRITES, "through a line"])
def test_an_array_of_any_format_is_written(name, form, small_bytes):
    write = WRITES.get(name, lambda xp, a, v: a.reshape(-1).__setitem__(slice(2), 0.0))
    wanted = whole()
    write(numpy, wanted, whole() * 2)
    with np.config.override(small_bytes=small_bytes):
        a = FORMATS[form](whole())
        write(np, a, np.array(whole() * 2))
        numpy.testing.assert_array_equal(a.todense(), wanted)


@pytest.mark.parametrize("name", [n for n in WRITES if not n.startswith("mask")])
def test_no_write_of_a_part_copies_the_array(name):
    with np.config.override(small_bytes=LARGE):
        a = np.array(whole())
        v = np.array(whole() * 2).compute()
        WRITES[name](np, a, np.array(v))
        here = address(a)
        for _ in range(3):
            lazy = a * 2 + 1  # has yet to be computed
            wanted = numpy.array(a) * 2 + 1  # by a copy, which lends no memory
            WRITES[name](np, a, np.array(v))
            assert address(a) == here
            numpy.testing.assert_array_equal(lazy, wanted)


def test_a_reader_that_raises_keeps_what_it_would_read():
    """A write computes who still reads the array; where one of them fails, nothing is written."""
    failures = iter([True, True])

    def twice(block):
        if next(failures, False):
            raise RuntimeError("not yet")
        return block * 2

    with np.config.override(small_bytes=LARGE):
        a = np.array(numpy.vstack([whole(), whole()]))
        old = numpy.array(a)
        later = np.map(twice, a, dtype=float)
        for _ in range(2):
            with pytest.raises(UserFunctionError):
                a[0] = -1.0
            numpy.testing.assert_array_equal(a.compute(), old)
        a[0] = -1.0
        numpy.testing.assert_array_equal(later, old * 2)
        numpy.testing.assert_array_equal(a[0], -1.0)


@pytest.mark.parametrize("mask", [[0], [1], [0, 0], [1, 1], [1, 0]])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_values_of_any_shape_are_put_where_a_mask_of_the_first_axis_is_true(mask, size):
    def put(module, shape):
        a = module.zeros((len(mask), size))
        try:
            a[numpy.array(mask, bool)] = module.ones(shape)
        except ValueError:
            return "refused"
        return numpy.asarray(a).tolist()

    short = [s for n in range(3) for s in itertools.product(sorted({0, 1, 2, size}), repeat=n)]
    with config.override(small_bytes=0):
        for shape in [(1,) * more + s for s in short for more in range(3)]:
            assert put(np, shape) == put(numpy, shape), shape
