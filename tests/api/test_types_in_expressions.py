"""Functions of results that are left for later take their operands as NumPy takes them, of whatever types."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np

TYPES = ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
OF_TWO = sorted(
    name
    for name, f in vars(numpy).items()
    if isinstance(f, numpy.ufunc) and (f.nin, f.nout, f.signature) == (2, 1, None) and hasattr(np, name)
)
NUMBERS = (
    2,
    2.5,
    True,
    2j,
    numpy.float32(2),
    numpy.int8(3),
    numpy.uint16(9),
    numpy.float64(2),
    numpy.int64(5),
)
ELEMENTS = 2100


def _given(module: Any, dtype: str) -> Any:
    return module.array((numpy.arange(ELEMENTS) % 2 + 1).astype(dtype))


def _of(module: Any, name: str, a: Any, b: Any, is_number_first: bool = False) -> Any:
    """What a function gives of a result that may be left for later, in an expression; or NumPy's refusal."""
    f = getattr(module, name)
    try:
        with numpy.errstate(all="ignore"):
            return numpy.asarray(f(b, a * a) if is_number_first else f(a * a, b))
    except (TypeError, ValueError, OverflowError):
        return None


def _check(given: tuple[Any, ...], expected: Any, found: Any) -> None:
    if expected is None or found is None:
        assert expected is None, given
        assert found is None, given
    else:
        assert found.dtype == expected.dtype, given
        assert numpy.allclose(
            found, expected, 1e-2 if expected.dtype.itemsize < 4 else 1e-5, equal_nan=True
        ), given


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_types(name: str) -> None:
    for one, other in product(TYPES, TYPES):
        expected, found = (_of(m, name, _given(m, one), _given(m, other)) for m in (numpy, np))
        _check((one, other), expected, found)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_a_type_and_a_number(name: str) -> None:
    for one, number, is_first in product(TYPES, NUMBERS, (False, True)):
        expected, found = (_of(m, name, _given(m, one), number, is_first) for m in (numpy, np))
        _check((one, number, is_first), expected, found)
