"""The pass that has a cumulative aggregate among its rows."""

from __future__ import annotations

from spartan_ng.plan.rows import Row, Write
from spartan_ng.plan.stages.passes import Pass


class ScanTile(Pass, frozen=True):
    """One pass with a cumulative aggregate among its rows: each tile's own, behind its row of `offsets`
    (None: the axis is not cut; `totals` is where the parts' states are from). `writes` says what becomes of
    the last row: it is stored, or folded, or both."""

    READS = ("reads", "offsets")
    DOES = "scans"

    offsets: int | None
    writes: tuple[Write, ...]
    totals: int | None = None
    exact: bool = False
    band: tuple[int, int] | None = None
    """Over sources: the dimension along which parts of the tile are there one after the other, and how many
    indices of it at a time."""

    @property
    def scan(self) -> Row:
        """The row that is the cumulative aggregate."""
        return next(row for row in self.rows if row.kind == "scan")

    @property
    def axis(self) -> int:
        """The scanned dimension of the domain."""
        (axis,) = self.scan.params
        return int(axis)
