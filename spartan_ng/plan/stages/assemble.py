"""Arrays put together from regions of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spartan_ng.plan.rows import Read
from spartan_ng.plan.stages.stage import Stage


@dataclass(frozen=True, slots=True)
class Assemble(Stage):
    """Build each output tile from regions of the inputs: `how` is "reshape", "concatenate",
    "assign" or "copy"; params as in `ops.joins`. A read's labels are the axes of its operand."""

    DOES = "puts arrays together"

    how: str
    params: tuple[Any, ...]
    reads: tuple[Read, ...]
    slot: int
