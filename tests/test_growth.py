"""What planning and handing out a program takes grows as the program does, and not with its square.

A loop that writes row by row, or collects a thousand results, makes plans of thousands of stages. Calls of
Python functions are counted, in a process of its own, so it depends on no machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from tests.first_starts import first_start
from tests.test_calls import by_no_clock, calls

MOST = 2.15
"""How much more a third program may take beyond a second than that beyond the first, where each is twice the
one before: 2 if it grows as they do, 4 if it does with their squares."""
SIZES = (50, 100, 200)


def _writes(n: int) -> list[np.ndarray]:
    a = np.ones(1000)
    for i in range(n):
        a[i : i + 1] = a[i] * 2 + i
    return [a]


def _stencil(n: int) -> list[np.ndarray]:
    a = np.arange(1000.0)
    for _ in range(n):
        a[1:-1] = (a[2:] + a[:-2]) / 2
    return [a]


def _sums(n: int) -> list[np.ndarray]:
    a = s = np.ones(1000)
    for i in range(n):
        s = s + a[i % 10 :].sum()
    return [s]


def _descent(n: int) -> list[np.ndarray]:
    x, w = np.ones((50, 3)), np.zeros(3)
    for _ in range(n):
        w = w - x.T @ (x @ w - 1)
    return [w]


def _repeated(step: Callable[[np.ndarray], np.ndarray]) -> Callable[[int], list[np.ndarray]]:
    def program(n: int) -> list[np.ndarray]:
        a = np.ones((20, 20))
        for _ in range(n):
            a = step(a)
        return [a]

    return program


PROGRAMS: dict[str, Callable[[int], list[np.ndarray]]] = {
    "rows that are written": _writes,
    "views that are written": _stencil,
    "sums that are added": _sums,
    "descent": _descent,
    "results": lambda n: [np.ones(1000) * i for i in range(n)],
    "joined": lambda n: [np.concatenate([np.ones(10) * i for i in range(n)])],
    "elementwise": _repeated(lambda a: np.sqrt(a * a + 1)),
    "numbers": _repeated(lambda a: ((a * 0.5 + 1) * 2 - 3) / 4),
    "sorts": _repeated(lambda a: np.sort(a + 1)),
    "means": _repeated(lambda a: a - a.mean(axis=0)),
    "products": _repeated(lambda a: a @ a.T),
    "scans": _repeated(lambda a: np.cumsum(a.T, axis=0)),
    "look-ups": _repeated(lambda a: a[np.arange(20)[::-1]]),
    "choices": _repeated(lambda a: np.where(a > 1, a - 1, a)),
}


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_planning_grows_as_the_program_does(name: str, tmp_path: Path) -> None:
    first, second, third = map(int, first_start(tmp_path, "-m", "tests.test_growth", name).split())
    assert third - second <= MOST * (second - first), (first, second, third)


def main(name: str) -> None:
    """Print the calls that programs of `SIZES` take."""
    by_no_clock()
    program = PROGRAMS[name]
    with config.override(small_bytes=0), numpy.errstate(all="ignore"):
        np.compute(*program(SIZES[0] - 1))  # what is imported late, and plans of parts that come again
        for n in SIZES:
            print(calls(lambda n=n: np.compute(*program(n))).total())  # type: ignore[misc]


if __name__ == "__main__":
    main(*sys.argv[1:])
