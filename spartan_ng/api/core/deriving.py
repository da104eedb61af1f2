"""What `ndarray` is to Python's classes: which objects are arrays, and what a class derived from it is.

A class that a program derives from `ndarray` is derived from NumPy's class: what functions of its instances
mean is theirs to say in NumPy's protocols, so those are NumPy's, on the driver.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.api.core.late import Late


class Derived(np.ndarray[Any, Any]):
    """NumPy's array class for programs that import this package: our class names it, too."""

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        """As NumPy's; `ndarray` is an array of no class that is derived from it."""
        asked = {"dtype": dtype, "type": type}
        return super().view(**{k: _numpys(v) for k, v in asked.items() if v is not None})


def _numpys(asked: Any) -> Any:
    """NumPy's array class for ours; anything else as it is."""
    return np.ndarray if asked is Late.ndarray else asked


class Deriving(type):
    """The class of `ndarray`. This package's own classes say `own=True` where they derive from it."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], own: bool = False, **keywords: Any
    ) -> Any:
        """A class of this package, or a subclass of NumPy's array class."""
        if own:
            return super().__new__(cls, name, bases, namespace, **keywords)
        theirs = tuple(Derived if isinstance(base, Deriving) else base for base in bases)
        return type(name, theirs, namespace, **keywords)

    def __init__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], own: bool = False
    ) -> None:
        super().__init__(name, bases, namespace)

    def __instancecheck__(cls, instance: Any) -> bool:
        """Whether an object is an array: NumPy's are, numbers and records are none."""
        if cls is not Late.ndarray:
            return super().__instancecheck__(instance)
        return issubclass(instance.__class__, Late.ndarray | np.ndarray)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return super().__subclasscheck__(subclass) or (
            cls is Late.ndarray and issubclass(subclass, np.ndarray)
        )
