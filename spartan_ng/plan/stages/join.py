"""A function of tiles: of users, and those whose reads depend on data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from spartan_ng.arrays import Tiling
from spartan_ng.costs.operations import lookups
from spartan_ng.costs.tuned import DISTINCT_FLOPS
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.plan.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class Join(Stage):
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

    def operations(self, slots: Sequence[Slot]) -> int:
        """Where rows are looked up, each of theirs; before, where others have some of them, the indices are
        sorted, to ask for each row once."""
        if self.how != "take":
            return prod(self.space(slots))
        array, indices = (slots[read.slot] for read in self.reads)
        found = lookups(prod(self.space(slots)), array.nbytes)
        return found + (DISTINCT_FLOPS * prod(indices.shape) if array.tiling.ntiles > 1 else 0)
