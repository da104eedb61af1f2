"""The way of small arrays: what NumPy is given at once, found by asking for exact types and nothing else.

Whoever is given None asks the questions that are left: of lists, of other classes, of what is lazy or large.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.api.core.kinds import NUMBERS
from spartan_ng.api.core.late import Late
from spartan_ng.config import config

_array = np.ndarray
QUICKER: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What does at once, for NumPy's values, what a function of NumPy's does, with the same arguments."""
SURELY = 1 << 17
"""Bytes that every result may have, however operands broadcast."""


def few_pair(a: Any, b: Any) -> tuple[Any, Any] | None:
    """`few_values` of two operands, one after the other: most calls that programs make by the million."""
    x, y, nbytes = a, b, 0
    if type(a) is Late.ndarray:
        x = a._peek() if a._views else a._cell.value
        if type(x) is not _array:
            return None
        nbytes = x.nbytes
    elif type(a) not in NUMBERS:
        return None
    if type(b) is Late.ndarray:
        y = b._peek() if b._views else b._cell.value
        if type(y) is not _array:
            return None
        if nbytes * y.size > SURELY and x.shape != y.shape:
            return None
        nbytes += y.nbytes
    elif type(b) not in NUMBERS:
        return None
    return None if nbytes > config.small_bytes else (x, y)


def few_values(operands: tuple[Any, ...], others: frozenset[type] = NUMBERS) -> list[Any] | None:
    """NumPy's values of operands that are small arrays on the driver, and stay small when they are broadcast
    together, or are of `others`, classes that NumPy takes as they are; None if one is anything else."""
    known = []
    nbytes, size = 0, 1
    for a in operands:
        kind = type(a)
        if kind is Late.ndarray:
            a = a._peek() if a._views else a._cell.value
            if type(a) is not _array:
                return None
            nbytes += a.nbytes
            size *= a.size
        elif kind not in others:
            return None
        known.append(a)
    if nbytes > config.small_bytes:
        return None
    if 8 * size > SURELY and len({a.shape for a in known if type(a) is _array}) > 1:
        return None
    return known


def asking(first: Callable[[Any], Any], called: Callable[..., Any]) -> Callable[..., Any]:
    """`called`, but what `first` gives of an only argument, unless that is None."""

    @functools.wraps(called)
    def call(*args: Any, **keywords: Any) -> Any:
        if len(args) == 1 and not keywords:
            found = first(args[0])
            if found is not None:
                return found
        return called(*args, **keywords)

    return call
