"""Tier 0: run a stage's rows on one block with NumPy calls into reused buffers.

Always right, for every dtype and format. A `Body` is what a stage says, resolved once; a `Runner` is one
thread's copy of its registers. Buffers are shared between rows whose values are not needed at the same
time, and are allocated for the largest block. A program that `virtual` has put in the place of rows (tier 1)
is a row among the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import WHOLE, Box, box_of, sparse
from spartan_ng.arrays.extent import box_shape
from spartan_ng.kernels.formats import dense, is_sparse_block
from spartan_ng.kernels.listing import row_text
from spartan_ng.kernels.rows import Evaluate, fills, function_of, is_ufunc, labelled_box, labelled_shape
from spartan_ng.plan.rows import Read, Row
from spartan_ng.plan.stages import Fused

Cutter = Callable[[Any, Box], Any]
"""Cuts a block's part out of a tile's operand."""
_SHAPES = 64
"""Shapes of blocks that a body remembers its buffers' places for."""


class BufferPlace(Struct, frozen=True):
    """Where a row's value lies in blocks of one shape: in the first bytes of a buffer, by its number."""

    buffer: int
    nbytes: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Body:
    """A stage's rows, resolved to functions, with a plan for their buffers."""

    def __init__(self, stage: Fused) -> None:
        self.stage = stage
        self.nreads = len(stage.reads)
        self.is_sampled = stage.is_sampled
        self.evaluates = [function_of(row, stage) for row in stage.rows]
        self._of_arrays = [
            function_of(row, stage, of_arrays=True) if is_ufunc(row) else evaluate
            for row, evaluate in zip(stage.rows, self.evaluates, strict=True)
        ]
        self._is_dense = all(row.format == "dense" for row in stage.rows)
        self.buffer, self.nbuffers = self._plan_buffers()
        self._cutters: dict[Box, tuple[list[Cutter], list[tuple[Cutter, Cutter]]]] = {}
        self._places: dict[tuple[int, ...], list[BufferPlace | None]] = {}

    def settled(self, operands: Sequence[Any], tile: Box) -> tuple[list[Evaluate], list[Cutter]]:
        """The functions of rows, and what cuts operands, for these formats of theirs: asked once a tile."""
        found = self._cutters.get(tile)
        if found is None:
            every = [cutters(r, tile) for r in self.stage.reads]
            found = self._cutters[tile] = ([of_dense for of_dense, _ in every], every)
        sparse = [not isinstance(o, np.ndarray) and is_sparse_block(o) for o in operands]
        if True not in sparse:
            return [*(self._of_arrays if self._is_dense else self.evaluates)], found[0]
        return [*self.evaluates], [two[s] for two, s in zip(found[1], sparse, strict=True)]

    def places(self, sizes: tuple[int, ...]) -> list[BufferPlace | None]:
        """Where each row's value lies in blocks of this shape; None for those that make their own."""
        found = self._places.get(sizes)
        if found is None:
            if len(self._places) >= _SHAPES:
                self._places.clear()
            block = box_of(sizes)
            found = [self._place(row, b, block) for row, b in zip(self.stage.rows, self.buffer, strict=True)]
            self._places[sizes] = found
        return found

    def _place(self, row: Row, buffer: int, block: Box) -> BufferPlace | None:
        if buffer < 0:
            return None
        shape = box_shape(labelled_box(row.labels, row.shape, block))
        return BufferPlace(buffer, prod(shape) * row.dtype.itemsize, row.dtype, shape)

    def allocate(self, sizes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
        """Buffers for blocks of up to this shape."""
        nbytes = [0] * self.nbuffers
        for place in self.places(sizes):
            if place is not None:
                nbytes[place.buffer] = max(nbytes[place.buffer], place.nbytes)
        return [np.empty(n, np.uint8) for n in nbytes]

    def _plan_buffers(self) -> tuple[list[int], int]:
        """A buffer number for each row that fills one (-1: it makes its own value)."""
        rows, first = self.stage.rows, self.nreads
        last = list(range(len(rows)))
        results = {w.register - first for w in self.stage.writes if w.reducer is None}
        end = len(rows)
        for i, row in enumerate(self.stage.every_row):
            for a in row.args:
                if a >= first:
                    last[a - first] = min(i, end)
        for i in results:
            if i >= 0:
                # Results are read once all rows have run.
                last[i] = end
        for i in reversed(range(len(rows))):
            if not fills(rows[i]):  # it may be a view of its operands: they live as long as it does
                for a in rows[i].args:
                    if a >= first:
                        last[a - first] = max(last[a - first], last[i])
        return _assign(last, [fills(r) for r in rows], [self._dying(i, last) for i in range(end)])

    def _dying(self, i: int, last: list[int]) -> int:
        """The row whose buffer row i can fill in place, as nobody reads it later; -1 where there is none.

        A ufunc may write over an operand, and the less memory a block takes, the nearer it lies.
        """
        row = self.stage.rows[i]
        if row.kind == "map" and fills(row) and row.fn != "where":
            for a in row.args:
                if a >= self.nreads and last[a - self.nreads] == i:
                    other = self.stage.rows[a - self.nreads]
                    mine, theirs = (
                        (row.dtype, row.shape, row.labels),
                        (other.dtype, other.shape, other.labels),
                    )
                    if fills(other) and mine == theirs:
                        return a - self.nreads
        return -1


def _assign(last: list[int], fills: list[bool], dying: list[int]) -> tuple[list[int], int]:
    free: list[int] = []
    ending: dict[int, list[int]] = {}
    number, used = [-1] * len(last), 0
    for i, fill in enumerate(fills):
        if fill:
            if dying[i] >= 0:
                number[i] = number[dying[i]]
                # Taken over from the operand, the buffer is not free behind this row.
                ending[i].remove(number[i])
            elif free:
                number[i] = free.pop()
            else:
                number[i], used = used, used + 1
            ending.setdefault(last[i], []).append(number[i])
        free.extend(ending.pop(i, ()))
    return number, used


class Runner:
    """One thread's registers and buffers for a body; `operands` are the tile's, `tile` its box."""

    def __init__(self, body: Body, operands: list[Any], tile: Box, sizes: tuple[int, ...]) -> None:
        self.body = body
        self.tile = tile
        self.registers: list[Any] = [None] * (body.nreads + len(body.stage.rows))
        self._no_values = [None] * len(body.stage.rows)
        self.evaluates, self._cutters = body.settled(operands, tile)
        """One function a row; whoever runs blocks in order puts a scan's own function in."""
        self._operands = operands
        self._scratch = body.allocate(sizes)
        self._shaped: dict[tuple[int, ...], list[Any]] = {}

    def _buffers(self, block: Box) -> list[Any]:
        """Each row's buffer in the shape it has for this block (blocks of one shape share them)."""
        key = box_shape(block)
        found = self._shaped.get(key)
        if found is None:
            found = self._shaped[key] = [
                None if p is None else self._scratch[p.buffer][: p.nbytes].view(p.dtype).reshape(p.shape)
                for p in self.body.places(key)
            ]
        return found

    def load(self, block: Box) -> None:
        """Set the registers of the reads to the block's part of the operands."""
        for i, (operand, cut) in enumerate(zip(self._operands, self._cutters, strict=True)):
            self.registers[i] = cut(operand, block)

    def run(self, block: Box, results: dict[int, Any] | None = None) -> list[Any]:
        """Run all rows on `block`; `results` maps registers to arrays to fill instead of buffers."""
        registers, first = self.registers, self.body.nreads
        registers[first:] = self._no_values  # those of the block before have no place beside their successors
        self.load(block)
        buffers, i = self._buffers(block), first
        try:
            for i, (evaluate, out) in enumerate(zip(self.evaluates, buffers, strict=True), first):
                if results and out is not None and i in results:
                    out = results[i]
                registers[i] = evaluate(registers, block, out)
        except Exception as error:
            row = self.body.stage.rows[i - first]
            error.add_note(f"in r{i} = {row_text(row)}, {row.dtype} {row.shape}, on the block {block}")
            raise
        return registers


def slicer(read: Read, tile: Box, operand: Any) -> Cutter:
    """What cuts a block's part out of an operand of this format."""
    return cutters(read, tile)[is_sparse_block(operand)]


def cutters(read: Read, tile: Box) -> tuple[Cutter, Cutter]:
    """What cuts a block's part out of a tile's operand: out of a dense one, out of a sparse one."""
    follow = [
        (d, tile[d][0]) if d != WHOLE and o >= 0 and read.axes[o].label == d else None
        for d, o in zip(read.labels, read.order, strict=True)
    ]
    if not any(follow):
        if not read.expand:
            return _whole, _whole
        return (lambda operand, block: np.broadcast_to(dense(operand), _block_shape(read, block)),) * 2

    def cut(operand: Any, block: Box) -> Any:
        part = operand
        if block != tile:
            part = operand[
                tuple(
                    [
                        slice(None) if f is None else slice(block[f[0]][0] - f[1], block[f[0]][1] - f[1])
                        for f in follow
                    ]
                )
            ]
        return np.broadcast_to(part, _block_shape(read, block)) if read.expand else part

    def cut_sparse(operand: Any, block: Box) -> Any:
        for axis, f in enumerate(follow):  # most blocks have all columns
            n = operand.shape[axis]
            lo, hi = (0, n) if f is None else (block[f[0]][0] - f[1], block[f[0]][1] - f[1])
            if hi - lo < n and getattr(operand, "format", "") == ("csr", "csc")[axis]:  # no compressed one
                # SciPy's own slice copies the elements, which took longer than the product with them.
                operand = sparse.lines(operand, lo, hi)
            elif hi - lo < n:
                operand = operand[lo:hi] if axis == 0 else operand[:, lo:hi]
        return np.broadcast_to(dense(operand), _block_shape(read, block)) if read.expand else operand

    return cut, cut_sparse


def _whole(operand: Any, block: Box) -> Any:
    return operand


def _block_shape(read: Read, block: Box) -> tuple[int, ...]:
    return labelled_shape(read.labels, read.shape, block)
