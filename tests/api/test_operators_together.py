"""Expressions of several operators are NumPy's, bit by bit, whatever is worked on together."""

from __future__ import annotations

import dis
import functools
import gc
import operator
import re
import sys
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core import ahead, quick

LENGTH = 5000
"""Elements of a line: enough to be worked on together, and no multiple of what is at a time."""
SHAPES = ((LENGTH,), (100, 50), (5, 20, 51), (70, 80), (3000, 2))
OPERATORS = ("+", "-", "*", "/", "//", "%", "+", "-", "*", "<", ">=", "==")
POWERS = ("2", "3", "-1", "0.5", "2.0", "-1.5", "0", "1")
NAMES = ("a", "b", "c")
OTHERS = ("row", "whole", "mask", "short")
"""A line of the same type, and arrays of other types."""
OF_ONE = ("exp", "sin", "cos", "tanh", "abs", "log", "square", "isnan", "sqrt", "floor", "arctan", "sign")
OF_TWO = (
    "add",
    "multiply",
    "logical_and",
    "greater",
    "power",
    "maximum",
    "minimum",
    "hypot",
    "arctan2",
    "fmod",
)
OF_COMPLEX = (OF_ONE[:8], OF_TWO[:5], tuple(o for o in OPERATORS if o not in ("//", "%")))
OF_REALS = (OF_ONE, OF_TWO, OPERATORS)
"""Functions of one operand and of two, and operators."""
CALLED = ("np.{}", "np.{}", "{}", "package.{}")
"""How functions are named: as the package's, a variable of the module or of the function, or alone."""

NEW_LINE = "\n        "

pytestmark = pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled")


@st.composite
def _texts(draw: Any, depth: int = 4, words: tuple[tuple[str, ...], ...] = OF_REALS) -> str:
    """An expression of arrays, parts of them, variables and constants."""
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(
            st.sampled_from(
                (*NAMES, *NAMES, *OTHERS, "number", "2.5", "3", "a[::1]", "b[...]", "SCALE", "-c")
            )
        )
    of_one, of_two, operators = words
    how, called = draw(st.integers(0, 13)), draw(st.sampled_from(CALLED))
    left, right = draw(_texts(depth - 1, words)), draw(_texts(depth - 1, words))
    if how == 0:
        return f"-({left})"
    if how == 1:
        return f"({left})**{draw(st.sampled_from(POWERS))}"
    if how < 5:
        return f"{called.format(draw(st.sampled_from(of_one)))}({left})"
    if how < 7:
        return f"{called.format(draw(st.sampled_from(of_two)))}({left}, {right})"
    if how == 7:
        test = f"({left} {draw(st.sampled_from(('<', '!=')))} {draw(_texts(depth - 1, words))})"
        both = f"{test} {draw(st.sampled_from('&|^'))} ({left} >= {right})" if draw(st.booleans()) else test
        return f"{called.format('where')}({both}, {left}, {right})"
    return f"({left}{draw(st.sampled_from((' ', ' ', NEW_LINE)))}{draw(st.sampled_from(operators))} {right})"


def _inputs(shape: tuple[int, ...], dtype: str, seed: int) -> dict[str, Any]:
    random = numpy.random.default_rng(seed)
    made = {name: random.normal(size=shape) for name in (*NAMES, "out")}
    made["a"].flat[:: 7 * (seed % 3) + 1] = 0
    made["b"].flat[:: 11 * (seed % 5) + 3] *= 1e9
    made["row"] = random.normal(size=shape[-1:])
    if dtype[0] in "iu":
        made = {name: value * 10 for name, value in made.items()}
        made = {name: numpy.abs(value) % 250 for name, value in made.items()} if dtype == "u1" else made
    others = {"whole": random.integers(-9, 9, shape), "short": random.integers(0, 200, shape).astype("u1")}
    others["mask"] = random.random(shape) < 0.5
    return {name: value.astype(dtype) for name, value in made.items()} | others


