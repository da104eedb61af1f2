"""Our numbers beside Python's sequences, and Python's numbers put into our arrays, as NumPy has it."""

from __future__ import annotations

import array
import itertools
import operator
import warnings
from collections import deque

import numpy
import pytest

import spartan_ng as np

SEQUENCES = [[7], [1, 2], (1, 2), "-", b"ab", bytearray(b"ab"), array.array("i", [1, 2]), deque([1])]
NUMBERS = ["?", "i1", "u2", "i8", "f4", "f8", "c16"]


def said(run):
    """What a function gives, with its class, or the class of its error."""
    try:
        found = run()
    except (TypeError, ValueError, OverflowError, IndexError) as error:
        return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
    if isinstance(found, np.ndarray | numpy.ndarray | numpy.generic):
        return ("array", numpy.asarray(found).tolist())
    return (type(found), found)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda s: type(s).__name__)
def test_a_sequence_times_a_number_is_pythons(sequence):
    for small_bytes, dtype in itertools.product([0, 1 << 20], NUMBERS):
        check_products(sequence, dtype, small_bytes)


def check_products(sequence, dtype, small_bytes):
    values = numpy.array([1, 0, 1] if dtype == "?" else [1, 3, 2]).astype(dtype)
    with np.config.override(small_bytes=small_bytes):
        for ours, theirs in (
            (np.array(values).max(), values.max()),
            (np.array(values)[1], values[1]),
            (np.array(values).sum(), values.sum()),
        ):
            for function in (operator.mul, operator.imul):
                got, wanted = (said(lambda n=n, f=function: f(sequence[:], n)) for n in (ours, theirs))
                assert got == wanted, (function, dtype)
                got, wanted = (said(lambda n=n, f=function: f(n, sequence[:])) for n in (ours, theirs))
                assert got == wanted, (function, dtype)


def test_a_number_is_not_filled():
    number = np.std(np.array([1.0, 2.0]))
    number.fill(7)
    assert number == 0.5
    with pytest.raises((TypeError, ValueError)):
        number.fill([1, 2])


PUTS = {
    "flat": lambda xp, a, v: a.flat.__setitem__(1, v),
    "flat slice": lambda xp, a, v: a.flat.__setitem__(slice(None, None, 2), v),
    "put": lambda xp, a, v: xp.put(a, [0, 1], v),
    "put method": lambda xp, a, v: a.put([0, 1], v),
    "diagonal": lambda xp, a, v: xp.fill_diagonal(a, v),
    "fill": lambda xp, a, v: a.fill(v),
    "element": lambda xp, a, v: a.__setitem__((0, 1), v),
    "all": lambda xp, a, v: a.__setitem__(slice(None), v),
}
VALUES = {
    "too large": 300,
    "negative": -1,
    "infinite": float("inf"),
    "complex": 1j,
    "complex list": [1j, 2],
    "large list": [1, 300],
    "small list": [1, 2],
    "nothing": [],
    "text": "x",
    "array": numpy.array([300.5, 2.0]),
    "number": numpy.float64(2.5),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("put", PUTS)
def test_what_is_put_into_an_array_must_fit(put):
    for value, dtype in itertools.product(VALUES, ["i1", "u1", "i8", "f4", "?", "c8"]):
        outcomes = []
        for xp in (numpy, np):
            a = xp.array(numpy.zeros((3, 2), dtype))
            said_of = said(lambda xp=xp, a=a, v=value: PUTS[put](xp, a, VALUES[v]))
            outcomes.append((said_of if isinstance(said_of, type) else "put", numpy.asarray(a).tolist()))
        assert outcomes[0] == outcomes[1], (value, dtype)


ELEMENTS = [3, 300, -3, 2**40, 2.5, 1e30, float("nan"), 2 + 1j]


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "u4", "i8", "f4", "c16", "O", "S3", None])
@pytest.mark.parametrize("others", [(), (1,), (2.5,)])
def test_numbers_that_have_yet_to_be_computed_become_elements_as_numpys_do(dtype, others):
    """Alone in their list or beside Python's, also where the dtype does not hold them."""
    for value in ELEMENTS:

        def listed(xp, value=value):
            a = xp.array([value, value, value])
            found = xp.array([a.max(), *others, a.sum()], dtype=dtype)
            return found.dtype, *map(repr, numpy.asarray(found))

        with np.config.override(small_bytes=0), numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert said(lambda: listed(np)) == said(lambda: listed(numpy)), value
