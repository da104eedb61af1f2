"""Modules and functions that not every system has."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

INT, LONG, SIZE = ctypes.c_int, ctypes.c_long, ctypes.c_size_t
ADDRESS, TEXT = ctypes.c_void_p, ctypes.c_char_p


def module(name: str) -> Any:
    """A module of Python's library; None where this system's lacks it."""
    try:
        return import_module(name)
    except ImportError:
        return None


def function(
    name: str, arguments: Sequence[Any], result: Any = INT, is_short: bool = False
) -> Callable[..., Any] | None:
    """The function of that name, with its types; None where the system is not Linux, or its library lacks it.

    Others have functions of these names, too, whose flags are other numbers. A short one runs without letting
    other threads of Python's run.
    """
    if sys.platform != "linux":
        return None
    try:
        found = getattr(ctypes.PyDLL(None) if is_short else ctypes.CDLL(None, use_errno=True), name)
    except (AttributeError, OSError, TypeError):
        return None
    found.argtypes, found.restype = arguments, result
    return found  # type: ignore[no-any-return]


def last_error(about: str = "") -> OSError:
    """What the last function said went wrong."""
    number = ctypes.get_errno()
    return OSError(number, about + os.strerror(number))


fallocate = function("fallocate", [INT, INT, LONG, LONG])
"""Linux's, of a file's descriptor, a mode, an offset and a length."""
