"""Compiled sum and squared deviations of a block, in one pass over strips of rows.

What `ops.folds.DeviationFold` makes of blocks whose folded axes are neighbours; one that is some columns of
an array is copied, a piece at a time, which stays in the cache. A strip's
distances from an origin give both its sum and its squares; the strip is read a second time, out of the cache,
only where its own mean turns out to lie so far away that five bits of the squares would cancel (or something
is not finite). The origin is the first row, then the mean so far, rounded to a power of two of the size of
the spread: whole numbers keep whole distances, and sums of them stay exact.
A strip's mean is kept with what its rounding leaves out, so that no large mean blurs the distances between
strips. Several short rows make one line, each with running values of its own: long enough for vectors, and
short enough for its running values to stay in the first level of the cache. Rows that are longer than that
are folded a panel of columns at a time.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays.copying import address, whole_lines
from spartan_ng.costs.choices import DEVIATION_ELEMENTS
from spartan_ng.kernels.compiled.native import Function
from spartan_ng.kernels.compiled.ready_made import constant_of, real, source_of
from spartan_ng.kernels.compiled.trial import end_of, first_flaw, largest
from spartan_ng.kernels.compiled.trust import at_hand
from spartan_ng.ops.by_ufunc import State
from spartan_ng.ops.folds import FOLDS, DeviationFold

_PIECE = 1 << 17
"""Elements that are copied at a time: they stay in the cache."""
_PANEL: int = constant_of("deviations", "PANEL")
_LIMITS = {4: "1e30", 8: "1e300"}
"""First elements beyond these are no good as a strip's origin: the distance from them may overflow."""


def sum_and_deviations(x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[State, State] | None:
    """The states of a block's sum and deviations, as from `DeviationFold.block_and_sum`, or None:
    NumPy has to make them (for now)."""
    number = real(out)
    if x.size < DEVIATION_ELEMENTS or x.dtype != out or number is None or x.strides[-1] != x.itemsize:
        return None
    if axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    source = source_of("deviations", NUMBER=number, NBYTES=str(out.itemsize), LIMIT=_LIMITS[out.itemsize])
    kept = [a for a in range(x.ndim) if a not in axes]
    lines = max(kept, key=lambda a: x.shape[a], default=axes[0])
    many = x.shape[lines] > x.shape[axes[0]]  # of short lines each piece has some: their states are no fewer
    # A block of some columns, as workers have of a file, is not contiguous: NumPy takes four times as long.
    pieces = [x] if x.flags.c_contiguous else _pieces(x, lines if many else axes[0])
    first = np.ascontiguousarray(pieces[0])
    kernel = at_hand(source, None, lambda f: _flaw(f, first, axes, out), "squared deviations")
    if kernel is None:
        return None
    found = [_folded(kernel, np.ascontiguousarray(piece), axes, out) for piece in pieces]
    if any(np.any(_overflows(total, state[3])) for (total,), state in found):
        return None
    if len(found) == 1:
        return found[0]
    sums, states = zip(*found, strict=True)
    if many:
        along = kept.index(lines)
        total = np.concatenate([total for (total,) in sums], along)
        return (total,), tuple(np.concatenate(each, along) for each in zip(*states, strict=True))
    fold = FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold), "the row says how states are combined"
    return (reduce(np.add, [total for (total,) in sums]),), fold.combine_all(states)


def _pieces(x: Any, axis: int) -> list[Any]:
    """Parts of a block along an axis, none of them too short for a compiled loop."""
    n = x.shape[axis]
    count = max(1, min(x.size // _PIECE, n))
    along = (slice(None),) * axis
    return [x[(*along, slice(i * n // count, (i + 1) * n // count))] for i in range(count)]


def _flaw(kernel: Function, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> str:
    """What the kernel makes otherwise than NumPy of the end of a block."""
    part, fold = end_of(x), FOLDS["squared deviations"]
    assert isinstance(fold, DeviationFold), "the row says how NumPy does it"
    (total,), (_, mean, rest, squares) = _folded(kernel, part, axes, out)
    (sums,), (_, center, off, spread) = fold.block_and_sum(part, axes, out)
    middle, used = center + off, ~_overflows(sums, spread)
    pairs = [(total, sums), (squares, spread), (np.where(np.isfinite(middle), mean + rest, middle), middle)]
    return first_flaw([(f[used], w[used]) for f, w in pairs], largest([part, sums, spread]))


def _overflows(total: Any, squares: Any) -> Any:
    """Where squares of finite numbers are beyond all others: NumPy folds such blocks."""
    return ~np.isfinite(squares) & ~np.isnan(total)


def _folded(kernel: Function, x: Any, axes: tuple[int, ...], out: np.dtype[Any]) -> tuple[State, State]:
    shape = tuple(n for a, n in enumerate(x.shape) if a not in axes)
    outer, rows = prod(x.shape[: axes[0]]), prod(x.shape[a] for a in axes)
    total, mean, rest, squares = (np.zeros(shape, out) for _ in range(4))
    # Were the buffers `local`, LLVM would take four times as long over the loops.
    buffers = whole_lines(4 * _PANEL * out.itemsize)
    addresses = map(address, (x, total, mean, rest, squares, buffers))
    kernel(np.array([[outer, rows, x.size // (outer * rows), *addresses]], np.int64))
    return (total,), (np.full(shape, rows, np.float64), mean, rest, squares)
