"""Tier 2 of sampled bodies: which ones have a kernel. How it runs on a tile: see `bound`.

The kernel takes the tile's sparse array as it is stored; a body over a transposed array runs along the
stored rows as well, with the roles of its two axes exchanged. What it keeps of a run of rows is a state, or
the non-zeros of a sparse result, which has its driver's pattern.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from spartan_ng.arrays import WHOLE, Box
from spartan_ng.kernels.compiled.bound import LineTables
from spartan_ng.kernels.compiled.compile import Kernel, compiler
from spartan_ng.kernels.compiled.folds import fold_obstacle
from spartan_ng.kernels.compiled.formulas import code, obstacle
from spartan_ng.kernels.compiled.nonzeros import Dot, NonzeroEnding, SampledLoop, Side, emit_sampled
from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages import Fused

SparseSignature = tuple[Any, ...]
"""What a kernel depends on in its operands: dtypes, and shapes, which say what axes they follow."""


def sparse_signature(stage: Fused, operands: list[Any]) -> SparseSignature:
    """The dtype and shape of each operand, and the driver's index dtype."""
    kinds = tuple([(o.dtype, o.shape, type(o)) for o in operands])
    return (*kinds, operands[stage.driver].indices.dtype)


class Sampled(Struct, frozen=True, eq=False):
    """A sampled stage with a kernel; `axis` is the driver's axis (as the body sees it) of stored rows."""

    stage: Fused
    tile: Box
    loop: SampledLoop
    axis: int
    before: tuple[int, ...]
    """Rows that are computed whole before the loop: side inputs and products' operands."""
    kernels: list[Kernel]
    tables: LineTables
    calls_blas: bool = False

    def is_dense(self, register: int) -> bool:
        """Whether a register is known before the loop."""
        stored = register < len(self.stage.reads) and register != self.stage.driver
        return stored or register in self.before


def prepare_sampled(stage: Fused, tile: Box, operands: list[Any]) -> Sampled | None:
    """A sampled stage with its kernel; None where there is no such kernel."""
    rows = stage.driver_labels[0]
    if rows == WHOLE or rows in stage.whole or len(stage.writes) != 1:
        return None
    axis = stage.reads[stage.driver].order.index(0)
    builder = _SampledBuilder(stage, operands, axis)
    loop, before = builder.loop(), tuple(builder.before)
    if loop is None:
        return None
    return Sampled(stage, tile, loop, axis, before, [compiler.kernel(emit_sampled(loop))], LineTables())


class _SampledBuilder:
    """A stage on its way to a loop over non-zeros."""

    def __init__(self, stage: Fused, operands: list[Any], axis: int) -> None:
        self.stage = stage
        self.first = len(stage.reads)
        self.axis = axis
        self.operands = operands
        self.dtypes = [*(o.dtype for o in operands), *(r.dtype for r in stage.rows)]
        self.before: list[int] = []

    def loop(self) -> SampledLoop | None:
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
        return SampledLoop(
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
            if self._is_dense(a):
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

    def _ending(self) -> NonzeroEnding | None:
        (write,) = self.stage.writes
        if write.reducer is None:
            register = write.register
            sampled = register >= self.first and self.stage.rows[register - self.first].sampled
            kind = code(self.dtypes[register])
            return NonzeroEnding("store", register, kind) if sampled and kind and self.axis == 0 else None
        row = write.reducer
        if row.kind == "fold":
            return self._sum(row)
        return self._product(row) if row.kind == "contract" else None

    def _sum(self, row: Row) -> NonzeroEnding | None:
        if row.fn != "add" or len(row.args) != 1:
            return None
        register, turned = self._seen_through(row.args[0])
        if register < self.first or fold_obstacle("add", self.dtypes[register], row.dtype):
            return None
        (axes,) = row.params
        kept = [k for k in (0, 1) if k not in axes]
        return NonzeroEnding("sum", register, code(row.dtype), self._name(kept[0] ^ turned) if kept else "")

    def _product(self, row: Row) -> NonzeroEnding | None:
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
        return NonzeroEnding("product", register, code(row.dtype), self._name(kept[0] ^ turned))

    def _name(self, axis: int) -> str:
        return "major" if axis == self.axis else "minor"
