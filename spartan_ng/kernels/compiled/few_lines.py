"""Products of a few lines with a large matrix, compiled: the matrix is read once, as it lies.

BLAS copies a matrix into panels for its caches, which pays where each element is used many times. With two
to eight lines that takes longer than the arithmetic, and twice as long as reading the matrix. Here strips of
rows go straight into sums that stay in the first-level cache, and the next rows are asked for meanwhile.

The kernel, `loops/few_lines.py`, is compiled in the background once such products have read
`FEW_LINES_HOT_BYTES`; until it is there, BLAS multiplies, and always where
a matrix's lines lie along the summed axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.costs.choices import FEW_LINES_ELEMENTS, FEW_LINES_HOT_BYTES, FEW_LINES_WIDTH
from spartan_ng.costs.tuned import FEW_LINES
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, real, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, most_elements
from spartan_ng.kernels.compiled.trust import Heat, at_hand

_STRIP_BYTES = 2048
"""Sums of a line that are made at a time: those of all lines stay near while rows of the matrix pass by."""

_heat = Heat(FEW_LINES_HOT_BYTES)


def product(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b` of two matrices, in `out` if that is given; None where BLAS is to do it (for now)."""
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype:
        return None
    if 1 < len(a) <= FEW_LINES and _is_large(b):
        kernel = _kernel(a, b)
        if kernel is None:
            return None
        out = np.empty((len(a), b.shape[1]), a.dtype) if out is None else out
        return out if _multiply(kernel, a, b, out) else None
    if 1 < b.shape[1] <= FEW_LINES and _is_large(a.T):
        turned = product(b.T, a.T)
        if turned is None or out is None:
            return None if turned is None else np.ascontiguousarray(turned.T)
        np.copyto(out, turned.T)
        return out
    return None


def _is_large(matrix: Any) -> bool:
    """Whether a matrix takes longer to read than a few lines with it to compute, and has rows that lie in one
    piece."""
    in_one_piece: bool = matrix.strides[1] == matrix.itemsize
    return in_one_piece and matrix.size >= FEW_LINES_ELEMENTS and matrix.shape[1] >= FEW_LINES_WIDTH


def _kernel(a: Any, b: Any) -> Function | None:
    number = real(b.dtype)
    if number is None or not _heat.is_warmed(b.nbytes):
        return None
    columns = _STRIP_BYTES // b.itemsize
    constants = {"NUMBER": number, "WIDTH": str(b.itemsize), "COLUMNS": str(columns)}
    source = source_of("few_lines", **constants)
    return at_hand(source, len(a), lambda f: _flaw(f, a, b), "products of a few lines", heat=_heat)


def _flaw(kernel: Function, a: Any, b: Any) -> str:
    """What the kernel makes otherwise than NumPy of the last rows and columns."""
    rows = min(len(b), constant_of("few_lines", "STEPS") + 5)
    columns = min(b.shape[1], max(most_elements(b.size) // rows, 1))
    x, y, guards = a[:, -rows:], b[-rows:, -columns:], Guards()
    found = guards.empty((len(a), columns), a.dtype)
    _multiply(kernel, x, y, found)
    wanted = np.matmul(x, y)
    return guards.flaw([(found, wanted)], largest([x, y, wanted]))


def _multiply(kernel: Function, a: Any, b: Any, out: Any) -> bool:
    """Fill `out`; whether its rows lie as the kernel writes them."""
    if out.strides[1] != out.itemsize:
        return False
    sums = np.empty(len(a) * _STRIP_BYTES, np.uint8)
    places = [address(a), *a.strides, address(b), b.strides[0], address(out), out.strides[0], address(sums)]
    kernel(np.array([[*places, len(a), *b.shape]], np.int64))
    return True
