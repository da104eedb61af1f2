"""Products of many short rows with a matrix of few columns, compiled: `x @ w`, as of distances to centres.

BLAS copies the rows into panels for its caches first, which takes four times as long as the arithmetic where
each number is used for a few columns only. Here eight rows at a time are read as they lie, once, while the
few columns stay in the first-level cache, and the next rows are asked for meanwhile.

The kernel, `loops/narrow.py`, is compiled in the background once such products have read
`NARROW_HOT_BYTES`; until it is there, BLAS multiplies, and always where
rows are long, or do not lie along the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import LINE_BYTES, address, whole_lines
from spartan_ng.costs.choices import NARROW_HOT_BYTES, NARROW_TALL, NARROW_WIDTH
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import real, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, most_elements
from spartan_ng.kernels.compiled.trust import Heat, at_hand

_LEAST_BYTES, _FEW_BYTES, _NEAR_BYTES = 32, 192, 1 << 14
"""What a row of the few columns takes at least and at most, and all of them at most, filled up to whole
vectors."""
_LINES = 8

_heat = Heat(NARROW_HOT_BYTES)


def product(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b` of two matrices, in `out` if that is given; None where BLAS is to do it (for now)."""
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype:
        return None
    if a.shape[0] < b.shape[1]:
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
    # Of shorter rows, and fewer columns, BLAS takes no longer.
    if not _LEAST_BYTES <= n * a.itemsize <= _FEW_BYTES or inner < NARROW_WIDTH or rows < NARROW_TALL * inner:
        return None
    if a.strides[1] != a.itemsize or inner * _wide(n, a.itemsize) > _NEAR_BYTES:
        return None
    kernel = _kernel(a, b)
    if kernel is None:
        return None
    if out is None or out.strides[1] != out.itemsize:
        out = np.empty((rows, n), a.dtype)
    _multiply(kernel, a, b, out)
    return out


def _wide(n: int, itemsize: int) -> int:
    """Bytes of `n` numbers in whole vectors."""
    return -(-n * itemsize // LINE_BYTES) * LINE_BYTES


def _kernel(a: Any, b: Any) -> Function | None:
    number = real(a.dtype)
    if number is None or not _heat.is_warmed(a.nbytes):
        return None
    n, unit = b.shape[1], a.itemsize
    constants = {"NUMBER": number, "WIDTH": str(unit)}
    source = source_of("narrow", VECTORS=f"{_wide(n, unit)} // BYTES", **constants)
    return at_hand(source, n, lambda f: _flaw(f, a, b), "products of short rows with few columns", heat=_heat)


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
    line = _wide(n, a.itemsize) // a.itemsize
    near, sums = _zeros(inner, line, a.dtype), _zeros(_LINES, line, a.dtype)
    # BLAS copies the rows into panels, which takes four times as long as to multiply them.
    near[:, :n] = b
    places = [address(a), a.strides[0], address(near), address(out), out.strides[0]]
    kernel(np.array([[*places, rows, inner, n, address(sums)]], np.int64))


def _zeros(lines: int, numbers: int, dtype: Any) -> Any:
    memory = whole_lines(lines * numbers * dtype.itemsize)
    memory.fill(0)
    return memory.view(dtype).reshape(lines, numbers)
