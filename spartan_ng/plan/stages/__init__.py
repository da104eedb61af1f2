"""The kinds of stages of plans, a file a kind."""

from spartan_ng.plan.stages.accumulate import Accumulate
from spartan_ng.plan.stages.assemble import Assemble
from spartan_ng.plan.stages.combine import Combine
from spartan_ng.plan.stages.fused import Fused
from spartan_ng.plan.stages.join import Join
from spartan_ng.plan.stages.merge_parts import MergeParts
from spartan_ng.plan.stages.passes import Pass
from spartan_ng.plan.stages.scan_offsets import ScanOffsets
from spartan_ng.plan.stages.scan_tile import ScanTile
from spartan_ng.plan.stages.scan_totals import ScanTotals
from spartan_ng.plan.stages.sort_parts import SortParts
from spartan_ng.plan.stages.stage import Stage

__all__ = [
    "Accumulate",
    "Assemble",
    "Combine",
    "Fused",
    "Join",
    "MergeParts",
    "Pass",
    "ScanOffsets",
    "ScanTile",
    "ScanTotals",
    "SortParts",
    "Stage",
]
