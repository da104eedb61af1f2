"""The text of each elementwise row in a generated kernel, where it means exactly what NumPy's loop does.

One visible row a function: the kinds of operands it holds for, and an expression in {0}, {1}, {2} (operands
in the loop's dtype), {T} (the result's type). What is not here has no formula that is both exact and
faster than NumPy's own loop on a cached block: it stays a NumPy call between two compiled loops.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Row

DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
"""Dtypes that kernels are generated for, by their NumPy codes."""


class Formula(Struct, frozen=True):
    """One function: `kinds` are the dtype kinds of its operands, "d" for doubles only."""

    name: str
    kinds: str
    text: str
    beats_numpy: bool = False
    """Whether it pays to compile a loop for this function alone."""


_MAXIMUM = "choose(({0} > {1}) | ({0} != {0}), {0}, {1})"  # of zeros that differ in sign the second
_MINIMUM = "choose(({0} < {1}) | ({0} != {0}), {0}, {1})"
_FMAX = "choose(({0} >= {1}) | ({1} != {1}), {0}, {1})"
_FMIN = "choose(({0} <= {1}) | ({1} != {1}), {0}, {1})"

_ROWS = [
    Formula("add", "fiu", "{T}({0} + {1})"),
    Formula("subtract", "fiu", "{T}({0} - {1})"),
    Formula("multiply", "fiu", "{T}({0} * {1})"),
    Formula("divide", "f", "{0} / {1}"),
    Formula("negative", "fiu", "{T}(-{0})"),
    Formula("positive", "fiu", "{0}"),
    Formula("absolute", "f", "magnitude({0})"),
    Formula("fabs", "f", "magnitude({0})"),
    Formula("square", "fiu", "{T}({0} * {0})"),
    Formula("reciprocal", "f", "{T}(1) / {0}"),
    Formula("sqrt", "f", "sqrt({0})"),
    Formula("sign", "f", "choose({0} != {0}, {0}, {T}({0} > 0) - {T}({0} < 0))"),
    Formula("floor", "f", "floor({0})"),
    Formula("ceil", "f", "ceil({0})"),
    Formula("trunc", "f", "trunc({0})"),
    Formula("rint", "f", "rint({0})"),
    Formula("copysign", "f", "copysign({0}, {1})"),
    Formula("maximum", "fiu", _MAXIMUM),
    Formula("minimum", "fiu", _MINIMUM),
    Formula("fmax", "fiu", _FMAX),
    Formula("fmin", "fiu", _FMIN),
    Formula("equal", "fiub", "{0} == {1}"),
    Formula("not_equal", "fiub", "{0} != {1}"),
    Formula("less", "fiu", "{0} < {1}"),
    Formula("less_equal", "fiu", "{0} <= {1}"),
    Formula("greater", "fiu", "{0} > {1}"),
    Formula("greater_equal", "fiu", "{0} >= {1}"),
    Formula("logical_and", "fiub", "({0} != 0) & ({1} != 0)"),
    Formula("logical_or", "fiub", "({0} != 0) | ({1} != 0)"),
    Formula("logical_xor", "fiub", "({0} != 0) ^ ({1} != 0)"),
    Formula("logical_not", "fiub", "{0} == 0"),
    Formula("bitwise_and", "iub", "{T}({0} & {1})"),
    Formula("bitwise_or", "iub", "{T}({0} | {1})"),
    Formula("bitwise_xor", "iub", "{T}({0} ^ {1})"),
    Formula("invert", "iu", "{T}(~{0})"),
    Formula("exp", "d", "exp({0})"),
    Formula("log", "d", "log({0})"),
    Formula("expit", "d", "expit({0})", beats_numpy=True),
    Formula("erf", "d", "erf({0})", beats_numpy=True),
    Formula("isnan", "f", "{0} != {0}"),
    Formula("isinf", "f", "magnitude({0}) == infinity"),
    Formula("isfinite", "f", "magnitude({0}) < infinity"),
    Formula("where", "fiub", "choose({0}, {1}, {2})"),
]

FORMULAS: dict[str, Formula] = {row.name: row for row in _ROWS}
"""Every formula by the name of its function."""
OF_OUR_OWN = frozenset(row.name for row in _ROWS if row.kinds == "d")
"""Functions whose last bits are not those of NumPy's."""


def code(dtype: np.dtype[Any]) -> str:
    """A dtype's NumPy code, as in `DTYPES`."""
    return dtype.str[1:] if dtype.isnative else ""


def obstacle(row: Row, operands: list[np.dtype[Any]]) -> str:
    """Why a map has no formula for operands of these dtypes; empty where it has one."""
    if isinstance(row.fn, UserFunction):
        return "a user's function"
    name = str(row.fn)
    foreign = [d for d in (*operands, row.dtype) if code(d) not in DTYPES]
    if foreign:
        return f"dtype {foreign[0]}"
    if name == "cast":
        return "a cast from float to integer" if operands[0].kind == "f" and row.dtype.kind in "iu" else ""
    if name not in FORMULAS:
        return "NumPy's own loop"
    return "" if _loop(row, operands) else f"operands of {', '.join(map(str, operands))}"


@lru_cache(maxsize=1024)
def loop_dtypes(name: str, operands: tuple[np.dtype[Any], ...]) -> tuple[np.dtype[Any], ...]:
    """The dtypes that NumPy's loop takes its operands in, and the one it gives; objects where it has none."""
    ufunc: Any = ELEMENTWISE[name].function
    try:
        found: tuple[np.dtype[Any], ...] = ufunc.resolve_dtypes((*operands, None))
    except TypeError:
        return (np.dtype(object),) * (len(operands) + 1)
    return found


def _loop(row: Row, operands: list[np.dtype[Any]]) -> tuple[np.dtype[Any], ...]:
    """The dtypes that NumPy's loop for the operands takes, where the row's formula holds for them."""
    name = str(row.fn)
    kinds = FORMULAS[name].kinds
    if name == "where":
        fits = operands[0].kind == "b" and all(d == row.dtype for d in operands[1:])
        return tuple(operands) if fits else ()
    *taken, out = loop_dtypes(name, tuple(operands))
    first = taken[0]
    fits = code(first) in DTYPES and (first.kind in kinds or ("d" in kinds and first == np.float64))
    same = out == row.dtype and all(d == first for d in taken)
    exact = all(a == b or a.kind in "biu" or b.kind == "f" for a, b in zip(operands, taken, strict=True))
    return tuple(taken) if fits and same and exact else ()


def expression(row: Row, names: list[str], operands: list[np.dtype[Any]]) -> str:
    """The row's text with `names` for its operands, which have these dtypes."""
    target = code(row.dtype)
    if row.fn == "cast":
        return f"{names[0]} != 0" if target == "b1" else f"{target}({names[0]})"
    taken = _loop(row, operands)
    cast = [n if a == b else f"{code(b)}({n})" for n, a, b in zip(names, operands, taken, strict=True)]
    return FORMULAS[str(row.fn)].text.format(*cast, T=target)
