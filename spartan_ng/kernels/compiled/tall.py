"""Products of matrices over many short rows, compiled: `x.T @ y`, and `x.T @ x` in half the work.

BLAS is made for large matrices. It copies panels of both for each few hundred rows, and where a result has a
hundred columns it works at half of what the processor can do, at a third where rows come from memory. Here
some rows at a time lie in the first-level cache, sums of tiles stay in registers while they go by, and the
next rows are asked for meanwhile.

The kernel, `loops/tall.py`, is compiled in the background once such products have taken `HOT_FLOPS`; until it
is there, BLAS multiplies, and always where a matrix's rows are long, or lie along the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, most_elements, unequal
from spartan_ng.kernels.compiled.trust import Heat, at_hand

NARROWEST_BYTES, WIDEST = 128, 160
"""What a row takes at least, and the numbers that it has at most: with less of them BLAS waits for memory as
well, and more fill its panels."""
_TALL = 8
"""Times as many rows as that there are at least."""
HOT_FLOPS = 1 << 34
"""Operations that such products have taken before their kernel is asked for: a fifth of a second."""
_STEPS: int = constant_of("tall", "STEPS")
_LINE_BYTES = 64
_TYPES = {"f4": "np.float32", "f8": "np.float64"}

_heat = Heat(HOT_FLOPS)


def product(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b` of two matrices, in `out` if that is given; None where BLAS is to do it (for now)."""
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype or a.dtype.str[1:] not in _TYPES:
        return None
    (m, rows), n = a.shape, b.shape[1]
    least, most = min(m, n), max(m, n)
    if least * a.itemsize < NARROWEST_BYTES or most > WIDEST or rows < _TALL * most:
        return None
    if not a.strides[0] == b.strides[1] == a.itemsize or not a.dtype.isnative:
        return None
    kernel = _kernel(a, b)
    if kernel is None:
        return None
    found = _multiplied(kernel, a, b)
    if out is None:
        return found
    np.copyto(out, found)
    return out


def _kernel(a: Any, b: Any) -> Function | None:
    _heat.add(2 * a.size * b.shape[1])
    if not _heat.is_warm:
        return None
    source = source_of("tall", NUMBER=_TYPES[a.dtype.str[1:]], WIDTH=str(a.itemsize))
    kind = (*a.shape[:1], *b.shape[1:], _is_square(a, b))
    return at_hand(source, kind, lambda f: _flaw(f, a, b), "products of many short rows", heat=_heat)


def _is_square(a: Any, b: Any) -> bool:
    """Whether a matrix is multiplied with itself."""
    return address(a) == address(b) and a.shape == b.shape[::-1] and a.strides == b.strides[::-1]


def _flaw(kernel: Function, a: Any, b: Any) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    rows = max(most_elements(a.size) // max(len(a), b.shape[1]), _STEPS + 5)
    x, y, guards = a[:, -rows:], b[-rows:], Guards()
    found, wanted = _multiplied(kernel, x, y, guards), np.matmul(x, y)
    if not guards.intact:
        return "elements beside the result's are written to"
    return unequal(found, wanted, largest([x, y, wanted]))


def _multiplied(kernel: Function, a: Any, b: Any, guards: Guards | None = None) -> Any:
    """The product, a part of lines that have whole tiles."""
    (m, rows), n, unit = a.shape, b.shape[1], _LINE_BYTES // a.itemsize
    wide_m, wide_n = -(-m // unit) * unit, -(-n // unit) * unit
    is_square = _is_square(a, b)
    near_a = _zeros((_STEPS, wide_m), a.dtype)
    near_b = near_a if is_square else _zeros((_STEPS, wide_n), a.dtype)
    out = _zeros((wide_m, wide_n), a.dtype) if guards is None else guards.empty((wide_m, wide_n), a.dtype)
    out[:] = 0
    places = [address(a), a.strides[1], address(b), b.strides[0], rows, m, n, wide_m, wide_n, is_square]
    kernel(np.array([[*places, address(near_a), address(near_b), address(out)]], np.int64))
    if is_square:
        lower = np.tri(m, k=-1, dtype=bool)
        np.copyto(out[:m, :n], out[:m, :n].T.copy(), where=lower)
    return np.ascontiguousarray(out[:m, :n])


def _zeros(shape: tuple[int, int], dtype: np.dtype[Any]) -> Any:
    """Zeros from the beginning of a cache line on: vectors that lie across two take longer."""
    size = shape[0] * shape[1] * dtype.itemsize
    memory = np.zeros(size + _LINE_BYTES, np.uint8)
    first = -address(memory) % _LINE_BYTES
    return memory[first : first + size].view(dtype).reshape(shape)
