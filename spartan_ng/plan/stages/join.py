"""A function of tiles: of users, and those whose reads depend on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from spartan_ng.arrays import Tiling
from spartan_ng.costs.operations import work
from spartan_ng.costs.tuned import DISTINCT_FLOPS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.plan.stages.stage import Stage


class Join(Stage, frozen=True):
    """A tile function with inputs seen whole or along a joined axis: `how` is "scatter", "compress",
    "nonzero", "take" or "user". A user's tasks follow `grid`, the cut of the joined axis (`worker.joins`)."""

    DOES = "is given tiles as they are"

    how: str
    fn: UserFunction | None
    params: tuple[Any, ...]
    reads: tuple[Read, ...]
    slot: int
    grid: Tiling

    def sought_slots(self) -> tuple[int, ...]:
        """The array whose elements a mask or indices select."""
        return (self.reads[0].slot,) if self.how in ("compress", "take") else ()

    def _found(self, slots: Sequence[Slot]) -> Mapping[int, int]:
        """In the array that is looked up, or masked."""
        return found_by(self.how, prod(slots[self.slot].shape))

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of the join. Before rows are looked up, where others have some of them, the indices are
        sorted, to ask for each row once."""
        shapes = [read.shape for read in self.reads]
        stored = [slots[read.slot].density for read in self.reads]
        kind, made = ("join_update" if self.fn is not None else self.how), slots[self.slot]
        own = work(kind, self.fn, self.params, made.shape, made.dtype, shapes, stored, format=made.format)
        return own + self.added(slots)

    def added(self, slots: Sequence[Slot]) -> int:
        """The sort of the indices."""
        if self.how != "take":
            return 0
        array, indices = (slots[read.slot] for read in self.reads)
        return DISTINCT_FLOPS * prod(indices.shape) if array.tiling.ntiles > 1 else 0


def found_by(how: str, made: int) -> dict[int, int]:
    """By the numbers of a join's views in which elements are looked up, or chosen by a mask, how many are
    found where it has `made` so many."""
    return {0: made} if how in ("take", "compress") else {}