def _run(source: str, given: dict[str, Any], module: Any) -> tuple[Any, ...]:
    """What a function of this text does to copies of arrays: them, its result or error, its warnings."""
    space: dict[str, Any] = {"SCALE": 1.5, "np": module}
    space |= {name: getattr(module, name) for name in (*OF_ONE, *OF_TWO, "where")}
    indented = source.replace("\n", "\n    ")
    exec(f"def run({', '.join(given)}, number, package=np):\n    {indented}", space)
    arrays = {name: module.asarray(value.copy()) for name, value in given.items()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found = space["run"](**arrays, number=0.75)
        except (ArithmeticError, TypeError, ValueError) as error:
            found = (type(error), str(error))
    said = [(str(w.message), w.lineno) for w in told]
    return (*(numpy.asarray(x) for x in arrays.values()), found, said)


def _compare(source: str, given: dict[str, Any]) -> None:
    """Both modules do the same, bit by bit."""
    *ours, found, said = _run(source, given, np)
    *theirs, expected, expected_said = _run(source, given, numpy)
    for x, y in zip(ours, theirs, strict=True):
        assert (x.dtype, x.tobytes()) == (y.dtype, y.tobytes()), source
    if isinstance(expected, tuple):
        assert found == expected, source
    elif expected is not None:
        assert type(found) is np.ndarray or not numpy.ndim(expected), source
        found, expected = numpy.asarray(found), numpy.asarray(expected)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), source
        assert found.tobytes() == numpy.ascontiguousarray(expected).tobytes(), source
        assert said == expected_said, source


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8", "i8", "u1"])
@given(data=st.data(), shape=st.sampled_from(SHAPES), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_results(data: Any, shape: tuple[int, ...], dtype: str, seed: int) -> None:
    text = f"return {data.draw(_texts(words=OF_COMPLEX if dtype.startswith('c') else OF_REALS))}"
    if data.draw(st.booleans()):  # in a function that closes over the variables
        text = f"def inner():\n  {text}\nreturn inner()"
    _compare(text, _inputs(shape, dtype, seed))


@pytest.mark.parametrize("to", ["out[1:-1]", "out[:-2]", "a[1:-1]", "a[2:]", "b[:-2]", "out[...,]"])
@given(left=_texts(2), right=_texts(2), how=st.sampled_from(("=", "+=", "-=", "*=")))
@settings(max_examples=15, deadline=None)
def test_writes(to: str, left: str, right: str, how: str) -> None:
    """Into parts of what is read, too, which lie over it."""
    left, right = (
        re.sub(r"\b(a|b|c|row|whole|mask|short)\b(\[.*?\])?", rf"\1{part}", text)
        for text, part in ((left, "[1:-1]"), (right, "[2:]"))
    )
    if to == "out[...,]":
        to, left = "out[1:-1]", f"{left} - a[:-2]"
    _compare(f"{to} {how} {left} + {right}", _inputs((LENGTH,), "f8", 1))


@given(text=_texts(), name=st.sampled_from(NAMES), how=st.sampled_from(("+=", "-=", "*=", "/=")))
@settings(max_examples=40, deadline=None)
def test_in_place(text: str, name: str, how: str) -> None:
    _compare(f"{name} {how} {text}\nreturn {name} * 2", _inputs((100, 50), "f8", 2))


@pytest.mark.parametrize(
    "text",
    [
        *("a * b + c * a - b * 2.0", "number * (a - b) + c", "SCALE * (a + b - c)", "-(a * b) / (c * c)"),
        *("np.exp(-a) * 2", "np.sqrt(a * a + b**2)", "np.where((a > b) & (b < c), a * 2, np.abs(c))"),
        *("exp(a) / np.add(np.multiply(a, 2), np.sin(-c))", "np.maximum(a - b, 0) ** 3", "a[:] * (b - c)"),
        *("a * 2 + b[0 : len(c)]", "np.exp(-0.5 * k) * a", "(a > b) * k + 1"),
        "1 / (1 + package.exp(-a))",
    ],
)
def test_is_worked_on_together(text: str) -> None:
    """Operators between the first and the last one ask for no memory of a result's size."""
    space: dict[str, Any] = {"SCALE": 1.5, "np": np, "exp": np.exp}
    space["k"] = np.asarray(numpy.arange(10 * LENGTH))
    exec(f"def run(a, b, c, number, package=np):\n    return {text}", space)
    a, b, c = (np.asarray(numpy.random.rand(10 * LENGTH)) for _ in NAMES)
    space["run"](a, b, c, 0.5)
    tracemalloc.start()
    try:
        space["run"](a, b, c, 0.5)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * a.nbytes
    finally:
        tracemalloc.stop()


def _exp_of(x: Any) -> Any:
    return np.exp(x)


def test_functions_of_others_get_arrays() -> None:
    """Whoever is called by a name of ours, and whoever calls our functions from C."""
    a, b = np.asarray(numpy.random.rand(LENGTH)), np.asarray(numpy.random.rand(LENGTH))
    f, ours = type, np
    assert f(a + b) is np.ndarray
    exec(
        "assert np.exp(a + b) is ndarray",
        {"np": SimpleNamespace(exp=type), "a": a, "b": b, "ndarray": np.ndarray},
    )
    listed = list(map(ours.exp, [a, b]))
    listed += [functools.partial(ours.exp, a)() for _ in "ab"]
    listed += [ours.exp.__call__(a), ours.exp(*[a]), operator.call(ours.exp, a)]
    listed += [operator.mul(a, b), operator.lt(a, b), *map(operator.add, [a], [b])]
    assert {type(x) for x in listed} == {np.ndarray}
    expected = numpy.exp(numpy.asarray(a))
    for found in (
        functools.partial(ours.exp, a)() * 2,
        functools.reduce(ours.multiply, [ours.exp(a), 2]) + 0,
        next(map(ours.exp, [a])) * 2,
        [ours.exp(x) * 2 for x in (a, b)][0],
        next(ours.exp(x) * 2 for x in (a, b)),
        _exp_of(a) * 2,
    ):
        assert (numpy.asarray(found) == expected * 2).all()


def _traced(run: Callable[..., Any], *args: Any) -> Any:
    """What a function gives whose first argument is written to before each instruction."""

    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is run.__code__:
            frame.f_trace_opcodes = True
            args[0][0] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run(*args)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "text", ["(a + b) * (a - b)", "np.exp(a * 1e-3) + np.where(a > b, a * 2, b + a)", "np.add(a, b) ** 2 + a"]
)
def test_whoever_traces_may_write(text: str) -> None:
    found = []
    for module in (numpy, np, numpy):  # Python 3.12 tells the first tracer of less
        space: dict[str, Any] = {"np": module}
        exec(f"def run(a, b):\n    return {text}", space)
        ones, twos = (module.asarray(numpy.full(LENGTH, float(k))) for k in (1, 2))
        found.append(numpy.asarray(_traced(space["run"], ones, twos)))
    assert found[1].tobytes() == found[2].tobytes()


