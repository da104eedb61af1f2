"""What a scan does to one piece of an array: f_agg, f_off and f_cumagg over states.

Distributed cumulative aggregates (BTW '19), sections 3.1 to 3.4. A state is a tuple of arrays whose scanned
axis has length 1 (an aggregate) or the piece's length (its cumulative values). Basic scans have one
array in their state. A recurrence has two: the piece's last value behind nothing, and the product of its
weights (`ops.frames` has what cumsumprod needs beside them); a compensated sum has a sum and what rounding
has lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import Box, box_shape
from spartan_ng.costs.choices import LINES_ONE_BY_ONE, SCAN_PIECE
from spartan_ng.kernels.user import guarded
from spartan_ng.ops.frames import weighted
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import MONOIDS, SCANS, Monoid, Recurrence, Scan, recurrence_scan

State = tuple[Any, ...]

_PIECES = 32
"""Pieces (times chunks) that a large tile is scanned in, at most."""
_NEIGHBOURS = 64
"""Neighbours in a row that stay together."""


class ScanCut(Struct, frozen=True):
    """How a tile is scanned side by side: boxes of whole lines, and where those are too few, chunks of the
    axis, whose totals come first. It depends on the tile's box alone, as the answer's last bits do.

    Of a tile of which a part is there at a time, they are those of `part`."""

    box: Box
    part: Box
    pieces: tuple[Box, ...]
    chunks: tuple[tuple[int, int], ...]
    dimensions: frozenset[int]
    """The dimensions that pieces cut."""
    in_chunks: bool = False
    """Whether the axis is cut, of this part or of another."""


def one_piece(box: Box, axis: int) -> ScanCut:
    """A tile that is scanned in one go."""
    return ScanCut(box, box, (box,), (box[axis],), frozenset())


def cut_lines(box: Box, axis: int, lines: bool = False) -> ScanCut:
    """The pieces and chunks of the tile at `box`; only pieces if `lines` are to be scanned whole."""
    counts, chunks = _counts(box_shape(box), axis, lines)
    return _cut(box, box, axis, counts, chunks)


def cut_parts(box: Box, parts: Sequence[Box], axis: int, lines: bool) -> Iterator[ScanCut]:
    """The same of each of the parts of the tile at `box`, which follow each other and are there one at a
    time. All are cut as the longest is: what they have in common of a result has the same boxes."""
    counts, chunks = _counts(max(map(box_shape, parts)), axis, lines)
    cut = _cut(box, box, axis, counts, chunks)
    apart = (
        d for d in range(len(box)) if parts[0][d] != box[d]
    )  # what is laid out for one of them is for all
    dimensions = cut.dimensions.union(apart)
    return (
        replace(_cut(box, part, axis, counts, chunks), dimensions=dimensions, in_chunks=cut.in_chunks)
        for part in parts
    )


def _counts(shape: tuple[int, ...], axis: int, lines: bool) -> tuple[list[int], int]:
    """How many parts each dimension of a box is cut into for pieces, and the axis for chunks."""
    every = left = max(1, min(_PIECES, prod(shape) // SCAN_PIECE))
    counts = []
    for d, n in enumerate(shape):
        least = _NEIGHBOURS if d == len(shape) - 1 else 1
        counts.append(1 if d == axis else max(1, min(left, n // least)))
        left = -(-left // counts[-1])
    pieces = prod(counts)
    count = 1 if lines or pieces >= min(every, _PIECES // 4) else -(-every // pieces)
    return counts, count


def _cut(box: Box, part: Box, axis: int, counts: Sequence[int], chunks: int) -> ScanCut:
    spans = [even_parts(lo, hi, min(n, hi - lo) or 1) for (lo, hi), n in zip(part, counts, strict=True)]
    lo, hi = part[axis]
    of_axis = tuple(even_parts(lo, hi, min(chunks, max(hi - lo, 1))))
    dimensions = frozenset(d for d, s in enumerate(spans) if len(s) > 1)
    return ScanCut(box, part, tuple(product(*spans)), of_axis, dimensions, len(of_axis) > 1)


def blocks_along(box: Box, axis: int, step: int) -> Iterator[Box]:
    """A box in blocks along an axis that end at multiples of `step`; whole if that is 0."""
    lo, hi = box[axis]
    ends = [*range(lo - lo % step + step, hi, step), hi] if step else [hi]
    return ((*box[:axis], span, *box[axis + 1 :]) for span in pairwise([lo, *ends]) if lo < hi)


def even_parts(lo: int, hi: int, parts: int) -> list[tuple[int, int]]:
    """`[lo, hi)` in even parts."""
    n = hi - lo
    return [(lo + p * n // parts, lo + (p + 1) * n // parts) for p in range(parts)]


class Cumulation(Protocol):
    """A scan along one axis of a piece."""

    def total(self, xs: list[Any]) -> State:
        """f_agg: the state of the whole piece."""
        ...

    def combine(self, before: State, after: State) -> State:
        """f_off on states: the state of two neighbouring pieces together."""
        ...

    def scan(self, xs: list[Any], out: Any, carry: State | None) -> State:
        """f_cumagg of a piece into `out`, behind `carry`; the state that the next piece is behind."""
        ...


def cumulation(fn: str | UserFunction, axis: int, dtype: np.dtype[Any]) -> Cumulation:
    """The scan `fn` along `axis` with results (and states) of `dtype`."""
    if isinstance(fn, UserFunction):
        if isinstance(fn.function, Recurrence):
            return MonoidScan(recurrence_scan(*_guarded_pair(fn, fn.function)), axis, dtype)
        combine = guarded(fn, "scan")
        monoid = Monoid(str(fn), 1, 1, lambda x: (x,), lambda a, b: (combine(a[0], b[0]),), lambda s: s[0])
        return MonoidScan(monoid, axis, dtype)
    if fn in SCANS:
        return UfuncScan(SCANS[fn], axis, dtype)
    return (FrameScan if fn == "cumsumprod" else MonoidScan)(MONOIDS[fn], axis, dtype)


def _guarded_pair(fn: UserFunction, pair: Recurrence) -> tuple[Any, Any]:
    """Plus and times of a user's recurrence, with errors that name where it came from."""
    return tuple(guarded(UserFunction(f, fn.origin), "recurrence") for f in (pair.plus, pair.times))  # type: ignore[return-value]


