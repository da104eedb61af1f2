"""Tilings where there is nothing to choose, and the choice between several that were made: what a program in
one process needs of all this room.
"""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.arrays import Tiling
from spartan_ng.costs.choices import PRECISION
from spartan_ng.optimizer.tiling.options import canonical
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, Tilings


def on_one_worker(stages: Sequence[StageSketch], arrays: Sequence[ArraySketch]) -> Tilings:
    """One worker has everything."""
    tilings = tuple(Tiling.single(len(a.shape)) if a.pinned is None else canonical(a.pinned) for a in arrays)
    return Tilings(
        grids=tuple(Tiling.single(len(s.domain)) for s in stages),
        arrays=tilings,
        read_bytes=(0,) * len(stages),
        combine_bytes=tuple((0,) * len(s.writes) for s in stages),
        sources=tuple(tuple(tilings[r.array] for r in s.reads) for s in stages),
        upload_bytes=sum(a.nbytes for a in arrays if a.driver),
    )


def moving_least(found: Sequence[Tilings]) -> int:
    """Which of several plans to take: of those that the model cannot tell from the fastest, the first to move
    the fewest bytes between workers and from outside.

    While arrays are yet to be placed, the fastest: all on one worker moves nothing, and would stay so.
    """
    least_ns = min(t.cost_ns for t in found)
    most_ns = least_ns if found[0].upload_bytes else least_ns * (PRECISION + 1) // PRECISION
    alike = [i for i, t in enumerate(found) if t.cost_ns <= most_ns]
    return min(alike, key=lambda i: found[i].total_bytes + found[i].outside_bytes)
