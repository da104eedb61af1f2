"""NumPy's functions of numbers, called so that its warnings name the user's line."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

import spartan_ng.error_state as states
from spartan_ng.api.core import quick
from spartan_ng.callers import warn_user


class _Teller:
    """Where NumPy logs errors that are to be warnings of the user's line."""

    def write(self, text: str) -> None:
        """Warn of what NumPy says of one error."""
        warn_user(states.said(text), RuntimeWarning)


_TELLER = _Teller()
_telling: tuple[Any, Any] = (object(), None)
"""A value of the variable, and the one under which ours tells what it has NumPy warn of; None for none."""


def _teller_of(variable: ContextVar[Any], value: Any) -> Any:
    """The variable's value, for the one in force, under which warnings name the user's line."""
    state = states.error_state()
    if not state.tells:
        return None
    with states.logged(state.kinds, _TELLER):
        found = variable.get(None)
    return None if found is value else found


def told(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What a function of NumPy's gives, whose warnings of floating-point errors name the user's line.

    NumPy's own name the line that called it, which is one of this package's wherever that stands between.
    No code of the user's must run in it, as elements that are objects do: it would be asked for its errors.
    """
    global _telling
    if states.variable is None:
        return function(*args, **keywords)
    value, last = states.variable.get(None), _telling
    if value is not last[0]:
        _telling = last = (value, _teller_of(states.variable, value))
    if last[1] is None:
        return function(*args, **keywords)
    token = states.variable.set(last[1])
    try:
        return function(*args, **keywords)
    finally:
        states.variable.reset(token)


def applied(numpys: Any, operands: tuple[Any, ...], *out: Any, **asked: Any) -> Any:
    """What a universal function of NumPy's gives for its arrays and numbers, or writes to `out`; with all
    that is asked of it besides."""
    has_objects = False
    for a in operands:  # whose code is the user's
        has_objects = has_objects or (type(a) is np.ndarray and a.dtype.hasobject)
    if asked:
        return numpys(*operands, **asked) if has_objects else told(numpys, *operands, **asked)
    if has_objects:
        return quick.applied(numpys, operands, *out)
    return told(quick.applied, numpys, operands, *out)
