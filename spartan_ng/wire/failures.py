"""Errors on the wire: a type's name and a message, never a pickle.

The library's own errors, Python's and NumPy's come back as what they were, so that `except IndexError`
means the same on a cluster; any other becomes an `EvaluationError` that names it.
"""

from __future__ import annotations

import builtins

import numpy as np

from spartan_ng import errors
from spartan_ng.errors import EvaluationError

_NUMPY: dict[str, type[Exception]] = {
    "LinAlgError": np.linalg.LinAlgError,
    "AxisError": np.exceptions.AxisError,
    "DTypePromotionError": np.exceptions.DTypePromotionError,
    "TooHardError": np.exceptions.TooHardError,
}


def describe(error: BaseException) -> tuple[str, str]:
    """An error's type name and message."""
    if isinstance(error, KeyError) and len(error.args) == 1:
        return type(error).__name__, str(error.args[0])
    return type(error).__name__, str(error)


def rebuild(kind: str, message: str) -> Exception:
    """An error to raise here for one that was described elsewhere."""
    found = getattr(errors, kind, None) or _NUMPY.get(kind) or getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        try:
            return found(message)
        except TypeError:
            pass  # its constructor wants more than a message, as UnicodeDecodeError's
    return EvaluationError(f"{kind}: {message}")
