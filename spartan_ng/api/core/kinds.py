"""What kinds of values and dtypes there are: Python's, NumPy's, subclasses of NumPy's arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from spartan_ng.api.core.numbers import NUMERIC

PYTHONS: frozenset[type] = frozenset({int, float, bool, complex})
"""The types of Python's numbers."""
PLAIN = PYTHONS | {str}
NUMBERS: frozenset[type] = PYTHONS | NUMERIC
"""The types of numbers that NumPy takes as they are."""
PLAIN_OR_NUMERIC = PLAIN | NUMERIC
NUMBER_KINDS = "biufc"
"""The kinds of dtypes of numbers, and of truth values."""


_SEQUENCES, _NUMPYS = (list, tuple), (np.ndarray, np.generic)


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """A `dtype=` argument; a class of dtypes stands for the one that NumPy would make."""
    if isinstance(dtype, type) and issubclass(dtype, np.dtype):
        return np.zeros(0, dtype).dtype
    return np.dtype(float if dtype is None else dtype)


def without_details(dtype: Any) -> np.dtype[Any] | None:
    """A `dtype=` argument as NumPy's methods in C read it, which drop order of bytes, unit and length; None
    where there is none."""
    return None if dtype is None else np.dtype(as_dtype(dtype).char)


def are_numbers(own: np.dtype[Any], dtype: Any) -> bool:
    """Whether elements of a dtype are numbers, and so are those of a `dtype=` that they are worked on in."""
    return own.kind in NUMBER_KINDS and (dtype is None or as_dtype(dtype).kind in NUMBER_KINDS)


def same_bytes(a: np.dtype[Any], b: np.dtype[Any]) -> bool:
    """Whether elements of one dtype are another's; texts of any length lie in their dtype's own memory."""
    return a is b or (a == b and a.kind != "T")


class SubclassError(TypeError):
    """An operand is of a subclass of NumPy's array class, as masked arrays and matrices are.

    Its class says what functions of it mean, so the function that meets it is left to NumPy.
    """


def is_subclass(a: Any) -> bool:
    """Whether a NumPy array's class has rules of its own; mapped files have none."""
    return a.__class__ is not np.ndarray and isinstance(a, np.ndarray) and not isinstance(a, np.memmap)


def any_stays(values: Iterable[Any]) -> bool:
    """Whether one of NumPy's values, also in lists of them, has elements that never leave the driver: NumPy
    works on them at once, however many bytes there are."""
    for v in values:  # no generator: calls of large arrays ask
        if isinstance(v, _SEQUENCES):
            if any_stays(v):
                return True
        elif isinstance(v, _NUMPYS) and v.nbytes > 0 and stays(v.dtype):
            return True
    return False


def stays(dtype: Any) -> bool:
    """Whether elements never leave the driver: objects, those of dtypes that are not NumPy's own, and what
    takes no memory."""
    return dtype.hasobject or not dtype.itemsize or not 0 <= dtype.num < _OWN_DTYPES


def is_foreign(dtype: Any) -> bool:
    """Whether a dtype is somebody else's than NumPy's first ones: of strings, or a program's own."""
    return not 0 <= dtype.num < _OWN_DTYPES


_OWN_DTYPES = 24
"""NumPy numbers its own dtypes first."""
