"""One handler for each kind of stage: operands in, tiles out."""

from __future__ import annotations

from collections.abc import Callable
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
from spartan_ng.worker.scheduling.shares import Task
from spartan_ng.worker.stages.assembling import run_assemble, run_combine
from spartan_ng.worker.stages.fused import run_fused
from spartan_ng.worker.stages.joins import run_accumulate, run_join
from spartan_ng.worker.stages.scans import run_scan, run_scan_offsets, run_scan_totals
from spartan_ng.worker.stages.sorting import run_merge_parts, run_sort_parts

if TYPE_CHECKING:
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

HANDLERS: dict[type, Callable[[Executor, Run, Any, Task], None]] = {
    Fused: run_fused,
    Combine: run_combine,
    ScanTotals: run_scan_totals,
    ScanOffsets: run_scan_offsets,
    ScanTile: run_scan,
    Assemble: run_assemble,
    Join: run_join,
    Accumulate: run_accumulate,
    SortParts: run_sort_parts,
    MergeParts: run_merge_parts,
}