def test_what_fails_midway_is_let_go() -> None:
    """An error between two functions leaves nothing that is pending, which has arrays of the program's."""
    a = np.asarray(numpy.random.rand(LENGTH))
    watched = []

    def run() -> Any:
        made = numpy.full(LENGTH, 2.0)
        watched.append(weakref.ref(made))
        return np.exp(a * np.asarray(made)) + missing  # type: ignore[name-defined] # noqa: F821

    for _ in range(3):
        with pytest.raises(NameError):
            run()
    gc.collect()
    assert [w() for w in watched] == [None] * 3


class _Sees:
    """An operand of another class, whose operators see what the left operand is before any look at it."""

    __array_ufunc__ = None

    def __radd__(self, other: Any) -> str:
        return type(other).__name__

    __rmul__ = __radd__


def test_other_classes_get_arrays() -> None:
    """Who is no array, no number, and has an operator of its own is given what NumPy's arrays are."""
    a = np.asarray(numpy.random.rand(LENGTH))
    seen = _Sees()
    assert (a * 2 + 1) + seen == "ndarray"
    kept: list[Any] = []

    class Keeps:
        def __add__(self, other: Any) -> Any:
            kept.append(other)
            return self

    keeps = Keeps()
    keeps + (a * 2 + 1)
    assert type(kept[0]) is np.ndarray


