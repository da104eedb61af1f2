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
