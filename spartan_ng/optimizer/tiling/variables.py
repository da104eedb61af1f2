"""The tiling graph: its variables, and the moves between them, whose bytes depend on what is chosen.

Spartan (ATC '15), section 3.3, "Constructing the tiling graph".
"""

from __future__ import annotations

from msgspec import Struct

from spartan_ng.costs import Profile, Table
from spartan_ng.optimizer.tiling.options import (
    Options,
)
from spartan_ng.optimizer.tiling.problem import Problem

PINNED = -1
"""In place of a variable: the array has one possible tiling."""


class TilingPlace(Struct, frozen=True):
    """Where an array may lie: the variable that decides, and the tiling for each of its options."""

    variable: int
    options: Options


class Move(Struct, frozen=True):
    """Bytes that an access moves, a table over two variables (either may be `PINNED`)."""

    row: int
    column: int
    table: Table

    def at(self, choice: tuple[int, ...]) -> int:
        """The bytes under a choice."""
        row = choice[self.row] if self.row >= 0 else 0
        column = choice[self.column] if self.column >= 0 else 0
        return int(self.table[row, column])


class BehindSums(Struct, frozen=True):
    """Bytes of a read behind partial sums: a table over the grid, the result's tiling, and the array's."""

    scope: tuple[int, int, int]
    table: Table

    def at(self, choice: tuple[int, ...]) -> int:
        """The bytes under a choice."""
        return int(self.table[tuple(choice[v] if v >= 0 else 0 for v in self.scope)])


class OwnCopy(Struct, frozen=True):
    """A copy that some readers of an array may have: its place, and what making it moves."""

    array: int
    place: TilingPlace
    move: Move


class Model(Struct, frozen=True):
    """A problem, and what its variables mean. Variable i < number of stages is the grid of stage i."""

    problem: Problem
    grids: tuple[Options, ...]
    places: tuple[TilingPlace, ...]
    reads: tuple[tuple[Move | BehindSums, ...], ...]
    combines: tuple[tuple[Move | None, ...], ...]
    sources: tuple[tuple[TilingPlace, ...], ...]
    """For each stage and each of its reads, the place of the copy that is read."""
    copies: tuple[OwnCopy, ...]
    outside: tuple[tuple[int, ...], ...]
    """For each stage and each of its grids, the bytes that all workers read of what lies outside."""


class Rules(Struct, frozen=True):
    """What may be chosen: the cluster, the memory for copies, and a tiling forced on everything.

    With `rates`, the same choices cost what they take at these, and where results lie costs nothing.
    """

    profile: Profile
    budget: int
    forced: str | None = None
    rates: Profile | None = None
