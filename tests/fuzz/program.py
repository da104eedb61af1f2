"""Programs as text: what NumPy runs, this package runs, and a person reads is one and the same.

A program sees `np`, the package that runs it; `N`, NumPy; `sparse(a)`, which makes of an array of NumPy's
what this package makes of a CSR matrix; and `settle(...)`, which for NumPy does nothing: it computes arrays,
and waits for the compiler, so that what follows runs in compiled kernels.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import CodeType
from typing import Any

import numpy

Environment = dict[str, Any]
_NAME = re.compile(r"\ba\d+\b")
_DEFINES = re.compile(r"(a\d+) = ")


class Rounding(Enum):
    """How far a call's result depends on the order of work, or on who computes it."""

    NEVER = "to the bit the same"
    SUMS = "the same where sums of products of the operands are exact"
    ALWAYS = "within rounding"


@dataclass(frozen=True)
class Line:
    """One statement."""

    text: str
    rounding: Rounding = Rounding.NEVER

    @cached_property
    def uses(self) -> frozenset[str]:
        """The arrays that it names and does not define."""
        found = _DEFINES.match(self.text)
        return frozenset(_NAME.findall(self.text[found.end() :] if found else self.text))

    @cached_property
    def defines(self) -> str | None:
        """The array that it gives a name."""
        found = _DEFINES.match(self.text)
        return found[1] if found else None

    @property
    def writes(self) -> bool:
        """Whether it may change arrays that have names already."""
        return self.defines is None or "out=" in self.text or self.defines in self.uses

    @cached_property
    def code(self) -> CodeType:
        """Compiled once: a program runs many times."""
        return compile(self.text, "<program>", "exec")


@dataclass(frozen=True)
class Loop:
    """Lines that run several times, one after the other."""

    lines: tuple[Line, ...]
    times: int


Step = Line | Loop
Failure = type[BaseException]


def steps_of(program: Sequence[Step]) -> Iterator[Line]:
    """The lines of a program in the order in which they run."""
    for step in program:
        if isinstance(step, Loop):
            yield from step.lines * step.times
        else:
            yield step


def execute(line: Line, environment: Environment) -> BaseException | None:
    """Run a line; what it raised. Warnings are nobody's business here."""
    try:
        with warnings.catch_warnings(), numpy.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec(line.code, environment)
    except Exception as error:  # noqa: BLE001 - whatever a program raises is what is compared
        return error
    return None


def arrays_of(environment: Environment) -> dict[str, Any]:
    """The program's own names, in the order in which they came."""
    return {k: v for k, v in environment.items() if _NAME.fullmatch(k)}


def nothing(*arrays: Any) -> None:
    """What `settle` is to NumPy."""


def numpys(sparse: Callable[[Any], Any] = numpy.array) -> Environment:
    """Where NumPy runs a program."""
    return {"np": numpy, "N": numpy, "sparse": sparse, "settle": nothing}


def text_of(program: Sequence[Step], raising: frozenset[str] = frozenset()) -> str:
    """A program as lines of Python; those of `raising` are expected to raise."""
    lines: list[str] = []
    for step in program:
        if isinstance(step, Line):
            lines += _guarded(step, raising)
        else:
            lines.append(f"for _ in range({step.times}):")
            lines += [f"    {t}" for line in step.lines for t in _guarded(line, raising)]
    return "\n".join(lines)


def _guarded(line: Line, raising: frozenset[str]) -> list[str]:
    if line.text not in raising:
        return line.text.split("\n")
    return ["with raising():", *textwrap.indent(line.text, "    ").split("\n")]
