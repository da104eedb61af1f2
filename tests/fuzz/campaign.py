"""Programs one after the other, each judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.generator import Program, generate
from tests.fuzz.runner import Finding, Mode, check, numpys_errors


@dataclass(frozen=True)
class Failed:
    """A program and what is wrong with it."""

    program: Program
    finding: Finding


def programs_of(first: int, count: int, calls: tuple[int, int] = (5, 60)) -> Iterator[Program]:
    """Programs of so many calls, with consecutive seeds."""
    return (generate(seed, *calls) for seed in range(first, first + count))


def try_one(program: Program, mode: Mode) -> Failed | None:
    """Run a program in the mode that is running."""
    finding = check(program, mode, numpys_errors(program))
    return None if finding is None else Failed(program, finding)
