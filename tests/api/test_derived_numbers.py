"""Operands of classes derived from Python's numbers are those numbers: enumerations, units of one's own."""

from __future__ import annotations

import enum
import operator

import numpy
import pytest

import spartan_ng as np


class Level(enum.IntEnum):
    HIGH = 2


class Flag(enum.IntFlag):
    SET = 4


class Metres(float):
    pass


class Phase(complex):
    pass


class Count(int):
    pass


NUMBERS = [Level.HIGH, Flag.SET, Metres(2.5), Count(3), Phase(1 + 2j)]
OPERATORS = "add sub mul truediv floordiv mod pow and_ or_ xor lshift rshift lt eq ge iadd"


def _of_two(name, turned):
    function = getattr(operator, name)
    return lambda np, a, n: function(n, a) if turned else function(a, n)


CALLS = {
    **{f"{name} {turned}": _of_two(name, turned) for name in OPERATORS.split() for turned in (0, 1)},
    "add function": lambda np, a, n: np.add(a, n),
    "maximum": lambda np, a, n: np.maximum(n, a),
    "power": lambda np, a, n: np.power(a, n),
    "clip": lambda np, a, n: np.clip(a, n, 5),
    "where": lambda np, a, n: np.where(a > n, n, a),
    "full": lambda np, a, n: np.full(3, n),
    "isclose": lambda np, a, n: np.isclose(a, n),
    "sum": lambda np, a, n: a.sum() * n,
    "times a sum": lambda np, a, n: n * a.sum(),
    "write": lambda np, a, n: _written(a, n),
    "dot": lambda np, a, n: np.dot(a, n),
    "append": lambda np, a, n: np.append(a, n),
    "sum from": lambda np, a, n: np.sum(a, initial=n),
    "roll": lambda np, a, n: np.roll(a, n),
    "index": lambda np, a, n: a[n],
}


def _written(a, n):
    a[1] = n
    return a


def outcome(np, call, dtype, number):
    try:
        found = numpy.asarray(call(np, np.arange(6, dtype=dtype) % 5, number))
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return type(error)
    return found.dtype, str(found.tolist())


@pytest.mark.some(60)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_derived_numbers_are_numbers(mode, name, number):
    for dtype in ("i8", "f4", "u1", "c16"):
        wanted = outcome(numpy, CALLS[name], dtype, number)
        assert outcome(np, CALLS[name], dtype, number) == wanted, dtype


def _refusing(base):
    """Classes derived from another that NumPy's arrays ask."""
    names = ("__radd__", "__rmul__", "__rsub__", "__eq__", "__lt__", "__gt__")
    said = dict.fromkeys(names, lambda self, other: "said")
    answer = {"__array_ufunc__": lambda self, function, method, *inputs, **keywords: function.__name__}
    return (
        type("Priority", (base,), {**said, "__array_priority__": 100}),
        type("Refused", (base,), {**said, "__array_ufunc__": None}),
        type("Answered", (base,), answer),
    )


BASES = [(float, 2.5), (int, 2), (complex, 1j), (list, [1, 2, 3]), (tuple, (1, 2, 3))]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("base", "value"), BASES)
@pytest.mark.parametrize("which", [0, 1, 2])
def test_derived_classes_that_speak_numpys_protocols_are_asked(mode, base, value, which):
    number = _refusing(base)[which](value)
    for call in (
        lambda a: a + number,
        lambda a: a * number,
        lambda a: a - number,
        lambda a: a == number,
        lambda a: a < number,
        lambda a: operator.iadd(a, number),
        lambda a: operator.imul(a, number),
    ):
        told = []
        for m in (numpy, np):
            a = m.arange(3.0)
            try:
                said = str(call(a))
            except TypeError:
                said = "TypeError"
            told.append((said, a.tolist()))
        assert told[0] == told[1]
