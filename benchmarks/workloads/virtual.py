"""The three ways to run a body: NumPy calls on blocks, a numexpr program on blocks, a compiled loop.

What the rule of `kernels.virtual` knows of numexpr stands on these.
"""

from __future__ import annotations

from typing import Any

import numpy

from benchmarks.case import OURS, Case, Inputs
from benchmarks.texts import Text, black_scholes, options
from benchmarks.workloads.kernels import numpy_side, our_side

_ELEMENTS = 10_000_000


def _vectors(dtype: str, scale: float) -> Inputs:
    random = numpy.random.default_rng(3)
    return {name: (random.standard_normal(_ELEMENTS) * scale).astype(dtype) for name in "XY"}


def _chain(length: int) -> Text:
    """A polynomial of so many cheap functions, in the operands' dtype."""

    def text(np: Any, X: Any, Y: Any) -> Any:
        value = X
        for k in range(length):
            value = (value * Y, value + X, value - Y, value * X)[k % 4]
        return np.max(value)

    return text


def _choices(np: Any, X: Any, Y: Any) -> Any:
    """Choices on choices that no processor foresees."""
    value = np.where(X > Y, X * Y, X - Y)
    value = np.where(value > Y, Y, value)
    return np.sum(np.where(value > X, value, X))


def _case(name: str, title: str, text: Text, dtype: str = "f8", scale: float = 1.0) -> Case:
    sides = {
        "numpy": numpy_side(text),
        OURS: our_side(text, "compile"),
        "interpreted": our_side(text, "interpret"),
        "virtual": our_side(text, "numexpr"),
    }
    if text is black_scholes:
        return Case(name, title, options, sides, rounds=3)
    return Case(name, title, lambda: _vectors(dtype, scale), sides, rounds=3)


VIRTUAL_CASES = (
    _case("virtual-chain-2", "2 cheap functions of 1e7 doubles", _chain(2)),
    _case("virtual-chain-16", "16 cheap functions of 1e7 doubles", _chain(16)),
    _case("virtual-chain-16-integers", "16 cheap functions of 1e7 64-bit integers", _chain(16), "i8", 9),
    _case("virtual-choices", "3 choices of 1e7 doubles, one on the other", _choices),
    _case("virtual-black-scholes", "the price of 2e7 options", black_scholes),
)
"""Bodies for all three tiers."""