def test_what_is_stored_is_an_array() -> None:
    a = np.asarray(numpy.random.rand(LENGTH))
    expected = numpy.asarray(a).copy() * 2 + 1
    kept: dict[str, Any] = {}
    kept["a"] = a * 2 + 1
    listed: list[Any] = [None]
    listed[0] = a * 2 + 1
    holder = SimpleNamespace()
    holder.a = a * 2 + 1
    numpy.asarray(a)[:] = 0
    for found in (kept["a"], listed[0], holder.a):
        assert type(found) is np.ndarray
        assert (numpy.asarray(found) == expected).all()


def test_keys_that_write() -> None:
    """What a key's own code writes comes after what was read before it."""
    a = np.asarray(numpy.ones(LENGTH))

    class Key:
        def __index__(self) -> int:
            a[:] = 5
            return 0

    b = np.asarray(numpy.ones((1, LENGTH)))
    key = Key()
    assert (numpy.asarray((a * 2) + b[key]) == 3).all()


@pytest.mark.parametrize("how", ["ours", "out", "method", "numpys", "lent", "buffer"])
def test_attributes_that_write(how: str) -> None:
    """Code of an attribute, which runs before the other operator, by any way of writing."""

    class Holder:
        def __init__(self, module: Any) -> None:
            self.u = module.asarray(numpy.ones(LENGTH))
            self.lent: Any = numpy.asarray(self.u) if how == "numpys" else None
            self.module = module

        @property
        def v(self) -> Any:
            if how == "ours":
                self.u[:] = 7.0
            elif how == "out":
                self.module.add(self.u, 6.0, out=self.u)
            elif how == "method":
                self.u.fill(7.0)
            elif how == "numpys":
                self.lent[:] = 7.0
            elif how == "lent":
                numpy.asarray(self.u)[:] = 7.0
            else:
                memory: Any = numpy.asarray(self.u)
                memoryview(memory).cast("B")[:8] = b"\0" * 8
            return self.u

    for module in (np, numpy):
        held = Holder(module)
        found = (held.u * 2 + 1) * held.v
        expected = numpy.full(LENGTH, 21.0)
        if how == "buffer":
            expected[:] = 3.0
            expected[0] = 0.0
        assert (numpy.asarray(found) == expected).all(), module


def test_whoever_is_told_of_errors_may_write() -> None:
    """Warnings and error calls run a program's code, which writes to what is read, and asks for more."""
    for module in (np, numpy):
        a, b = module.asarray(numpy.ones(LENGTH)), module.asarray(numpy.zeros(LENGTH))
        told: list[str] = []

        def tell(kind: str, flag: int, a: Any = a, b: Any = b, told: list[str] = told) -> None:
            a[:] = 3.0
            told.append(f"{kind} {float((a * b + a).max())}")

        with module.errstate(all="call", call=tell):
            found = (a / b) + -(b / b)
        assert told == ["divide by zero 3.0", "invalid value 3.0"], module
        assert numpy.isnan(numpy.asarray(found)).all()


@pytest.mark.parametrize("other", ["b", "missing"])
def test_who_goes_with_an_expression_may_write(other: str) -> None:
    """An array that only an expression has takes a program's code with it, whether it is computed or not."""
    a, b = np.asarray(numpy.ones(LENGTH)), np.asarray(numpy.ones(LENGTH))
    seen: list[float] = []
    watched: list[Any] = []

    def gone(_: Any) -> None:
        b[0] += 1
        seen.append(float(b[0]))

    def make() -> Any:
        made = numpy.full(LENGTH, 2.0)
        watched.append(weakref.ref(made, gone))
        return made

    space: dict[str, Any] = {"a": a, "b": b, "make": make}
    exec(f"def run():\n    return (a * make()) + {other}", space)
    for k in range(3):
        if other == "missing":
            with pytest.raises(NameError):
                space["run"]()
        else:
            assert float(space["run"]()[0]) == 3 + k
        assert seen == [2.0 + i for i in range(k + 1)]


