"""How a generated kernel folds: the value it starts from, and the text that adds one element.

Float sums inside a line go through reorderable instructions, so that they vectorize; extremes
of floats go through a few lanes, since their NaN rule is none that compilers vectorize.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.kernels.compiled.formulas import DTYPES, FORMULAS, code

PRODUCT = "product"
"""The fold of a matrix product: a sum of products of two operands."""


class FoldText(Struct, frozen=True):
    """One fold: `step` combines two values; `line`, where given, is its vectorized form on floats."""

    name: str
    kinds: str
    step: str
    line: str = ""
    lanes: bool = False


_ROWS = [
    FoldText("add", "fiu", "{T}({0} + {1})", "accumulate_add({0}, {1})"),
    FoldText("multiply", "iu", "{T}({0} * {1})"),
    FoldText(PRODUCT, "f", "{0} + {1}", "accumulate_add({0}, {1})"),
    FoldText("maximum", "fiu", FORMULAS["maximum"].text, "greatest({0}, {1})"),
    FoldText("minimum", "fiu", FORMULAS["minimum"].text, "least({0}, {1})"),
    FoldText("fmax", "fiu", FORMULAS["fmax"].text, lanes=True),
    FoldText("fmin", "fiu", FORMULAS["fmin"].text, lanes=True),
    FoldText("logical_and", "b", "{0} & {1}"),
    FoldText("logical_or", "b", "{0} | {1}"),
    FoldText("logical_xor", "b", "{0} ^ {1}"),
    FoldText("bitwise_and", "iu", "{T}({0} & {1})"),
    FoldText("bitwise_or", "iu", "{T}({0} | {1})"),
    FoldText("bitwise_xor", "iu", "{T}({0} ^ {1})"),
]

FOLD_TEXTS: dict[str, FoldText] = {row.name: row for row in _ROWS}
"""Every fold that has a text, by its name."""
EXTREMES = {"argmin": "minimum", "argmax": "maximum"}
"""The folds that find where the first extreme of a line is, by that."""


def fold_obstacle(name: str, operand: np.dtype[Any], out: np.dtype[Any]) -> str:
    """Why a fold has no text for this operand and result; empty where it has one."""
    if name in EXTREMES:
        return fold_obstacle(EXTREMES[name], operand, operand)
    row = FOLD_TEXTS.get(name)
    if row is None:
        return "a fold with NumPy's own loop"
    if code(operand) not in DTYPES or code(out) not in DTYPES or out.kind not in row.kinds:
        return f"a fold from {operand} to {out}"
    if operand.kind == "f" and out.kind in "iu":
        return f"a fold from {operand} to {out}"
    return ""


def start(name: str, dtype: np.dtype[Any], masked: bool) -> Any:
    """What a fold starts from; NumPy's start for masked extremes differs from a plain one's."""
    if name in EXTREMES:  # a place, which is written over once its line has been looked through
        return dtype.type(0)
    if name in ("add", PRODUCT, "bitwise_or", "bitwise_xor", "logical_or", "logical_xor"):
        return dtype.type(0)
    if name in ("multiply", "logical_and"):
        return dtype.type(1)
    if name == "bitwise_and":
        return np.invert(dtype.type(0))
    least = name in ("maximum", "fmax")
    if dtype.kind == "f":
        if name in ("fmax", "fmin") and not masked:
            return dtype.type(np.nan)
        return dtype.type(-np.inf if least else np.inf)
    info = np.iinfo(dtype)
    return dtype.type(info.min if least else info.max)
