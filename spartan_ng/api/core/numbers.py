"""Numbers that functions of arrays give: NumPy's, with the methods of a number that has yet to be computed.

An element that is picked from an array is NumPy's number itself, and so is every truth (NumPy lets nobody
derive from its class).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.late import Late

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
    return Late.ndarray.__array_namespace__(self, api_version=api_version)


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


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
_UNARY = ("neg", "pos", "abs", "invert")
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


def _derived(kind: type) -> type:
    names = [f"__{r}{name}__" for name in _BINARY for r in ("", "r")]
    names += [*(f"__{name}__" for name in _UNARY), *_NAMES.split()]
    own = {"__class__": property(lambda self: kind)}  # `type` tells the truth
    operators = {name: _keeping(getattr(kind, name)) for name in names}
    return type(
        kind.__name__, (kind,), {"__slots__": (), "__module__": __name__, **_METHODS, **own, **operators}
    )


OURS: dict[type, type] = {kind: np.bool_ if kind is np.bool_ else _derived(kind) for kind in NUMPYS}
"""What makes of NumPy's numbers those with our methods."""
NUMERIC: frozenset[type] = NUMPYS.union(OURS.values())
"""The types of numbers with a NumPy dtype."""
