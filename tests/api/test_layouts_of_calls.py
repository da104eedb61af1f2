"""How the results of calls lie in memory, drawn from the fuzzer's table of calls: as NumPy's do.

What a program can tell: whether a result is a number or an array, its flags and strides, if it may be written
to, which operands it is a view of, and whether `ravel` and `reshape` of it are views or copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.fuzz.calls import CALLS
from tests.fuzz.chooser import Nothing
from tests.fuzz.drawing import Draw
from tests.fuzz.generator import _Growing
from tests.fuzz.program import Environment, Line, arrays_of, execute, numpys
from tests.fuzz.runner import ours

CALLS_OF_A_SEED = 10
MOST = 3000
RESULT = "a900"
COLUMNS = ("nonzero(", "unravel_index(", "np.where({lines} != 0)[0]")
"""NumPy gives the columns of one matrix, whose elements do not lie side by side; ours do."""
ROWS = [
    r for r in CALLS if not r.statement and "{out}" not in r.text and not any(c in r.text for c in COLUMNS)
]


def facts(package: Any, environment: Environment) -> Iterator[tuple[str, Any]]:
    """What can be told of a result; of a number, that it is one."""
    x = environment[RESULT]
    if not isinstance(x, package.ndarray) or (not x.ndim and not x.flags.writeable):
        yield "number", True
        return
    yield "number", False
    yield "shape", tuple(x.shape)
    if not x.ndim:
        return
    yield "flags", (x.flags.c_contiguous, x.flags.f_contiguous, x.flags.writeable)
    if x.size:
        yield "strides", [s for s, n in zip(x.strides, x.shape, strict=True) if n > 1]
        yield "views", [package.shares_memory(x, v) for v in (x.ravel(), x.T.reshape(-1), x.ravel("K"))]
    for name, operand in arrays_of(environment).items():
        if name != RESULT and isinstance(operand, package.ndarray):
            yield f"a view of {name}", package.may_share_memory(x, operand)


def differences(seed: int, without_axes: bool = False) -> Iterator[str]:
    """The calls of a seed of which something else can be told than of NumPy's."""
    random = Random(seed)
    growing = _Growing(random, seed, MOST)
    if without_axes:
        for _ in range(4):
            growing._add(f"{growing._new()} = {growing._input([])}")
    else:
        growing.inputs(False)
    inputs = [s for s in growing.steps if isinstance(s, Line)]
    for _ in range(CALLS_OF_A_SEED):
        draw = Draw(random, growing.runs.plain, MOST)
        try:
            call = Line(f"{RESULT} = {draw.text(random.choice(ROWS).text)}")
        except Nothing:
            continue
        theirs, here = numpys(), ours()
        raised = [execute(line, e) for e in (theirs, here) for line in (*inputs, call)]
        if any(raised):  # what raises is the fuzzer's
            continue
        wanted, found = dict(facts(numpy, theirs)), dict(facts(np, here))
        if wanted != found:
            different = [f"{k}: {found.get(k)}, NumPy's {v}" for k, v in wanted.items() if found.get(k) != v]
            yield "\n".join([*(line.text for line in inputs), call.text, *different])


@pytest.mark.parametrize("seed", range(60))
def test_results_of_drawn_calls_lie_as_numpys(mode, seed):
    assert not list(differences(seed))


@pytest.mark.parametrize("seed", range(20))
def test_results_without_axes_are_numbers_or_arrays_as_numpys(mode, seed):
    assert not list(differences(seed, without_axes=True))
