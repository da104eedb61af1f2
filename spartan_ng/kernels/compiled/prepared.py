"""A stage's steps laid out for a tile: kernels, strides, buffers, and the tables that kernels take.

All of it depends on the stage, its tile, and the dtypes and strides of the operands, and is worked out once.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from spartan_ng.arrays import WHOLE, Box, box_of, box_size
from spartan_ng.kernels.blocks import Cut, Sweep, is_one_block
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from spartan_ng.kernels.compiled.emit import emit
from spartan_ng.kernels.compiled.layout import Layout, Strides, lay_out
from spartan_ng.kernels.compiled.segments import Ending, NumpyStep, Segment, Step, viewed_axes
from spartan_ng.kernels.rows import fills, labelled_box, labelled_shape
from spartan_ng.kernels.sequences import Run, edges_of
from spartan_ng.memory import budget_bytes
from spartan_ng.plan.rows import Read
from spartan_ng.plan.stages import Fused

Blocks = Run
"""A run of blocks."""
RunTable = np.ndarray[Any, Any]
"""What kernels take for a run, a line a block, with offsets in place of addresses."""
Signature = tuple[tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]], ...]
"""Dtype, shape and strides of each operand of a tile."""


def signature(operands: list[Any]) -> Signature:
    """What a compiled stage depends on in its operands."""
    return tuple([(o.dtype, o.shape, o.strides) for o in operands])


class Walk(Struct, frozen=True):
    """How blocks move a read's address: `(domain dimension, tile's first index, byte stride)` an axis."""

    axes: tuple[tuple[int, int, int], ...]

    def offset(self, block: Box) -> int:
        """Bytes from the operand's first element to the block's."""
        return sum((block[d][0] - lo) * stride for d, lo, stride in self.axes if d != WHOLE)


class Addresses(Struct, frozen=True):
    """Where a run's table has addresses."""

    columns: np.ndarray[Any, Any]
    registers: list[int]
    """The array of each column."""
    moves: list[tuple[int, int, int, int]]
    """`(column, domain dimension, first index, byte stride)`: how blocks move them."""


class WalkedSegment(Struct, frozen=True):
    """A segment and the walk it takes."""

    segment: Segment
    layout: Layout


_TABLES_SHARE = 64
"""Tables of runs are kept while they take no more than one part in so many of the memory: those of a loop
over dozens of arrays, as of a convolution's shifted reads, take 12 kB a block."""


class Compiled:
    """A stage's steps, laid out for a tile and its operands."""

    def __init__(
        self, stage: Fused, tile: Box, sizes: tuple[int, ...], operands: Signature, steps: list[Step]
    ) -> None:
        """`steps`: as from `split` with the operands' dtypes."""
        self.stage = stage
        self.tile = tile
        self.sizes = sizes
        self.first = len(stage.reads)
        self.plain = {w.register: -1 - k for k, w in enumerate(stage.writes) if w.reducer is None}
        """For each register that is stored as it is: -1 - its write's number."""
        self.reduced = {-1 - k: w.reducer for k, w in enumerate(stage.writes) if w.reducer is not None}
        self.compiled = {
            e.register for s in steps if isinstance(s, Segment) for e in s.endings if e.register < 0
        }
        """The reduced results that loops make; NumPy makes the others of a block's values."""
        self.steps = self._needed(steps)
        looped = all(isinstance(s, Segment) for s in self.steps)
        rows_only = min(self.plain, default=self.first) >= self.first
        self.is_whole = looped and rows_only and self.compiled == set(self.reduced)
        """Whether the stage is all loops, which one kernel runs."""
        self.shared = self.is_whole and len(stage.writes) > 1
        """Whether loops put reduced results into states of the tile's size, and not of a block's."""
        self.walks = [_walk(r, tile, o) for r, o in zip(stage.reads, operands, strict=True)]
        box = box_of(sizes)
        self.loops = {i: self._loop(s, box) for i, s in enumerate(self.steps) if isinstance(s, Segment)}
        self.buffers = _Buffers(self)
        parts = [(loop.segment, loop.layout) for loop in self.loops.values()]
        groups = [parts] if self.is_whole else [[p] for p in parts]
        self.kernels: list[Kernel] = [compiler.kernel(emit(g)) for g in groups]
        """All that must be compiled: one kernel, or one for each loop."""
        self._block_tables: dict[tuple[int, ...], list[BlockTable]] = {}
        self._tables: dict[int, tuple[Blocks, RunTable]] = {}
        """By the run's identity, and with it: to hash one takes as long as to build its table."""
        self._tables_bytes = 0

    def arrays(self, segment: Segment) -> list[int]:
        """The registers of a segment's arrays, in the order of its table."""
        return [
            *(o.source for o in segment.operands),
            *segment.stores,
            *(e.register for e in segment.endings),
        ]

    def moves(self, register: int) -> tuple[tuple[int, int, int], ...]:
        """How an array's address follows the blocks: `(domain dimension, first index, byte stride)`."""
        if 0 <= register < self.first:
            return tuple(m for m in self.walks[register].axes if m[0] != WHOLE)
        if register < 0:
            return self._state_moves(register) if self.shared else ()
        if register not in self.plain:
            return ()
        row = self.stage.rows[register - self.first]
        strides = self._stored_strides(register, self.tile)
        return tuple((d, self.tile[d][0], s) for d, s in zip(row.labels, strides, strict=True) if d != WHOLE)

    def _state_moves(self, register: int) -> tuple[tuple[int, int, int], ...]:
        """As `moves`, for the state of a reduced result that has the tile's size."""
        e = self.ending(register)
        labels = self.stage.writes[-1 - register].labels
        strides = _packed(extents_of(e.shape, self.tile), e.dtype.itemsize)
        return tuple((d, self.tile[d][0], s) for d, s in zip(labels, strides, strict=True) if d != WHOLE)

    def ending(self, register: int) -> Ending:
        """The loop's fold that makes a reduced result."""
        (found,) = (e for p in self.loops.values() for e in p.segment.endings if e.register == register)
        return found

    def block_tables(self, shape: tuple[int, ...]) -> list[BlockTable]:
        """The loops' tables for blocks of a shape; a tile has blocks of few shapes."""
        found = self._block_tables.get(shape)
        if found is None:
            box = box_of(shape)
            found = [BlockTable(self, loop, box) for loop in self.loops.values()]
            for one in found:
                one.table.flags.writeable = False  # all threads read it
            self._block_tables[shape] = found
        return found

    @cached_property
    def addresses(self) -> Addresses:
        """Where any run's table has addresses: blocks of all shapes have them in the same columns."""
        found = Addresses(np.empty(0, np.intp), [], [])
        columns: list[int] = []
        at = 0
        for loop, part in zip(self.loops.values(), self.block_tables(self.sizes), strict=True):
            for place, register in zip(part.places, self.arrays(loop.segment), strict=True):
                columns.append(at + place)
                found.registers.append(self.plain.get(register, register))
                found.moves.extend((at + place, *move) for move in self.moves(register))
            at += len(part.table)
        return replace(found, columns=np.array(columns, np.intp))

    def run_table(self, blocks: Blocks) -> RunTable:
        """The table of a run of blocks; see `whole`."""
        if not isinstance(blocks, tuple):  # there are many such runs
            return build_table(self, blocks)
        known = self._tables.get(id(blocks))
        if known is not None:
            return known[1]
        found = build_table(self, blocks)
        if self._has_room(found.nbytes):
            self._keep(blocks, found)
        return found

    def tabulate(self, cut: Cut) -> None:
        """Have the tables of a cut's runs, if they are kept, made all at once: in between runs, what a thread
        does besides waits for memory, because its blocks have filled the caches."""
        runs = cut.runs if isinstance(cut, Sweep) else [run for patch in cut for run in patch.runs]
        listed = [run for run in runs if isinstance(run, tuple)]
        width = sum(len(part.table) for part in self.block_tables(self.sizes))
        if self._has_room(sum(map(len, listed)) * width * np.dtype(np.int64).itemsize):
            table, at = build_table(self, tuple(chain.from_iterable(listed))), 0
            for run in listed:
                self._keep(run, table[at : at + len(run)])
                at += len(run)

    def _has_room(self, nbytes: int) -> bool:
        return self._tables_bytes + nbytes <= budget_bytes() // _TABLES_SHARE

    def _keep(self, blocks: Blocks, table: RunTable) -> None:
        self._tables[id(blocks)] = blocks, table
        self._tables_bytes += table.nbytes

    def allocate(self) -> list[np.ndarray[Any, Any]]:
        """One thread's buffers."""
        box = box_of(self.sizes)
        nbytes = [0] * self.buffers.count
        for register, b in self.buffers.numbers.items():
            row = self.stage.rows[register - self.first]
            shape = labelled_box(row.labels, row.shape, box)
            nbytes[b] = max(nbytes[b], box_size(shape) * row.dtype.itemsize)
        return [np.empty(n, np.uint8) for n in nbytes]

    @property
    def calls_blas(self) -> bool:
        """Whether a matrix product is left to BLAS."""
        rows = [self.stage.rows[s.register - self.first] for s in self.steps if isinstance(s, NumpyStep)]
        rows += [row for register, row in self.reduced.items() if register not in self.compiled]
        return any(r.kind == "contract" for r in rows)

    def _needed(self, steps: list[Step]) -> list[Step]:
        """All steps but views that only segments see (and see through)."""
        used = set(self.plain)
        out: list[Step] = []
        for register, reducer in self.reduced.items():
            if register not in self.compiled:
                used.update(reducer.args)
        for step in reversed(steps):
            if isinstance(step, NumpyStep):
                row = self.stage.rows[step.register - self.first]
                shape = [(WHOLE, n) for n in self._shape(row.args[0])] if row.args else []
                if step.register not in used and row.args and viewed_axes(row, tuple(shape)) is not None:
                    continue
                used.update(row.args)
            out.append(step)
        return out[::-1]

    def _shape(self, register: int) -> tuple[int, ...]:
        if register < self.first:
            return self.stage.reads[register].shape
        return self.stage.rows[register - self.first].shape

    def _loop(self, segment: Segment, box: Box) -> WalkedSegment:
        extents = self.extents(segment, box)
        strides = self.strides(segment, box)
        uncut = tuple(d == WHOLE or is_one_block(self.tile[d], self.sizes[d]) for d, _ in segment.space)
        widths = [d.itemsize for d in self.dtypes(segment)]
        return WalkedSegment(segment, lay_out(segment, strides, widths, extents, uncut))

    @staticmethod
    def extents(segment: Segment, box: Box) -> tuple[int, ...]:
        """The block's shape in the loop's axes."""
        return tuple(n if d == WHOLE else box[d][1] - box[d][0] for d, n in segment.space)

    def dtypes(self, segment: Segment) -> list[np.dtype[Any]]:
        """The dtypes of a segment's arrays: operands, stores, endings."""
        return [
            *(o.dtype for o in segment.operands),
            *(self.stage.rows[i - self.first].dtype for i in segment.stores),
            *(e.dtype for e in segment.endings),
        ]

    def strides(self, segment: Segment, box: Box) -> list[Strides]:
        """Byte strides of a segment's arrays along the loop's axes, for blocks of the shape of `box`."""
        naxes = len(segment.space)
        every = [_along(self._own_strides(o.source, box), o.axes, naxes) for o in segment.operands]
        axes = tuple(range(naxes))
        every += [_along(self._stored_strides(i, box), axes, naxes) for i in segment.stores]
        every += [_along(self._ending_strides(e, box), e.kept, naxes) for e in segment.endings]
        return every

    def _ending_strides(self, e: Ending, box: Box) -> tuple[int, ...]:
        if e.register >= 0:
            return self._stored_strides(e.register, box)
        return _packed(extents_of(e.shape, self.tile if self.shared else box), e.dtype.itemsize)

    def _own_strides(self, register: int, box: Box) -> tuple[int, ...]:
        if register < self.first:
            return tuple(stride for _, _, stride in self.walks[register].axes)
        return self._stored_strides(register, box)

    def _stored_strides(self, register: int, box: Box) -> tuple[int, ...]:
        row = self.stage.rows[register - self.first]
        if register in self.plain:
            box = self.tile  # it lies in the tile's result
        shape = labelled_shape(row.labels, row.shape, box)
        return _packed(shape, row.dtype.itemsize)


def _walk(read: Read, tile: Box, operand: tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]]) -> Walk:
    axes = []
    for d, o, n, stride in zip(read.labels, read.order, operand[1], operand[2], strict=True):
        follows = d != WHOLE and o >= 0 and read.axes[o].label == d
        # Along an axis of one element NumPy's stride may be anything.
        axes.append((d if follows else WHOLE, tile[d][0] if follows else 0, 0 if n == 1 else stride))
    return Walk(tuple(axes))


def _packed(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """The strides of a C-contiguous array."""
    out = []
    for n in reversed(shape):
        out.append(width)
        width *= n
    return tuple(reversed(out))


def extents_of(axes: tuple[tuple[int, int], ...], box: Box) -> tuple[int, ...]:
    """A block's shape in axes with these dimensions and global sizes."""
    return tuple(n if d == WHOLE else box[d][1] - box[d][0] for d, n in axes)


def _along(strides: tuple[int, ...], axes: tuple[int, ...], naxes: int) -> Strides:
    out = [0] * naxes
    for stride, axis in zip(strides, axes, strict=True):
        if axis >= 0:
            out[axis] = stride
    return tuple(out)


class _Buffers:
    """A buffer for each value that lies in memory between steps, shared once it is needed no more."""

    def __init__(self, body: Compiled) -> None:
        self.numbers: dict[int, int] = {}
        last: dict[int, int] = {}
        stage, first = body.stage, body.first
        for at, step in enumerate(body.steps):
            if isinstance(step, Segment):
                used = [o.source for o in step.operands]
            else:
                used = list(stage.rows[step.register - first].args)
            for register in used:
                last[register] = at
        for reducer in body.reduced.values():
            last.update(dict.fromkeys(reducer.args, len(body.steps)))
        for step in reversed(body.steps):
            if isinstance(step, NumpyStep) and not fills(stage.rows[step.register - first]):
                end = len(body.steps) if step.register in body.plain else last.get(step.register, 0)
                for a in stage.rows[step.register - first].args:
                    last[a] = max(last[a], end)  # the value may be a view of its operands
        free: list[int] = []
        self.count = 0
        ending: dict[int, list[int]] = {}
        for at, step in enumerate(body.steps):
            for register in _made(step, body):
                if not free:
                    free.append(self.count)
                    self.count += 1
                self.numbers[register] = free.pop()
                ending.setdefault(last.get(register, at), []).append(self.numbers[register])
            free += ending.pop(at, ())


def _made(step: Step, body: Compiled) -> list[int]:
    """The registers that a step puts into buffers; the stage's result has its place already."""
    if isinstance(step, NumpyStep):
        made = [step.register] if fills(body.stage.rows[step.register - body.first]) else []
    else:
        made = [*step.stores, *(e.register for e in step.endings if e.register >= 0)]
    return [r for r in made if r not in body.plain]


class BlockTable:
    """A segment's table for blocks of one shape, and where its addresses go."""

    def __init__(self, body: Compiled, loop: WalkedSegment, box: Box) -> None:
        segment = loop.segment
        extents = body.extents(segment, box)
        fields = [prod(extents[k] for k in axes) for axes in loop.layout.loops]
        steps = [axes[-1] if axes else -1 for axes in loop.layout.loops]
        self.places = []
        for strides in body.strides(segment, box):
            self.places.append(len(fields))
            fields.append(0)
            fields += [0 if k < 0 else strides[k] for k in steps]
        self.table = np.array(fields, np.int64)


def build_table(body: Compiled, blocks: Blocks) -> RunTable:
    """The table of a run: what each block's shape, of which there are few, and place say of it."""
    edges = edges_of(blocks, len(body.tile))
    lows, shapes = edges[:, :, 0], edges[:, :, 1] - edges[:, :, 0]
    width = sum(len(part.table) for part in body.block_tables(body.sizes))
    table: RunTable = np.empty((len(blocks), width), np.int64)
    left = np.ones(len(blocks), np.bool_)
    while left.any():
        shape = shapes[left.argmax()]
        alike = (shapes == shape).all(axis=1)
        table[alike] = np.concatenate([part.table for part in body.block_tables(tuple(shape.tolist()))])
        left &= ~alike
    for column, d, lo, stride in body.addresses.moves:
        table[:, column] += (lows[:, d] - lo) * stride
    return table
