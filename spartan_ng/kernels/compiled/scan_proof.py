"""The proof of compiled scans: the end of a tile's last piece, in both tiers, as in `proof`.

It is scanned in two parts, behind nothing and behind the state of the first, into an array as large as the
tile (memory that nobody touches is not there), with a margin around the place that must stay. Totals are
compared where they are wanted.
"""

from __future__ import annotations

from functools import reduce
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.kernels.compiled.prepared import signature
from spartan_ng.kernels.compiled.proof import rounds
from spartan_ng.kernels.compiled.scans import CompiledScan, compiled_scan, compiled_total
from spartan_ng.kernels.compiled.trial import MARGIN, PATTERN, Guards, first_flaw, largest, most_elements
from spartan_ng.kernels.ordered import Ordered
from spartan_ng.kernels.scans import MonoidScan, State
from spartan_ng.ops.scans import SEGMENTED

_LONG = 8
"""The axis is cut no shorter, while others can be."""
_ROUND = frozenset({"add", "multiply", "cumsumprod", "compensated_add"})
"""Scans of floats that depend on an order."""


def trusted_scan(
    ordered: Ordered, operands: list[Any], out: Any, error_state: dict[str, Any]
) -> CompiledScan | None:
    """The compiled form of a scan's pass on its tile, once it has proved itself; see `compiled_scan`."""
    found = compiled_scan(ordered.reads, ordered.rows, operands, out, ordered.cut, error_state)
    return found if found is not None and _is_trusted(found, ordered, operands, totals=False) else None


def trusted_total(ordered: Ordered, operands: list[Any], error_state: dict[str, Any]) -> CompiledScan | None:
    """As `trusted_scan`, for totals alone."""
    found = compiled_total(ordered.reads, ordered.rows, operands, ordered.cut, error_state)
    return found if found is not None and _is_trusted(found, ordered, operands, totals=True) else None


def _is_trusted(scan: CompiledScan, ordered: Ordered, operands: list[Any], totals: bool) -> bool:
    def flaw() -> str:
        trial = _ScanTrial(scan, ordered, operands)
        wanted = trial.values() if not totals else []
        if totals or ordered.cut.in_chunks:
            wanted += trial.totals()
        exact = not any(rounds(row) or _rounds_scan(row.fn, row.dtype) for row in ordered.rows)
        scale = None if exact else largest(w for _, w in wanted)
        said = first_flaw(wanted, scale)
        if not trial.guards_stay():
            said = "elements beside the part's are written to"
        return f"the part {trial.part}: {said}" if said else ""

    what = f"the scan {ordered.scan.fn!r}"
    return ordered.trust.of((signature(operands), totals), flaw, what, scan.kernels)


def _rounds_scan(fn: Any, dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" and str(fn).removeprefix(SEGMENTED) in _ROUND


class _ScanTrial:
    """The end of the last piece, scanned by both."""

    def __init__(self, scan: CompiledScan, ordered: Ordered, operands: list[Any]) -> None:
        self.scan, self.ordered, self.operands = scan, ordered, operands
        self.part = _end(scan, ordered)
        dtype = ordered.rows[-1].dtype
        shape = (*box_shape(ordered.cut.part), dtype.itemsize)
        self._guards = Guards()
        self._bytes = self._guards.empty(shape, np.uint8)
        self._bytes[self._place(self.part, MARGIN)] = PATTERN
        self._tile = self._bytes.view(dtype)[..., 0]

    def values(self) -> list[tuple[Any, Any]]:
        """What was found and what is wanted of both parts, and of the states behind them."""
        found, wanted = None, None
        pairs: list[tuple[Any, Any]] = []
        for part in self._halves():
            place = self._tile[self._place(part)]
            out = np.empty(box_shape(part), self._tile.dtype)
            found = self.scan.run(part, found, place)
            wanted = self.ordered.run(self.operands, part, out, wanted)
            assert wanted is not None, "a scan has a state"
            pairs += [(place, out), (self._value(found), self._value(wanted))]
        return pairs

    def totals(self) -> list[tuple[Any, Any]]:
        """The same of the totals of both parts, and of their combination: states may differ where that does
        not show."""
        every = [
            [self.scan.total(part) for part in self._halves()],
            [self.ordered.total(self.operands, part) for part in self._halves()],
        ]
        combined = ((*totals, reduce(self.ordered.how.combine, totals)) for totals in every)
        found, wanted = ([self._value(state) for state in states] for states in combined)
        return list(zip(found, wanted, strict=True))

    def _value(self, state: State) -> Any:
        """What a state says."""
        how = self.ordered.how
        return how.monoid.project(state) if isinstance(how, MonoidScan) else state[0]

    def guards_stay(self) -> bool:
        """Whether nothing was written beside the part; the place itself is forgotten."""
        self._bytes[self._place(self.part)] = PATTERN
        return self._guards.intact and bool((self._bytes[self._place(self.part, MARGIN)] == PATTERN).all())

    def _halves(self) -> list[Box]:
        axis = self.ordered.axis
        lo, hi = self.part[axis]
        middle = (lo + hi) // 2
        spans = [(lo, middle), (middle, hi)] if middle > lo else [(lo, hi)]
        return [(*self.part[:axis], s, *self.part[axis + 1 :]) for s in spans]

    def _place(self, part: Box, margin: int = 0) -> tuple[slice, ...]:
        every = zip(part, self.ordered.cut.part, strict=True)
        return tuple(slice(max(a - lo - margin, 0), min(b + margin, hi) - lo) for (a, b), (lo, hi) in every)


def _end(scan: CompiledScan, ordered: Ordered) -> Box:
    """The end of the last piece, as much of it as a trial may take; what is walked as one stays whole."""
    axis, cut = ordered.axis, ordered.cut
    part = list(cut.pieces[-1])
    part[axis] = cut.chunks[-1]
    sizes = list(box_shape(tuple(part)))
    most = most_elements(prod(box_shape(cut.part)))
    while prod(sizes) > most:
        others = [d for d in range(len(sizes)) if d != axis and d not in scan.joined and sizes[d] > 1]
        longest = max((*others, axis), key=lambda d: sizes[d])
        if longest == axis and sizes[axis] <= _LONG and others:
            longest = max(others, key=lambda d: sizes[d])
        if sizes[longest] <= 2 and not others:
            break
        sizes[longest] = -(-sizes[longest] // 2)
    return tuple((hi - n, hi) for (_, hi), n in zip(part, sizes, strict=True))
