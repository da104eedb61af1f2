"""The passes over a graph, in the order in which they run.

Each pass is a pure function from roots to roots of equal value; switched off by its name in
`config.disabled_passes`, it never changes an answer beyond the rounding of sums. Fusion and tiling follow
when the graph is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from spartan_ng.config import config
from spartan_ng.graph.node import Node
from spartan_ng.optimizer.rewrite.algebra.table import algebra
from spartan_ng.optimizer.rewrite.constants import fold_constants, name_ranges, resolve_empty
from spartan_ng.optimizer.rewrite.duplicates import merge_duplicates
from spartan_ng.optimizer.rewrite.scans import fold_scans, simplify_scans
from spartan_ng.optimizer.rewrite.selection import select_places
from spartan_ng.optimizer.rewrite.slices import push_slices
from spartan_ng.optimizer.rewrite.windows import fold_windows

Pass = Callable[[Sequence[Node]], list[Node]]

PASSES: tuple[tuple[str, Pass], ...] = (
    ("merge_duplicates", merge_duplicates),
    ("simplify_scans", simplify_scans),
    ("push_slices", push_slices),
    ("algebra", algebra),
    ("select_places", select_places),
    ("fold_scans", fold_scans),
    ("fold_windows", fold_windows),
    ("merge_again", merge_duplicates),
)
"""Passes over the structure alone; their result is kept with the plan. Nodes that no root reaches die with
the first walk."""

VALUE_PASSES: tuple[tuple[str, Pass], ...] = (
    ("resolve_empty", resolve_empty),
    ("fold_constants", fold_constants),
    ("name_ranges", name_ranges),
)
"""Passes that look at values; they run before a plan is looked up."""

LOWERING_PASSES = ("fuse", "tile")
"""Steps of lowering that may be switched off like passes: no fusion, the first tiling that is possible."""

PLACING_PASSES = ("home",)
"""What decides where a plan runs: without it, nothing that is planned stays on the driver of a cluster."""

REQUIRED = frozenset({"resolve_empty"})
"""Passes that plans rely on."""

ROUNDING = frozenset({"fold_scans", "fold_windows"})
"""Passes whose sums are rounded otherwise: left out where `config.reproducible` keeps the last bits."""

NAMES = frozenset({*(n for n, _ in (*PASSES, *VALUE_PASSES)), *LOWERING_PASSES, *PLACING_PASSES}) - REQUIRED
"""Names that may stand in `config.disabled_passes`."""


def run_passes(
    passes: Sequence[tuple[str, Pass]], roots: Sequence[Node], disabled: Collection[str]
) -> list[Node]:
    """The roots after every pass that is required or not disabled."""
    out, asked = list(roots), set[Node]()
    for name, step in passes:
        if name in REQUIRED or name not in disabled:
            before, out = out, step(out)
            if config.check:
                from spartan_ng.graph.spec import check_pass

                asked.update(check_pass(before, out, name, asked))
    return out
