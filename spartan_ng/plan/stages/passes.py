"""Stages over the blocks of a domain: rows over registers, which are counted one by one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.costs.operations import by_blas, flops, lookups
from spartan_ng.costs.tuned import MEET_FLOPS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import VALUE, Read, Row, Slot
from spartan_ng.plan.stages.stage import Stage

Stored = tuple[int, int]
"""Non-zeros of a sparse array, and its elements."""


class Pass(Stage):
    """A stage whose tasks run rows over the blocks of their boxes."""

    __slots__ = ()

    WRITES = ("writes",)

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

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of its rows, and of its finish."""
        own = sum(
            row_operations(row, self.reads, self.rows, self.domain, self._stored(slots, row))
            for row in self.every_row
        )
        return own if self.finish is None else own + self.finish.operations(slots)

    def _stored(self, slots: Sequence[Slot], row: Row) -> list[Stored]:
        """What a product's sparse operands store."""
        if row.kind != "contract":
            return []
        read = [
            slots[self.reads[a].slot] for a in row.args if a < len(self.reads) and self.reads[a].slot != VALUE
        ]
        return [(s.nonzeros, prod(s.shape)) for s in read if s.nonzeros is not None]


def row_operations(
    row: Row,
    reads: Sequence[Read],
    rows: Sequence[Row],
    domain: tuple[int, ...],
    stored: Sequence[Stored] = (),
) -> int:
    """Operations of one row over all of a stage's domain, in those of a loop (`costs.operations`).

    `stored` tells of a product's sparse operands: each non-zero looks up what belongs to it in the other one,
    if that is dense, and meets a row of non-zeros, if that is sparse, too.
    """
    made = prod(row.shape)
    shapes = [reads[a].shape if a < len(reads) else rows[a - len(reads)].shape for a in row.args]
    if row.kind == "fold":
        return flops(row.kind, row.fn, row.params, row.shape, prod(shapes[0]), row.dtype)
    if "take" in (row.kind, row.fn):
        return lookups(max(made, prod(domain)), prod(shapes[0]) * row.dtype.itemsize)
    if row.kind != "contract":
        return flops(row.kind, row.fn, row.params, row.shape, max(made, prod(domain)), row.dtype)
    labels, _, out = row.params
    shape, other = shapes
    count = 2 * made * prod(n for letter, n in zip(labels, shape, strict=True) if letter not in out)
    if row.format == "csr":
        share = prod(nonzeros / max(size, 1) for nonzeros, size in stored)
        return int(count // 2 * share) * MEET_FLOPS
    if stored:
        nonzeros, size = min(stored)
        found = prod(other) if prod(shape) == size else prod(shape)
        return count * nonzeros // max(size, 1) + lookups(nonzeros, found * row.dtype.itemsize)
    return count if row.sampled else by_blas(count, made, [prod(shape), prod(other)])


def _operator(row: Row) -> str:
    if row.kind == "contract":
        return "matmul"
    if row.fn is None:
        return row.kind
    named = row.kind in ("fold", "random", "scan") and row.kind != row.fn
    return f"{row.kind} {row.fn}" if named else str(row.fn)
