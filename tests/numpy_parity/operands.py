"""The operands that example calls of NumPy's functions take, and what such a call is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy

Call = Callable[[Any, Any], Any]
"""Takes the namespace and the operands."""

SIDE = 64
"""Rows of the square operands; vectors have as many elements as these have."""


def values() -> dict[str, Any]:
    """The operands as NumPy arrays, 32 KiB or more each."""
    random = numpy.random.default_rng(7)
    n = SIDE * SIDE
    square = random.random((SIDE, SIDE))
    holes = numpy.where(random.random((SIDE, SIDE)) < 0.3, numpy.nan, square)
    return {
        "v": random.random(n) + 0.1,
        "w": random.random(n) + 0.1,
        "a": square + 0.1,
        "s": square @ square.T + SIDE * numpy.eye(SIDE),
        "nan": holes,
        "i": random.integers(0, 50, n),
        "j": random.integers(0, 50, n),
        "m": random.integers(0, 9, (SIDE, SIDE)),
        "places": random.integers(0, n, n),
        "columns": random.integers(0, SIDE, (SIDE, SIDE)),
        "line": numpy.sort(random.random(n)),
        "z": square + 1j * square.T,
        "zv": random.random(n) + 1j * random.random(n),
        "flags": random.random(n) < 0.5,
        "mask": random.random((SIDE, SIDE)) < 0.5,
        "cube": random.random((16, 16, 16)),
        "stack": random.random((16, 16, 16)) + 16 * numpy.eye(16),
        "dates": numpy.datetime64("2024-01-01") + random.integers(0, 900, n).astype("m8[D]"),
        "bits": random.integers(0, 256, 8 * n).astype(numpy.uint8),
        "ones": (random.random(8 * n) < 0.5).astype(numpy.uint8),
        "angles": numpy.cumsum(random.random(n) * 4) % (2 * numpy.pi),
        "edged": numpy.concatenate([numpy.zeros(100), random.random(n) + 0.1, numpy.zeros(200)]),
    }


@cache
def operands() -> SimpleNamespace:
    """The operands as attributes."""
    return SimpleNamespace(**values())


def changed(a: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of an array after a change in place."""
    b = a.copy()
    change(b)
    return b
