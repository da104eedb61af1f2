"""Draw programs: calls from the table, each tried by NumPy as it comes, and loops over the last of them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy

from tests.fuzz.calls import CALLS
from tests.fuzz.chooser import WRONG, Nothing
from tests.fuzz.drawing import DTYPES, Draw
from tests.fuzz.oracle import Values
from tests.fuzz.program import Line, Loop, Rounding, Step
from tests.fuzz.triplet import Triplet

_SIDES = (1, 1, 2, 3, 4, 5, 7, 8)
_LONG_SIDES = (33, 100, 257)
_LONG = 20_000
"""Elements of the long arrays, which are cut into blocks and over threads."""
_MOST = 3000
"""Elements that results may have, and"""
_MOST_OF_LONG = 60_000
"""where there are long ones."""


@dataclass(frozen=True)
class Program:
    """Steps, and what NumPy's runs of them gave for each array."""

    seed: int
    steps: tuple[Step, ...]
    expected: dict[str, Values]


def judged(seed: int, steps: list[Step] | tuple[Step, ...]) -> Program | None:
    """The program of these steps, or None where NumPy's answers say nothing of another's."""
    runs = Triplet(seed, _MOST_OF_LONG)
    if not all(runs.run(step) for step in steps):
        return None
    return Program(seed, tuple(steps), runs.values())


def generate(seed: int, least: int = 5, most: int = 60, wrong: float = WRONG) -> Program:
    """A program of so many calls; a part of their operands, `wrong`, is any that there is."""
    random = Random(seed)
    long = random.random() < 0.08
    growing = _Growing(random, seed, _MOST_OF_LONG if long else _MOST, wrong)
    growing.inputs(long)
    wanted = random.randint(least, random.choice((least + 5, (least + most) // 2, most)))
    while growing.calls < wanted:
        if random.random() < 0.06 and growing.calls > 3:
            growing.loop()
        else:
            growing.call()
    return Program(seed, tuple(growing.steps), growing.runs.values())


class _Growing:
    """A program while it is drawn."""

    def __init__(self, random: Random, seed: int, most: int, wrong: float = WRONG) -> None:
        self.random, self.most, self.wrong = random, most, wrong
        self.runs = Triplet(seed, most)
        self.steps: list[Step] = []
        self.calls = 0
        self._names = 0

    def inputs(self, long: bool) -> None:
        """Arrays to begin with, whose shapes mostly broadcast with each other."""
        sides = [self.random.choice(_SIDES) for _ in range(self.random.choice((1, 2, 2, 3, 3, 4)))]
        if self.random.random() < 0.15:
            sides[self.random.randrange(len(sides))] = (
                self.random.choice(_LONG_SIDES) if len(sides) < 4 else 0
            )
        for _ in range(self.random.randint(2, 4)):
            self._add(f"{self._new()} = {self._input(sides)}")
        if long:
            text = f"N.random.default_rng({self.random.randrange(9)}).integers(-9, 9, {_LONG})"
            self._add(f"{self._new()} = np.array({text} / 4)")

    def _input(self, sides: list[int]) -> str:
        """An array of any dtype and layout, mostly of whole numbers or halves; now and then a CSR matrix."""
        chance, choice = self.random.random, self.random.choice
        shape = tuple(1 if chance() < 0.15 else n for n in sides[choice((0, 0, 0, 1, -1)) :])
        if chance() < 0.03:
            shape = tuple(0 if chance() < 0.5 else n for n in shape)
        dtype = choice(DTYPES)
        kind = numpy.dtype(dtype).kind
        drawn = f"N.random.default_rng({self.random.randrange(100)})"
        if kind in "fc" and chance() < 0.25:
            text = f"{drawn}.random({shape})"
        elif kind in "fc":
            text = f"({drawn}.integers(-5, 6, {shape}) / {choice((1, 2))})"
        else:
            text = f"{drawn}.integers({0 if kind in 'bu' else -5}, {2 if kind == 'b' else 6}, {shape})"
        if kind == "c":
            text = f"({text} * (1 - 2j))"
        elif kind == "f" and chance() < 0.1:
            text = f"N.where({drawn}.random({shape}) < 0.2, N.{choice(('nan', 'inf'))}, {text})"
        elif len(shape) == 2 and dtype in ("f4", "f8", "i4", "i8") and chance() < 0.15:
            return f"sparse({text}.astype({dtype!r}))"
        order = choice(("", "", "", "", ".T", "[::-1]", "[::2]")) if shape else ""
        return f"np.array({text}.astype({dtype!r})){order}"

    def call(self) -> None:
        """One more call, if there are arrays for the row drawn and NumPy's answer can be judged."""
        row = self.random.choice(CALLS)
        draw = Draw(self.random, self.runs.plain, self.most, self.wrong)
        try:
            text = draw.text(row.text)
            if "{out}" in text:
                text = self._with_out(draw, text)
        except Nothing:
            return
        if not row.statement:
            text = f"{self._target(draw)} = {text}"
        self._add(text, row.rounding)

    def _with_out(self, draw: Draw, text: str) -> str:
        """The call with an array for its result, an old one or a new one."""
        value = numpy.asarray(draw.evaluate(text.replace(", out={out}", "")))

        def fits(v: Any) -> bool:
            return isinstance(v, numpy.ndarray) and v.shape == value.shape and v.dtype == value.dtype

        if self.random.random() < 0.5:
            name = draw.name(fits)
        else:
            name = self._new()
            self._add(f"{name} = np.ones({value.shape}, {value.dtype.str[1:]!r})")
        return text.replace("{out}", name)

    def _target(self, draw: Draw) -> str:
        """The name for a result: a new one, or now and then that of an operand."""
        if draw.subject and self.random.random() < 0.15:
            return draw.subject
        return self._new()

    def loop(self) -> None:
        """The last lines, several times more; each turn computes what they give, and waits for kernels."""
        lines = [s for s in self.steps[-self.random.randint(1, 4) :] if isinstance(s, Line)]
        named = [line.defines for line in lines if line.defines in self.runs.plain] or ["a0"]
        lines.append(Line(f"settle({', '.join(dict.fromkeys(n for n in named if n))})"))
        step = Loop(tuple(lines), self.random.randint(2, 4))
        if self.runs.run(step):
            self.steps.append(step)
            self.calls += len(lines) - 1

    def _add(self, text: str, rounding: Rounding = Rounding.NEVER) -> None:
        line = Line(text, rounding)
        if self.runs.run(line):
            self.steps.append(line)
            self.calls += 1

    def _new(self) -> str:
        self._names += 1
        return f"a{self._names - 1}"
