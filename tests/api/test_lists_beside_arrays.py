"""Lists and tuples beside arrays are the arrays that NumPy makes of them: operators, functions, in place."""

from __future__ import annotations

import operator
from itertools import product

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED

DTYPES = ("?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
LISTS = {
    "truths": [True, False, True],
    "integers": [1, 2, 3],
    "tuple": (3, 1, 2),
    "mixed": [True, 2.5, 1],
    "complex": [1j, 2, 3],
    "column": [[1], [2]],
    "rows": ([1, 2, 3], (4.5, 5, 6)),
    "one": [2],
    "nothing": [],
    "others": [1, 2],
    "ragged": [[1], [2, 3]],
    "large": [2**63, 1, 2],
    "larger": [2**70, 1, 2],
    "numpy's": [numpy.float32(1.5), 2, numpy.int8(3)],
    "texts": ["1", "2", "3"],
    "none": [None, 1, 2],
}
OPERATORS = (
    *[
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "and_",
        "or_",
        "xor",
        "lshift",
        "rshift",
        "lt",
        "le",
        "eq",
        "ne",
        "gt",
        "ge",
    ],
    *["iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "iand", "ior", "ixor", "ilshift", "irshift"],
)
FUNCTIONS = [
    "add",
    "bitwise_and",
    "maximum",
    "true_divide",
    "hypot",
    "equal",
    "logical_or",
    "copysign",
    "left_shift",
]
PLACES = {
    "left": lambda f, m, a, other: f(a, other),
    "right": lambda f, m, a, other: f(other, a),
    "lists": lambda f, m, a, other: f(other, other),
    "place": lambda f, m, a, other: f(a, other, out=a),
}


def outcome(call, m, dtype, shape, key):
    a = m.array(numpy.arange(1, 4).astype(dtype) if shape else numpy.ones((), dtype))
    listed = LISTS[key]
    before = repr(listed)
    try:
        found = call(m, a, listed)
    except Exception as error:  # noqa: BLE001 - whatever NumPy raises
        return (TypeError, ValueError)[isinstance(error, ValueError)], numpy.asarray(a).tolist()
    assert repr(listed) == before
    kind = isinstance(found, m.ndarray)
    found = numpy.asarray(found)
    return kind, found.dtype, found.shape, str(found.tolist()), str(numpy.asarray(a).tolist())


def check(call, dtype, key, shape=1):
    theirs, ours = (outcome(call, m, dtype, shape, key) for m in (numpy, np))
    assert ours == theirs


@pytest.mark.some(250)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("place", ["left", "right"])
def test_operators(dtype, key, name, place):
    function = getattr(operator, name)
    check(lambda m, a, other: PLACES[place](function, m, a, other), dtype, key)


@pytest.mark.some(200)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("place", "whose"), [*product(PLACES, ["ours"]), ("left", "numpy's"), ("right", "numpy's")]
)
def test_functions(dtype, key, name, place, whose):
    check(
        lambda m, a, other: PLACES[place](getattr(m if whose == "ours" else numpy, name), m, a, other),
        dtype,
        key,
    )


@pytest.mark.some(60)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("name", ["exp", "isnan", "negative", "absolute", "sqrt"])
def test_functions_of_one(key, name):
    check(lambda m, a, other: getattr(m, name)(other), "f8", key)


@pytest.mark.some(100)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["i8", "f4", "f8"])
@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("name", ["add", "mul", "eq", "iadd"])
@pytest.mark.parametrize("place", ["left", "right"])
def test_arrays_without_axes(dtype, key, name, place):
    function = getattr(operator, name)
    check(lambda m, a, other: PLACES[place](function, m, a, other), dtype, key, shape=0)


@pytest.mark.parametrize("dtype", [*DTYPES, "M8[s]", "U2"])
@pytest.mark.parametrize("name", ["eq", "ne", "lt"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)])
def test_none_is_no_number(dtype, name, shape):
    def answer(m):
        a = m.array(numpy.ones(shape, "i8").astype(dtype)).T
        try:
            found = getattr(operator, name)(a, None)
        except TypeError:
            return TypeError
        layout = numpy.asarray(found).strides if dtype in DTYPES and IS_COMPILED else None
        return isinstance(found, m.ndarray), layout, numpy.asarray(found).tolist()

    assert answer(np) == answer(numpy)


def test_longer_lists_and_results_that_are_large():
    """Beyond what is looked at one by one, the methods say the same."""
    for n in (1 << 12, (1 << 12) + 1, 70_000):
        listed = list(range(n))
        for a in (numpy.arange(n), numpy.arange(3)[:, None]):
            assert (numpy.asarray(np.array(a) + listed) == a + listed).all()
    with np.config.override(small_bytes=0):
        assert np.add(np.arange(3), [1, 2, 3]).tolist() == [1, 3, 5]
