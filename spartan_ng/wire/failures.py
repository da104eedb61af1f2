"""Errors on the wire: a type's name and a message, never a pickle.

The library's own errors, Python's and NumPy's come back as what they were, so that `except IndexError`
means the same on a cluster; any other becomes an `EvaluationError` that names it, and is of its type, too,
where it is Python's.
"""

from __future__ import annotations

import builtins
import errno
import re

import numpy as np

from spartan_ng import errors
from spartan_ng.errors import EvaluationError, OutOfResources, UserFunctionError, as_raised
from spartan_ng.texts import error_text, type_name

_NUMPY: dict[str, type[Exception]] = {
    "LinAlgError": np.linalg.LinAlgError,
    "AxisError": np.exceptions.AxisError,
    "DTypePromotionError": np.exceptions.DTypePromotionError,
    "TooHardError": np.exceptions.TooHardError,
}


_NUMBER = re.compile(r"(worker [^:]*: )?\[Errno (\d+)\] (.*)", re.DOTALL)
"""How an error of the system is told."""
_SHORT_OF = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})


def describe_error(error: BaseException, worker: str = "") -> tuple[str, str]:
    """An error's type name and message; which `worker` it was, where its system has no more of something."""
    kind, text = type_name(error), error_text(error)
    if isinstance(error, UserFunctionError) and error.raised:
        kind = f"{kind} {error.raised}"
    if worker and (_is_shortage(error) or _is_shortage(error.__cause__)):
        kind = OutOfResources.__name__ if isinstance(error, OSError) else kind
        text = f"worker {worker}: {text}"
    return kind, text


def _is_shortage(error: BaseException | None) -> bool:
    """Whether a system has no memory, disk or descriptors left, or a worker none of its budget."""
    if isinstance(error, MemoryError | OutOfResources):
        return True
    return isinstance(error, OSError) and error.errno in _SHORT_OF


def rebuild_error(kind: str, message: str) -> Exception:
    """An error to raise here for one that was described elsewhere."""
    kind, _, raised = kind.partition(" ")
    found = getattr(errors, kind, None) or _NUMPY.get(kind) or getattr(builtins, kind, None)
    if isinstance(found, type) and issubclass(found, Exception):
        if raised and issubclass(found, UserFunctionError):
            return found(message, raised)
        number = _NUMBER.fullmatch(message) if issubclass(found, OSError) else None
        try:
            return (
                found(message) if number is None else found(int(number[2]), f"{number[1] or ''}{number[3]}")
            )
        except TypeError:
            pass  # its constructor wants more than a message, as UnicodeDecodeError's
        return as_raised(EvaluationError, f"{kind}: {message}", f"{found.__module__}:{kind}")
    return EvaluationError(f"{kind}: {message}")
