"""Lists of arrays where NumPy takes an array: what they become together, and what functions make of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np


def _typed(dtype: str) -> Callable[[Any, Any], Any]:
    return lambda m, given: m.asarray([given, given[::-1]], dtype)


DTYPES = ["f8", "f4", "i8", "u1", "?", "c16", "f2", "M8[s]", "m8[D]", "S2"]
SHAPES = [(3,), (2, 3), (0,), ()]
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda m, given: m.array(given),
    "nested": lambda m, given: m.asarray([given, given[::-1]]),
    **{f"array of {dtype}": _typed(dtype) for dtype in ("M8[s]", "i8", "f4", "?", "S30", "M8")},
    "greatest": lambda m, given: m.maximum.reduce(given),
    "sum along lines": lambda m, given: m.add.reduce([*given, given[0]], axis=-1, keepdims=True),
    "running product": lambda m, given: m.multiply.accumulate(given),
    "of pairs": lambda m, given: m.add.reduceat(given, [0, 1]),
    "any": lambda m, given: m.logical_or.reduce(given, axis=None),
    "sum": lambda m, given: m.sum(given, axis=0),
}


def _told(call: Callable[[Any, Any], Any], m: Any, given: list[Any]) -> Any:
    try:
        found = numpy.asarray(call(m, given))
    except (ValueError, TypeError, OverflowError) as error:
        return next(k for k in (ValueError, TypeError, OverflowError) if isinstance(error, k))
    return found.dtype, found.shape, found.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_they_are_what_numpy_makes_of_them(name: str) -> None:
    """Also of types that have none in common, which are objects together."""
    for (one, other), shape in itertools.product(itertools.product(DTYPES, DTYPES), SHAPES):
        given = [numpy.full(shape, (1 << 53) + 1).astype(one), numpy.zeros(shape, other)]
        expected = _told(CALLS[name], numpy, given)
        found = _told(CALLS[name], np, [np.array(x) for x in given])
        assert str(found) == str(expected), (one, other, shape)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["array", "nested", "array of i8", "array of S30", "greatest", "sum"])
def test_they_are_where_plans_make_them(name: str) -> None:
    for one, other in (("i8", "f8"), ("u1", "c16"), ("i8", "M8[s]")):
        given = [numpy.full((2, 3), (1 << 53) + 1).astype(one), numpy.zeros((2, 3), other)]
        with np.config.override(small_bytes=0):
            found = _told(CALLS[name], np, [np.array(x) for x in given])
        assert str(found) == str(_told(CALLS[name], numpy, given)), (one, other)


def test_nothing_is_reduced_as_numpy_reduces_it() -> None:
    assert np.add.reduce([]) == numpy.add.reduce([]) == 0
    assert numpy.asarray(np.maximum.accumulate([])).shape == (0,)


def test_lists_of_several_shapes_are_no_arrays() -> None:
    for call in (np.array, np.maximum.reduce):
        with pytest.raises(ValueError, match="shape"):
            call([np.ones(3), np.ones(2)])
