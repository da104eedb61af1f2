"""A few elements beside many: what NumPy works on at once, and what stays lazy, in one call.

Small operands are numbers for some steps on the way (`array(3) - 1` is one), and large ones are nodes: a
function that takes both must do with either in either place.
"""

from __future__ import annotations

import inspect
import itertools

import numpy
import pytest

from spartan_ng.config import config
from tests.api.answers import differences

FIRST = {
    "a",
    "a1",
    "ar1",
    "arr",
    "begindates",
    "condition",
    "dates",
    "element",
    "m",
    "p",
    "u",
    "x",
    "y",
    "x1",
}
SECOND = {"a2", "ar2", "b", "indices", "v", "values", "weights", "xp", "y", "x", "enddates", "weekmask", "q"}
SECOND |= {"offsets", "test_elements", "repeats", "obj", "bins", "arr", "a"}
RANDOM = {"empty_like", "may_share_memory", "shares_memory"}
"""What need not be the same twice."""
LARGE = {
    "matrix": numpy.arange(48).reshape(8, 6) % 7,
    "line": numpy.arange(1, 41),
    "floats": numpy.linspace(0, 1, 40),
}
SMALL = {
    "integer": numpy.array(3),
    "half": numpy.array(0.5),
    "truth": numpy.array(True),
    "one": numpy.array([2]),
    "few": numpy.arange(6),
    "nothing": numpy.zeros(0, int),
    "number": numpy.int8(2),
}


def _names() -> list[str]:
    found = [
        n for n in dir(numpy) if isinstance(getattr(numpy, n), numpy.ufunc) and getattr(numpy, n).nin == 2
    ]
    for name in sorted(set(dir(numpy)) - RANDOM):
        function = getattr(numpy, name)
        if name.startswith("_") or isinstance(function, type | numpy.ufunc) or not callable(function):
            continue
        try:
            first, second, *_ = inspect.signature(function).parameters
        except ValueError:
            continue
        found += [name] if first in FIRST and second in SECOND else []
    return found


def _given(np, value):
    return value if isinstance(value, numpy.generic) else np.array(value)


@pytest.mark.parametrize("name", _names())
@pytest.mark.some(60)
@pytest.mark.filterwarnings("ignore")
def test_either_place(name):
    def call(one, other):
        return lambda np: getattr(np, name)(_given(np, one), _given(np, other))

    pairs = [(x, y) for x, y in itertools.product(LARGE.items(), SMALL.items())]
    calls = [(f"{name}({a}, {b})", call(x, y)) for (a, x), (b, y) in (*pairs, *((y, x) for x, y in pairs))]
    with config.override(small_bytes=100):
        assert not differences(calls)
