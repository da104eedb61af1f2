"""Counts: what the tables say that an element takes, beside what NumPy's loop takes of a processor for it.

Operands are drawn, and so many that no loop has learned their branches; they stay in the second cache. A
count that is off by more than `FAR` from that of doubles, or of whole numbers where there are no doubles, is
in bold: rows with formulas (`kernels/compiled/formulas.py`) may be, which take less once they are compiled,
and rows of vector loops, which machines without wide registers do not have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from spartan_ng.costs.tuned import THREAD_FLOPS_S
from spartan_ng.kernels.compiled.formulas import FORMULAS
from spartan_ng.ops.by_ufunc import Fold
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS
from spartan_ng.ops.scans import SCANS

ELEMENTS = 1 << 16
ROUNDS = 3
LEAST_S = 0.004
"""What a round takes at least."""
FAR = 2.5
DTYPES = "dlfD"
"""Of operands; the count is held against the first that a function has a loop for."""
_BEGINS = {"arccosh": 1.0}
_SHIFTS = {"power", "left_shift", "right_shift", "ldexp"}
"""Functions whose second operand is small."""


def operand(function: np.ufunc, place: int, code: str) -> Any:
    """Elements that the function has a value for."""
    random = np.random.default_rng(place)
    if code == "l":
        return random.integers(1, 4 if place and function.__name__ in _SHIFTS else 100, ELEMENTS)
    found = random.uniform(0.01, 0.99, ELEMENTS) + _BEGINS.get(function.__name__, 0.0)
    return (found + 1j * found[::-1] if code == "D" else found).astype(code)


def operations(call: Callable[[], Any]) -> float:
    """What a call takes of a processor for an element, in operations as tables count them."""
    call()
    repeats, least = 1, 0.0
    while least < LEAST_S:
        least = _sample(call, repeats)
        repeats *= 2
    repeats //= 2
    least = min(least, *(_sample(call, repeats) for _ in range(ROUNDS - 1)))
    return least / repeats / ELEMENTS * THREAD_FLOPS_S


def _sample(call: Callable[[], Any], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return time.process_time() - start


def of_function(function: np.ufunc) -> dict[str, float]:
    """For each dtype of operands that there is a loop for, what it takes."""
    found = {}
    for code in DTYPES:
        codes = "dl" if (function.__name__, code) == ("ldexp", "d") else code * function.nin
        if all(not kind.startswith(f"{codes}->") for kind in function.types):
            continue
        operands = [operand(function, place, c) for place, c in enumerate(codes)]
        made = function(*operands)
        outs = made if isinstance(made, tuple) else (made,)
        found[code] = operations(lambda a=operands, o=outs: function(*a, out=o))  # type: ignore[misc]
    return found


def of_lines(function: np.ufunc, call: Callable[..., Any]) -> dict[str, float]:
    """The same of a fold or a scan along a line."""
    found = {}
    for code in "dl":
        if any(kind.startswith(f"{code}{code}->") for kind in function.types):
            line = operand(function, 0, code)
            found[code] = operations(lambda x=line: call(x))  # type: ignore[misc]
    return found


def row(name: str, count: int, found: dict[str, float]) -> str:
    """A line of the table."""
    first = next(iter(found.values()), float(count))
    far = max(count, first) > FAR * min(max(count, 1), max(first, 1))
    formula = "yes" if name in FORMULAS else ""
    cells = [f"{found[code]:.1f}" if code in found else "" for code in DTYPES]
    return f"| {name} | {f'**{count}**' if far else count} | {' | '.join(cells)} | {formula} |"


def main() -> str:
    """Measure and print the tables of elementwise functions, of folds and of scans."""
    lines = ["### counts", "", "Operations an element, as counted, and as NumPy's loops take them.", ""]
    lines += ["| function | counted | doubles | whole | floats | complex | formula |", "|---|" + "---|" * 6]
    with np.errstate(all="ignore"):
        for name, e in ELEMENTWISE.items():
            if isinstance(e.function, np.ufunc) and e.name != "isnat":
                lines.append(row(name, e.flops, of_function(e.function)))
        for name, fold in FOLDS.items():
            if isinstance(fold, Fold):
                lines.append(row(f"fold {name}", fold.flops, of_lines(fold.ufunc, fold.ufunc.reduce)))
        for name, scan in SCANS.items():
            lines.append(row(f"scan {name}", scan.flops, of_lines(scan.ufunc, scan.ufunc.accumulate)))
    print("\n".join([*lines, ""]))
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
