"""Numbers that functions of arrays give answer operators as NumPy's: values, dtypes, warnings, errors."""

from __future__ import annotations

import operator
import warnings
from copy import copy
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED

NAMES = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift divmod lt eq imul iadd"
BINARY = NAMES.split()
UNARY = ("neg", "pos", "abs", "invert")
NUMBERS = ("b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "g", "F", "D", "G")
VALUES = (0, 1, 2, 3, -1, -2, 7, 100, 2**31, -(2**31), 2**62, -(2**63), 2**63 - 1)
PARTS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    -3.75,
    1e-300,
    -1e300,
    1e308,
    5e-324,
    numpy.inf,
    -numpy.inf,
    numpy.nan,
)
OTHERS = (
    *VALUES,
    *PARTS,
    *(2**53 + 1, 2**64 - 1, 2**70, True, False, 1j, 2 - 0.5j, complex(0.0, -0.0), 1e200j),
    *(
        numpy.int8(3),
        numpy.uint64(5),
        numpy.float32(1.5),
        numpy.int64(-3),
        numpy.float64(2.5),
        numpy.bool_(True),
    ),
    *(numpy.complex64(1j), numpy.complex128(1e-200 - 2j), numpy.longdouble(3), numpy.longlong(4)),
    *("2", None, [1, 2], (3,), numpy.datetime64("2020-01-02"), numpy.arange(3)),
)


def values_of(code):
    """Elements that a type has."""
    dtype = numpy.dtype(code)
    if dtype.kind in "iu":
        info = numpy.iinfo(dtype)
        return [*{v for v in VALUES if info.min <= v <= info.max}, info.min, info.max]
    with numpy.errstate(all="ignore"):
        if dtype.kind == "f":
            return list(PARTS)
        return [complex(a, b) for a, b in zip(PARTS, (*PARTS[3:], *PARTS[:3]), strict=True)]


def is_endless(name, value, other):
    """Whether Python would repeat something, or multiply it by itself, for very long."""
    if name in ("pow", "lshift"):
        return isinstance(other, int) and other > 2**63 - 1
    return name in ("mul", "imul") and isinstance(other, str | list | tuple) and abs(value) > 100


def number(m, code, value):
    """An element as what a sum gives."""
    with numpy.errstate(all="ignore"):
        return m.array(numpy.array([value]).astype(code)).max()


def told(found):
    if isinstance(found, tuple):
        return ("tuple", *map(told, found))
    as_numpys = numpy.asarray(found)
    return as_numpys.dtype.str, as_numpys.shape, str(as_numpys.tolist()), isinstance(found, numpy.generic)


def outcome(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = told(call())
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            found = type(error), str(error)
    return found, [(w.category, str(w.message), w.filename if IS_COMPILED else None) for w in caught]


def compare(calls):
    for what, call in calls:
        theirs, ours = outcome(lambda: call(numpy)), outcome(lambda: call(np))  # noqa: B023
        if theirs[0][0] is TypeError and ours[0][0] is TypeError:
            continue  # the text has the class's whole name
        assert ours == theirs, what


@pytest.mark.some(60)
@pytest.mark.parametrize("code", NUMBERS)
@pytest.mark.parametrize("name", BINARY)
def test_operators_of_two(code, name):
    function = divmod if name == "divmod" else getattr(operator, name)

    def calls():
        for value in values_of(code):
            for other in OTHERS:
                if is_endless(name, value, other):
                    continue
                yield (value, other), lambda m, v=value, o=other: function(number(m, code, v), o)
                yield (other, value), lambda m, v=value, o=other: function(copy(o), number(m, code, v))

    compare(calls())


@pytest.mark.some(60)
@pytest.mark.parametrize("one", NUMBERS)
@pytest.mark.parametrize("other", NUMBERS)
@pytest.mark.parametrize("state", ["warn", "raise"])
def test_two_numbers_of_sums(one, other, state):
    def calls():
        for name in BINARY:
            function = divmod if name == "divmod" else getattr(operator, name)
            for a in values_of(one)[:9]:
                for b in values_of(other)[:9]:
                    yield (
                        (name, a, b),
                        lambda m, f=function, a=a, b=b: f(number(m, one, a), number(m, other, b)),
                    )

    with numpy.errstate(all=state):
        compare(calls())


@pytest.mark.parametrize("code", NUMBERS)
def test_operators_of_one(code):
    compare(
        ((name, v), lambda m, name=name, v=v: getattr(operator, name)(number(m, code, v)))
        for name in UNARY
        for v in values_of(code)
    )


@pytest.mark.parametrize("code", NUMBERS)
def test_results_are_ours_again(code):
    """A number of a sum stays one that can be asked what arrays can be asked, and has one class."""
    one = number(np, code, 2)
    for found in (one * 2, 2 + one, one - one, +one, abs(one), one**2, one / 3, one.sum()):
        assert type(found) is type(number(np, found.dtype.char, 1))
        assert found.compute() == found
        assert type(found.compute()) is found.dtype.type


def test_classes_that_derive_from_numbers():
    """Operators of a class that a user derives are asked first, and else are the number's."""
    for code in NUMBERS:
        kind = type(number(np, code, 3))
        derived = type(
            "Mine", (kind,), {"__add__": lambda self, other: "mine", "__radd__": lambda s, o: "turned"}
        )
        mine = derived(3)
        one = number(np, code, 3)
        assert (mine + 1, mine + one) == ("mine", "mine")
        assert (1 + mine, one + mine) == ("turned", "turned")
        assert mine * 2 == 6
        assert mine * one == 9
        assert 2 * mine == one + one


def test_powers_of_three_operands():
    pairs: list[Any] = [(number(np, "l", 3), 2), (3, number(np, "l", 2)), (number(np, "d", 3), 2)]
    for one, other in pairs:
        theirs: Any = (numpy.int64(one), numpy.int64(other), 5)
        assert outcome(lambda: pow(one, other, 5))[0][0] == outcome(lambda: pow(*theirs))[0][0]  # noqa: B023
