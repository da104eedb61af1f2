"""Powers whose exponent is a number of NumPy's, of ours, or an array of one element."""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import spartan_ng as np

DTYPES = ("?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "m8[s]", "O", "U3")
EXPONENTS = {
    **{
        f"{kind}({value})": (kind, value)
        for kind in ("f2", "f4", "f8", "i1", "i8", "u8", "c16", "?")
        for value in (0, 1, 2, 3)
    },
    **{f"{kind}({value})": (kind, value) for kind in ("f4", "f8") for value in (0.5, -1, 1.5, numpy.nan)},
    **{f"{kind}({value})": (kind, value) for kind in ("i1", "i8") for value in (-1, -2)},
}


def power(space: Any, dtype: str, form: str, kind: str, value: Any, size: int) -> Any:
    """A power, or the error that it is, and what is warned of."""
    x = space.array((numpy.arange(size) % 5).astype(dtype))
    number = numpy.dtype(kind).type(value)
    n = {
        "number": lambda: number,
        "array of none": lambda: space.array(number),
        "of a sum": lambda: space.array([number, 0 * number]).astype(kind).max(),
        "taken": lambda: space.array([number])[0],
    }[form]()
    parts: list[Any] = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            found, again = numpy.asarray(x**n), x.copy()
            values = repr(found.tolist()) if found.dtype == object else found.tobytes()
            parts = [found.dtype, values, type(x**n + 1).__name__]
            again **= n
            parts.append(numpy.asarray(again).dtype)
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            parts = [*parts, next(c for c in type(error).__mro__ if c.__module__ == "builtins")]
    return parts, sorted({str(w.message) for w in told})


@pytest.mark.parametrize("form", ["number", "array of none", "of a sum", "taken"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_by_numbers_are_numpys(dtype: str, form: str) -> None:
    for name, (kind, value) in EXPONENTS.items():
        for size in (7, 30_000):
            wanted, given = (power(space, dtype, form, kind, value, size) for space in (numpy, np))
            assert given == wanted, (name, size)
