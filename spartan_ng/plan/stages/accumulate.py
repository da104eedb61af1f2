"""What a user's join has made, put into an array."""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.arrays import Tiling
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages.stage import Stage


class Accumulate(Stage, frozen=True):
    """Put the updates of a user's join, in rank order, into the output tiles; conflicts accumulate."""

    READS = ("updates",)
    DOES = "adds updates up"

    accumulate: str | UserFunction
    updates: int
    slot: int
    grid: Tiling
    """The grid of the join: which ranks hold updates."""

    def sought_slots(self) -> tuple[int, ...]:
        """The updates, which say themselves where they belong."""
        return (self.updates,)

    def added(self, slots: Sequence[Slot]) -> int:
        """All of them."""
        return self.operations(slots)
