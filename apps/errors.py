"""What apps raise and warn with. Where scikit-learn is in use, its own handlers know them, too."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, cast

from spartan_ng.callers import user_frame


class NotFittedError(ValueError, AttributeError):
    """An estimator was asked for what only `fit` gives it."""


class ConvergenceWarning(UserWarning):
    """An iteration has ended because it was told to, not because it was done."""


class UndefinedMetricWarning(UserWarning):
    """A measure has no value for such data."""


class DataConversionWarning(UserWarning):
    """Data were taken in another form than they were given in."""


T = TypeVar("T", bound=Exception)


def known(own: type[T]) -> type[T]:
    """`own`, which is scikit-learn's class of that name as well where scikit-learn is imported."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), own.__name__, None)
    return own if theirs is None else _joined(own, theirs)


def _join(own: type[T], theirs: type) -> type[T]:
    return type(own.__name__, (own, theirs), {"__doc__": own.__doc__, "__module__": own.__module__})


_joined = cast("Callable[[type[T], type], type[T]]", lru_cache(maxsize=8)(_join))


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the user's line."""
    warnings.warn(message, known(category), stacklevel=user_frame()[0])
