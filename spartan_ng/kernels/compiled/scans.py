"""Compiled scans of contiguous pieces: one pass that reads an element and writes its cumulative value.

Distributed cumulative aggregates (BTW '19), section 4.1: offsets are applied during f_cumagg, without a copy.
A piece is `outer` lines of `n` rows of `inner` neighbours. Rows of several neighbours go side by side, which
vectorizes; a single line takes four elements at a time, so that one addition in four waits for the last.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from spartan_ng.config import config
from spartan_ng.kernels.compiled.compile import PATIENCE_S, Kernel, compiler

LEAST = 1 << 16
"""Elements from which a compiled scan is worth having."""

_STEPS = {
    "add": "{0} + {1}",
    "multiply": "{0} * {1}",
    "minimum": "choose(({0} < {1}) | ({0} != {0}), {0}, {1})",
    "maximum": "choose(({0} > {1}) | ({0} != {0}), {0}, {1})",
}
_TYPES = {"f4": "np.float32", "f8": "np.float64", "i4": "np.int32", "i8": "np.int64"}

_HEAD = """\
import numpy as np
from numba import carray, njit

from spartan_ng.kernels.compiled.intrinsics import choose, pointer


@njit(nogil=True, error_model='numpy')
def kernel(t):
    for r in range(t.shape[0]):
        n, inner = t[r, 5], t[r, 6]
        for o in range(t[r, 4]):
            offset = o * t[r, 7] * {width}
            m = (n - 1) * t[r, 8] + inner
            x = carray(pointer(t[r, 0] + offset), (m,), {type})
            w = carray(pointer(t[r, 1] + offset), (m,), {type})
            y = carray(pointer(t[r, 2] + offset), (m,), {type})
            b = carray(pointer(t[r, 3] + o * t[r, 9] * {width}), (inner,), {type})
"""
_WIDE = """\
            row = t[r, 8]
            if t[r, 3] == 0:
                for j in range(inner):
                    y[j] = x[j]
            else:
                for j in range(inner):
                    y[j] = {first}
            for i in range(row, n * row, row):
                before, here, weight, there = y[i - row:], x[i:], w[i:], y[i:]
                for j in range(inner):
                    there[j] = {next}
"""
_LINE = """\
            i = 0
            if t[r, 3] == 0:
                c = x[0]
                y[0] = c
                i = 1
            else:
                c = b[0]
            while {unrolled}:
                p = x[i]
                q = {pq}
                s = {qs}
                u = {su}
                y[i] = {cp}
                y[i + 1] = {cq}
                y[i + 2] = {cs}
                c = {cu}
                y[i + 3] = c
                i += 4
            while i < n:
                c = {single}
                y[i] = c
                i += 1
"""
_WEIGHTED = "{x} + choose({w} == 0, {zero}, {w} * {c})"


@lru_cache(maxsize=64)
def source(name: str, dtype: str, line: bool) -> str:
    """The text of the scan `name` over lines, or over rows of several neighbours."""
    kind = _TYPES[dtype]
    head = _HEAD.format(width=dtype[1], type=kind)
    if name == "cumsumprod":

        def step(c: str, x: str, w: str) -> str:
            return _WEIGHTED.format(x=x, w=w, c=c, zero=f"{kind}(0)")

        def joined(a: str, b: str) -> str:
            return a

    else:

        def step(c: str, x: str, w: str) -> str:
            return _STEPS[name].format(c, x)

        def joined(a: str, b: str) -> str:
            return _STEPS[name].format(a, b)

    if not line:
        first, following = step("b[j]", "x[j]", "w[j]"), step("before[j]", "here[j]", "weight[j]")
        return head + _WIDE.format(first=first, next=following)
    return head + _LINE.format(
        unrolled="False" if name == "cumsumprod" else "i + 4 <= n",
        pq=joined("p", "x[i + 1]"),
        qs=joined("q", "x[i + 2]"),
        su=joined("s", "x[i + 3]"),
        cp=joined("c", "p"),
        cq=joined("c", "q"),
        cs=joined("c", "s"),
        cu=joined("c", "u"),
        single=step("c", "x[i]", "w[i]"),
    )


def compiled_scan(
    name: str, xs: list[Any], out: Any, axis: int, error_state: dict[str, Any]
) -> CompiledScan | None:
    """The compiled scan of a tile, or None: NumPy has to do it (this time, while it is being compiled)."""
    code = out.dtype.str[1:]
    known = name in _STEPS or name == "cumsumprod"
    if config.kernels == "interpret" or not known or code not in _TYPES or out.size < LEAST:
        return None
    if any(v not in ("ignore", "warn") for v in error_state.values()):
        return None
    if any(type(x) is not np.ndarray or x.dtype != out.dtype or not x.flags.c_contiguous for x in xs):
        return None
    kernel = compiler.kernel(source(name, code, prod(out.shape[axis + 1 :]) == 1))
    if not kernel.settled:
        compiler.request(kernel)
        if config.kernels == "compile":
            compiler.wait(PATIENCE_S)
    return None if kernel.function is None else CompiledScan(kernel, xs, out, axis)


class CompiledScan:
    """A tile's compiled scan, piece by piece."""

    def __init__(self, kernel: Kernel, xs: list[Any], out: Any, axis: int) -> None:
        self.kernel = kernel
        self.xs, self.out = xs, out
        self.outer, self.n = prod(out.shape[:axis]), out.shape[axis]
        self.inner = prod(out.shape[axis + 1 :])

    def pieces(self, wanted: int) -> list[tuple[tuple[int, int], tuple[int, int]]] | None:
        """Whole lines cut into about `wanted` pieces (intervals of outer and inner), whose answers do not
        depend on the cut; None where lines are too few."""
        neighbours = 128 // self.out.itemsize
        if self.outer >= wanted:
            cuts = _cuts(self.outer, wanted)
            return [(c, (0, self.inner)) for c in cuts]
        if self.outer * self.inner >= wanted * neighbours:
            strips = _cuts(self.inner, max(1, min(wanted, self.inner // neighbours)))
            return [((o, o + 1), s) for o in range(self.outer) for s in strips]
        return None

    def run(
        self, lines: tuple[int, int], neighbours: tuple[int, int], rows: tuple[int, int], carry: Any
    ) -> None:
        """Scan a piece into `out`, behind `carry`: an array with one value a line and neighbour."""
        (o, o1), (j, j1), (i, i1) = lines, neighbours, rows
        width = self.out.itemsize
        start = ((o * self.n + i) * self.inner + j) * width
        x, w = _address(self.xs[0]), _address(self.xs[-1])
        before = 0
        if carry is not None:
            carry = np.ascontiguousarray(carry, self.out.dtype)
            before = _address(carry) + (o * self.inner + j) * width
        row = [x + start, w + start, _address(self.out) + start, before, o1 - o, i1 - i, j1 - j]
        table = np.array([[*row, self.n * self.inner, self.inner, self.inner]], np.int64)
        assert self.kernel.function is not None, "chosen only when compiled"
        self.kernel.function(table)


def _cuts(n: int, parts: int) -> list[tuple[int, int]]:
    return [(p * n // parts, (p + 1) * n // parts) for p in range(parts)]


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])
