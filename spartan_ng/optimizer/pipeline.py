"""The passes over a graph, in the order in which they run.

Each pass is a pure function from roots to roots of equal value; switched off by its name in
`config.disabled_passes`, it never changes an answer beyond the rounding of sums. Fusion and tiling follow
when the graph is lowered.
"""

from __future__ import annotations

from spartan_ng.optimizer.passes import REQUIRED, Pass
from spartan_ng.optimizer.rewrite.algebra.table import algebra
from spartan_ng.optimizer.rewrite.constants import VALUE_PASSES
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.scans import fold_scans, simplify_scans
from spartan_ng.optimizer.rewrite.selection import select_places
from spartan_ng.optimizer.rewrite.slices import push_slices
from spartan_ng.optimizer.rewrite.stacks import fold_stacks
from spartan_ng.optimizer.rewrite.windows import fold_windows

PASSES: tuple[tuple[str, Pass], ...] = (
    ("merge_duplicates", merge_duplicates),
    ("simplify_scans", simplify_scans),
    ("push_slices", push_slices),
    ("algebra", algebra),
    ("select_places", select_places),
    ("fold_scans", fold_scans),
    ("fold_windows", fold_windows),
    ("fold_stacks", fold_stacks),
    ("merge_again", merge_duplicates),
)
"""Passes over the structure alone; their result is kept with the plan. Nodes that no root reaches die with
the first walk."""

LOWERING_PASSES = ("fuse", "tile")
"""Steps of lowering that may be switched off like passes: no fusion, the first tiling that is possible."""

PLACING_PASSES = ("home",)
"""What decides where a plan runs: without it, nothing that is planned stays on the driver of a cluster."""

ROUNDING = frozenset({"fold_scans", "fold_windows", "fold_stacks"})
"""Passes whose sums are rounded otherwise: left out where `config.reproducible` keeps the last bits."""

NAMES = frozenset({*(n for n, _ in (*PASSES, *VALUE_PASSES)), *LOWERING_PASSES, *PLACING_PASSES}) - REQUIRED
"""Names that may stand in `config.disabled_passes`."""