@pytest.mark.parametrize("text", ["a < b / b", "b / b < a", "a * 1 <= b / b", "a == b / b", "2 > b / b"])
def test_comparisons_are_not_turned(text: str) -> None:
    """What is told names the function that the program has called."""
    inputs = {name: numpy.zeros(LENGTH, "c8") for name in "ab"}
    inputs["a"][:] = complex("nan")
    _compare(f"return {text}", inputs)


def test_errors_are_raised() -> None:
    a, b = np.asarray(numpy.ones(LENGTH)), np.asarray(numpy.zeros(LENGTH))
    with np.errstate(all="raise"):
        with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
            (a / b) * 2
        with pytest.raises(FloatingPointError, match="invalid value encountered in divide"):
            a[:] = (b / b) + a
    assert (numpy.asarray(a) == 1).all()


def test_refused_shapes_name_themselves() -> None:
    a, b = np.asarray(numpy.ones(LENGTH)), np.asarray(numpy.zeros(LENGTH - 1))
    with pytest.raises(ValueError, match=rf"\({LENGTH},\).*\({LENGTH - 1},\)"):
        (a * 2) + b


@pytest.mark.parametrize(
    ("source", "at", "expected"),
    [
        ("a * b + c", "*", ahead.TAKEN),
        ("a * b + c", "+", ahead.NOT_TAKEN),
        ("2.0 * (a + b)", "+", ahead.TAKEN),
        ("t * (a + b)", "+", ahead.BESIDE_LOCAL),
        ("a * b + a * c", "*", ahead.TAKEN),
        ("(a + b) * (c if t else b)", "+", ahead.NOT_TAKEN),
        ("(a + b) and c", "+", ahead.NOT_TAKEN),
        ("(a +\n b) * c", "+", ahead.TAKEN),
        ("a * b +\n c - a * b", "+", ahead.TAKEN if quick.NAMES_LINES else ahead.NOT_TAKEN),
        ("c < a + b", "+", ahead.NOT_TAKEN),
        ("2 < a + b", "+", ahead.TAKEN),
        ("a * b < a + b", "+", ahead.BESIDE_RESULT),
        ("a + b < c", "+", ahead.TAKEN),
        ("b * (\na + b)", "+", ahead.BESIDE_LOCAL if quick.NAMES_LINES else ahead.NOT_TAKEN),
        ("t.x * (a + b)", "+", ahead.NOT_TAKEN),
        ("(a + b) * t.x", "+", ahead.TAKEN),
        ("t[a + b] * c", "+", ahead.NOT_TAKEN),
        ("[a + b][0] * c", "+", ahead.NOT_TAKEN),
        ("(t := a + b) * c", "+", ahead.NOT_TAKEN),
    ],
)
def test_reading_ahead(source: str, at: str, expected: int) -> None:
    """What becomes of the first such operator's result."""
    code = compile(f"def run(a, b, c, t, f):\n return ({source})", "<text>", "exec").co_consts[0]
    symbols = {"+": 0, "*": 5}
    (place, *_) = (
        i.offset for i in dis.get_instructions(code) if i.opname == "BINARY_OP" and i.arg == symbols[at]
    )
    assert ahead.read_ahead(code, place)[0] == expected


