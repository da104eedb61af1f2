"""One handler for each kind of stage: operands in, tiles out.

Its module is imported with the first stage of the kind: most plans have passes, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from spartan_ng.plan.stages import (
    Accumulate,
    Assemble,
    Combine,
    Fused,
    Join,
    MergeParts,
    ScanOffsets,
    ScanTile,
    ScanTotals,
    SortParts,
)

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor
    from spartan_ng.worker.scheduling.shares import Task

Handler = Callable[["Executor", "Run", Any, "Task"], None]

HANDLERS: dict[type, str] = {
    Fused: "fused:run_fused",
    Combine: "assembling:run_combine",
    ScanTotals: "scans:run_scan_totals",
    ScanOffsets: "scans:run_scan_offsets",
    ScanTile: "scans:run_scan",
    Assemble: "assembling:run_assemble",
    Join: "joins:run_join",
    Accumulate: "joins:run_accumulate",
    SortParts: "sorting:run_sort_parts",
    MergeParts: "sorting:run_merge_parts",
}
"""For each kind of stage the module beside this one and the function in it."""


@lru_cache
def handler(kind: type) -> Handler:
    """What runs stages of a kind."""
    module, _, name = HANDLERS[kind].partition(":")
    found: Handler = getattr(import_module(f"{__package__}.{module}"), name)
    return found
