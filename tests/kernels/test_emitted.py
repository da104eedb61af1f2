"""Every source that the emitter can write has all the names that it uses: loops over axes of any length, one
included, and folds of any of them."""

from __future__ import annotations

import ast
import builtins
from itertools import chain, combinations, product

import numpy as np
import pytest

from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.layout import lay_out
from spartan_ng.kernels.compiled.segments import Ending, Operand, Segment
from spartan_ng.plan.rows import WHOLE, Row

F8 = np.dtype(np.float64)
SPACES = [s for n in range(4) for s in product((1, 6), repeat=n)]


def strides_of(shape, kept):
    """Bytes from element to element of a contiguous array with some of the axes."""
    out, width = [0] * len(shape), 8
    for k in reversed(kept):
        out[k] = width if shape[k] > 1 else 0
        width *= shape[k]
    return tuple(out)


def undefined(source):
    """Names that are used and made nowhere."""
    names = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Name)]
    made = {n.id for n in names if isinstance(n.ctx, ast.Store)} | set(dir(builtins))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom | ast.Import):
            made |= {a.asname or a.name for a in node.names}
        elif isinstance(node, ast.FunctionDef):
            made |= {node.name, *(a.arg for a in node.args.args)}
    return {n.id for n in names} - made


@pytest.mark.some(30)
@pytest.mark.parametrize("fold", ["add", "fmax", "maximum"])
@pytest.mark.parametrize("shape", SPACES, ids=str)
@pytest.mark.parametrize("in_stage", [True, False])
def test_names(shape, fold, in_stage):
    every = tuple(range(len(shape)))
    space = tuple((WHOLE, n) for n in shape)
    row = Row("map", "square", (0,), (), F8, shape, every)
    for kept in chain.from_iterable(combinations(every, n) for n in range(len(every) + 1)):
        result = tuple((WHOLE, shape[k]) for k in kept)
        ending = Ending(2 if in_stage else -1, fold, (1,), kept, F8, result)
        segment = Segment(space, (Operand(0, 0, every, F8),), ((1, row),), (1,), (ending,))
        strides = [strides_of(shape, axes) for axes in (every, every, kept)]
        source = emit([(segment, lay_out(segment, strides, [8] * 3, shape, (True,) * len(shape)))])
        assert not undefined(source), source
