"""Texts of users' code that can travel: whatever an error or a name says, nothing fails on it.

A user's `__str__` may raise, a string may hold lone surrogates, which UTF-8 has no bytes for, and a text may
be of any length.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from spartan_ng.callers import is_ours

F = TypeVar("F", bound=Callable[..., Any])

LONGEST = 1 << 16
"""Characters of an error's text that travel at most."""
_PART = LONGEST // 4
"""Of a message that stands in another error's text, and of its traceback."""


def encodable(text: str) -> str:
    """The text with its surrogates escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shortened_text(text: str, most: int = LONGEST) -> str:
    """The text; of a longer one its two ends, and a note of how much there was between them."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def error_text(error: BaseException, most: int = LONGEST) -> str:
    """What an error says, as its class says it, or that this cannot be said."""
    return _attempt(lambda: _said(error), f"<unprintable {type_name(error)}>", most)


def renamed(function: F, name: str) -> F:
    """A Python function under a name of its own, which tracebacks and profilers show."""
    plain: Any = function
    code = plain.__code__.replace(co_name=name, co_qualname=name)
    return FunctionType(code, plain.__globals__, name, plain.__defaults__, plain.__closure__)  # type: ignore[return-value]


def error_trace(error: BaseException) -> str:
    """The error with where it was raised, and with its causes."""
    return _attempt(lambda: "".join(traceback.format_exception(error)), "<no traceback>", _PART)


def called_trace(error: BaseException) -> str:
    """The same of what a function of the user's raised, without the frame of ours that called it."""
    return _attempt(lambda: _from_the_function(error), "<no traceback>", _PART)


def error_line(error: BaseException) -> str:
    """`type: text`, to stand in another error's text."""
    return f"{type_name(error)}: {error_text(error, _PART)}"


def type_name(error: BaseException) -> str:
    """The name of an error's class, whatever its metaclass makes of it."""
    return _attempt(lambda: str(type.__dict__["__name__"].__get__(type(error))), "error", _PART)


def is_ctrl_c(error: BaseException) -> bool:
    """Whether it is the user at the keyboard, and no function of the user's, who interrupts."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


def _said(error: BaseException) -> str:
    if isinstance(error, KeyError) and len(error.args) == 1:
        return str(error.args[0])  # its own text is the key's repr
    return str(error)


def _from_the_function(error: BaseException) -> str:
    told = traceback.TracebackException.from_exception(error)
    if len(told.stack) > 1 and is_ours(told.stack[0].filename):
        del told.stack[0]
    return "".join(told.format())


def _attempt(make: Callable[[], str], otherwise: str, most: int) -> str:
    """A text that users' code makes, whatever this code does instead."""
    try:
        return shortened_text(encodable(str(make())), most)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        return otherwise
