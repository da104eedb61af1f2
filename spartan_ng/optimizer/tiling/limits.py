"""What no choice of tilings can help: duplicates that are too large for the budget for copies."""

from __future__ import annotations

from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch


def check_duplicates(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], budget: int) -> None:
    """What users have duplicated by hand must fit into the budget for copies, else MemoryBudgetError."""
    wanted = [arrays[w.array] for s in stages if s.by_hand == "duplicate" for w in s.writes]
    taken = sum(array.nbytes for array in wanted)
    if taken > budget:
        largest = max(wanted, key=lambda array: array.nbytes)
        raise MemoryBudgetError(
            f"tile_as: a duplicate of an array of shape {largest.shape} takes {largest.nbytes:,} bytes on "
            f"each worker, all duplicates {taken:,}, but the budget for copies is {budget:,} bytes a worker; "
            f"raise config.duplicate_bytes, or use another tiling"
        )
