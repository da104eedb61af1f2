"""The classes of arrays and numbers, for those who make them and stand below where they are defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Late:
    """What is defined after the modules that make it."""

    __slots__ = ("namespace", "ndarray", "number_of", "numbers", "stack", "wrap")

    def __init__(self) -> None:
        self.namespace: Any = None
        self.ndarray: Any = object
        self.number_of: Any = None
        self.numbers: set[type] = set()
        self.stack: Any = None
        self.wrap: Any = None


Late = _Late()
"""An object, because every array that is made asks it: Python finds a slot faster than what a class has."""


def register_class(cls: type, stack: Any) -> None:
    """Say which class arrays have, and how a list of arrays becomes one."""
    Late.ndarray = cls
    Late.stack = stack


def register_numbers(number_of: Callable[[type], type]) -> None:
    """Say which class numbers that have yet to be computed have, by NumPy's; all made so far are in
    `Late.numbers`."""
    Late.number_of = number_of
