"""Partial states of a fold from all over the domain become its result."""

from __future__ import annotations

from dataclasses import dataclass

from spartan_ng.plan.rows import Row
from spartan_ng.plan.stages.fused import Fused
from spartan_ng.plan.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class Combine(Stage):
    """Combine partial states along their `lead` leading axes in index order; finalize into `slot`, by way of
    a `finish` as in `Fused`. With `spans`, which has the units of each state along each leading axis, they
    are subtrees, and combined as such."""

    READS = ("states",)

    row: Row
    states: tuple[int, ...]
    lead: int
    slot: int
    finish: Fused | None = None
    spans: tuple[tuple[tuple[int, int], ...], ...] = ()
