"""Several results asked together, drawn by a number: `… together NUMBER WORKERS FOLDER` runs one, as `drawn`
does."""

from __future__ import annotations

import random
import sys

from tests.budgets.drawn import Program, difference, make, run_program
from tests.budgets.results import RESULTS

_BUDGETS = (16_000_000, 24_000_000, 40_000_000)
_DTYPES = ("f8", "f8", "f4", "i1", "c16")


def together(number: int, name: str = "") -> Program:
    """What is asked by a number; with `name`, or several with commas between, of these alone."""
    draw = random.Random(number)
    budget, dtype, columns = draw.choice(_BUDGETS), draw.choice(_DTYPES), draw.choice([10, 40, 100])
    rows = budget * draw.choice([2, 3, 4]) // (columns * {"i1": 4, "f4": 4, "f8": 8, "c16": 16}[dtype])
    pieces = tuple(draw.sample([*RESULTS], draw.randint(2, 5)))
    pieces = tuple(name.split(",")) if name else pieces
    order = draw.choice(["C", "C", "F"])
    return Program(number, budget, (rows // 100 * 100, columns), dtype, order, pieces, False, together=True)


def main(number: str, workers: str, folder: str, name: str = "") -> None:
    run_program(together(int(number), name), int(workers), folder)


__all__ = ["difference", "make", "together"]


if __name__ == "__main__":
    main(*sys.argv[1:])
