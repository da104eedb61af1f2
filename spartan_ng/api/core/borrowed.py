"""What is NumPy's own here: modules and classes that work on our arrays by gathering them.

They are looked up when they are asked for, so importing this package does not import them. What we have
ourselves in them, as `np.lib.stride_tricks.as_strided`, is ours.
"""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

import numpy as np

from spartan_ng.api.core.dispatch import FUNCTIONS, gathered
from spartan_ng.callers import warn_user
from spartan_ng.submodules import package

NAMES = frozenset(
    {
        "__config__",
        "asmatrix",
        "broadcast",
        "busdaycalendar",
        "char",
        "chararray",
        "complex256",
        "core",
        "ctypeslib",
        "dtypes",
        "emath",
        "f2py",
        "flatiter",
        "float128",
        "lib",
        "ma",
        "matrix",
        "memmap",
        "poly1d",
        "rec",
        "recarray",
        "record",
        "strings",
        "test",
        "typing",
    }
)
"""Names of `numpy` that this package passes on as they are."""


_MIXED = frozenset({"char", "lib", "rec"})
"""Modules of NumPy's in which we have functions of our own."""
_OF_SEVERAL = frozenset({"merge_arrays", "stack_arrays"})
"""Functions that take one array for a list of arrays: NumPy asks whose its elements are, its own numbers."""


class _Mixed(ModuleType):
    """A module of NumPy's with our functions where we have them."""

    def __init__(self, theirs: ModuleType) -> None:
        super().__init__(theirs.__name__, theirs.__doc__)
        self.__dict__["_theirs"] = theirs

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._theirs, name)
        if isinstance(found, ModuleType) and found.__name__.startswith("numpy."):
            found = _Mixed(found)
        elif name in _OF_SEVERAL:
            found = functools.wraps(found)(functools.partial(gathered, found))
        elif callable(found):
            found = FUNCTIONS.get(found, found)
        self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return dir(self._theirs)


def of_numpy(name: str) -> Any:
    """NumPy's object of a name of `NAMES`."""
    if name not in NAMES:
        # With the module, Python can say which name was meant.
        raise AttributeError(_unknown(name), name=name, obj=package())
    found = getattr(np, name)
    if not isinstance(found, ModuleType):
        return FUNCTIONS.get(found, found) if callable(found) else found
    found = _Mixed(found) if name in _MIXED else found
    setattr(package(), name, found)  # where it is found the next time
    return found


def _unknown(name: str) -> str:
    """What is said of a name that there is not; of those that NumPy had, what it says of them."""
    said = f"module 'spartan_ng' has no attribute {name!r}"
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            getattr(np, name)
        except AttributeError as error:
            said = str(error).replace("module 'numpy'", "module 'spartan_ng'")
    for warning in warned:
        warn_user(str(warning.message), warning.category)
    return said
