"""A function of tiles: of users, and those whose reads depend on data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spartan_ng.arrays import Tiling
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Read
from spartan_ng.plan.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class Join(Stage):
    """A tile function with inputs seen whole or along a joined axis: `how` is "scatter", "compress",
    "take" or "user". A user's tasks follow `grid`, the cut of the joined axis; see `worker.joins`."""

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
