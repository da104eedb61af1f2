"""Sorted parts merged into an array."""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.arrays import Tiling
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages.stage import Stage


class MergeParts(Stage, frozen=True):
    """Each output tile is a range of ranks: find the cuts of the sorted parts, pull and merge them.

    With `spans`, the output has the elements of these ranks, and lies on one worker. With a `length`, parts
    are sorted in runs of so many elements, and as many are merged at a time.
    """

    READS = ("values", "indices")
    DOES = "merges sorted parts"

    values: int
    indices: int | None
    slot: int
    grid: Tiling
    spans: tuple[tuple[int, int], ...] = ()
    length: int = 0

    def sought_slots(self) -> tuple[int, ...]:
        """The sorted parts: where they are cut depends on what they hold."""
        return self.read_slots()

    def added(self, slots: Sequence[Slot]) -> int:
        """All of them."""
        return self.operations(slots)
