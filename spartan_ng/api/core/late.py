"""The classes of arrays and numbers, for those who make them and stand below where they are defined."""

from __future__ import annotations

from typing import Any


class _Late:
    """What is defined after the modules that make it."""

    __slots__ = ("namespace", "ndarray", "number", "stack", "wrap")

    def __init__(self) -> None:
        self.namespace: Any = None
        self.ndarray: Any = object
        self.number: Any = object
        self.stack: Any = None
        self.wrap: Any = None


Late = _Late()
"""An object, because every array that is made asks it: Python finds a slot faster than what a class has."""


def register_class(cls: type, stack: Any) -> None:
    """Say which class arrays have, and how a list of arrays becomes one."""
    Late.ndarray = cls
    Late.stack = stack


def register_number(cls: type) -> None:
    """Say which class numbers that have yet to be computed have."""
    Late.number = cls
