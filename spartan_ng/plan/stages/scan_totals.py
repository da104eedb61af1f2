"""What the parts of a cumulative aggregate come to, level above level."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.costs.operations import flops
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages.passes import Pass


class ScanTotals(Pass, frozen=True):
    """A level of a scan's forward cascade: the state of each part of `grid`, as one row along `axis`.

    Arrays of states have a leading axis for the arrays of a state. The first level scans the registers
    `args` of reads and rows over the `domain`, the others (`of_states`) read an array of states.
    """

    WRITES = ("slot",)
    DOES = "scans"

    fn: str | UserFunction
    axis: int
    args: tuple[int, ...]
    slot: int
    of_states: bool
    band: tuple[int, int] | None = None
    """That of the scan's own pass (`ScanTile`)."""

    def operators(self) -> tuple[str, ...]:
        """The scan: its rows are those of the pass that goes over the parts again."""
        return (self.name,)

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of its rows, and of the scan."""
        scanned = flops("scan", self.fn, (self.axis,), self.domain, prod(self.domain), slots[self.slot].dtype)
        return Pass.operations(self, slots) + scanned

    def added(self, slots: Sequence[Slot]) -> int:
        """All of them."""
        return self.operations(slots)
