"""Products of many short rows with a matrix of few columns, compiled: `x @ w`, as of distances to centres.

BLAS copies the rows into panels for its caches first, which takes four times as long as the arithmetic where
each number is used for a few columns only, and as long as that for a hundred columns. Here some rows are read
as they lie, and stay in the first-level cache while strips of the columns go by; the next rows are asked for
meanwhile, and results are written where they belong once they are whole.

The kernel, `loops/narrow.py`, is compiled in the background once such products have read and written
`NARROW_HOT_BYTES`; until it is there, BLAS multiplies, and always where
rows are long, or do not lie along the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import LINE_BYTES, address, whole_lines
from spartan_ng.costs.choices import (
    NARROW_HOT_BYTES,
    NARROW_SINGLE,
    NARROW_TALL,
    NARROW_TURNED_BYTES,
    NARROW_WIDTH,
)
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import real, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, most_elements
from spartan_ng.kernels.compiled.trust import Heat, at_hand

_LEAST_BYTES = 32
"""What a row of the few columns takes at least in double precision: with less of them BLAS takes no
longer."""
_STRIPS_BYTES = 1 << 20
"""What all of them take at most: half of a second-level cache."""
_NEAR_BYTES, _NEAR_RESULT_BYTES = 3 << 13, 1 << 17
"""Rows that stay in the first-level cache, and what they come to, which is written in strips."""
_LINES = 8
"""Rows whose products are added up in registers at a time, at most."""
_TILE_BYTES = _LINES * 3 * LINE_BYTES

_heat = Heat(NARROW_HOT_BYTES)


def product(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b` of two matrices, in `out` if that is given; None where BLAS is to do it (for now)."""
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype:
        return None
    if a.shape[0] < b.shape[1]:
        if a.shape[0] * a.itemsize > NARROW_TURNED_BYTES:
            return None
        turned = _product(b.T, a.T, None)
        found = None if turned is None else np.ascontiguousarray(turned.T)
    else:
        found = _product(a, b, out)
    if found is None or out is None or found is out:
        return found
    np.copyto(out, found)
    return out


def _product(a: Any, b: Any, out: Any) -> Any:
    (rows, inner), n = a.shape, b.shape[1]
    least = _LEAST_BYTES * (NARROW_SINGLE if a.itemsize == 4 else 1)
    if inner < NARROW_WIDTH or n * a.itemsize < least:
        return None
    if rows < max(NARROW_TALL * inner, _LINES) or n * inner * a.itemsize > _STRIPS_BYTES:
        return None
    if a.strides[1] != a.itemsize:
        return None
    kernel = _kernel(a, b)
    if kernel is None:
        return None
    if out is None or out.strides[1] != out.itemsize:
        out = np.empty((rows, n), a.dtype)
    _multiply(kernel, a, b, out)
    return out


def _kernel(a: Any, b: Any) -> Function | None:
    number = real(a.dtype)
    if number is None or not _heat.is_warmed(a.nbytes + len(a) * b.shape[1] * a.itemsize):
        return None
    source = source_of("narrow", NUMBER=number, WIDTH=str(a.itemsize))
    kind = b.shape[1]
    return at_hand(
        source, kind, lambda f: _flaw(f, a, b), "products of short rows with few columns", heat=_heat
    )


def _flaw(kernel: Function, a: Any, b: Any) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    rows = min(max(most_elements(a.size) // a.shape[1], _LINES + 3), len(a))
    x, guards = a[-rows:], Guards()
    found, wanted = guards.empty((rows, b.shape[1]), a.dtype), np.matmul(x, b)
    _multiply(kernel, x, b, found)
    return guards.flaw([(found, wanted)], largest([x, b, wanted]))


def _multiply(kernel: Function, a: Any, b: Any, out: Any) -> None:
    """Fill `out`, whose rows lie in one piece."""
    (rows, inner), n = a.shape, b.shape[1]
    near = min(_NEAR_BYTES // inner, _NEAR_RESULT_BYTES // n) // (a.itemsize * _LINES)
    strips = -(-n * a.itemsize // LINE_BYTES) * LINE_BYTES * inner
    scratch = whole_lines(strips + _TILE_BYTES)
    places = [address(a), a.strides[0], address(b), *b.strides, address(out), out.strides[0]]
    sizes = [rows, inner, n, max(near, 1) * _LINES, address(scratch), address(scratch) + strips]
    kernel(np.array([[*places, *sizes]], np.int64))
