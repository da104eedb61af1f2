"""Parts of a line, each sorted by itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.plan.rows import Slot, Write
from spartan_ng.plan.stages.fused import Fused
from spartan_ng.plan.stages.passes import Pass


class SortParts(Pass, frozen=True):
    """Sort each part of a line by itself into `values`, and where its elements came from into `indices`
    (None: not asked for). The line is what the last row makes, or, without any, what is read. With `spans`,
    only these ranks of it are asked for. With a `length`, a part does not fit: it is sorted in runs of so
    many elements, and rows make the line where a run is filled with it."""

    WRITES = ("values", "indices")
    DOES = "sorts"

    values: int
    indices: int | None
    spans: tuple[tuple[int, int], ...] = ()
    length: int = 0
    exact: bool = False
    """Whether the rows keep the last bits: `config.reproducible`."""

    @property
    def line(self) -> Fused:
        """The pass that would store the line."""
        single, register = Tiling.single(1), len(self.reads) + len(self.rows) - 1
        write = Write((self.values,), register, (0,))
        return Fused(self.name, self.domain, single, self.reads, self.rows, (write,), exact=self.exact)

    def operators(self) -> tuple[str, ...]:
        """Its rows, and the sort."""
        return (*(Pass.operators(self) if self.rows else ()), self.name)

    def operations(self, slots: Sequence[Slot]) -> int:
        """Those of its rows, and of the sort."""
        name = "sort" if self.indices is None else "argsort"
        made = Pass.operations(self, slots)
        return made + AXIS_FUNCTIONS[name].line_flops(prod(self.domain), slots[self.values].dtype)

    def worked_bytes(self, slots: Sequence[Slot], threads: int) -> int:
        """What so many threads have beside what is stored: of each run a copy, sorted, and where it came
        from; indices are sorted behind the digits of their values, which takes as much again."""
        ((key, *others), parts) = [slots[s].dtype.itemsize for s in self.written_slots()], self.grid.parts[0]
        n = -(-prod(self.domain) // parts)
        if not self.length:
            return 2 * n * sum(others)
        return min(threads * self.length, n) * 2 * (key + sum(others))
