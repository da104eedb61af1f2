"""Gather what there is to say of a plan: from it, its costs, its run, and what the user calls its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.callers import UserLine, listed_places
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.choose import PossibleGrid
from spartan_ng.plan.advice import NO_FACTS, Facts, Hint, hints, why_stored
from spartan_ng.plan.bands import describe_band
from spartan_ng.plan.explanation import Earlier, ExplainedSlot, ExplainedStage, Explanation
from spartan_ng.plan.fusion import ExplainedFusion, template
from spartan_ng.plan.peak import projected_peak
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import Slot
from spartan_ng.plan.stages import Combine, Fused, Stage

T = TypeVar("T")


class MeasuredStage(Protocol):
    """What a run says of one stage."""

    seconds: float
    bytes_moved: int


class Measured(Protocol):
    """What a run says of a plan (a backend's `RunStats`)."""

    seconds: float

    @property
    def stages(self) -> Sequence[MeasuredStage]:
        """One for each stage of the plan, in order."""
        ...


class Words(Struct, frozen=True):
    """What the user calls a plan's parts."""

    called: Mapping[int, str] = field(default_factory=dict)
    """Names of arrays, by their slots."""
    there: tuple[Earlier, ...] = ()
    """What was asked for, and is computed already."""
    read: tuple[Earlier, ...] = ()
    """What is read, and was made by jobs."""
    written: Mapping[int, Sequence[UserLine]] = field(default_factory=dict)
    """By the slot of a result, where the steps were written which the stages do that make it."""
    asked: tuple[int, ...] = ()
    """The slots of what was asked for, in that order."""


NO_WORDS = Words()


def explain(
    plan: Plan,
    stats: Measured | None = None,
    profile: Profile | None = None,
    alternatives: Mapping[int, Sequence[PossibleGrid]] | None = None,
    tiers: Mapping[int, tuple[str, ...]] | None = None,
    fusion: ExplainedFusion | None = None,
    sources: Callable[[], Sequence[str]] = tuple,
    words: Words = NO_WORDS,
    facts: Facts = NO_FACTS,
) -> Explanation:
    """Explain a plan; with the statistics of a run, what it measured stands beside what was predicted.

    Parameters
    ----------
    plan : the plan
    stats : what a run of this plan took, stage by stage
    profile : the cluster that seconds and the peak are predicted for; by default one with the plan's number
        of workers
    alternatives : by the slot of a stage's result, the grids it could have (`plan.lower.weigh_grids`)
    tiers : by the number of a fused stage, what runs it
    fusion : what the policies for fusion are predicted to cost
    sources : makes the listing of each stage
    words : what the user calls the plan's parts
    facts : what hints are made of, besides
    """
    profile = profile or Profile(workers=plan.workers)
    written = {i: places for stages, places in _by_stages(plan, words.written) for i in stages}
    stages = tuple(
        replace(stage, tiers=(tiers or {}).get(i, ()), written=listed_places(written.get(i, ())))
        for i, stage in enumerate(_stages(plan, stats, profile, alternatives or {}))
    )
    why = why_stored(plan, [s.reads for s in stages], [s.writes for s in stages])
    copies = zip(plan.outputs[len(plan.asked) :], plan.keeps, strict=True)
    called = {**words.called, **{copy: words.called.get(plan.inputs[n], "") for copy, n in copies}}
    slots = tuple(
        _slot(plan, i, slot, called.get(i, ""), why.get(i, "")) for i, slot in enumerate(plan.slots)
    )
    projected = projected_peak(plan, profile)
    return Explanation(
        plan.workers,
        slots,
        stages,
        outputs=words.asked or tuple(dict.fromkeys(plan.asked)),
        measured_seconds=None if stats is None else stats.seconds,
        fusion=fusion,
        projected_bytes=projected.memory_bytes,
        disk_bytes=projected.disk_bytes,
        working_bytes=projected.working_bytes,
        together_bytes=projected.together_bytes,
        sources=sources,
        there=words.there,
        read=words.read,
        hints=_advice(slots, stages, profile, fusion, facts, projected.disk_bytes),
    )


def _stages(
    plan: Plan, stats: Measured | None, profile: Profile, alternatives: Mapping[int, Sequence[PossibleGrid]]
) -> Iterator[ExplainedStage]:
    """What a plan, its costs and its run say of each stage; the first one is where the job begins."""
    weighed = {stages[0]: grids for stages, grids in _by_stages(plan, alternatives)}
    measured = list(stats.stages) if stats is not None else []
    predicted = plan.predicted_bytes or (0,) * len(plan.stages)
    for i, (stage, moved) in enumerate(zip(plan.stages, predicted, strict=True)):
        found = measured[i] if i < len(measured) else None
        grids = () if isinstance(stage, Combine) else weighed.get(i, ())
        yield ExplainedStage(
            number=i,
            kind=type(stage).__name__.lower(),
            operators=stage.operators(),
            domain=stage.space(plan.slots),
            grid=str(stage.cut(plan.slots)),
            reads=stage.read_slots(),
            writes=stage.written_slots(),
            predicted_bytes=moved,
            predicted_seconds=stage.seconds(plan.slots, moved, profile) + (0.0 if i else profile.part_s()),
            measured_bytes=None if found is None else found.bytes_moved,
            measured_seconds=None if found is None else found.seconds,
            alternatives=tuple(
                (str(a.grid), a.moved_bytes, a.cost_ns / 1e9 + profile.part_s()) for a in grids
            ),
            template=template(stage) if isinstance(stage, Fused) else None,
            product=_product(stage),
            band=describe_band(stage),
            reads_apart=any(plan.slots[read].beside_bytes for read in stage.read_slots()),
        )


def _advice(
    slots: Sequence[ExplainedSlot],
    stages: Sequence[ExplainedStage],
    profile: Profile,
    fusion: ExplainedFusion | None,
    facts: Facts,
    disk_bytes: int,
) -> tuple[Hint, ...]:
    """What would make it faster, by what people call the arrays."""
    read_at = {slot: stage.written for stage in reversed(stages) for slot in stage.reads}
    sent = {_called(slots[i], read_at.get(i, "")): (slots[i], kind) for i, kind in facts.sent.items()}
    return hints(
        {name: slot.nbytes for name, (slot, _) in sent.items()},
        profile,
        fusion,
        narrow={
            name: (kind, slot.nbytes - math.prod(slot.shape) * kind.itemsize)
            for name, (slot, kind) in sent.items()
            if kind is not None
        },
        disk_bytes=disk_bytes,
        apart=facts.apart,
        apart_s=facts.apart_s,
    )


def _called(slot: ExplainedSlot, read_at: str) -> str:
    """What people know an array by: its name, or the line that reads it."""
    return slot.name or f"{slot.label}{f', which {read_at} reads' if read_at else ''},"


def _by_stages(plan: Plan, known: Mapping[int, T]) -> Iterator[tuple[range, T]]:
    """What is known of results, by their slots, for the stages that together make them."""
    first = 0
    for i, stage in enumerate(plan.stages):
        for slot in stage.written_slots():
            if slot in known and first <= i:
                yield range(first, i + 1), known[slot]
                first = i + 1


def _slot(plan: Plan, number: int, slot: Slot, name: str, why: str) -> ExplainedSlot:
    inside, outside = number in plan.inputs, number in plan.asked
    kept = "copy" if number in plan.outputs else "between"
    role = "both" if inside and outside else "input" if inside else "output" if outside else kept
    tiling = str(slot.tiling) if slot.chunks is None else "source"
    return ExplainedSlot(
        number, slot.shape, str(slot.dtype), tiling, slot.format, slot.nbytes, role, name, why
    )


def _product(stage: Stage) -> str:
    """One line on a matrix product, on what finishes one, or on states that are combined in parts; empty for
    other stages.

    Of a product: its cuboids, the parts and steps it goes in, and its finish. FuseME (SIGMOD '22), section 3.
    """
    if isinstance(stage, Combine):
        of_parts = [f"{stage.parts} parts, one after the other"] if stage.parts > 1 else []
        return "; ".join(of_parts if stage.finish is None else [*of_parts, _finish(stage.finish)])
    if not isinstance(stage, Fused) or len(stage.writes) > 1:
        return ""
    (write,) = stage.writes
    if write.reducer is None or write.reducer.kind != "contract" or len(write.labels) != 2:
        return ""
    rows, columns = (stage.grid.parts[d] for d in write.labels)
    summed = math.prod(n for d, n in enumerate(stage.grid.parts) if d not in write.labels)
    said = [f"cuboids (P, Q, R) = ({rows}, {columns}, {summed})"]
    if stage.parts > 1:
        said.append(f"{stage.parts} parts, one after the other, along dimension {stage.turns}")
    if stage.steps:
        said.append(f"steps {'×'.join(map(str, stage.steps))}")
    if stage.finish is not None:
        said.append(_finish(stage.finish))
    return "; ".join(said)


def _finish(finish: Fused) -> str:
    return f"finish: {finish.name}"
