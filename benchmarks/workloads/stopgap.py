"""What a tier between the interpreter and compiled loops would bring: numexpr on whole arrays, all cores.

numexpr knows no NumPy text, so its side is the same formula in its own.
"""

from __future__ import annotations

import os
from typing import Any

import numexpr

from benchmarks.case import Case, Inputs, Run, Side
from benchmarks.texts import OPTIONS, black_scholes, options, product_of_three, vectors
from benchmarks.workloads.kernels import numpy_side, our_side

_D1 = "((log(S / K) + (0.1 + 0.2**2 / 2) * T) / (0.2 * sqrt(T)))"
_PRICES = (
    f"sum(S / (1 + exp(-1.702 * {_D1})) - K * exp(-0.1 * T) / (1 + exp(-1.702 * ({_D1} - 0.2 * sqrt(T)))))"
)


def numexpr_side(text: str, scale: float = 1.0) -> Side:
    """The text by numexpr's virtual machine."""

    def side(inputs: Inputs) -> Run:
        numexpr.set_num_threads(os.cpu_count() or 1)
        names: dict[str, Any] = {k: v for k, v in inputs.items() if len(k) == 1}
        return lambda: numexpr.evaluate(text, local_dict=names) * scale

    return side


STOPGAP_CASES = (
    Case(
        "numexpr-sum",
        "sum(X * Y * Z) over 5e7 doubles, before a loop is compiled",
        vectors,
        {
            "numpy": numpy_side(product_of_three),
            "interpreted": our_side(product_of_three, "interpret"),
            "numexpr": numexpr_side("sum(X * Y * Z)"),
        },
        rounds=5,
    ),
    Case(
        "numexpr-black-scholes",
        "the price of 2e7 options, before a loop is compiled",
        options,
        {
            "numpy": numpy_side(black_scholes),
            "interpreted": our_side(black_scholes, "interpret"),
            "numexpr": numexpr_side(_PRICES, 1 / OPTIONS),
        },
        rounds=3,
    ),
)
"""Tier 0 against numexpr."""
