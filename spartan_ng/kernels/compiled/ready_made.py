"""Kernels that are written by hand: modules in `loops`, compiled from their text with other constants.

The modules are Python like any other, but only the compiler's process imports them: what they import takes a
second. Constants stand at their top; those that this process has to know are read there.
"""

from __future__ import annotations

import re
from ast import literal_eval
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(__file__).parent / "loops"


_REALS = {"f4": "np.float32", "f8": "np.float64"}


def real(dtype: np.dtype[Any]) -> str | None:
    """What the text of a loop calls floating-point numbers; None for all that such loops are not made for."""
    return _REALS.get(dtype.str[1:]) if dtype.isnative else None


@cache
def _text(module: str) -> str:
    return (_FOLDER / f"{module}.py").read_text()


def _definition(constant: str) -> re.Pattern[str]:
    return re.compile(rf"^{constant} = (.*)$", re.MULTILINE)


@cache
def source_of(module: str, **constants: str) -> str:
    """The text of a module of `loops` with these texts in the place of its constants' values."""
    text = _text(module)
    for name, value in constants.items():
        text, found = _definition(name).subn(f"{name} = {value}", text)
        assert found == 1, f"loops/{module}.py defines {name} once"
    return text


@cache
def constant_of(module: str, name: str) -> Any:
    """The value of a constant, a literal, in a module of `loops`."""
    for line in _text(module).splitlines():  # a pattern takes longer to compile
        found, is_defined, value = line.partition(" = ")
        if is_defined and found == name:
            return literal_eval(value)
    raise AssertionError(f"loops/{module}.py defines no {name}")
