"""Which of NumPy's functions we have, the shortcut for small operands, and the fallback for the rest.

`@numpy_function(np.x)` enters a function into the table that `__array_function__` consults. With `eager` it
also lets NumPy do the work at once when all array arguments are small and on the driver. What is not in
the table is gathered, given to NumPy, and reported once in a warning.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

from spartan_ng.api.handle import Handle, values, wrap
from spartan_ng.config import config
from spartan_ng.graph.evaluation import at_once_bytes, in_process

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[Any, Callable[..., Any]] = {}
"""Ours for each of NumPy's functions."""

_warned: set[str] = set()
_PACKAGE = str(Path(__file__).parents[1])


class FallbackWarning(UserWarning):
    """A function runs in NumPy on the driver, after its operands were gathered."""


def numpy_function(
    *functions: Any, eager: bool = False, whole: bool = False, folds: bool = False
) -> Callable[[F], F]:
    """Enter a function in the table; `eager` functions leave small operands to NumPy.

    An eager function must not return much more than it is given, and never a view of it. A `whole` function
    is an eager one that nothing fuses with, because it sorts or counts: where programs run in this process,
    NumPy takes operands of any size that have values. One that `folds` is an eager one whose result is small:
    there, it may take more than small operands.
    """

    def enter(ours: F) -> F:
        called: Any = ours
        if eager or whole or folds:
            called = _with_shortcut(ours, functions[0], whole, folds)
        for f in functions:
            FUNCTIONS[f] = called
        return called  # type: ignore[no-any-return]

    return enter


def _with_shortcut(ours: F, numpys: Callable[..., Any], whole: bool, folds: bool) -> F:
    """`ours`, but for small operands NumPy's function at once, unless a keyword is not NumPy's."""
    takes_out = "out" in inspect.signature(ours).parameters
    beyond = set(inspect.signature(ours).parameters) - set(inspect.signature(numpys).parameters)

    @functools.wraps(ours)
    def call(*args: Any, **keywords: Any) -> Any:
        if keywords and not beyond.isdisjoint(keywords):
            return ours(*args, **keywords)
        if takes_out and (len(args) > 2 or keywords.get("out") is not None):
            return ours(*args, **keywords)
        budget = [config.small_bytes]
        if budget[0] and (whole or folds) and in_process():
            budget[0] = sys.maxsize if whole else at_once_bytes(budget[0])
        try:
            known = [_known(a, budget) for a in args]
            named = {k: _known(v, budget) for k, v in keywords.items() if v is not None or k == "axis"}
        except _NotSmallError:
            return ours(*args, **keywords)
        return fresh(numpys(*known, **named))

    return call  # type: ignore[return-value]


class _NotSmallError(Exception):
    """An argument is lazy, sparse, or too large."""


def _known(a: Any, budget: list[int]) -> Any:
    """The NumPy form of an argument, if it fits what is left of the budget."""
    if isinstance(a, Handle):
        a = a._peek()
        if a is None:
            raise _NotSmallError
    elif isinstance(a, list | tuple):
        if any(isinstance(i, Handle | list | tuple | np.ndarray) or sparse.issparse(i) for i in a):
            return type(a)([_known(i, budget) for i in a])
        return a
    elif sparse.issparse(a):
        raise _NotSmallError
    budget[0] -= getattr(a, "nbytes", 0)
    if budget[0] < 0:
        raise _NotSmallError
    return a


def fresh(result: Any) -> Any:
    """NumPy's results as arrays with memory of their own."""
    if isinstance(result, np.ndarray):
        return wrap(result if result.flags.owndata and result.flags.writeable else result.copy())
    if isinstance(result, np.generic):
        return wrap(result)
    if isinstance(result, tuple):
        parts = [fresh(r) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    if isinstance(result, list):
        return [fresh(r) for r in result]
    return result


def gathered(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Run a NumPy function on the driver, and say so once."""
    name = f"{getattr(function, '__module__', None) or 'numpy'}.{getattr(function, '__name__', function)}"
    if name not in _warned:
        _warned.add(name)
        warnings.warn(
            f"{name} is not distributed: its operands are gathered and NumPy runs it on the driver",
            FallbackWarning,
            stacklevel=_levels_to_user(),
        )
    found: list[Handle] = []
    _collect((args, keywords), found)
    values(*found)
    return fresh(function(*_plain(list(args)), **_plain(keywords)))


def _levels_to_user() -> int:
    """How many calls of this package lie between a warning and the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level


def _collect(a: Any, found: list[Handle]) -> None:
    """Arrays anywhere in nested arguments."""
    if isinstance(a, Handle):
        found.append(a)
    elif isinstance(a, list | tuple):
        for i in a:
            _collect(i, found)
    elif isinstance(a, dict):
        _collect(list(a.values()), found)


def _plain(a: Any) -> Any:
    """Nested arguments with NumPy values in place of arrays."""
    if isinstance(a, Handle):
        return a._force()
    if isinstance(a, list):
        return [_plain(i) for i in a]
    if isinstance(a, tuple):
        return tuple(_plain(i) for i in a)
    if isinstance(a, dict):
        return {k: _plain(v) for k, v in a.items()}
    return a
