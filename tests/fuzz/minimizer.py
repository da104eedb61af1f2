"""Make a program that shows a fault short: leave out steps, take loops apart, put values where calls were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from spartan_ng.config import config
from tests.fuzz.generator import Program, judged
from tests.fuzz.program import Line, Loop, Step, execute, numpys
from tests.fuzz.runner import Finding, Mode, check, numpys_errors

_MOST_TRIALS = 150
_MOST_TEXT = 160
"""Characters of an array that is written out in place of a call."""


def minimize(program: Program, finding: Finding, mode: Mode) -> tuple[Program, Finding]:
    """The shortest program found that shows a fault of the same kind in the mode that is running.

    A fault that the interpreter shows, too, is sought there: nothing is compiled for each trial then.
    """
    with config.override(kernels="interpret"):
        found = _shown(program, finding, mode)
        if found is not None:
            return _shortest((program, found), finding, mode)
    return _shortest((program, finding), finding, mode)


def _shown(program: Program, finding: Finding, mode: Mode) -> Finding | None:
    """The fault of the same kind that a program shows."""
    found = check(program, mode, numpys_errors(program))
    return found if found is not None and found.kind == finding.kind else None


def _shortest(best: tuple[Program, Finding], finding: Finding, mode: Mode) -> tuple[Program, Finding]:
    trials = 0

    def shows(steps: Sequence[Step]) -> tuple[Program, Finding] | None:
        nonlocal trials
        trials += 1
        shorter = judged(best[0].seed, tuple(steps)) if trials <= _MOST_TRIALS else None
        found = None if shorter is None else _shown(shorter, finding, mode)
        return None if shorter is None or found is None else (shorter, found)

    for changes in (_tails, _without, _unrolled, _without, _frozen, _without):
        best = _improve(best, changes, shows)
    return best


def _improve(
    best: tuple[Program, Finding],
    changes: Callable[[Sequence[Step]], Iterator[list[Step]]],
    shows: Callable[[Sequence[Step]], tuple[Program, Finding] | None],
) -> tuple[Program, Finding]:
    """Take the first change that still shows the fault, again and again."""
    while True:
        found = next((f for c in changes(best[0].steps) if (f := shows(c)) is not None), None)
        if found is None:
            return best
        best = found


def _tails(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The program cut off sooner, or with whole parts of it left out."""
    n = len(steps)
    for k in (n // 2, 3 * n // 4, 7 * n // 8, n - 1):
        if 0 < k < n:
            yield list(steps[:k])


def _without(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Each step left out, with those that need what it defines; the last ones first."""
    for i in reversed(range(len(steps))):
        step = steps[i]
        yield _closed([*steps[:i], *steps[i + 1 :]])
        if isinstance(step, Loop):
            for k in range(len(step.lines)):
                lines = (*step.lines[:k], *step.lines[k + 1 :])
                if lines:
                    yield [*steps[:i], Loop(lines, step.times), *steps[i + 1 :]]


def _closed(steps: list[Step]) -> list[Step]:
    """The steps whose operands are all defined before them."""
    known: set[str] = set()
    kept: list[Step] = []
    for step in steps:
        lines = step.lines if isinstance(step, Loop) else (step,)
        if all(
            line.uses <= known | {d for x in lines[:k] if (d := x.defines)} for k, line in enumerate(lines)
        ):
            kept.append(step)
            known.update(d for line in lines if (d := line.defines))
    return kept


def _unrolled(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Each loop run less often, or its lines once."""
    for i, step in enumerate(steps):
        if isinstance(step, Loop):
            yield [*steps[:i], *step.lines, *steps[i + 1 :]]
            if step.times > 2:
                yield [*steps[:i], Loop(step.lines, step.times - 1), *steps[i + 1 :]]


def _frozen(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Each array as a literal of the value that it has for NumPy."""
    environment = numpys()
    for i, step in enumerate(steps):
        for line in step.lines if isinstance(step, Loop) else (step,):
            execute(line, environment)
        if isinstance(step, Line) and step.defines in environment and "np.array(N.array(" not in step.text:
            text = _literal(environment[step.defines])
            if text is not None and (len(text) < len(step.text) or step.uses):
                line = Line(f"{step.defines} = {text}")
                yield _closed([*steps[:i], line, *steps[i + 1 :]])


def _literal(value: Any) -> str | None:
    """A small array's text."""
    if not isinstance(value, numpy.ndarray) or value.size > 40:
        return None
    elements = repr(value.tolist()).replace("nan", "N.nan").replace("inf", "N.inf")
    text = f"np.array(N.array({elements}, {value.dtype.str[1:]!r}))"
    if value.size == 0:
        text = f"np.array(N.zeros({value.shape}, {value.dtype.str[1:]!r}))"
    return text if len(text) <= _MOST_TEXT else None
