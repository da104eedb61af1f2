"""Operators of few numbers of any types: NumPy's loops alone, NumPy's bits, no memory but the result's."""

from __future__ import annotations

import functools
import operator
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from tests.api.memory_asked import SLACK, asked_for

DTYPES = (
    *("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "q", "f2", "f4", "f8", "g", "c8", "c16"),
    *(">f8", ">i4", "m8[s]"),
)
OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift"),
        *(
            "lt",
            "le",
            "eq",
            "ne",
            "gt",
            "ge",
            "iadd",
            "isub",
            "imul",
            "itruediv",
            "ifloordiv",
            "iand",
            "ipow",
        ),
    )
}
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "line": lambda a: a[:7],
    "steps": lambda a: a[::3],
    "backwards": lambda a: a[6::-1],
    "one": lambda a: a[4:5],
    "one of two axes": lambda a: a[4:5, None],
    "square": lambda a: a[:6].reshape(2, 3),
    "columns": lambda a: a[:6].reshape(2, 3).T,
    "nothing": lambda a: a[:0],
}
NUMBERS = (True, 0, 1, -1, 2, 3, 300, 1 << 60, 0.5, 2.0, -1.0, 1e300, 1j, 1e60 + 2j)


def elements(dtype: str) -> Any:
    """Some numbers of a type, other ones for each."""
    counted = (numpy.arange(21) * 37 + len(dtype)) % 11 - (0 if numpy.dtype(dtype).kind in "u?" else 4)
    made = counted.astype(dtype)
    return made * (1 + 0.1j) if made.dtype.kind == "c" else made / 4 if made.dtype.kind == "f" else made


def others() -> Iterator[tuple[str, Any]]:
    """What stands beside an array: arrays of all types, NumPy's without axes, and numbers."""
    for dtype in DTYPES:
        given = elements(dtype)[::-1]
        yield f"array {dtype}", given
        yield f"element {dtype}", given[3]
        yield f"without axes {dtype}", given[3:4].reshape(())
    for number in NUMBERS:
        yield str(number), number


def answer(call: Callable[[], Any]) -> Any:
    """What a call gives, or the error that it is, and what is warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        given: Any
        try:
            found = numpy.asarray(call())
            has_gaps = found.dtype.char in "gG"  # in which there is whatever was there
            given = (found.dtype, found.shape, str(found.tolist()) if has_gaps else found.tobytes())
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            given = next(c for c in type(error).__mro__ if c.__module__ in ("builtins", "numpy.exceptions"))
    return given, sorted({str(w.message) for w in told})


@pytest.mark.some(60)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPERATORS)
def test_they_have_numpys_bits(name: str, layout: str, some: Callable[..., Any]) -> None:
    call, lay, differ = OPERATORS[name], LAYOUTS[layout], []
    pairs = [(d, words, other) for d in DTYPES for words, other in others()]
    for dtype, words, other in some(pairs, 300):
        for turn in (False, True):

            def asked(space: Any, dtype: str = dtype, other: Any = other, turn: bool = turn) -> Any:
                is_array = isinstance(other, numpy.ndarray)
                beside = (
                    lay(space.array(other))
                    if is_array and other.ndim
                    else other.copy()
                    if is_array
                    else other
                )
                pair = lay(space.array(elements(dtype))), beside
                return call(*(pair[::-1] if turn else pair))

            found, expected = (answer(functools.partial(asked, space)) for space in (np, numpy))
            if found != expected:
                differ.append((dtype, words, turn, found, expected))
    assert not differ


PLAIN = ("?", "i4", "i8", "f4", "f8", "c16")


@pytest.mark.skipif(not quick.IS_COMPILED, reason="NumPy asks for its buffers")
@pytest.mark.parametrize("name", ["add", "mul", "lt", "ne"])
def test_nothing_is_made_beside_their_results(name: str) -> None:
    call, more = OPERATORS[name], {}
    x = np.array(elements("f8"))
    pairs = [(a, b) for a in PLAIN for b in PLAIN]
    arrays = {d: np.array(elements(d)) for d in PLAIN}
    tracemalloc.start()
    try:
        least = asked_for(lambda: x + x)
        for a, b in pairs:
            for other in (arrays[b], elements(b)[3]):
                found = asked_for(functools.partial(call, arrays[a], other))
                if found > least + SLACK:
                    more[a, type(other).__name__, b] = found - least
        squares = asked_for(lambda: arrays["i8"] ** 2), asked_for(lambda: arrays["c16"] ** 2)
    finally:
        tracemalloc.stop()
    assert not more
    assert max(squares) <= least + SLACK
