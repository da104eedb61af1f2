"""What stands before each part of a cumulative aggregate, level below level."""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages.stage import Stage


class ScanOffsets(Stage, frozen=True):
    """A level of a scan's backward cascade: each of the `states` becomes the state of all before it.

    A task continues its own row of `offsets` (None: it sees the whole line).
    """

    READS = ("states", "offsets")
    DOES = "scans"

    fn: str | UserFunction
    axis: int
    states: int
    offsets: int | None
    slot: int

    def added(self, slots: Sequence[Slot]) -> int:
        """All of them."""
        return self.operations(slots)
