"""Numbers and texts written into arrays of other dtypes: NumPy's elements, or NumPy's kind of error."""

from __future__ import annotations

import operator
from itertools import product

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.errors import ShapeError
from tests.api.test_small_calls import calls_of_ours


def _set(a, key, value):
    a[key] = value


def _set_attribute(a, name, value):
    setattr(a, name, value)


WRITES = {
    "an element": lambda xp, a, v: _set(a, 1, v),
    "a slice": lambda xp, a, v: _set(a, slice(0, 2), v),
    "a mask": lambda xp, a, v: _set(a, a > 1, v),
    "indices": lambda xp, a, v: _set(a, [0, 1], v),
    "a list": lambda xp, a, v: _set(a, slice(0, 2), [v, v]),
    "no axes": lambda xp, a, v: _set(a[0:1].reshape(()), (), v),
    "all": lambda xp, a, v: _set(a, ..., v),
    "fill": lambda xp, a, v: a.fill(v),
    "setfield": lambda xp, a, v: a.setfield(v, a.dtype),
    "put": lambda xp, a, v: xp.put(a, [0], v),
    "put a list": lambda xp, a, v: xp.put(a, [0, 1], [v, v]),
    "putmask": lambda xp, a, v: xp.putmask(a, a > 1, v),
    "place": lambda xp, a, v: xp.place(a, a > 1, [v]),
    "copyto": lambda xp, a, v: xp.copyto(a, v),
    "put_along_axis": lambda xp, a, v: xp.put_along_axis(a, xp.array([0]), v, 0),
    "fill_diagonal": lambda xp, a, v: xp.fill_diagonal(a.reshape(2, 3), v),
    "flat element": lambda xp, a, v: _set(a.flat, 0, v),
    "flat": lambda xp, a, v: _set_attribute(a, "flat", v),
    "real": lambda xp, a, v: _set_attribute(a, "real", v),
}
DTYPES = ("?", "u1", "i1", "i4", "u8", "i8", "f2", "f8", "c8")
VALUES = (-1, 255, 256, -129, 2**31, 2**63, -(2**63) - 1, 2**64, 10**400, True, 3.5, 1e30, 2j, "x", "3", b"3")
MORE = (float("nan"), float("inf"), numpy.int64(-1), numpy.float64(3.5), numpy.array(300))
CASES = list(product(DTYPES, (*VALUES, *MORE)))
KINDS = (OverflowError, ValueError, TypeError)


def _outcome(xp, write, dtype, value):
    a = xp.array(numpy.array([1, 2, 0, 2, 1, 1], dtype))
    try:
        write(xp, a, value)
    except KINDS as error:
        return next(kind.__name__ for kind in KINDS if isinstance(error, kind))
    return a.dtype, numpy.asarray(a).tolist()


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", WRITES)
@pytest.mark.filterwarnings("ignore")
def test_a_number_is_written_or_refused_as_numpy_does(name, small):
    with np.config.override(small_bytes=small):
        for dtype, value in CASES:
            wanted, found = (_outcome(xp, WRITES[name], dtype, value) for xp in (numpy, np))
            assert repr(found) == repr(wanted), (dtype, value)  # by their text: NaN


FOLDS = ("sum", "prod", "max", "min")


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", FOLDS)
def test_a_fold_may_start_with_an_element(name, small):
    with np.config.override(small_bytes=small):
        for shape, axis, masked in product(
            [(3,), (2, 3), (0,), (0, 3), (3, 0)], [None, 0, -1], [False, True]
        ):
            values = numpy.arange(numpy.prod(shape), dtype=float).reshape(shape) - 2
            where = {"where": values > -2} if masked else {}
            outcomes: list[object] = []
            for xp in (numpy, np):
                flags = {key: xp.array(mask) for key, mask in where.items()}
                try:
                    found = getattr(xp, name)(xp.array(values), axis=axis, initial=None, **flags)
                    outcomes.append(numpy.asarray(found).tolist())
                except ValueError:
                    outcomes.append("ValueError")
            assert outcomes[0] == outcomes[1], (shape, axis, masked)


SPLITS = ("split", "array_split", "hsplit", "vsplit", "dsplit")


@pytest.mark.parametrize("name", SPLITS)
def test_a_number_is_split_as_numpy_splits_it(name):
    for number, parts in product((True, 3, 3.5, 2j), (1, 2, [1], [])):
        outcomes: list[object] = []
        for xp in (numpy, np):
            try:
                outcomes.append([numpy.asarray(x).tolist() for x in getattr(xp, name)(number, parts)])
            except (AttributeError, IndexError, TypeError, ValueError) as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1], (number, parts)


@pytest.mark.parametrize("name", SPLITS)
def test_a_number_that_was_computed_is_refused_as_numpy_refuses_it(name):
    with np.config.override(small_bytes=0):
        for xp in (numpy, np):
            number = xp.einsum("i,i", xp.array([0.5]), xp.array([2]))
            with pytest.raises((IndexError, ValueError)):
                getattr(xp, name)(number, 2)


KEYS = (1, (1, 0), (slice(None), 0), (0, 0, 0), ([0, 1], 0), (..., None), slice(0, 1), (numpy.bool_(True), 0))
NESTED = [
    1,
    [1],
    [[1]],
    [[[1]]],
    [1, 2, 3, 4],
    [[1, 2, 3, 4]],
    [[[1, 2, 3, 4]]],
    [[[[1, 2, 3, 4]]]],
    ([1],),
    [],
]


@pytest.mark.some(8)
@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("kind", ["f8", "i4", "?", "c16"])
def test_lists_are_no_deeper_than_what_they_are_written_to(key, kind):
    """An array's first axes of one element are left out; of lists NumPy refuses them."""
    for small, form in product((0, 8, 1 << 20), (list, numpy.array)):
        for nested in NESTED:
            outcomes: list[object] = []
            for xp in (numpy, np):
                with np.config.override(small_bytes=small):
                    a = xp.zeros((2, 3, 4), kind) + xp.ones((), kind)
                    try:
                        a[key] = numpy.array(nested) if form is numpy.array else nested
                        outcomes.append(numpy.asarray(a).tolist())
                    except (TypeError, ValueError) as error:
                        outcomes.append("ValueError" if isinstance(error, ValueError) else "TypeError")
            assert outcomes[0] == outcomes[1], (small, form, nested)


IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ilshift", "ipow")


@pytest.mark.parametrize("name", IN_PLACE)
@pytest.mark.parametrize(
    "shapes", [((3,), (4, 3)), ((3,), (4,)), ((1, 2), (2, 2)), ((), (1,)), ((2, 0), (2, 2))], ids=str
)
@pytest.mark.parametrize("dtype", ["f8", "i8", "?"])
def test_shapes_that_do_not_fit_in_place(name, shapes, dtype):
    """In NumPy's words, after which the array is what it was."""
    said: list[object] = []
    for of in (numpy, np):
        a, b = (of.array(numpy.ones(s, dtype)) for s in shapes)
        for other in (b, numpy.asarray(b), numpy.asarray(b).tolist()):
            try:
                getattr(operator, name)(a, other)
                said.append(None)
            except (ValueError, TypeError) as error:
                shape_error = of is numpy or isinstance(error, ShapeError | TypeError)
                said.append((isinstance(error, TypeError), shape_error))
        said.append(a.tolist())
    assert said[: len(said) // 2] == said[len(said) // 2 :]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
def test_a_loop_that_tries_shapes_asks_no_python_of_ours():
    names = {"a": np.ones(3), "b": np.ones((4, 3))}
    assert calls_of_ours("try:\n    a += b\nexcept ValueError:\n    pass", names) == []
