"""Every source that the emitter can write has all the names that it uses: loops over axes of any length, one
included, and folds of any of them; and machine code that is made of them folds blocks of any length."""

from __future__ import annotations

import ast
import builtins
from itertools import chain, combinations, product
from math import prod

import numpy as np
import pytest

from spartan_ng.arrays import WHOLE
from spartan_ng.costs.choices import ABREAST, ABREAST_LENGTH
from spartan_ng.kernels.compiled.compile import compiler
from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.folds import PRODUCT, start
from spartan_ng.kernels.compiled.layout import lay_out
from spartan_ng.kernels.compiled.segments import Ending, Operand, Segment
from spartan_ng.plan.rows import Row

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


TINY = np.float32(1e-45)
STRETCHED = [
    *(("logical_xor", code, "?", (0, 1)) for code in "?if"),
    *(("logical_xor", "f", "?", (0, TINY)), ("logical_or", "f", "?", (0, TINY))),
    *(("logical_and", "d", "?", (5e-324, 1)), ("logical_and", "?", "?", (0, 1))),
    *(("add", "l", "l", (1, 9)), ("add", "?", "l", (0, 1)), ("add", "d", "d", (1, 9))),
    *(("multiply", "l", "l", (2, 3)), ("maximum", "l", "l", (-9, 9)), ("maximum", "d", "d", (-9, TINY))),
    *(("fmin", "f", "f", (TINY, 5)), ("bitwise_xor", "B", "B", (1, 9)), ("bitwise_and", "i", "i", (1, 3))),
]
"""Folds, dtypes of what is folded and of what it comes to, and values."""


@pytest.mark.parametrize(("fold", "code", "out", "values"), STRETCHED)
@pytest.mark.parametrize("kept", [(), (1,)])
def test_blocks_of_one_line_whose_elements_are_stretched(fold, code, out, values, kept):
    """LLVM has a formula for the line, and unrolls what goes round it."""
    operand, result = np.dtype(code), np.dtype(out)
    space = tuple((d, 4000) for d in range(3))
    ending = Ending(-1, fold, (0,), kept, result, tuple(space[k] for k in kept))
    segment = Segment(space, (Operand(0, 0, (0, 1, -1), operand),), (), (), (ending,))
    widths = [operand.itemsize, result.itemsize]
    along = [(4 * widths[0], widths[0], 0), tuple(widths[1] * (k in kept) for k in range(3))]
    layout = lay_out(segment, along, widths, (4, 4, 4000), (False,) * 3)
    kernel = compiler.kernel(emit([(segment, layout)]))
    compiler.request(kernel)
    assert compiler.wait()
    assert kernel.function is not None, kernel.failure
    x = np.random.default_rng(3).choice(np.array(values, operand), (4, 4))
    for sizes in product((1, 2, 3), (1, 2, 3), (1, 2, 9, 33, 2049)):
        found = np.full([sizes[k] for k in kept], start(fold, result, False), result)
        block = np.broadcast_to(x[: sizes[0], : sizes[1], None], sizes)
        folded = tuple(k for k in range(3) if k not in kept)
        with np.errstate(all="ignore"):
            wanted = getattr(np, fold).reduce(block.astype(result) if out != "?" else block, axis=folded)
        table = [sizes[axes[0]] for axes in layout.loops]
        for array, strides in zip((x, found), along, strict=True):
            table += [array.ctypes.data, *(strides[axes[0]] for axes in layout.loops)]
        kernel.function(np.array([table], np.int64))
        np.testing.assert_array_equal(found, wanted.astype(result), err_msg=str(sizes))


SUBSETS = [axes for n in range(4) for axes in combinations(range(3), n)]


