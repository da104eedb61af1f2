"""Generated kernels without numba: the same bits as with it, and nothing of it imported."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import numpy as np
import pytest

from spartan_ng.kernels.compiled import native
from spartan_ng.kernels.compiled.emit import HEAD
from spartan_ng.kernels.compiled.formulas import DTYPES, FORMULAS, expression, loop_dtypes, obstacle
from spartan_ng.kernels.compiled.instructions import BeyondError
from spartan_ng.kernels.compiled.intrinsics import vector_bytes
from spartan_ng.kernels.compiled.lowering import lower_to_llvm
from spartan_ng.kernels.compiled.machine import optimized
from spartan_ng.plan.rows import Row

KERNEL = "@compiled\ndef kernel(table):\n    for b in range(table.shape[0]):\n        t = table[b]\n"
ALONE = """
import sys
sys.modules["numba"] = None
from spartan_ng.kernels.compiled import child
assert child._compile("alone", sys.stdin.read())
"""


def rows_of(dtype):
    """A row for each formula that holds for operands of a dtype, and for each cast."""
    for name, formula in FORMULAS.items():
        count = 1 + ("{1}" in formula.text) + ("{2}" in formula.text)
        operands = [np.dtype(bool) if name == "where" and k == 0 else dtype for k in range(count)]
        out = dtype if name == "where" else loop_dtypes(name, tuple(operands))[-1]
        row = Row("map", name, tuple(range(count)), (), out, (1,), (0,))
        if not obstacle(row, operands):
            yield row, operands
    for code in DTYPES:
        row = Row("map", "cast", (0,), (), np.dtype(code), (1,), (0,))
        if not obstacle(row, [dtype]):
            yield row, [dtype]


def source_of(dtype):
    """A kernel of all rows of a dtype, and the dtypes of its results."""
    code = dtype.str[1:]
    lines = ["n = t[0]", f"x = array_at(t[1], (n,), {code})", f"z = array_at(t[2], (n,), {code})"]
    inside = ["c = x[i] != z[i]"]
    outs: list[np.dtype] = []
    for row, operands in rows_of(dtype):
        k = len(outs)
        outs.append(row.dtype)
        names = ["c", "x[i]", "z[i]"] if row.fn == "where" else ["x[i]", "z[i]"]
        lines.append(f"y{k} = array_at(t[{3 + k}], (n,), {row.dtype.str[1:]})")
        inside.append(f"y{k}[i] = {expression(row, names[: len(operands)], operands)}")
    body = [*lines, "for i in range(n):", *("    " + line for line in inside)]
    return HEAD + KERNEL + "\n".join("        " + line for line in body) + "\n", outs


def values_of(dtype):
    """All pairs of numbers of a dtype where formulas turn, and of some others."""
    random = np.random.default_rng(5)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        edge = [0.0, -0.0, 1.0, -1.5, np.nan, np.inf, -np.inf, info.tiny, -info.max, info.smallest_subnormal]
        some = [*edge, *random.standard_normal(20) * 100]
    elif dtype.kind == "b":
        some = [False, True]
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        some = [low, low + 1, 0, 1, 2, high - 1, high, *random.integers(0, 100, 20)]
    with np.errstate(over="ignore"):
        pairs = [np.array(side, dtype) for side in zip(*product(some, some), strict=True)]
    return [np.resize(side, 1031) for side in pairs]


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("code", DTYPES)
def test_the_same_bits_as_with_numba(code):
    from spartan_ng.kernels.compiled.child import _lowered_by_numba
    from spartan_ng.kernels.compiled.machine import object_file

    dtype = np.dtype(code)
    source, outs = source_of(dtype)
    x, z = values_of(dtype)
    found = []
    for name, (text, function) in {
        f"ours_{code}": (lower_to_llvm(f"ours_{code}", source), f"ours_{code}"),
        f"numba_{code}": _lowered_by_numba(f"numba_{code}", source),
    }.items():
        results = [np.zeros(len(x), out) for out in outs]
        table = [len(x), *(a.ctypes.data for a in (x, z, *results))]
        native.load_code(name, object_file(text, function, name))(np.array([table], np.int64))
        found.append([r.tobytes() for r in results])
    assert len(outs) > 11
    assert found[0] == found[1]


@pytest.mark.slow
def test_a_generated_kernel_needs_no_numba():
    source, _ = source_of(np.dtype(float))
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "line",
    ["t = i8(2.5)", "table[0, -1] = 1", "t = 2.0", "t = u8(t) + t", "print(1)", "a = b1(t)", "a = t // 3"],
)
def test_what_it_does_not_know_is_left_to_numba(line):
    with pytest.raises(BeyondError):
        lower_to_llvm("beyond", f"{HEAD}@compiled\ndef kernel(table):\n    t = table[0, 0]\n    {line}\n")


LEAST = """        n = t[0]
        x, y = array_at(t[1], (n,), f8), array_at(t[2], (1,), f8)
        least = array_at(local(64), (8,), f8)
        least[:] = f8(infinity)
        for b in range(n // 8):
            for j in lanes(8):
                least[j] = choose(x[b * 8 + j] < least[j], x[b * 8 + j], least[j])
        for j in range(8):
            y[0] = choose(least[j] < y[0], least[j], y[0])
"""


def test_loops_over_lanes_are_vectors() -> None:
    """Eight turns were unrolled before anybody looked for vectors: eight comparisons of numbers."""
    try:
        width = vector_bytes() // 8
    except LookupError:
        pytest.skip("the processor has no wide vectors")
    found = optimized(lower_to_llvm("least", HEAD + KERNEL + LEAST), "least", "least")
    # Of vectors of 64 bytes LLVM takes half on processors that are slower with whole ones.
    assert any(f"fcmp olt <{n} x double>" in str(found) for n in (width, max(width // 2, 4)))
