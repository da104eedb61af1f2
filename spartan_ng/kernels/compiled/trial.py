"""What trials of kernels share: how much is computed twice, the memory around it, when results are equal."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from spartan_ng.memory import copied_bytes
from spartan_ng.scratch import on_disk
from spartan_ng.system.mapping import LARGE_PAGE, Reservation

SHARE = 1 << 10
"""The part of the work that is done twice, at most: a thousandth, but no less than"""
LEAST = 1 << 12
"""so many elements, or"""
LEAST_OF_PRODUCTS = 1 << 10
"""so many of matrix products, each of which reads a line and a column: as many fill several vectors."""
_GUARD = 256
"""Bytes before and behind an array that must stay."""
PATTERN = 0x5A
"""What guarded bytes hold."""
MARGIN = 3
"""Elements around what a kernel is to write, along each axis, that must stay."""
_PIECE = 1 << 18
"""Elements that are looked at together."""
_RTOL = {4: 1e-3, 8: 1e-7}
"""How far results may be apart, as a share of the largest value on the way, where tiers cannot agree to the
bit; by the bytes of a real number."""
_FEW = 0.02
"""The share of elements that may then differ altogether: those where a function jumps."""


class Guards:
    """Arrays for a kernel to write to, and the bytes around them, which have to stay."""

    def __init__(self) -> None:
        self._around: list[Any] = []

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        """An array of the kernel's."""
        dtype = np.dtype(dtype)
        memory = _memory(prod(shape) * dtype.itemsize + 2 * _GUARD)
        memory[:_GUARD] = memory[-_GUARD:] = PATTERN
        self._around += [memory[:_GUARD], memory[-_GUARD:]]
        return memory[_GUARD:-_GUARD].view(dtype).reshape(shape)

    @property
    def intact(self) -> bool:
        """Whether nothing was written beside the arrays."""
        return all((part == PATTERN).all() for part in self._around)

    def flaw(self, pairs: Iterable[tuple[Any, Any]], scale: float | None) -> str:
        """What is wrong: something beside the arrays, or the first of several (found, wanted) that differ."""
        return first_flaw(pairs, scale) if self.intact else "elements beside the result's are written to"


def _memory(nbytes: int) -> Any:
    """So many bytes, in a file without a name where memory has no room for them: of a tile, a block of some
    columns touches every page.

    Most touch few, which are small ones then: NumPy's large memory comes in large pages, each of which the
    system fills with zeros as a whole.
    """
    if nbytes > copied_bytes():
        return on_disk((nbytes,), np.dtype(np.uint8))
    return np.empty(nbytes, np.uint8) if nbytes < LARGE_PAGE else Reservation(nbytes, False).array()


def most_elements(size: int, of_products: bool = False) -> int:
    """So many of `size` elements a trial may take."""
    return max(size // SHARE, LEAST_OF_PRODUCTS if of_products else LEAST)


def end_of(x: Any) -> Any:
    """The end of a contiguous array, contiguous like it, that a trial may take."""
    most = most_elements(x.size)
    for d in range(x.ndim):
        kept = min(max(most // max(prod(x.shape[d + 1 :]), 1), 1), x.shape[d])
        x = x[(*(slice(None),) * d, slice(x.shape[d] - kept, None))]
        if kept > 1:
            break
    return x


def last_rows(indptr: Any, width: int) -> tuple[int, int]:
    """The last rows of a CSR array that have elements, as many as a trial may take where an element costs
    `width`; the rows are bounded as well."""
    nnz, rows = int(indptr[-1]), len(indptr) - 1
    end = int(np.searchsorted(indptr, nnz, side="left")) if nnz else rows
    by_elements = int(np.searchsorted(indptr, nnz - most_elements(nnz * width) // width, side="left"))
    first = max(by_elements, end - most_elements(rows))
    return max(min(first, end - 1), 0), end


def largest(values: Iterable[Any]) -> float:
    """The largest finite number in arrays of floats."""
    return max(map(_largest, values), default=0.0)


def _largest(value: Any) -> float:
    x = np.asarray(value)
    if x.dtype.kind not in "fc" or not x.size:
        return 0.0
    if x.dtype.kind == "f":
        ends = abs(float(x.min())), abs(float(x.max()))
        if isfinite(ends[0]) and isfinite(ends[1]):  # which takes no memory
            return max(ends)
    if x.size > _PIECE and len(x) > 1:  # a whole operand, perhaps, beside which there is no room for another
        return max(map(_largest, np.array_split(x, min(-(-x.size // _PIECE), len(x)))))
    return float(np.max(np.abs(x), where=np.isfinite(x), initial=0))


def unequal(found: Any, wanted: Any, scale: float | None) -> str:
    """How two arrays differ; NaN are equal, and so are zeros. With a `scale`, rounding may differ."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape:
        return f"shape {found.shape} in place of {wanted.shape}"
    same = (found == wanted) | ((found != found) & (wanted != wanted))
    if scale is not None and found.dtype.kind in "fc":
        same |= np.abs(found - wanted) <= scale * _RTOL.get(found.real.itemsize, _RTOL[4])
    wrong = int(np.count_nonzero(~same))
    if not wrong or (scale is not None and wrong <= _FEW * same.size):
        return ""
    at = tuple(np.argwhere(~same)[0])
    return f"{wrong} of {same.size} elements differ, the first {found[at]!r} is {wanted[at]!r} by NumPy"


def first_flaw(pairs: Iterable[tuple[Any, Any]], scale: float | None) -> str:
    """What is wrong with the first of several (found, wanted) that differ."""
    return next((said for found, wanted in pairs if (said := unequal(found, wanted, scale))), "")
