"""What a run of a plan teaches about sizes that nobody can know before: users' updates, sparse results.

A user's join is charged one whole output for each task at first. After it has run, the bytes that its
updates moved take that charge's place, or, where all ran on one worker, the bytes that it made. The bytes
of sparse results replace their estimates in the same way. Small differences are not learned, so that
plans settle.

Spartan (ATC '15), section 3.3 (the cost of join_update) and 3.4 (sparse arrays).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from spartan_ng.ops.functions import UserFunction
from spartan_ng.optimizer.sizes import sparse_key
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.sketches import updates_key
from spartan_ng.plan.stages import Accumulate, Fused, Join
from spartan_ng.plan.stats import Made


def subjects(plan: Plan) -> tuple[Hashable, ...]:
    """What can be learned from running the plan."""
    return tuple(key for _, key in _subjects(plan))


def learn_bytes(plan: Plan, made: Made, known: dict[Hashable, int]) -> None:
    """Correct `known`, bytes by subject, by what a run has measured."""
    for i, key in _subjects(plan):
        found = (
            _update_bytes(plan, i, made) if isinstance(plan.stages[i], Join) else _csr_bytes(plan, i, made)
        )
        before = known.get(key)
        # Within a factor of 2 the plan would hardly differ, and every change of a size makes new plans.
        if before is None or not before <= 2 * found + 1024 or not found <= 2 * before + 1024:
            known[key] = found


def _subjects(plan: Plan) -> Iterator[tuple[int, Hashable]]:
    for i, stage in enumerate(plan.stages):
        if isinstance(stage, Join) and isinstance(stage.fn, UserFunction):
            accumulate = plan.stages[i + 1]
            assert isinstance(accumulate, Accumulate), "a user's updates are accumulated at once"
            shape = plan.slots[accumulate.slot].shape
            yield i, updates_key(stage.fn, stage.params, stage.reads, shape)
        elif isinstance(stage, Fused) and stage.rows and len(stage.writes) == 1:
            slot = plan.slots[stage.writes[0].slots[0]]
            if slot.format == "csr":
                row = stage.rows[-1]
                yield i, sparse_key(row.kind if row.fn is None else row.fn, slot.shape, slot.dtype)


def _update_bytes(plan: Plan, index: int, made: Made) -> int:
    """The updates' bytes that explain what moved, by the model's own formula."""
    join, accumulate = plan.stages[index], plan.stages[index + 1]
    assert isinstance(join, Join), "a subject"
    assert isinstance(accumulate, Accumulate), "a subject"
    if join.grid.duplicate:
        return made[index].bytes_made // plan.workers
    ranks, moved = join.grid.ntiles, made[index + 1].bytes_moved
    if ranks == 1:
        return made[index].bytes_made
    # Every worker but the one that made an update receives it.
    if plan.slots[accumulate.slot].tiling.duplicate:
        return moved // (plan.workers - 1)
    # Of each update the part for the worker's own tile has not moved: one of `ranks`.
    return moved * ranks // (ranks - 1)


def _csr_bytes(plan: Plan, index: int, made: Made) -> int:
    stage = plan.stages[index]
    assert isinstance(stage, Fused), "a subject"
    return made[index].bytes_made // (plan.workers if stage.grid.duplicate else 1)
