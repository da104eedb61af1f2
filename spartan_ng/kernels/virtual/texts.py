"""The numexpr text of each elementwise row, where numexpr means exactly what NumPy's loop does.

One visible row a function: the kinds of operands it holds for, and an expression in {0}, {1}, {2}. What is
not here means something else in numexpr, for some value or dtype: it has no small or unsigned integers,
divides integers by zero without a word, computes `exp` and its kin to other last bits, takes `trunc` of
floats for doubles, and has no maximum of two signed zeros that NumPy's would agree with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.kernels.compiled.formulas import code, loop_dtypes
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Row

TYPES: dict[str, Any] = {"f4": float, "f8": np.double, "i4": np.int32, "i8": np.int64, "b1": bool}
"""numexpr's type for each dtype that it has, by NumPy's code; its `float` is the single one."""
_TO_DOUBLE = ("f4", "i4", "i8")
"""What numexpr casts to doubles as NumPy does."""


class Text(Struct, frozen=True):
    """One function: `kinds` are the dtype kinds of its operands."""

    name: str
    kinds: str
    text: str


_ROWS = [
    Text("add", "fi", "({0} + {1})"),
    Text("subtract", "fi", "({0} - {1})"),
    Text("multiply", "fi", "({0} * {1})"),
    Text("divide", "f", "({0} / {1})"),
    Text("negative", "fi", "(-{0})"),
    Text("positive", "fi", "{0}"),
    Text("absolute", "f", "abs({0})"),
    Text("fabs", "f", "abs({0})"),
    Text("square", "fi", "({0} * {0})"),
    Text("reciprocal", "f", "(1 / {0})"),
    Text("sqrt", "f", "sqrt({0})"),
    Text("floor", "f", "floor({0})"),
    Text("ceil", "f", "ceil({0})"),
    Text("equal", "fib", "({0} == {1})"),
    Text("not_equal", "fib", "({0} != {1})"),
    Text("less", "fi", "({0} < {1})"),
    Text("less_equal", "fi", "({0} <= {1})"),
    Text("greater", "fi", "({0} > {1})"),
    Text("greater_equal", "fi", "({0} >= {1})"),
    Text("logical_and", "b", "({0} & {1})"),
    Text("logical_or", "b", "({0} | {1})"),
    Text("logical_xor", "b", "({0} ^ {1})"),
    Text("logical_not", "b", "(~{0})"),
    Text("bitwise_and", "ib", "({0} & {1})"),
    Text("bitwise_or", "ib", "({0} | {1})"),
    Text("bitwise_xor", "ib", "({0} ^ {1})"),
    Text("invert", "ib", "(~{0})"),
    Text("isnan", "f", "({0} != {0})"),
    Text("where", "fib", "where({0}, {1}, {2})"),
]

TEXTS: dict[str, Text] = {row.name: row for row in _ROWS}
"""Every text by the name of its function."""


def obstacle(row: Row, operands: list[np.dtype[Any]]) -> str:
    """Why a map has no text for operands of these dtypes; empty where it has one."""
    if isinstance(row.fn, UserFunction):
        return "a user's function"
    if row.format != "dense" or row.sampled:
        return "sparse"
    foreign = [d for d in (*operands, row.dtype) if code(d) not in TYPES]
    if foreign:
        return f"numexpr has no {foreign[0]}"
    name = str(row.fn)
    if name == "cast":
        fits = code(row.dtype) == "f8" and code(operands[0]) in _TO_DOUBLE
        return "" if fits else f"a cast from {operands[0]} to {row.dtype}"
    if name not in TEXTS:
        return "not the same in numexpr"
    return "" if _taken(row, operands) else f"operands of {', '.join(map(str, operands))}"


def _taken(row: Row, operands: list[np.dtype[Any]]) -> tuple[np.dtype[Any], ...]:
    """The dtypes that NumPy's loop takes its operands in, where the row's text holds for them."""
    name = str(row.fn)
    if name == "where":
        fits = operands[0].kind == "b" and all(d == row.dtype for d in operands[1:])
        return tuple(operands) if fits else ()
    *taken, out = loop_dtypes(name, tuple(operands))
    fits = out == row.dtype and all(d == taken[0] for d in taken) and taken[0].kind in TEXTS[name].kinds
    doubled = code(taken[0]) == "f8"
    casts = all(a == b or (doubled and code(a) in _TO_DOUBLE) for a, b in zip(operands, taken, strict=True))
    return tuple(taken) if fits and casts else ()


def expression(row: Row, names: list[str], operands: list[np.dtype[Any]]) -> str:
    """The row's text with `names` for its operands, which have these dtypes."""
    if row.fn == "cast":
        return _double(names[0])
    cast = [
        n if a == b else _double(n) for n, a, b in zip(names, operands, _taken(row, operands), strict=True)
    ]
    return TEXTS[str(row.fn)].text.format(*cast)


def _double(name: str) -> str:
    """Numexpr casts where a double meets another number, and knows no cast by name."""
    return f"({name} * 1.0)"