def test_code_is_read_once_for_all_of_its_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long line of them was gone through from its beginning for each."""
    code = compile(f"a = {' + '.join(f'(b[{n}:] - {n} * c)' for n in range(40))}", "<text>", "exec")
    read, own = [0], ahead._put

    def counted(*given: Any) -> Any:
        read[0] += 1
        return own(*given)

    monkeypatch.setattr(ahead, "_put", counted)
    text = ahead._text_of(code)
    for place in text.places:
        ahead.read_ahead(code, place)
    assert 100 < read[0] <= len(text)


_PACKAGE = (ahead.BESIDE_GLOBAL, 0, ahead.PACKAGE)


@pytest.mark.parametrize(
    ("source", "expected", "called"),
    [
        ("f(a + b)", ahead.TAKEN, ((ahead.BESIDE_LOCAL, 4, ahead.FUNCTION),)),
        ("(a + b) * f(c)", ahead.TAKEN, ((ahead.BESIDE_LOCAL, 4, ahead.FUNCTION),)),
        ("np.exp(a + b)", ahead.TAKEN, (_PACKAGE,)),
        ("np.where(c, a + b, np.sin(c))", ahead.TAKEN, (_PACKAGE,)),
        ("(a + b) * c[:len(t)]", ahead.TAKEN, ((ahead.BESIDE_GLOBAL, 0, ahead.BUILTIN),)),
        ("(a + b) * c[:int(t)]", ahead.TAKEN, ((ahead.BESIDE_GLOBAL, 0, ahead.FUNCTION),)),
        ("np.sum(a + b)", ahead.NOT_TAKEN, ()),
        ("np.modf(a + b)", ahead.NOT_TAKEN, ()),
        ("np.exp(a + b, out=c)", ahead.NOT_TAKEN, ()),
        ("np.exp(*(a + b))", ahead.NOT_TAKEN, ()),
        ("(a + b)(c)", ahead.NOT_TAKEN, ()),
        ("(t if c else np.exp)(a + b)", ahead.NOT_TAKEN, ()),
        ("t.np.exp(a + b)", ahead.NOT_TAKEN, ()),
        ("(t and c) * (a + b)", ahead.NOT_TAKEN, ()),
        ("(a + b) * (t and c)", ahead.NOT_TAKEN, ()),
        ("np.exp(c)[1:] * (a + b)", ahead.NOT_TAKEN, ()),
        ("c[1:][2:] * (a + b)", ahead.BESIDE_LOCAL, ()),
        ("np.exp(np.f(f(t(g(a + b)))))", ahead.TAKEN, ((ahead.BESIDE_GLOBAL, 2, ahead.FUNCTION),)),
        ("np.exp(a + b, np.exp(c) + t(c) + f(c) + g(c))", ahead.NOT_TAKEN, ()),
    ],
)
def test_reading_ahead_of_calls(source: str, expected: int, called: Any) -> None:
    """What becomes of the sum, and what has to be ours for that."""
    code = compile(f"def run(a, b, c, t, f):\n return ({source})", "<text>", "exec").co_consts[0]
    places = [i.offset for i in dis.get_instructions(code) if i.opname == "BINARY_OP" and i.arg == 0]
    kind, *_, found = ahead.read_ahead(code, places[0])
    assert kind == expected
    functions = [(kind, what) for kind, _, what in found if what != ahead.OPERAND]
    assert functions == [(kind, what) for kind, _, what in called]


@pytest.mark.parametrize(
    ("source", "worked_on"),
    [
        ("(a + b) * c", ""),
        ("(a + b) * (c - 1)", "c"),
        ("(a + b) * -c[1:, 2]", "c"),
        ("(a + b) * c[t : f + 1]", "cft"),
        ("(a + b) * (np.exp(c) + t)", "ct"),
        ("(a + b) * (c < t) * f", "ct"),
        ("(a + b) * t.x", None),
        ("(a + b) * (t.x + 1)", None),
        ("(a + b) * (2.5 * c[0])", "c"),
        ("(a + b) * len(c)", None),
    ],
)
def test_reading_ahead_of_other_operands(source: str, worked_on: str | None) -> None:
    """Which variables have to be arrays and numbers, so that no code but ours runs; None where any may."""
    code = compile(f"def run(a, b, c, t, f):\n return ({source})", "<text>", "exec").co_consts[0]
    places = [i.offset for i in dis.get_instructions(code) if i.opname == "BINARY_OP" and i.arg == 0]
    kind, _, _, runs_any, used = ahead.read_ahead(code, places[0])
    assert kind == ahead.TAKEN
    assert runs_any == (worked_on is None)
    if worked_on is not None:
        names = [code.co_varnames[number] for _, number, what in used if what == ahead.OPERAND]
        assert "".join(sorted(names)) == worked_on
