"""What no choice of tilings can help: arrays that are too large for a worker or for the budget for copies.

Workers spill what they do not need at once, but what a task reads of one array, and what it writes, must
be in memory together. It is least where the grid cuts that array into the most parts.
"""

from __future__ import annotations

from math import prod

from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.tiling.model import Rules
from spartan_ng.optimizer.tiling.options import Options
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch


def check(
    stages: tuple[StageSketch, ...],
    arrays: tuple[ArraySketch, ...],
    grids: tuple[Options, ...],
    rules: Rules,
) -> None:
    """Raise MemoryBudgetError where every choice breaks a limit."""
    if rules.profile.limited:
        for stage, options in zip(stages, grids, strict=True):
            _check_memory(stage, arrays, options, rules.profile.memory_bytes)
    if rules.forced is None:
        _check_duplicates(stages, arrays, rules.budget)


def _check_memory(
    stage: StageSketch, arrays: tuple[ArraySketch, ...], options: Options, memory_bytes: int
) -> None:
    for access in (*stage.reads, *stage.writes):
        array = arrays[access.array]
        if array.source or array.nbytes <= memory_bytes:
            continue
        most = max(prod(g.parts[d] for d in access.labels if d >= 0) for g in options.tilings)
        if -(-array.nbytes // most) > memory_bytes:
            raise MemoryBudgetError(
                f"an array of shape {array.shape} takes {array.nbytes:,} bytes, of which a task needs "
                f"{-(-array.nbytes // most):,} bytes at one time, but the budget of a worker is "
                f"{memory_bytes:,} bytes"
            )


def _check_duplicates(stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], budget: int) -> None:
    """What users have duplicated by hand must fit into the budget for copies."""
    wanted = [arrays[w.array] for s in stages if s.by_hand == "duplicate" for w in s.writes]
    taken = sum(array.nbytes for array in wanted)
    if taken > budget:
        largest = max(wanted, key=lambda array: array.nbytes)
        raise MemoryBudgetError(
            f"tile_as: a duplicate of an array of shape {largest.shape} takes {largest.nbytes:,} bytes on "
            f"each worker, all duplicates {taken:,}, but the budget for copies is {budget:,} bytes a worker; "
            f"raise config.duplicate_bytes, or use another tiling"
        )
