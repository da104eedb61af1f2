"""Joins: the instances of `join_update` that the library builds itself.

Spartan (ATC '15), section 3.1: pieces of the inputs are joined along axes, the join yields data with a
location in the output, and what meets at one location is accumulated.

- contract(a, b); params (labels_a, labels_b, labels_out): small ints as einsum's letters; sums over the
  labels that the output lacks.
- concatenate(a, b, ...); params (axis,): pieces one after the other.
- assign(base, value); params (start, step) for each axis: the value, which has the region's shape, in
  its place in the base.
- tile_as(a); params (kind,): the same array, cut over the workers as the user says, or as a tiling says.
- take(a, indices); params (axis,): int64 indices in [0, n) stand for the axis.
- search(a, values); params (side,): where values belong in the sorted 1-d a of their dtype.
- scatter(base, indices, values); params (accumulate,): all 1-d; "" replaces (the last wins), a ufunc's
  name accumulates.
- along_axis(a); params (function, axis, keywords): a row of `AXIS_FUNCTIONS` on whole lines; those that it
  makes may be of another length.
- matrices(a, b, ...); params (function, batch, stacked, keywords): a row of `MATRIX_FUNCTIONS` on each matrix
  of a stack; `batch` counts the leading axes, `stacked` says which inputs have them (the others are whole).
- bincount(x[, weights]); params (length,): x is 1-d int64 in [0, length), weights may be rows.
- ends(x); params (function, count, last): the first or last places of the sort or argsort of the 1-d x.
- places(x); params ("sort", spans): the elements of the sorted 1-d x whose ranks lie in half-open spans.
- between(x); params those of `ops.line_states.Between`: elements above bounds, counted, and those between.
- distinct(x); params (count,): the distinct elements of the 1-d x, see `ops.line_states`.
- a `UserFunction` of (a, b, ...); params (axes, accumulate): an axis of -1 means a whole input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.ops.line_states import LINE_STATES

REDUCING = frozenset({"bincount", *LINE_STATES})
"""Joins of one axis, of which every part has a state as large as the result."""


class AxisFunction(Struct, frozen=True):
    """A function of whole lines along one axis, as `sort`.

    Parameters
    ----------
    name : NumPy's name
    function : called as `function(a, ..., axis=axis, **keywords)`
    flops : cost of one element, in floating-point operations
    doubling : the cost is that of each doubling of the line's length, as in a sort
    vectorized : the cost for numbers of two bytes or more, without keywords, if NumPy has loops in vector
        registers for them; 0 where it has none
    """

    name: str
    function: Callable[..., Any]
    flops: int = 30
    doubling: bool = False
    vectorized: int = 0

    def line_flops(self, n: int, dtype: np.dtype[Any], keywords: tuple[Any, ...] = ()) -> int:
        """Operations that take as long as a line of n elements of `dtype`."""
        in_registers = self.vectorized and not keywords and dtype.kind in "fiu" and dtype.itemsize > 1
        each = self.vectorized if in_registers else self.flops
        return each * n * (n.bit_length() if self.doubling else 1)


def sort(a: Any, axis: int = -1) -> Any:
    """What `np.sort` gives, which has vectors for all numbers but those of a byte: these, by their digits."""
    by_digits = a.dtype.kind in "biu" and a.dtype.itemsize == 1
    return np.sort(a, axis=axis, kind="stable" if by_digits else None)


def _accumulate(a: Any, axis: int, ufunc: str, dtype: str) -> Any:
    """The `accumulate` of a ufunc that does not associate: line by line, from the first element on."""
    return getattr(np, ufunc).accumulate(a, axis=axis, dtype=np.dtype(dtype))


MOST_ENDS = 1 << 10
"""Places at an end of a line that states may have: they are combined block by block."""
SHARE = 4
"""So many times longer than what is asked for a line must be."""


def short_end(n: int, kth: Any) -> tuple[int, bool] | None:
    """The places at an end of a partition of one line that are few, and whether it is the last end.

    They are in the order of a stable sort, so that they are the same whether the rest is asked for or not.
    """
    if not isinstance(kth, int):
        return None
    most = min(MOST_ENDS, n // SHARE)
    if kth < most:
        return kth + 1, False
    return (n - kth, True) if n - kth <= most else None


def _partition(a: Any, axis: int, kth: Any) -> Any:
    """A partition, whose short end is sorted."""
    found = np.partition(a, kth, axis=axis)
    end = short_end(a.size, kth) if a.ndim == 1 else None
    if end is not None:
        found[-end[0] :].sort() if end[1] else found[: end[0]].sort()
    return found


def _argpartition(a: Any, axis: int, kth: Any) -> Any:
    """The indices that partition; those at a short end are the ends of a stable argsort."""
    end = short_end(a.size, kth) if a.ndim == 1 and a.dtype.kind in "biuf" else None
    if end is None:
        return np.argpartition(a, kth, axis=axis)
    (_, found) = LINE_STATES["ends"]("argsort", *end).state(a, 0)
    others = np.delete(np.arange(a.size), found)
    return np.concatenate([others, found] if end[1] else [found, others])


_ROWS = [
    AxisFunction("accumulate", _accumulate, 2),
    AxisFunction("sort", sort, 56, doubling=True, vectorized=6),
    # Stable whatever `kind` is asked for: the order of equal elements must not depend on the layout. Blocks
    # sort indices behind the digits of values (`kernels.line_sorts`), which takes as long as `flops` says.
    AxisFunction(
        "argsort",
        lambda a, axis, kind="stable": np.argsort(a, axis=axis, kind="stable"),
        19,
        doubling=True,
    ),
    AxisFunction("partition", _partition),
    AxisFunction("argpartition", _argpartition),
    AxisFunction("fft.fft", np.fft.fft, 5, doubling=True),
    AxisFunction("fft.ifft", np.fft.ifft, 5, doubling=True),
    AxisFunction("fft.rfft", np.fft.rfft, 5, doubling=True),
    AxisFunction("fft.ihfft", np.fft.ihfft, 5, doubling=True),
    AxisFunction("fft.irfft", np.fft.irfft, 5, doubling=True),
    AxisFunction("fft.hfft", np.fft.hfft, 5, doubling=True),
]

AXIS_FUNCTIONS: dict[str, AxisFunction] = {row.name: row for row in _ROWS}
"""Every function of whole lines by its name."""


def worked_length(params: tuple[Any, ...], shape: Sequence[int]) -> int:
    """Elements of a line as a function of whole lines, whose result has that shape, works on it: a transform
    may be of another length (`n`) than what it gives."""
    _, axis, keywords = params
    return int(dict(keywords).get("n", shape[axis]))
