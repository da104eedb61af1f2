"""Numbers that functions of arrays give: NumPy's, with the methods of a number that has yet to be computed.

An element that is picked from an array is NumPy's number itself, and so is every truth (NumPy lets nobody
derive from its class).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.late import Late
from spartan_ng.api.core.quick import connect_numbers, number_class

NUMPYS = frozenset(t for t in np.sctypeDict.values() if issubclass(t, np.number | np.bool_)) - {
    np.timedelta64
}
"""The types of NumPy's scalars that are numbers."""


def _compute(self: Any) -> Any:
    """NumPy's number."""
    return _numpys(self)


def _persist(self: Any) -> Any:
    """The number itself: it is there."""
    return self


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The array API standard's view of this package."""
    return Late.namespace(api_version)


def _times(self: Any, other: Any) -> Any:
    """`self *= other`: without it Python asks no sequence how it is repeated."""
    return self * other


_METHODS: dict[str, Any] = {
    "compute": _compute,
    "persist": _persist,
    "__array_namespace__": _array_namespace,
    "__imul__": _times,
    "__repr__": lambda self: repr(_numpys(self)),
    "__reduce__": lambda self: _numpys(self).__reduce__(),
}


def as_number(value: Any) -> Any:
    """A value of a function; a number of NumPy's as one that has these methods."""
    ours = OURS.get(type(value))  # what has yet to be computed says NumPy's class
    return value if ours is None else ours(value)


def _numpys(number: Any) -> Any:
    """A number in NumPy's own class."""
    return number.dtype.type(number)


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")
_UNARY = ("neg", "pos", "abs", "invert")
_POWERS = ("__pow__", "__rpow__")
"""Operators that Python may give a third operand."""
_NAMES = """argsort astype byteswap choose clip compress conj conjugate copy cumprod cumsum flatten max mean
min prod ravel repeat reshape round squeeze std sum swapaxes take trace transpose var view"""


@functools.cache
def _keeping(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's operator or method, whose numbers have these methods, too; its arrays are ours.

    Indexing stays NumPy's: Python would take a class that defines it for a sequence.
    """

    @functools.wraps(numpys)
    def method(*operands: Any, **keywords: Any) -> Any:
        found = numpys(*operands, **keywords)
        return Late.wrap(found) if type(found) is np.ndarray else as_number(found)

    return method


@functools.cache
def _of_two(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """`_keeping` for operators of two operands: loops that carry numbers are in here most of their time.

    An array's own operator is reached sooner than through NumPy, which looks for its protocols first.
    """

    @functools.wraps(numpys)
    def method(self: Any, other: Any) -> Any:
        if type(other) is Late.ndarray:
            return NotImplemented
        found = numpys(self, other)
        ours = OURS.get(type(found))
        if ours is not None:
            return ours(found)
        return Late.wrap(found) if type(found) is np.ndarray else found

    return method


def _reflected(compute: Callable[..., Any], numpys: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """The same from the right; NumPy's own would first find out what the class of `self`, which it does not
    know, thinks of the other operand."""
    plain = kind.__pos__

    @functools.wraps(numpys)
    def method(self: Any, other: Any) -> Any:
        found = compute(other, plain(self))
        ours = OURS.get(type(found))
        if ours is not None:
            return ours(found)
        return Late.wrap(found) if type(found) is np.ndarray else found

    return method


@functools.cache
def _of_one(numpys: Callable[..., Any]) -> Callable[..., Any]:
    """`_keeping` for operators of one operand, which give numbers."""

    @functools.wraps(numpys)
    def method(self: Any) -> Any:
        found = numpys(self)
        return OURS[type(found)](found)

    return method


def _derived(kind: type) -> type:
    own = {"__class__": property(lambda self: kind)}  # `type` tells the truth
    operators = {f"__{name}__": _of_two(getattr(kind, f"__{name}__")) for name in _BINARY}
    for name in _BINARY:
        reflected, compute = f"__r{name}__", getattr(operator, f"__{name}__")
        operators[reflected] = _reflected(compute, getattr(kind, reflected), kind)
    operators |= {f"__{name}__": _of_one(getattr(kind, f"__{name}__")) for name in _UNARY}
    operators |= {name: _keeping(getattr(kind, name)) for name in (*_POWERS, *_NAMES.split())}
    named = {"__slots__": (), "__module__": __name__}
    derived = type(kind.__name__, (kind,), {**named, **_METHODS, **own, **operators})
    if number_class is None:
        return derived
    quick = type(kind.__name__, (number_class(kind), derived), named)
    connect_numbers(quick, derived, kind)
    return quick


OURS: dict[type, type] = {kind: np.bool_ if kind is np.bool_ else _derived(kind) for kind in NUMPYS}
"""What makes of NumPy's numbers those with our methods."""
NUMERIC: frozenset[type] = NUMPYS.union(OURS.values())
"""The types of numbers with a NumPy dtype."""