@pytest.mark.some(20)
@pytest.mark.parametrize("code", "fd")
@pytest.mark.parametrize("fold", [PRODUCT, "add", "maximum"])
@pytest.mark.parametrize("axes", [s for s in SUBSETS if s], ids=str)
@pytest.mark.parametrize("kept", SUBSETS[:-1], ids=str)
def test_any_number_of_lines_side_by_side(axes, kept, fold, code):
    """The elements are whole numbers, so that the order shows nowhere."""
    dtype, every = np.dtype(code), (0, 1, 2)
    space = tuple((d, 4000) for d in every)
    operands = (Operand(0, 0, every, dtype), Operand(1, 1, tuple(axes), dtype))
    args = (0, 1) if fold == PRODUCT else (0,)
    ending = Ending(-1, fold, args, kept, dtype, tuple(space[k] for k in kept))
    segment = Segment(space, operands, (), (), (ending,))
    whole = (3, 2 * ABREAST + 1, 1100)

    def along(axes, shape):
        """Strides of an array of whole blocks with some axes."""
        steps = [dtype.itemsize * prod(shape[j] for j in axes if j > k) if k in axes else 0 for k in every]
        return tuple(steps)

    strides = [along(every, whole), along(axes, whole), along(kept, whole)]
    layout = lay_out(segment, strides, [dtype.itemsize] * 3, whole, (False,) * 3)
    source = emit([(segment, layout)])
    assert not undefined(source)
    kernel = compiler.kernel(source)
    compiler.request(kernel)
    assert compiler.wait()
    assert kernel.function is not None, kernel.failure
    random = np.random.default_rng(5)
    x = random.integers(-9, 9, whole).astype(dtype)
    y = random.integers(-9, 9, [whole[k] for k in axes]).astype(dtype)
    folded = tuple(k for k in every if k not in kept)
    for sizes in product((1, 3), range(1, whole[1] + 1), (1, 50, 1100)):
        found = np.full([whole[k] for k in kept], start(fold, dtype, False), dtype)
        block = x[tuple(map(slice, sizes))]
        if fold == PRODUCT:
            others = y[tuple(slice(sizes[k]) for k in axes)]
            block = block * others.reshape([sizes[k] if k in axes else 1 for k in every])
        wanted = getattr(np, "add" if fold == PRODUCT else fold).reduce(block, axis=folded)
        table = [sizes[loop[0]] for loop in layout.loops]
        for array, steps in zip((x, y, found), strides, strict=True):
            table += [array.ctypes.data, *(steps[loop[0]] for loop in layout.loops)]
        kernel.function(np.array([table], np.int64))
        np.testing.assert_array_equal(found[tuple(slice(sizes[k]) for k in kept)], wanted, err_msg=str(sizes))


def test_a_product_reads_what_lines_have_in_common_once():
    """A vector that all lines are multiplied with, or the sums of columns."""
    space = ((0, 4000), (1, 4000))
    for kept, vector in (((0,), 1), ((1,), 0)):
        ending = Ending(-1, PRODUCT, (0, 1), kept, F8, (space[kept[0]],))
        operands = (Operand(0, 0, (0, 1), F8), Operand(1, 1, (vector,), F8))
        segment = Segment(space, operands, (), (), (ending,))
        strides = [(320, 8), tuple(8 * (k == vector) for k in (0, 1)), tuple(8 * (k in kept) for k in (0, 1))]
        source = emit([(segment, lay_out(segment, strides, [8] * 3, (100, 40), (False, False)))])
        (together, _) = (part for part in source.split("for k0 in range(")[-2:])
        assert together.count("multiply_add(") == ABREAST
        assert together.count("x1_v[i]" if vector == 1 else "= s0_v[i]") == 1


@pytest.mark.parametrize("length", [1, ABREAST_LENGTH - 1, ABREAST_LENGTH])
@pytest.mark.parametrize("uncut", [False, True])
def test_lines_that_are_short_in_all_blocks_go_one_by_one(length, uncut):
    """Where lines are cut a block's length says nothing of the others'."""
    space = ((0, 4000), (1, 4000))
    ending = Ending(-1, PRODUCT, (0, 1), (0,), F8, (space[0],))
    segment = Segment(space, (Operand(0, 0, (0, 1), F8), Operand(1, 1, (1,), F8)), (), (), (ending,))
    strides: list[tuple[int, ...]] = [(8 * length, 8), (0, 8), (8, 0)]
    source = emit([(segment, lay_out(segment, strides, [8] * 3, (100, length), (False, uncut)))])
    go_abreast = length >= ABREAST_LENGTH or not uncut
    assert source.count("multiply_add(") == (ABREAST + 1 if go_abreast else 1)
