"""Users' own functions inside operators: what they are called, and where the user wrote the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from spartan_ng.callers import user_line
from spartan_ng.texts import encodable


class UserFunction:
    """A user's function and the user's file and line that put it into the program.

    One that is put in at two places is two: plans that are found again name the place of each.
    """

    __slots__ = ("function", "origin")

    def __init__(self, function: Callable[..., Any], origin: str | None = None) -> None:
        self.function = function
        self.origin = origin or "{}:{}".format(*user_line())

    def __str__(self) -> str:
        return encodable(str(getattr(self.function, "__name__", type(self.function).__name__)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UserFunction)
            and self.function is other.function
            and self.origin == other.origin
        )

    def __hash__(self) -> int:
        return hash(id(self.function))


def require_function(call: str, given: Any) -> None:
    """TypeError for what is no function, with the `call` as it is to be written."""
    if not callable(given):
        raise TypeError(f"{call}: the first argument is to be a function, not {type(given).__name__}")


def users_of(part: Any) -> tuple[UserFunction, ...]:
    """The users' functions in a stage, or in anything that plans are made of, each once."""
    found: dict[UserFunction, None] = {}

    def look(value: Any) -> None:
        if isinstance(value, UserFunction):
            found[value] = None
        elif isinstance(value, tuple | list):
            for item in value:
                look(item)
        elif is_dataclass(value):
            for each in fields(value):
                look(getattr(value, each.name))

    look(part)
    return tuple(found)


def named(functions: tuple[UserFunction, ...]) -> str:
    """Functions and the user's lines, for people."""
    return ", ".join(f"{fn} (at {fn.origin})" for fn in functions)
