"""Users' own functions inside operators: what they are called, and where the user wrote the call."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from msgspec import Struct

from spartan_ng.callers import user_line
from spartan_ng.texts import encodable

_PLAIN = frozenset({bool, float, int, str, type(None)})
"""What most of a plan is made of, and has no functions in it."""


class UserFunction:
    """A user's function and the user's file and line that put it into the program.

    One that is put in at two places is two: plans that are found again name the place of each.
    """

    __slots__ = ("function", "is_users", "origin")

    def __init__(self, function: Callable[..., Any], origin: str | None = None) -> None:
        self.function = function
        self.is_users = origin is None
        """Whether a user wrote it; only asked here: this package's own have the name of what they are for."""
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
    waiting = [part]
    while waiting:
        value = waiting.pop()
        if isinstance(value, UserFunction):
            found[value] = None
        elif isinstance(value, tuple | list):
            waiting.extend([v for v in reversed(value) if type(v) not in _PLAIN])
        else:
            fields = [getattr(value, name) for name in _fields(type(value))]  # type: ignore[arg-type]
            waiting.extend([v for v in fields if type(v) not in _PLAIN])
    return tuple(found)


@lru_cache(maxsize=256)
def _fields(kind: type) -> tuple[str, ...]:
    """The names of a record's fields, the last first; none of anything else."""
    return kind.__struct_fields__[::-1] if issubclass(kind, Struct) else ()


def named_functions(functions: tuple[UserFunction, ...]) -> str:
    """Functions and the user's lines, for people."""
    return ", ".join(f"{fn} (at {fn.origin})" for fn in functions)
