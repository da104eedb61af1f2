"""Whether a job that runs is better stopped and planned anew, for workers that have joined meanwhile.

What it has done stays (`salvage`); what its workers are at is begun again. Predictions say how long the rest
takes, in the measure of what was done so far. What a user's function takes nobody predicts: its stages count
for as long as those like them took that were done, and for nothing before one was.
"""

from __future__ import annotations

from collections.abc import Sequence

from spartan_ng.backends.protocol import Way
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import STOPPING_S
from spartan_ng.ops.functions import users_of
from spartan_ng.plan.plan import Plan


def pays(plan: Plan, way: Way, workers: int, profile: Profile) -> bool:
    """Whether as much time is won as stopping takes, or more, with so many `workers` for the rest."""
    if plan.ranks < plan.workers or workers <= plan.workers:
        return False
    moved = plan.predicted_bytes or (0,) * len(plan.stages)
    predicted = [
        None if users_of([stage]) else stage.seconds(plan.slots, nbytes, profile)
        for stage, nbytes in zip(plan.stages, moved, strict=True)
    ]
    rest_s = remaining_s(predicted, way)
    under_way_s = min(rest_s, way.now_s - way.done_s)
    known = {*plan.inputs, *(n for stage in plan.stages[: way.done] for n in stage.written_slots())}
    moving_s = profile.move_ns(sum(plan.slots[n].nbytes for n in known)) / plan.workers / 1e9
    won_s = rest_s - under_way_s - rest_s * plan.workers / workers
    return won_s >= 2 * (STOPPING_S + moving_s)


def remaining_s(predicted: Sequence[float | None], way: Way) -> float:
    """The seconds of the stages that are not done, of which some are predicted."""
    done, rest = predicted[: way.done], predicted[way.done :]
    known = [s for s in done if s is not None]
    unknown = len(done) - len(known)
    if unknown:
        each_s = max(0.0, way.done_s - sum(known)) / unknown
        return sum(each_s if s is None else s for s in rest)
    rest_s = sum(s for s in rest if s is not None)
    return rest_s * way.done_s / sum(known) if sum(known) > 0 else rest_s
