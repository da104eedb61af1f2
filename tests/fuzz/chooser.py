"""Choose among the arrays that a program has so far: the subject of a call, and what fits it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy

from tests.fuzz.program import Environment, Line, arrays_of, execute

WRONG = 0.01
"""How often a place is drawn without regard to what fits."""
_MOST_WRONG = 300
"""Elements of what is drawn so: some rows factorize a matrix with as many rows and columns."""


class Nothing(Exception):
    """No array fits a place."""


class Chooser:
    """One call's choices: the subject, and what was said of it so far."""

    def __init__(self, random: Random, environment: Environment, most: int, wrong: float = WRONG) -> None:
        self.random, self.environment, self.most, self.wrong = random, environment, most, wrong
        self.subject, self.key = "", ""
        self.axis, self.kth, self.axis_drawn = 0, 0, False

    @property
    def value(self) -> Any:
        """The subject's value."""
        return self.environment[self.subject]

    def evaluate(self, text: str) -> Any:
        """What NumPy makes of an expression; Nothing where it raises."""
        line = Line(f"a999 = {text}")
        scratch = dict(self.environment)
        if execute(line, scratch) is not None:
            raise Nothing
        return scratch["a999"]

    def name(self, fits: Callable[[Any], bool], recent: bool = True, always: bool = False) -> str:
        """An array that fits, or now and then any, if it need not `always`; the latest are the likeliest."""
        names = [
            n for n, v in arrays_of(self.environment).items() if isinstance(v, numpy.ndarray | numpy.generic)
        ]
        found = [n for n in names if fits(self.environment[n])]
        if not always and self.random.random() < self.wrong:
            found = [n for n in names if self.environment[n].size <= _MOST_WRONG]
        if not found:
            raise Nothing
        n = len(found)
        return (
            found[max(self.random.randrange(n), self.random.randrange(n))]
            if recent
            else self.random.choice(found)
        )

    def take(self, fits: Callable[[Any], bool], always: bool = False) -> str:
        """An array that fits, as the subject."""
        self.subject = self.name(fits, always=always)
        return self.subject

    def draw_axis(self) -> int:
        """An axis of the subject, which `that axis` says again."""
        n = numpy.ndim(self.value)
        self.axis = self.random.randrange(-n, n) if n else 0
        self.axis_drawn = True
        return self.axis

    def length(self) -> int:
        """Elements along an axis, which it draws."""
        if not numpy.ndim(self.value):
            raise Nothing
        return int(numpy.shape(self.value)[self.draw_axis()])

    def pick(self, *texts: Any) -> str:
        """One of several texts."""
        return str(self.random.choice(texts))