class UfuncScan:
    """A scan by a ufunc of the table."""

    def __init__(self, row: Scan, axis: int, dtype: np.dtype[Any]) -> None:
        self.row, self.axis, self.dtype = row, axis, dtype

    def total(self, xs: list[Any]) -> State:
        """f_agg by the ufunc's reduction."""
        return (self.row.aggregate(xs[0], self.axis, self.dtype),)

    def combine(self, before: State, after: State) -> State:
        """The ufunc itself."""
        return (self.row.ufunc(before[0], after[0], dtype=after[0].dtype, casting="unsafe"),)

    def scan(self, xs: list[Any], out: Any, carry: State | None) -> State:
        """The ufunc's accumulation, then the offset in place."""
        self.row.cumulate(xs[0], self.axis, out)
        if carry is not None:
            self.row.offset(carry[0], out)
        last = (slice(None),) * self.axis + (slice(out.shape[self.axis] - 1, None),)
        return (out[last],)


class MonoidScan:
    """A scan by any associative combination of states, by doubling distances (Hillis and Steele)."""

    def __init__(self, monoid: Monoid, axis: int, dtype: np.dtype[Any]) -> None:
        self.monoid, self.axis, self.dtype = monoid, axis, dtype

    def total(self, xs: list[Any]) -> State:
        """f_agg by halving: neighbours combine until one state is left."""
        state = self._lifted(xs)
        while (n := state[0].shape[self.axis]) > 1:
            even = n - n % 2
            paired = self.combine(self._part(state, 0, even, 2), self._part(state, 1, even, 2))
            rest = self._part(state, even, n)
            state = tuple(np.concatenate(p, self.axis) for p in zip(paired, rest, strict=True))
        return state

    def combine(self, before: State, after: State) -> State:
        """The monoid's own combination, in the states' dtype."""
        shapes = after[0].shape
        wide = tuple(np.broadcast_to(b, shapes) for b in before)
        return tuple(np.asarray(s, self.dtype) for s in self.monoid.combine(wide, after))

    def scan(self, xs: list[Any], out: Any, carry: State | None) -> State:
        """All prefixes of the piece, each behind the carry."""
        state = self._lifted(xs)
        n, distance = state[0].shape[self.axis], 1
        while distance < n:
            head = self._part(state, 0, distance)
            tail = self.combine(self._part(state, 0, n - distance), self._part(state, distance, n))
            state = tuple(np.concatenate(p, self.axis) for p in zip(head, tail, strict=True))
            distance *= 2
        if carry is not None:
            state = self.combine(carry, state)
        out[...] = self.monoid.project(state)
        return self._part(state, n - 1, n)

    def _lifted(self, xs: list[Any]) -> State:
        return self.monoid.lift(*(np.array(x, self.dtype) for x in xs))

    def _part(self, state: State, lo: int, hi: int, step: int = 1) -> State:
        where = (slice(None),) * self.axis + (slice(lo, hi, step),)
        return tuple(s[where] for s in state)


class FrameScan(MonoidScan):
    """z_i = y_i + w_i * z_(i-1) itself, one row after the other; a carry counts by its value alone."""

    def scan(self, xs: list[Any], out: Any, carry: State | None) -> State:
        """Row by row, or line by line where there are few."""
        n = out.shape[self.axis]
        y, w, z = (np.moveaxis(np.asarray(x, self.dtype), self.axis, 0) for x in (*xs, out))
        before = None if carry is None else np.moveaxis(np.asarray(carry[0], self.dtype), self.axis, 0)[0]
        if z[0].size > LINES_ONE_BY_ONE:
            for i in range(n):
                z[i] = y[i] if before is None else y[i] + weighted(w[i], before)
                before = z[i]
        else:
            for at in np.ndindex(z.shape[1:]):
                line = (slice(None), *at)
                z[line] = _stepped(y[line], w[line], None if before is None else before[at])
        return (out[(slice(None),) * self.axis + (slice(n - 1, n),)],)


def _stepped(y: Any, w: Any, before: Any) -> list[Any]:
    """The recurrence on one line, in the numbers of its dtype."""
    out = []
    plain = y.dtype == np.float64  # Python's floats are the fastest there are
    for a, b in zip(*(x.tolist() if plain else x for x in (y, w)), strict=True):
        before = a if before is None or b == 0 else a + b * before
        out.append(before)
    return out
