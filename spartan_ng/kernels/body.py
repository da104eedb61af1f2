"""Tier 0: run a stage's rows on one block with NumPy calls into reused buffers.

Always right, for every dtype and format. A `Body` is what a stage says, resolved once; a `Runner` is one
thread's copy of its registers. Buffers are shared between rows whose values are not needed at the same
time, and are allocated for the largest block. A program that `virtual` has put in the place of rows (tier 1)
is a row among the others.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, sparse
from spartan_ng.arrays.extent import box_shape
from spartan_ng.kernels.formats import dense, is_sparse
from spartan_ng.kernels.listing import row_text
from spartan_ng.kernels.rows import fills, function_of, labelled_box
from spartan_ng.plan.plan import WHOLE, Fused, Read


class Body:
    """A stage's rows, resolved to functions, with a plan for their buffers."""

    def __init__(self, stage: Fused) -> None:
        self.stage = stage
        self.nreads = len(stage.reads)
        self.evaluates = [function_of(row, stage) for row in stage.rows]
        self.buffer, self.nbuffers = self._plan_buffers()
        self._slicers: dict[Box, list[Callable[[Any, Box], Any]]] = {}

    def slicers(self, tile: Box) -> list[Callable[[Any, Box], Any]]:
        """For each read, what cuts a block's part out of a tile's operand."""
        found = self._slicers.get(tile)
        if found is None:
            found = self._slicers[tile] = [slicer(r, tile) for r in self.stage.reads]
        return found

    def _plan_buffers(self) -> tuple[list[int], int]:
        """A buffer number for each row that fills one (-1: it makes its own value)."""
        rows, first = self.stage.rows, self.nreads
        last = list(range(len(rows)))
        results = {w.register - first for w in self.stage.writes if w.reducer is None}
        reducers = [w.reducer for w in self.stage.writes if w.reducer is not None]
        end = len(rows)
        for i, row in enumerate(rows):
            for a in row.args:
                if a >= first:
                    last[a - first] = i
        for r in reducers:
            for a in r.args:
                if a >= first:
                    last[a - first] = end
        for i in results:
            if i >= 0:
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
        self.evaluates = list(body.evaluates)
        """One function a row; whoever runs blocks in order puts a scan's own function in."""
        self._operands = operands
        self._slicers = body.slicers(tile)
        self._scratch = self._allocate(sizes)
        self._shaped: dict[tuple[int, ...], list[Any]] = {}

    def _allocate(self, sizes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
        nbytes = [0] * self.body.nbuffers
        block = tuple([(0, n) for n in sizes])
        for row, b in zip(self.body.stage.rows, self.body.buffer, strict=True):
            if b >= 0:
                shape = labelled_box(row.labels, row.shape, block)
                need = prod(box_shape(shape)) * row.dtype.itemsize
                nbytes[b] = max(nbytes[b], need)
        return [np.empty(n, np.uint8) for n in nbytes]

    def _buffers(self, block: Box) -> list[Any]:
        """Each row's buffer in the shape it has for this block (blocks of one shape share them)."""
        key = box_shape(block)
        found = self._shaped.get(key)
        if found is None:
            found = []
            for row, b in zip(self.body.stage.rows, self.body.buffer, strict=True):
                if b < 0:
                    found.append(None)
                    continue
                shape = box_shape(labelled_box(row.labels, row.shape, block))
                nbytes = prod(shape) * row.dtype.itemsize
                found.append(self._scratch[b][:nbytes].view(row.dtype).reshape(shape))
            self._shaped[key] = found
        return found

    def load(self, block: Box) -> None:
        """Set the registers of the reads to the block's part of the operands."""
        for i, (operand, slicer) in enumerate(zip(self._operands, self._slicers, strict=True)):
            self.registers[i] = slicer(operand, block)

    def run(self, block: Box, results: dict[int, Any] | None = None) -> list[Any]:
        """Run all rows on `block`; `results` maps registers to arrays to fill instead of buffers."""
        self.load(block)
        registers, first = self.registers, self.body.nreads
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


def slicer(read: Read, tile: Box) -> Callable[[Any, Box], Any]:
    """A function that cuts a block's part out of a tile's operand."""
    follow = [
        (d, tile[d][0]) if d != WHOLE and o >= 0 and read.axes[o].label == d else None
        for d, o in zip(read.labels, read.order, strict=True)
    ]
    if not any(follow):
        if not read.expand:
            return lambda operand, block: operand
        return lambda operand, block: np.broadcast_to(dense(operand), _block_shape(read, block))

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
                operand = sparse.lines(operand, lo, hi)
            elif hi - lo < n:
                operand = operand[lo:hi] if axis == 0 else operand[:, lo:hi]
        return np.broadcast_to(dense(operand), _block_shape(read, block)) if read.expand else operand

    return lambda operand, block: (cut_sparse if is_sparse(operand) else cut)(operand, block)


def _block_shape(read: Read, block: Box) -> tuple[int, ...]:
    return tuple(hi - lo for lo, hi in labelled_box(read.labels, read.shape, block))


# --- one function a kind of row ------------------------------------------------------------------------
