"""Stages over the blocks of a domain: rows over registers, which are counted one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import ClassVar

from spartan_ng.arrays import Tiling
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import density, work
from spartan_ng.costs.tuned import THREAD_FLOPS_S
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.random import DISTRIBUTIONS, is_walk, walked
from spartan_ng.plan.rows import VALUE, Read, Row, Slot
from spartan_ng.plan.stages.stage import Stage


class Pass(Stage, frozen=True):
    """A stage whose tasks run rows over the blocks of their boxes."""

    WRITES: ClassVar[tuple[str, ...]] = ("writes",)

    domain: tuple[int, ...]
    grid: Tiling
    reads: tuple[Read, ...]
    rows: tuple[Row, ...]

    @property
    def reducers(self) -> tuple[Row, ...]:
        """The rows that fold its results, behind all others."""
        return tuple(w.reducer for w in self.results() if w.reducer is not None)

    @property
    def every_row(self) -> tuple[Row, ...]:
        """Its rows and its reducers."""
        return (*self.rows, *self.reducers)

    @property
    def calls_users(self) -> bool:
        """Whether a user's function is called, which may cost anything."""
        return any(isinstance(row.fn, UserFunction) for row in self.every_row)

    def written_slots(self) -> tuple[int, ...]:
        """Those of its finish, where it has one."""
        return Stage.written_slots(self) if self.finish is None else self.finish.written_slots()

    def cut(self, slots: Sequence[Slot]) -> Tiling:
        """The grid of its domain."""
        return self.grid

    def space(self, slots: Sequence[Slot]) -> tuple[int, ...]:
        """Its domain."""
        return self.domain

    def operators(self) -> tuple[str, ...]:
        """Each row under the name that a user knows it by."""
        after = () if self.finish is None else self.finish.rows
        return tuple(_operator(row) for row in (*self.every_row, *after)) or ("copy",)

    def seconds(self, slots: Sequence[Slot], moved_bytes: int, profile: Profile) -> float:
        """No less than one generator takes to walk through the random numbers that nobody can jump to."""
        drawn = [row for row in self.rows if row.kind == "random" and is_walk(row.params[0])]
        flops = sum(walked(row.params[0], row.shape) * DISTRIBUTIONS[str(row.fn)].flops for row in drawn)
        return max(super().seconds(slots, moved_bytes, profile), flops / THREAD_FLOPS_S)

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of its rows, and of its finish."""
        stored = [None if read.slot == VALUE else slots[read.slot].density for read in self.reads]
        own = sum(row_operations(self.reads, self.rows, self.reducers, stored, self._driven_by))
        return own if self.finish is None else own + self.finish.operations(slots)

    @property
    def _either_way(self) -> Collection[int]:
        """Operands of products."""
        return operands_of_products(self.every_row, [write.register for write in self.results()])

    def _found(self, slots: Sequence[Slot]) -> Mapping[int, int]:
        """In what rows look up."""
        return looked_up(self.every_row)

    @property
    def _driven_by(self) -> int:
        """The read at whose non-zeros sampled rows are computed; -1 where there is none."""
        return -1


def operands_of_products(rows: Sequence[Row], stored: Sequence[int]) -> set[int]:
    """The registers that products alone look at, and that are not `stored`: BLAS takes its operands turned as
    well as straight."""
    operands = {arg for row in rows if row.kind == "contract" for arg in row.args}
    return operands.difference(stored, *(row.args for row in rows if row.kind != "contract"))


def looked_up(rows: Sequence[Row]) -> dict[int, int]:
    """The registers in which rows only look elements up, and how many they find."""
    found: dict[int, int] = {}
    for row in rows:
        if row.kind == "take":
            found[row.args[0]] = found.get(row.args[0], 0) + prod(row.shape)
    # Of a lookup all operands but the first are read as a whole: the places.
    others = {arg for row in rows for arg in row.args[row.kind == "take" :]}
    return {register: count for register, count in found.items() if register not in others}


def row_operations(
    reads: Sequence[Read],
    rows: Sequence[Row],
    reducers: Sequence[Row],
    stored: Sequence[float | None],
    driver: int = -1,
) -> list[int]:
    """Operations of each row, then of each reducer, over all of a stage's domain (`costs.operations.work`).

    `stored` has for each read the part of its elements that is stored, None of a dense one; `driver` is the
    read whose part sampled rows are computed at.
    """
    shapes, known = [read.shape for read in reads], list(stored)
    part = stored[driver] if driver >= 0 else None
    counts = []
    for row in (*rows, *reducers):
        operands, seen = [*map(shapes.__getitem__, row.args)], [*map(known.__getitem__, row.args)]
        step = (row.kind, row.fn, row.params, row.shape)
        # A sampled row is computed at the driver's elements, whatever its own operands have.
        own = part if row.sampled else None
        counts.append(work(*step, row.dtype, operands, seen, own, row.format))
        shapes.append(row.shape)
        is_sparse = row.format == "csr"
        known.append((density(*step, operands, seen) if own is None else own) if is_sparse else None)
    return counts


def _operator(row: Row) -> str:
    if row.kind == "contract":
        return "matmul"
    if row.fn is None:
        return row.kind
    named = row.kind in ("fold", "random", "scan") and row.kind != row.fn
    return f"{row.kind} {row.fn}" if named else str(row.fn)
