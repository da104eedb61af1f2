"""What is NumPy's own here: modules and classes that work on our arrays by gathering them.

They are looked up when they are asked for, so importing this package does not import them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

NAMES = frozenset(
    {
        "asmatrix",
        "bmat",
        "broadcast",
        "busdaycalendar",
        "char",
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


def of_numpy(name: str) -> Any:
    """NumPy's object of a name of `NAMES`."""
    if name not in NAMES:
        raise AttributeError(f"module 'spartan_ng' has no attribute {name!r}")
    return getattr(np, name)
