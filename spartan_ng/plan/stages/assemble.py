"""Arrays put together from regions of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spartan_ng.costs.operations import work
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.plan.stages.stage import Stage


class Assemble(Stage, frozen=True):
    """Build each output tile from regions of the inputs: `how` is "reshape", "concatenate",
    "assign" or "copy"; params as in `ops.joins`. A read's labels are the axes of its operand."""

    DOES = "puts arrays together"

    how: str
    params: tuple[Any, ...]
    reads: tuple[Read, ...]
    slot: int

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of the join; a view computes nothing."""
        made = slots[self.slot]
        shapes = [read.shape for read in self.reads]
        stored = [slots[read.slot].density for read in self.reads]
        return work(self.how, None, self.params, made.shape, made.dtype, shapes, stored, format=made.format)
