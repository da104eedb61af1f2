"""What the parts of a cumulative aggregate come to, level above level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.costs.operations import flops
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan.rows import Read, Row, Slot
from spartan_ng.plan.stages.passes import Pass


@dataclass(frozen=True, slots=True)
class ScanTotals(Pass):
    """A level of a scan's forward cascade: the state of each part of `grid`, as one row along `axis`.

    Arrays of states have a leading axis for the arrays of a state. The first level scans the registers
    `args` of reads and rows over the `domain`, the others (`of_states`) read an array of states.
    """

    WRITES = ("slot",)
    DOES = "scans"

    fn: str | UserFunction
    axis: int
    domain: tuple[int, ...]
    reads: tuple[Read, ...]
    rows: tuple[Row, ...]
    args: tuple[int, ...]
    slot: int
    grid: Tiling
    of_states: bool

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
