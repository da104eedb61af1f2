"""`numpy.testing` for arrays of ours: what is compared is gathered first, then NumPy compares it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import as_handle, is_array_like
from spartan_ng.api.core.dispatch import by_numpy

_CALLING = frozenset({"assert_raises", "assert_raises_regex", "assert_warns", "assert_no_warnings"})
"""Assertions that call a function, which gets its arguments as they are."""


def __getattr__(name: str) -> Any:
    """NumPy's name; an assertion gathers its arguments."""
    found = getattr(np.testing, name)
    if name.startswith("assert_") and callable(found) and name not in _CALLING:
        return functools.wraps(found)(functools.partial(_asserted, found))
    return found


def _asserted(assertion: Any, *args: Any, **keywords: Any) -> Any:
    try:
        return by_numpy(assertion, *args, **keywords)
    except ValueError as error:  # an object's `__array__`, which is a program's, has given an array of ours
        if "__array__ method not producing an array" not in str(error):
            raise
    shown = {name: _as_array(a) for name, a in keywords.items()}
    return by_numpy(assertion, *map(_as_array, args), **shown)


def _as_array(a: Any) -> Any:
    """An object that says how it becomes an array as that array; another thing as it is."""
    return as_handle(a) if is_array_like(a) else a
