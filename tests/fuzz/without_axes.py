"""A program for each row of the table of calls whose operands have no axes: arrays and numbers.

What a call does with them is a chapter of its own of NumPy's: a number is given back or an array, an axis of
0 or -1 is taken or refused, and what is refused has one type of error or another.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.fuzz.calls import Call
from tests.fuzz.chooser import Nothing
from tests.fuzz.drawing import Draw
from tests.fuzz.generator import Program, judged
from tests.fuzz.program import Line, Step, arrays_of, execute, numpys, steps_of

DTYPES = ("?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", "c8", "c16")
_VALUES = ("1", "0", "2", "3")


class _AnyOperand(Draw):
    """Takes every array for every place."""

    def name(self, fits: Callable[[Any], bool], recent: bool = True, always: bool = False) -> str:
        """Any array, whether it fits or not."""
        return self.random.choice(list(arrays_of(self.environment)))

    def length(self) -> int:
        """What has no axes is taken for one element."""
        self.draw_axis()
        return 1


def program_of(call: Call, seed: int) -> Program | None:
    """A program that makes arrays and numbers of one dtype, and calls; None where nothing can be judged.

    One of the numbers is computed later than the others, in every mode.
    """
    random = Random(f"{call.text} {seed}")
    dtype = random.choice(DTYPES)
    value, other = (random.choice(_VALUES) for _ in range(2))
    lines: list[Step] = [
        Line(f"a0 = np.array({value}, {dtype!r})"),
        Line(f"a1 = np.array([{other}], {dtype!r})[0]"),
        Line(f"a2 = np.max(np.array([{other}, {value}], {dtype!r}))"),
        Line(f"a3 = np.array([[{other}]], {dtype!r}).reshape(())"),
        Line(f"a5 = np.max(np.indices((3, 1))[0].astype({dtype!r}))"),
        Line("settle(a5)"),
    ]
    environment = numpys()
    for line in steps_of(lines):
        execute(line, environment)
    draw = _AnyOperand(random, environment, 99)
    try:
        text = draw.text(call.text).replace("{out}", "a3")
    except Nothing:
        return None
    lines.append(Line(text if call.statement else f"a4 = {text}", call.rounding))
    return judged(seed, lines)
