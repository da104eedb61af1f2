"""Tier 0 of a scan and the maps around it: blocks in order along the axis, each behind the state before it.

Distributed cumulative aggregates (BTW '19), section 4.1, and the Cell template of "On Optimizing Operator
Fusion Plans": what is scanned is computed a block at a time, and so is what is made of the scan.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, Tiling, box_shape, slices_within
from spartan_ng.kernels.body import Body, Runner
from spartan_ng.kernels.compiled.trust import Trust
from spartan_ng.kernels.formats import dense
from spartan_ng.kernels.scans import (
    ScanCut,
    State,
    blocks_along,
    cumulation,
    cut_lines,
    cut_parts,
    even_parts,
    one_piece,
)
from spartan_ng.plan.reads import rows_before
from spartan_ng.plan.rows import Read, Row, Write
from spartan_ng.plan.stages import Fused

_BLOCK = 1 << 15
"""Elements of a block: what is read, scanned and written stays in the cache."""


class Ordered:
    """A pass with a scan among its rows, on the tile at `box`."""

    def __init__(
        self,
        reads: tuple[Read, ...],
        rows: tuple[Row, ...],
        domain: tuple[int, ...],
        box: Box,
        exact: bool = False,
        whole: bool = False,
        band: tuple[int, int] | None = None,
    ) -> None:
        """`exact` scans go along whole lines, as NumPy's do; the tile is one piece if it is to stay
        `whole`. Of what is read in bands a part is there at a time."""
        self.reads, self.rows, self.box = reads, rows, box
        at = next(i for i, r in enumerate(rows) if r.kind == "scan")
        self.scan, self.register = rows[at], len(reads) + at
        (self.axis,) = self.scan.params
        assert self.scan.fn is not None, "a scan has a function"
        self.how = cumulation(self.scan.fn, self.axis, self.scan.dtype)
        self.exact = exact and self.scan.dtype.kind in "fc"
        self.parts = [box] if band is None else list(blocks_along(box, *band))
        self.cut: ScanCut = one_piece(box, self.axis) if whole else cut_lines(box, self.axis, self.exact)
        """That of the first part."""
        if len(self.parts) > 1:
            self.cut = next(self.cuts())
        self.trust = Trust()
        """Of its compiled forms."""
        self.result = len(reads) + len(rows) - 1
        self.body = _body(domain, reads, rows, (self.result,), exact)
        some, before, args = rows_before(reads, rows)
        self._args = args
        self._read_before = [reads.index(r) for r in some]
        self.before = _body(domain, some, before, args, exact)

    def cuts(self) -> Iterator[ScanCut]:
        """How the tile is cut, part by part."""
        if len(self.parts) == 1:
            return iter((self.cut,))
        return cut_parts(self.box, self.parts, self.axis, self.exact)

    def total(self, operands: list[Any], piece: Box) -> State:
        """The state of a piece: f_agg of what is scanned."""
        seen = [operands[i] for i in self._read_before]
        runner = Runner(self.before, seen, self.box, self._sizes(piece))
        total: State | None = None
        for block in self._blocks(piece):
            registers = runner.run(block)
            state = self.how.total([self._full(registers[a], block) for a in self._args])
            total = state if total is None else self.how.combine(total, state)
        assert total is not None, "a piece has a block"
        return total

    def run(self, operands: list[Any], piece: Box, out: Any, carry: State | None) -> State | None:
        """All rows on a piece, into the array `out` of its shape, the scan behind `carry`; the state that the
        next piece is behind."""
        runner = Runner(self.body, operands, self.box, self._sizes(piece))
        state = carry
        place: Any = None

        def scan(registers: list[Any], block: Box, buffer: Any) -> Any:
            nonlocal state
            xs = [self._full(registers[a], block) for a in self.scan.args]
            own = place.dtype == self.scan.dtype
            value = place if own else np.empty(place.shape, self.scan.dtype)
            state = self.how.scan(xs, value, state)
            state = tuple(np.array(s) for s in state)  # it may be a view of what is about to be overwritten
            return value

        runner.evaluates[self.register - len(self.reads)] = scan
        for block in self._blocks(piece):
            place = out[slices_within(block, piece)]
            value = runner.run(block, {self.result: place})[self.result]
            if value is not place:
                np.copyto(place, dense(value), casting="unsafe")
        return state

    def _full(self, value: Any, block: Box) -> Any:
        """A scanned value at the block's full shape."""
        value = dense(value)
        return value if value.shape == box_shape(block) else np.broadcast_to(value, box_shape(block))

    def _step(self, piece: Box) -> int:
        if self.exact:
            lo, hi = piece[self.axis]
            return max(1, int(hi - lo))
        across = prod(hi - lo for d, (lo, hi) in enumerate(piece) if d != self.axis)
        return max(1, _BLOCK // max(across, 1))

    def _sizes(self, piece: Box) -> tuple[int, ...]:
        """The shape of the largest block."""
        step = self._step(piece)
        return tuple(min(step, hi - lo) if d == self.axis else hi - lo for d, (lo, hi) in enumerate(piece))

    def _blocks(self, piece: Box) -> Iterator[Box]:
        """Blocks of about one length: a short one at the end takes as long to call for, and to write, as
        others."""
        lo, hi = piece[self.axis]
        count = -(-(hi - lo) // self._step(piece))
        for a, b in even_parts(lo, hi, count):
            yield (*piece[: self.axis], (a, b), *piece[self.axis + 1 :])


def _body(
    domain: tuple[int, ...],
    reads: tuple[Read, ...],
    rows: tuple[Row, ...],
    kept: tuple[int, ...],
    exact: bool,
) -> Body:
    """The rows as a body whose registers `kept` are asked for."""
    labels = tuple(range(len(domain)))
    writes = tuple(Write((k,), register, labels) for k, register in enumerate(kept))
    return Body(Fused("scan", domain, Tiling.single(len(domain)), reads, rows, writes, exact=exact))
