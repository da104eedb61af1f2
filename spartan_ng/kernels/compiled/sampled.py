"""Tier 2 of sampled bodies: which ones have a kernel, and how it runs on a tile.

The kernel takes the tile's sparse array as it is stored; a body over a transposed array runs along the
stored rows as well, with the roles of its two axes exchanged. What it keeps of a run of rows is a state, or
the non-zeros of a sparse result, which has its driver's pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spartan_ng.arrays import Box
from spartan_ng.kernels.blocks import Cell, cells, sparse_blocks
from spartan_ng.kernels.body import KINDS
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from spartan_ng.kernels.compiled.folds import fold_obstacle
from spartan_ng.kernels.compiled.formulas import code, obstacle
from spartan_ng.kernels.compiled.nonzeros import Dot, Ending, Loop, Side, emit_sampled
from spartan_ng.ops.folds import State
from spartan_ng.plan.plan import WHOLE, Fused, Row

SparseSignature = tuple[Any, ...]
"""What a kernel depends on in its operands: dtypes, and which axes they follow."""


def sparse_signature(stage: Fused, operands: list[Any]) -> SparseSignature:
    """The dtype and shape of each operand, and the driver's index dtype."""
    kinds = tuple((o.dtype, tuple(n > 1 for n in o.shape), type(o)) for o in operands)
    return (*kinds, operands[stage.driver].indices.dtype)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A sampled stage with a kernel; `axis` is the driver's axis (as the body sees it) of stored rows."""

    stage: Fused
    tile: Box
    loop: Loop
    axis: int
    before: tuple[int, ...]
    """Rows that are computed whole before the loop: side inputs and products' operands."""
    kernels: list[Kernel]
    calls_blas: bool = False

    def is_dense(self, register: int) -> bool:
        """Whether a register is known before the loop."""
        stored = register < len(self.stage.reads) and register != self.stage.driver
        return stored or register in self.before

    def bind(self, operands: list[Any]) -> Bound:
        """The numbers of a table's line that one run of the stage has in common."""
        return Bound(self, operands)


class Bound:
    """A sampled stage with its operands; runs of blocks may go on several threads."""

    def __init__(self, body: Sampled, operands: list[Any]) -> None:
        self.body = body
        stage, loop, first = body.stage, body.loop, len(body.stage.reads)
        self.driver = operands[stage.driver]
        operands = _with_rows(body, operands)
        self._kept = [self.driver.indptr, self.driver.indices, self.driver.data]
        numbers: list[int] = []
        for side in loop.sides:
            x = operands[side.register]
            self._kept.append(x)
            strides = _strides(x)
            numbers += [_address(x), strides[body.axis], strides[1 - body.axis]]
        for dot in loop.dots:
            row = stage.rows[dot.register - first]
            for x in self._lines_of(row, operands):
                numbers += [_address(x), x.strides[0]]
            numbers.append(x.shape[1])
        self._width = 1
        if loop.ending.how == "product":
            (w,) = self._summed_lines(operands)
            self._width = w.shape[1]
            numbers += [_address(w), w.strides[0], w.shape[1]]
        self._numbers = numbers

    def _lines_of(self, row: Row, operands: list[Any]) -> list[Any]:
        """A product's operands as lines of stored rows and lines of the other axis."""
        _, _, lo = row.params
        pairs = list(zip(row.args, row.params[:2], strict=True))
        lines = {}
        for register, labels in pairs:
            axis = 0 if lo[0] in labels else 1
            lines[axis] = self._contiguous(operands[register], labels.index(lo[axis]))
        return [lines[self.body.axis], lines[1 - self.body.axis]]

    def _summed_lines(self, operands: list[Any]) -> list[Any]:
        """The dense operand of the product at the end, one line for each index that is summed over."""
        reducer = self.body.stage.writes[0].reducer
        assert reducer is not None, "a product at the end is a reducer"
        la, lb, lo = reducer.params
        (register, labels) = next(
            (a, names) for a, names in zip(reducer.args, (la, lb), strict=True) if self.body.is_dense(a)
        )
        return [self._contiguous(operands[register], next(k for k, x in enumerate(labels) if x not in lo))]

    def _contiguous(self, x: Any, axis: int) -> Any:
        """The array with one contiguous line for each index along `axis`."""
        x = x[:, None] if x.ndim == 1 else x if axis == 0 else x.T
        if x.strides[1] != x.itemsize and x.shape[1] > 1:
            x = np.ascontiguousarray(x)
        self._kept.append(x)
        return x

    def values(self) -> Any:
        """An array for the non-zeros of a sparse result."""
        return np.empty(len(self.driver.data), self.body.loop.ending.code)

    def run(self, blocks: tuple[Box, ...], values: Any = None) -> State | None:
        """Run the rows of all blocks: fills the `values` of a sparse result, or gives a state."""
        body = self.body
        rows = body.stage.driver_labels[0]
        start = body.tile[rows][0]
        lo, hi = blocks[0][rows][0] - start, blocks[-1][rows][1] - start
        out = self._state(hi - lo) if values is None else values
        line = [lo, hi, *map(_address, self._kept[:3]), _address(out), *self._numbers]
        (kernel,) = body.kernels
        assert kernel.function is not None, "chosen only when compiled"
        kernel.function(np.array([line], np.int64))
        return None if values is not None else (self._presented(out),)

    def _state(self, rows: int) -> Any:
        ending = self.body.loop.ending
        n = {"major": rows, "minor": self.driver.shape[1 - self.body.axis], "": 1}[ending.kept]
        return np.zeros((n, self._width), ending.code)

    def _presented(self, state: Any) -> Any:
        """A state in the axes of the stage's result."""
        reducer = self.body.stage.writes[0].reducer
        assert reducer is not None, "only reduced stages have states"
        if self.body.loop.ending.how == "product":
            la, lb, lo = reducer.params
            turned = len(lo) == 2 and lo[0] in (la if self.body.is_dense(reducer.args[0]) else lb)
            return state[:, 0] if len(lo) == 1 else state.T if turned else state
        return state[:, 0] if reducer.shape else state[0, 0]


