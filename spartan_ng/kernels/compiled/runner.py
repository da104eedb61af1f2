"""Run a stage's steps block by block: compiled loops, NumPy calls on the same buffers between them.

What a NumPy call needs is sliced as the interpreter slices it; what only loops read is an address. A stage
that is all loops has a faster way, see `whole`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from spartan_ng.arrays import Box, box_shape
from spartan_ng.arrays.copying import address
from spartan_ng.kernels.body import slicer
from spartan_ng.kernels.compiled.compile import Kernel
from spartan_ng.kernels.compiled.prepared import BlockTable, Compiled
from spartan_ng.kernels.compiled.segments import Ending, NumpyStep, Segment
from spartan_ng.kernels.compiled.whole import first_state
from spartan_ng.kernels.reducers import Reducer, block_states, sums_on_the_way
from spartan_ng.kernels.rows import fills, function_of, labelled_shape
from spartan_ng.ops.by_ufunc import State


class CompiledRunner:
    """One thread's registers, buffers and tables; `operands` are the tile's."""

    def __init__(self, body: Compiled, operands: list[Any], reducers: list[Reducer | None]) -> None:
        self.body = body
        self.reducers = reducers
        self._sums = sums_on_the_way(body.stage)
        self._operands = operands
        self._bases = [address(o) for o in operands]
        self._cutters = [slicer(r, body.tile, o) for r, o in zip(body.stage.reads, operands, strict=True)]
        self._evaluates = {
            s.register: function_of(row, body.stage)
            for s in body.steps
            if isinstance(s, NumpyStep)
            for row in [body.stage.rows[s.register - body.first]]
        }
        self._scratch = body.allocate()
        self._kernels = dict(zip(body.loops, body.kernels, strict=True))
        self._shapes: dict[tuple[int, ...], tuple[dict[int, Any], dict[int, BlockTable]]] = {}
        self._registers: list[Any] = []
        self._states: list[State | None] = []

    def _shaped(self, block: Box) -> tuple[dict[int, Any], dict[int, BlockTable]]:
        """Buffers and tables for blocks of this shape."""
        key = box_shape(block)
        found = self._shapes.get(key)
        if found is None:
            body = self.body
            buffers = {}
            for register, b in body.buffers.numbers.items():
                row = body.stage.rows[register - body.first]
                shape = labelled_shape(row.labels, row.shape, block)
                nbytes = prod(shape) * row.dtype.itemsize
                buffers[register] = self._scratch[b][:nbytes].view(row.dtype).reshape(shape)
            # Its own: it puts addresses in.
            tables = {i: BlockTable(body, loop, block) for i, loop in body.loops.items()}
            found = self._shapes[key] = (buffers, tables)
        return found

    def run(self, block: Box, targets: list[Any]) -> list[State | None]:
        """Run all steps on `block`: fill the `targets` of plain results, give the states of reduced ones."""
        body = self.body
        buffers, tables = self._shaped(block)
        self._registers = registers = [None] * (body.first + len(body.stage.rows))
        self._states = [None] * len(self.reducers)
        places = {register: targets[-1 - k] for register, k in body.plain.items()}
        for i, step in enumerate(body.steps):
            if isinstance(step, Segment):
                self._segment(step, self._kernels[i], tables[i], block, buffers, places)
                continue
            row = body.stage.rows[step.register - body.first]
            for a in row.args:
                self._value(a, block)
            place = places.get(step.register)
            out = place if place is not None and fills(row) else buffers.get(step.register)
            value = self._evaluates[step.register](registers, block, out)
            if place is not None and value is not place:
                np.copyto(place, value, casting="unsafe")
                value = place
            registers[step.register] = value
        for register, place in places.items():
            if register < body.first:
                np.copyto(place, self._value(register, block))
        block_states(self.reducers, self._sums, lambda r: self._value(r, block), block, self._states)
        return self._states

    def _value(self, register: int, block: Box) -> Any:
        value = self._registers[register]
        if value is None:
            value = self._registers[register] = self._cutters[register](self._operands[register], block)
        return value

    def _segment(
        self,
        segment: Segment,
        kernel: Kernel,
        table: BlockTable,
        block: Box,
        buffers: dict[int, Any],
        results: dict[int, Any],
    ) -> None:
        fields = table.table
        places = iter(table.places)
        for o in segment.operands:
            fields[next(places)] = self._address(o.source, o.dtype, block)
        for register in segment.stores:
            out = buffers[register] if register in buffers else results[register]
            self._registers[register] = out
            fields[next(places)] = address(out)
        for e in segment.endings:
            out = self._ending(e, block, buffers, results)
            fields[next(places)] = address(out)
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(fields[None])

    def _address(self, register: int, dtype: np.dtype[Any], block: Box) -> int:
        body = self.body
        if register < body.first:
            return int(self._bases[register] + body.walks[register].offset(block))
        value = np.asarray(self._registers[register])  # the address of a NumPy scalar is that of a copy
        if register not in body.plain and not (value.flags.c_contiguous and value.dtype == dtype):
            value = np.ascontiguousarray(value, dtype)
        self._registers[register] = value
        return address(value)

    def _ending(self, e: Ending, block: Box, buffers: dict[int, Any], results: dict[int, Any]) -> Any:
        """The array a fold goes to; that of a reduced result holds the fold's start."""
        if e.register < 0:
            out = first_state(self.body, e.register, block)
            self._states[-1 - e.register] = (out,)
            return out
        out = buffers[e.register] if e.register in buffers else results[e.register]
        self._registers[e.register] = out
        return out
