"""What classes of this package that are derived from `ndarray` have in common: they hand themselves on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.conversion import array_of
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.core.wrapping import wrap
from spartan_ng.api.ndarray.array import ndarray

_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_OTHERS = "neg pos abs invert lt le gt ge eq ne getitem copy deepcopy array_ufunc array_function array_wrap"
_OPERATORS = [*_BINARY.split(), *(f"r{name}" for name in _BINARY.split()), *_OTHERS.split()]
_ATTRIBUTES = ("T", "mT", "real", "imag")
_NO_ARRAYS = {"compute", "dump", "dumps", "fill", "item", "partition", "persist", "put", "resize", "setfield"}
_NO_ARRAYS |= {"setflags", "sort"}
"""Methods that give no arrays, but for the array itself; `resize` counts who calls it."""


def of_class(kind: type, a: Any) -> Any:
    """An array, or all arrays in a tuple or list, in a class that is derived from `ndarray`."""
    if type(a) is ndarray and not a._cell.frozen:  # most are
        pass
    elif isinstance(a, kind):
        return a
    elif isinstance(a, Handle):
        a = array_of(a)
    elif type(a) in NUMERIC:
        a = wrap(np.array(a))
    elif isinstance(a, tuple):
        made = (of_class(kind, x) for x in a)
        return type(a)(*made) if hasattr(a, "_fields") else tuple(made)
    else:
        return [of_class(kind, x) for x in a] if isinstance(a, list) else a
    h: Any = object.__new__(kind)
    h._cell, h._views, h._state = a._cell, a._views, None
    return h


def complete(kind: type, handed_on: Callable[[Callable[..., Any]], Any]) -> None:
    """Give a class what it does not define itself: `ndarray`'s operators, methods and attributes, as
    `handed_on` makes them of `ndarray`'s, and an iterator."""
    names = [f"__{name}__" for name in _OPERATORS] + ["to_device"]
    methods = (name for name in dir(ndarray) if not name.startswith(("_", "to")))
    names += [name for name in methods if callable(getattr(ndarray, name)) and name not in _NO_ARRAYS]
    own = vars(kind)
    for name in names:
        if name not in own:
            setattr(kind, name, handed_on(getattr(ndarray, name)))
    for name in _ATTRIBUTES:
        setattr(kind, name, _attribute(kind, getattr(ndarray, name)))
    kind.__iter__ = lambda self: (of_class(kind, a) for a in ndarray.__iter__(self))  # type: ignore[attr-defined]


def _attribute(kind: type, found: Any) -> property:
    """One of `ndarray`'s attributes that are arrays."""
    write = getattr(found, "__set__", None)
    return property(lambda self: of_class(kind, found.__get__(self)), write, doc=found.__doc__)