def _with_rows(body: Sampled, operands: list[Any]) -> list[Any]:
    """All registers, with the values of the rows that come before the loop."""
    first = len(body.stage.reads)
    registers = [*operands, *[None] * len(body.stage.rows)]
    for register in body.before:
        row = body.stage.rows[register - first]
        registers[register] = np.asarray(KINDS[row.kind](row)(registers, body.tile, None))
    return registers


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _strides(x: Any) -> tuple[int, int]:
    """Byte strides along the two axes of the body; 0 where the operand does not follow one."""
    strides = (0, 0, *(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True)))
    return strides[-2], strides[-1]


def prepare_sampled(stage: Fused, tile: Box, operands: list[Any]) -> tuple[Sampled, list[Cell]] | None:
    """A sampled stage's kernel and the cells of its tile; None where there is no such kernel."""
    rows = stage.driver_labels[0]
    if rows == WHOLE or rows in stage.whole or len(stage.writes) != 1:
        return None
    axis = stage.reads[stage.driver].order.index(0)
    builder = _Builder(stage, operands, axis)
    loop, before = builder.loop(), tuple(builder.before)
    if loop is None:
        return None
    (write,) = stage.writes
    sizes = sparse_blocks(stage, [hi - lo for lo, hi in tile])
    reduced = [d for d in range(len(stage.domain)) if d not in write.labels] if write.reducer else []
    body = Sampled(stage, tile, loop, axis, before, [compiler.kernel(emit_sampled(loop))])
    return body, cells(tile, sizes, reduced)


