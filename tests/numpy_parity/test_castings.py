"""Every rule of casting, for arrays of every kind beside Python's numbers: values, dtypes and errors."""

from __future__ import annotations

import itertools

import numpy
import pytest

import spartan_ng as np

FUNCTIONS = ("add", "subtract", "multiply", "true_divide", "power", "arctan2", "hypot", "less", "maximum")
RULES = ["no", "equiv", "safe", "same_kind", "unsafe"]


def outcome(np, name, dtype, rule, number, turned):
    operands = (number, np.ones(2, dtype)) if turned else (np.ones(2, dtype), number)
    try:
        found = numpy.asarray(getattr(np, name)(*operands, casting=rule))
    except (TypeError, ValueError) as error:
        return type(error)
    return found.dtype, found.tolist()


@pytest.mark.some(30)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["?", "i1", "i4", "i8", "f2", "f4", "f8", "c8", "c16"])
def test_numbers_under_rules(mode, name, dtype):
    for rule, number, turned in itertools.product(RULES, (3, -3, 2.5, True, 1j), (False, True)):
        case = (name, dtype, rule, number, turned)
        assert outcome(np, *case) == outcome(numpy, *case), case


class Counting(int):
    """A number that counts what it is asked to compute."""

    asked = 0

    def compute(self, other, *modulus):
        Counting.asked += 1
        return Counting(1)

    __add__ = __radd__ = __mul__ = __rmul__ = __pow__ = __rpow__ = compute


OPERATORS = {"add": "__iadd__", "multiply": "__imul__", "power": "__ipow__"}
IN_PLACE = {
    "operator": lambda np, name, a, o: getattr(a, OPERATORS[name])(o),
    "out": lambda np, name, a, o: getattr(np, name)(a, o, out=a),
    "out of both turned": lambda np, name, a, o: getattr(np, name)(o, a, out=a),
    "out and where": lambda np, name, a, o: getattr(np, name)(a, o, out=a, where=[True, False]),
    "dtype": lambda np, name, a, o: getattr(np, name)(a, o, dtype="i4"),
    "at": lambda np, name, a, o: getattr(np, name).at(a, [0, 1], o),
}


@pytest.mark.parametrize("form", IN_PLACE)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", ["array", "list", "shapes that do not fit"])
def test_objects_are_asked_as_often_as_numpy_asks_them(mode, name, form, kind):
    def asked(np):
        o = [Counting(2), Counting(3), Counting(4)][: 3 if kind.startswith("shapes") else 2]
        a, o = np.array([10, 3], dtype="i4"), o if kind == "list" else np.array(o, dtype=object)
        Counting.asked = 0
        try:
            IN_PLACE[form](np, name, a, o)
        except (TypeError, ValueError) as error:
            return Counting.asked, isinstance(error, TypeError)
        return Counting.asked, a.tolist()

    assert asked(np) == asked(numpy)
