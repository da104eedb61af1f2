"""Products of matrices over many short rows, compiled: `x.T @ y`, and `x.T @ x` in half the work.

BLAS is made for large matrices. It copies panels of both for each few hundred rows, and where a result has a
hundred columns it works at half of what the processor can do, at a third where rows come from memory. Here
some rows at a time lie in the first-level cache, sums of tiles stay in registers while they go by, and the
next rows are asked for meanwhile. Sums of the columns, as means and covariances need them, come of the same
rows while they are there.

The kernel, `loops/tall.py`, is compiled in the background once such products have taken
`TALL_HOT_FLOPS`; until it is there, BLAS multiplies, and always where
a matrix's rows are long, or lie along the sum.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays.copying import LINE_BYTES, address, whole_lines
from spartan_ng.costs.choices import TALL_BYTES, TALL_FLOPS, TALL_HOT_FLOPS, TALL_SHAPE, TALL_WIDTH
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, real, source_of
from spartan_ng.kernels.compiled.trial import Guards, largest, most_elements
from spartan_ng.kernels.compiled.trust import Heat, at_hand

_STEPS: int = constant_of("tall", "STEPS")

_heat = Heat(TALL_HOT_FLOPS)
_scratch = threading.local()


class ProductAndSums(Struct, frozen=True):
    """A product, and sums over the rows of its two matrices where they are wanted."""

    value: Any
    sums: tuple[Any, Any]


def product(a: Any, b: Any, out: Any = None) -> Any:
    """`a @ b` of two matrices, in `out` if that is given; None where BLAS is to do it (for now)."""
    found = product_and_sums(a, b)
    if found is None:
        return None
    if out is None:
        return found.value
    np.copyto(out, found.value)
    return out


def product_and_sums(a: Any, b: Any, wanted: tuple[bool, bool] = (False, False)) -> ProductAndSums | None:
    """`a @ b`, with the `wanted` ones of `a.sum(1)` and `b.sum(0)`; None where others are to do it (for
    now)."""
    if a.ndim != 2 or b.ndim != 2 or a.dtype != b.dtype:
        return None
    (m, rows), n = a.shape, b.shape[1]
    if not is_worth(a.dtype, m, n, rows) or not a.strides[0] == b.strides[1] == a.itemsize:
        return None
    is_square = _is_square(a, b)
    kernel = _kernel(a, b, is_square)
    return None if kernel is None else _multiplied(kernel, a, b, is_square, wanted)


def is_worth(dtype: np.dtype[Any], m: int, n: int, rows: int) -> bool:
    """Whether so many rows of `m` and of `n` numbers are multiplied here, if they lie one after the other."""
    if real(dtype) is None:
        return False
    least, most = min(m, n), max(m, n)
    if least * dtype.itemsize < TALL_BYTES or most > TALL_WIDTH or rows < TALL_SHAPE * most:
        return False
    return 2 * m * n * rows >= TALL_FLOPS  # the call alone takes longer than it saves on fewer


def _kernel(a: Any, b: Any, is_square: bool) -> Function | None:
    if not _heat.is_warmed(2 * a.size * b.shape[1]):
        return None
    source = source_of("tall", NUMBER=str(real(a.dtype)), WIDTH=str(a.itemsize))
    kind = (*a.shape[:1], *b.shape[1:], is_square)
    return at_hand(
        source, kind, lambda f: _flaw(f, a, b, is_square), "products of many short rows", heat=_heat
    )


def _is_square(a: Any, b: Any) -> bool:
    """Whether a matrix is multiplied with itself."""
    return address(a) == address(b) and a.shape == b.shape[::-1] and a.strides == b.strides[::-1]


def _flaw(kernel: Function, a: Any, b: Any, is_square: bool) -> str:
    """What the kernel makes otherwise than NumPy of the last rows."""
    rows = max(most_elements(a.size) // max(len(a), b.shape[1]), _STEPS + 5)
    x, y, guards = a[:, -rows:], b[-rows:], Guards()
    found, wanted = _multiplied(kernel, x, y, is_square, (True, True), guards.empty), np.matmul(x, y)
    pairs = [(found.value, wanted), *zip(found.sums, (x.sum(axis=1), y.sum(axis=0)), strict=True)]
    return guards.flaw(pairs, largest([x, y, *(w for _, w in pairs)]))


def _multiplied(
    kernel: Function,
    a: Any,
    b: Any,
    is_square: bool,
    wanted: tuple[bool, bool],
    empty: Callable[..., Any] = np.empty,
) -> ProductAndSums:
    """The product, whose sums are made in lines that have whole tiles; `empty` makes what is given back."""
    (m, rows), n, unit = a.shape, b.shape[1], LINE_BYTES // a.itemsize
    wide_m, wide_n = -(-m // unit) * unit, -(-n // unit) * unit
    value = empty((m, n), a.dtype)
    # Added up while rows are near: a loop of its own took a third of the product's time.
    of_a, of_b = (empty((k,), a.dtype) if w else None for k, w in zip((m, n), wanted, strict=True))
    lengths = (_STEPS * wide_m, 0 if is_square else _STEPS * wide_n, max(wide_m, wide_n), wide_m * wide_n)
    near_a, near_b, part, sums = _places(lengths, a.itemsize)
    near = (near_a, near_a if is_square else near_b, part, sums)
    outs = (0 if x is None else address(x) for x in (value, of_a, of_b))
    sizes = (rows, m, n, wide_m, wide_n, is_square)
    kernel(np.array([[address(a), a.strides[1], address(b), b.strides[0], *sizes, *near, *outs]], np.int64))
    return ProductAndSums(value, (of_a, of_b))


def _places(lengths: Sequence[int], itemsize: int) -> list[int]:
    """Addresses of this thread for so many numbers each, from the beginning of a line of the cache on.
    They stay, as asking for memory anew would take a part of the time."""
    size = sum(lengths) * itemsize
    memory = getattr(_scratch, "memory", None)
    if memory is None or memory.size < size:
        memory = _scratch.memory = whole_lines(size)
    at = address(memory)
    return [at + sum(lengths[:k]) * itemsize for k in range(len(lengths))]
