"""Parts of an array, each sorted by itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.plan.rows import Read, Slot
from spartan_ng.plan.stages.stage import Stage


class SortParts(Stage, frozen=True):
    """Sort each part of a 1-d array by itself into `values`, and where its elements came from into
    `indices` (None: not asked for). With `spans`, only these ranks of the array are asked for. With a
    `length`, a part does not fit: it is sorted in runs of so many elements."""

    READS = ("read",)
    WRITES = ("values", "indices")
    DOES = "sorts"

    read: Read
    values: int
    indices: int | None
    grid: Tiling
    spans: tuple[tuple[int, int], ...] = ()
    length: int = 0

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of the sort."""
        name = "sort" if self.indices is None else "argsort"
        return AXIS_FUNCTIONS[name].line_flops(prod(self.space(slots)), slots[self.values].dtype)

    def worked_bytes(self, slots: Sequence[Slot], threads: int) -> int:
        """What so many threads have beside what is stored: of each run a copy, sorted, and where it came
        from; indices are sorted behind the digits of their values, which takes as much again."""
        ((key, *others), parts) = [slots[s].dtype.itemsize for s in self.written_slots()], self.grid.parts[0]
        n = -(-prod(self.space(slots)) // parts)
        if not self.length:
            return 2 * n * sum(others)
        return min(threads * self.length, n) * 2 * (key + sum(others))
