"""Run a stage's steps block by block: compiled loops, NumPy calls on the same buffers between them.

What a NumPy call needs is sliced as the interpreter slices it; what only loops read is an address. A stage
that is all loops has a faster way, see `whole`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.body import KINDS, fills, labelled_box, slicer
from spartan_ng.kernels.compiled.compile import Kernel
from spartan_ng.kernels.compiled.folds import PRODUCT, start
from spartan_ng.kernels.compiled.prepared import BlockTable, Compiled, extents_of
from spartan_ng.kernels.compiled.segments import Ending, NumpyStep, Segment
from spartan_ng.kernels.reducers import Reducer
from spartan_ng.ops.folds import State


class CompiledRunner:
    """One thread's registers, buffers and tables; `operands` are the tile's."""

    def __init__(self, body: Compiled, operands: list[Any], reducer: Reducer | None) -> None:
        self.body = body
        self.reducer = reducer
        self._operands = operands
        self._bases = [o.__array_interface__["data"][0] for o in operands]
        self._slicers = [slicer(r, body.tile) for r in body.stage.reads]
        self._evaluates = {
            s.register: KINDS[row.kind](row)
            for s in body.steps
            if isinstance(s, NumpyStep)
            for row in [body.stage.rows[s.register - body.first]]
        }
        self._scratch = body.allocate()
        self._kernels = dict(zip(body.loops, body.kernels, strict=True))
        self._shapes: dict[tuple[int, ...], tuple[dict[int, Any], dict[int, BlockTable]]] = {}
        self._registers: list[Any] = []
        self._state: State | None = None

    def _shaped(self, block: Box) -> tuple[dict[int, Any], dict[int, BlockTable]]:
        """Buffers and tables for blocks of this shape."""
        key = tuple(hi - lo for lo, hi in block)
        found = self._shapes.get(key)
        if found is None:
            body = self.body
            buffers = {}
            for register, b in body.buffers.numbers.items():
                row = body.stage.rows[register - body.first]
                shape = tuple(hi - lo for lo, hi in labelled_box(row.labels, row.shape, block))
                nbytes = prod(shape) * row.dtype.itemsize
                buffers[register] = self._scratch[b][:nbytes].view(row.dtype).reshape(shape)
            tables = {i: BlockTable(body, loop, block) for i, loop in body.loops.items()}
            found = self._shapes[key] = (buffers, tables)
        return found

    def run(self, block: Box, target: Any = None) -> Any:
        """Run all steps on `block`: a reduced stage gives its state, another fills `target`."""
        body = self.body
        buffers, tables = self._shaped(block)
        self._registers = registers = [None] * (body.first + len(body.stage.rows))
        self._state = None
        result = body.write.register
        for i, step in enumerate(body.steps):
            if isinstance(step, Segment):
                self._segment(step, self._kernels[i], tables[i], block, buffers, target)
                continue
            row = body.stage.rows[step.register - body.first]
            for a in row.args:
                self._value(a, block)
            out = target if step.register == result and fills(row) else buffers.get(step.register)
            value = self._evaluates[step.register](registers, block, out)
            if step.register == result and value is not target:
                np.copyto(target, value, casting="unsafe")
                value = target
            registers[step.register] = value
        if self.reducer is None:
            return None
        if self._state is None:
            self._state = self.reducer.block([self._value(a, block) for a in self.reducer.row.args], block)
        return self._state

    def _value(self, register: int, block: Box) -> Any:
        value = self._registers[register]
        if value is None:
            value = self._registers[register] = self._slicers[register](self._operands[register], block)
        return value

    def _segment(
        self,
        segment: Segment,
        kernel: Kernel,
        table: BlockTable,
        block: Box,
        buffers: dict[int, Any],
        target: Any,
    ) -> None:
        body = self.body
        fields = table.table
        places = iter(table.places)
        for o in segment.operands:
            fields[next(places)] = self._address(o.source, o.dtype, block)
        for register in segment.stores:
            out = target if register == body.write.register else buffers[register]
            self._registers[register] = out
            fields[next(places)] = out.__array_interface__["data"][0]
        for e in segment.endings:
            out = self._ending(e, block, buffers, target)
            fields[next(places)] = out.__array_interface__["data"][0]
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(fields[None])

    def _address(self, register: int, dtype: np.dtype[Any], block: Box) -> int:
        body = self.body
        if register < body.first:
            return int(self._bases[register] + body.walks[register].offset(block))
        value = self._registers[register]
        placed = register in body.buffers.numbers or register == body.write.register
        if not placed and not (value.flags.c_contiguous and value.dtype == dtype):
            value = self._registers[register] = np.ascontiguousarray(value, dtype)
        return int(value.__array_interface__["data"][0])

    def _ending(self, e: Ending, block: Box, buffers: dict[int, Any], target: Any) -> Any:
        """The array a fold goes to; that of the stage's result holds the fold's start."""
        if e.register < 0:
            first = start(e.fold, e.dtype, len(e.args) > 1 and e.fold != PRODUCT)
            out = np.full(extents_of(e.shape, block), first, e.dtype)
            self._state = (out,)
            return out
        out = target if e.register == self.body.write.register else buffers[e.register]
        self._registers[e.register] = out
        return out