class _Builder:
    """A stage on its way to a loop over non-zeros."""

    def __init__(self, stage: Fused, operands: list[Any], axis: int) -> None:
        self.stage = stage
        self.first = len(stage.reads)
        self.axis = axis
        self.operands = operands
        self.dtypes = [*(o.dtype for o in operands), *(r.dtype for r in stage.rows)]
        self.before: list[int] = []

    def loop(self) -> Loop | None:
        """The loop, or None where a row or the result has no text."""
        driver = self.operands[self.stage.driver]
        sides: dict[int, Side] = {}
        dots: list[Dot] = []
        maps: list[tuple[int, Row]] = []
        for register, row in enumerate(self.stage.rows, self.first):
            if not row.sampled:
                if self._comes_before(row):
                    self.before.append(register)
                elif row.kind != "transpose":
                    return None
            elif row.kind == "contract":
                if not self._has_dots(row):
                    return None
                dots.append(Dot(register, code(row.dtype)))
            else:
                if obstacle(row, [self.dtypes[a] for a in row.args]) or not self._take_sides(row, sides):
                    return None
                maps.append((register, row))
        ending = self._ending()
        if ending is None or not code(driver.dtype):
            return None
        return Loop(
            self.stage.driver,
            code(driver.dtype),
            code(driver.indices.dtype),
            tuple(sides.values()),
            tuple(dots),
            tuple(maps),
            ending,
            tuple(self.dtypes),
        )

    def _comes_before(self, row: Row) -> bool:
        """Whether an unsampled row is a dense value, and not one of the driver's shape."""
        inputs = all(self._is_dense(a) for a in row.args)
        return inputs and row.format == "dense" and row.shape != self.stage.reads[self.stage.driver].shape

    def _is_dense(self, register: int) -> bool:
        if register < self.first:
            return isinstance(self.operands[register], np.ndarray)
        return register in self.before

    def _shape(self, register: int) -> tuple[int, ...]:
        if register < self.first:
            return tuple(self.operands[register].shape)
        return self.stage.rows[register - self.first].shape

    def _has_dots(self, row: Row) -> bool:
        stored = all(self._is_dense(a) for a in row.args)
        return (
            stored and code(row.dtype) in ("f4", "f8") and all(self.dtypes[a] == row.dtype for a in row.args)
        )

    def _take_sides(self, row: Row, sides: dict[int, Side]) -> bool:
        """Note the dense operands of a map; whether all operands are dense, or the driver, or sampled."""
        for a in row.args:
            if self._is_dense(a) and len(self._shape(a)) <= 2:
                follows = [n > 1 for n in (1, 1, *self._shape(a))[-2:]]
                sides[a] = Side(a, code(self.dtypes[a]), follows[self.axis], follows[1 - self.axis])
            elif a != self.stage.driver and not (a >= self.first and self.stage.rows[a - self.first].sampled):
                return False
        return True

    def _seen_through(self, register: int) -> tuple[int, bool]:
        """The sampled row (or driver) below transposes, and whether it is turned."""
        turned = False
        while (
            register >= self.first
            and not self._is_dense(register)
            and not (row := self.stage.rows[register - self.first]).sampled
        ):
            turned ^= row.params == ((1, 0),)
            register = row.args[0]
        return register, turned

    def _ending(self) -> Ending | None:
        (write,) = self.stage.writes
        if write.reducer is None:
            register = write.register
            sampled = register >= self.first and self.stage.rows[register - self.first].sampled
            kind = code(self.dtypes[register])
            return Ending("store", register, kind) if sampled and kind and self.axis == 0 else None
        row = write.reducer
        if row.kind == "fold":
            return self._sum(row)
        return self._product(row) if row.kind == "contract" else None

    def _sum(self, row: Row) -> Ending | None:
        if row.fn != "add" or len(row.args) != 1:
            return None
        register, turned = self._seen_through(row.args[0])
        if register < self.first or fold_obstacle("add", self.dtypes[register], row.dtype):
            return None
        (axes,) = row.params
        kept = [k for k in (0, 1) if k not in axes]
        return Ending("sum", register, code(row.dtype), self._name(kept[0] ^ turned) if kept else "")

    def _product(self, row: Row) -> Ending | None:
        """A sampled matrix times a dense one; the summed axis is the sampled one's."""
        places = [k for k, a in enumerate(row.args) if not self._is_dense(a)]
        if len(places) != 1 or code(row.dtype) not in ("f4", "f8"):
            return None
        (place,) = places
        register, turned = self._seen_through(row.args[place])
        other = row.args[1 - place]
        if register < self.first:
            return None
        if any(self.dtypes[r] != row.dtype for r in (register, other)):
            return None
        labels, lo = row.params[place], row.params[2]
        kept = [k for k in (0, 1) if labels[k] in lo]
        if len(kept) != 1 or len(self._shape(other)) > 2:
            return None
        return Ending("product", register, code(row.dtype), self._name(kept[0] ^ turned))

    def _name(self, axis: int) -> str:
        return "major" if axis == self.axis else "minor"
