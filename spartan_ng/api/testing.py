"""`numpy.testing` for arrays of ours: what is compared is gathered first, then NumPy compares it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from spartan_ng.api.core.dispatch import by_numpy

_CALLING = frozenset({"assert_raises", "assert_raises_regex", "assert_warns", "assert_no_warnings"})
"""Assertions that call a function, which gets its arguments as they are."""


def __getattr__(name: str) -> Any:
    """NumPy's name; an assertion gathers its arguments."""
    found = getattr(np.testing, name)
    if name.startswith("assert_") and callable(found) and name not in _CALLING:
        return functools.wraps(found)(functools.partial(by_numpy, found))
    return found
