"""Partial states of a fold from all over the domain become its result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.plan.rows import Row, Slot
from spartan_ng.plan.stages.fused import Fused
from spartan_ng.plan.stages.stage import Stage


class Combine(Stage, frozen=True):
    """Combine partial states along their `lead` leading axes in index order; finalize into `slot`, by way of
    a `finish` as in `Fused`. With `spans`, which has the units of each state along each leading axis, they
    are subtrees, and combined as such. What makes a tile goes in `parts`, one after the other, along its
    longest axis, where memory has no room for all of its states."""

    READS = ("states",)

    row: Row
    states: tuple[int, ...]
    lead: int
    slot: int
    finish: Fused | None = None
    spans: tuple[tuple[tuple[int, int], ...], ...] = ()
    parts: int = 1

    def operations(self, slots: Sequence[Slot]) -> int:
        """One an element of a state that is combined, and those of the finish."""
        after = 0 if self.finish is None else self.finish.operations(slots)
        return self.added(slots) + after

    def added(self, slots: Sequence[Slot]) -> int:
        """Those of the states."""
        return sum(prod(slots[s].shape) for s in self.states)
