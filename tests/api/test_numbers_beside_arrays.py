"""NumPy's numbers, and ours, beside small arrays: of both dtypes NumPy takes one, and so do we."""

from __future__ import annotations

import operator
import warnings

import numpy
import pytest

import spartan_ng as np

DTYPES = (
    "?",
    "i1",
    "u1",
    "i2",
    "u4",
    "i4",
    "i8",
    "u8",
    "q",
    "f2",
    "f4",
    "f8",
    "g",
    "c8",
    "c16",
    ">f8",
    ">i4",
)
OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"),
    *("lt", "le", "eq", "ne", "iadd", "imul", "isub", "itruediv", "ifloordiv", "iand", "ilshift"),
)
NUMBERS = (0, 1, 3, 100)
FUNCTIONS = ("maximum", "hypot", "arctan2", "power", "logical_and", "copysign", "ldexp", "float_power", "gcd")
PLACES = {
    "right": lambda f, a, n: f(a, n),
    "left": lambda f, a, n: f(n, a),
    "place": lambda f, a, n: f(a, n, out=a),
}


def told(found):
    found = numpy.asarray(found)
    return found.dtype, found.shape, str(found.tolist())


def outcome(m, call, dtype, of_number, value, whose):
    a = m.array(numpy.array([[3, 1, 0], [7, 2, 5]]).astype(dtype))
    number = numpy.array([value]).astype(of_number)
    number = number[0] if whose == "numpy's" else m.array(number).max()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = told(call(a, number))
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            found = (TypeError if isinstance(error, TypeError) else type(error),)
    return found, told(a), sorted(str(w.message) for w in caught)


def check(call, dtype, of_number, whose):
    for value in NUMBERS:
        theirs, ours = (outcome(m, call, dtype, of_number, value, whose) for m in (numpy, np))
        assert ours == theirs, value


@pytest.mark.some(500)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_number", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("place", ["right", "left"])
@pytest.mark.parametrize("whose", ["numpy's", "ours"])
def test_operators(dtype, of_number, name, place, whose):
    check(lambda a, n: PLACES[place](getattr(operator, name), a, n), dtype, of_number, whose)


@pytest.mark.some(300)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("of_number", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("of", [np, numpy], ids=["ours", "numpy's"])
def test_functions(dtype, of_number, name, place, of):
    for value in NUMBERS:
        theirs, ours = (
            outcome(
                m,
                lambda a, n: PLACES[place](getattr(f, name), a, n),  # noqa: B023
                dtype,
                of_number,
                value,
                "numpy's",
            )
            for m, f in ((numpy, numpy), (np, of))
        )
        assert ours == theirs, value
