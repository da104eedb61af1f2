"""What a plan has to be, as a table of rules.

Slots are written before they are read, registers before rows that take them, and everything has the shape,
dtype and labels that its neighbours count on.

A stage that breaks one would fail, or be wrong, on a worker. `config.check` has them asked of every plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.graph.spec import BrokenRule, SpecRule, broken
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.rows import VALUE, Read, Row, Write
from spartan_ng.plan.stages import Combine, Fused, Pass, ScanTotals, Stage


class PlacedStage(Struct, frozen=True):
    """A stage in its plan, and the slots that are there when it begins."""

    plan: Plan
    number: int
    stage: Stage
    there: frozenset[int]


def check_plan(plan: Plan) -> None:
    """Ask the rules of a plan and of each of its stages.

    Raises
    ------
    BrokenRule : it names the stage and the rule
    """
    rule = broken(PLAN_RULES, plan)
    if rule is not None:
        raise BrokenRule(f"the plan {plan.key} breaks the rule {rule.name!r}: {rule.says}")
    there = {*plan.inputs}
    for i, stage in enumerate(plan.stages):
        found = broken(STAGE_RULES, PlacedStage(plan, i, stage, frozenset(there)))
        if found is not None:
            raise BrokenRule(f"stage {i} breaks the rule {found.name!r}: {found.says}\n{stage}")
        there.update(stage.written_slots())


# --- of plans ---------------------------------------------------------------------------------------


def _writes_once(plan: Plan) -> bool:
    made = [*plan.inputs, *(slot for stage in plan.stages for slot in stage.written_slots())]
    return len(made) == len({*made}) and {*plan.outputs} <= {*made}


def _is_tiled(tiling: Tiling, shape: Sequence[int]) -> bool:
    """Whether a tiling is one of arrays of this shape; their ranks may be those of workers that are lost."""
    fits = len(tiling.parts) == len(tiling.strides) == len(shape)
    whole = all(1 <= p <= max(n, 1) for p, n in zip(tiling.parts, shape, strict=True))
    return fits and whole and (not tiling.duplicate or tiling.ntiles == 1)


PLAN_RULES: tuple[SpecRule[Plan], ...] = (
    SpecRule("slots once", "each slot is an input or one stage's, and outputs are among them", _writes_once),
    SpecRule(
        "slots tiled",
        "each slot is cut as its shape allows",
        lambda p: all(_is_tiled(s.tiling, s.shape) for s in p.slots),
    ),
    SpecRule(
        "bytes",
        "bytes are predicted for each stage, and none below 0",
        lambda p: (
            not p.predicted_bytes
            or (len(p.predicted_bytes) == len(p.stages) and min(p.predicted_bytes, default=0) >= 0)
        ),
    ),
    SpecRule("ranks", "somebody takes part", lambda p: p.ranks >= 1),
)


# --- of stages --------------------------------------------------------------------------------------


def _passes(stage: Stage) -> Iterator[Pass]:
    """The stage as a pass, and its finish."""
    if isinstance(stage, Pass):
        yield stage
    if stage.finish is not None:
        yield stage.finish


def _grid_fits(placed: PlacedStage) -> bool:
    """Whether a pass's grid is one of its domain; a finish has none of its own."""
    stage = placed.stage
    return not isinstance(stage, Pass) or _is_tiled(stage.grid, stage.domain)


def _reads(placed: PlacedStage) -> Iterator[tuple[Read, tuple[int, ...] | None]]:
    """Each read with the domain it is over; stages of other kinds have the axes of the operand as domain."""
    for one in _passes(placed.stage):
        if not (isinstance(one, ScanTotals) and one.of_states):  # each task reads a line of parts' states
            yield from ((read, one.domain) for read in one.reads)
    if not isinstance(placed.stage, Pass):
        yield from ((read, None) for read in placed.stage.views())


def _reads_fit(placed: PlacedStage) -> bool:
    return all(_read_fits(placed.plan, read, domain) for read, domain in _reads(placed))


def _read_fits(plan: Plan, read: Read, domain: tuple[int, ...] | None) -> bool:
    if len(read.order) != len(read.shape) or len(read.labels) != len(read.shape):
        return False
    if domain is not None and not _labels_fit(read.labels, read.shape, domain):
        return False
    if read.slot == VALUE:
        return True
    shape = plan.slots[read.slot].shape
    inside = all(
        (0 <= a.start < n and 0 <= a.start + a.step * (a.size - 1) < n) or a.size == 0
        for a, n in zip(read.axes, shape, strict=True)
    )
    seen = [o for o in read.order if o >= 0]
    sizes = zip(read.order, read.shape, strict=True)
    stretched = all(o < 0 or read.axes[o].size in (1, n) for o, n in sizes)
    return inside and len({*seen}) == len(seen) and stretched


def _labels_fit(labels: Sequence[int], shape: Sequence[int], domain: tuple[int, ...]) -> bool:
    """Whether axes that follow a dimension of the domain are as long as it; each follows one of its own."""
    followed = [d for d in labels if d != WHOLE]
    return (
        len(labels) == len(shape)
        and all(d == WHOLE or domain[d] == n for d, n in zip(labels, shape, strict=True))
        and all(0 <= d < len(domain) for d in followed)
    )


def _rows(one: Pass) -> Iterator[tuple[int, Row]]:
    """Rows with their registers; reducers stand behind all of them."""
    yield from enumerate(one.rows, len(one.reads))
    last = len(one.reads) + len(one.rows)
    yield from ((last, reducer) for reducer in one.reducers)


def _registers_fit(placed: PlacedStage) -> bool:
    return all(0 <= a < i for one in _passes(placed.stage) for i, row in _rows(one) for a in row.args)


def _rows_fit(placed: PlacedStage) -> bool:
    return all(
        _labels_fit(row.labels, row.shape, one.domain) for one in _passes(placed.stage) for row in one.rows
    )


def _writes_fit(placed: PlacedStage) -> bool:
    return all(
        _write_fits(placed.plan, one, write) for one in _passes(placed.stage) for write in one.results()
    )


def _write_fits(plan: Plan, one: Pass, write: Write) -> bool:
    slots = [plan.slots[s] for s in write.slots]
    kept = tuple(one.domain[d] if d != WHOLE else None for d in write.labels)
    if write.reducer is None:
        if not 0 <= write.register < len(one.reads) + len(one.rows) or len(slots) != 1 or write.partial:
            return False
        made = write.register - len(one.reads)
        alike = made < 0 or one.rows[made].dtype == slots[0].dtype
        return alike and _is_of(slots[0].shape, kept)
    lead = len(write.partial)
    reduced = all(d not in write.labels for d in write.partial)
    return reduced and bool(slots) and all(_is_of(s.shape[lead:], kept) for s in slots)


def _is_of(shape: Sequence[int], kept: Sequence[int | None]) -> bool:
    """Whether a result has the extents of the dimensions that it keeps."""
    return len(shape) == len(kept) and all(k is None or n == k for n, k in zip(shape, kept, strict=True))


def _combine_fits(placed: PlacedStage) -> bool:
    stage, slots = placed.stage, placed.plan.slots
    if not isinstance(stage, Combine):
        return True
    shape = slots[stage.slot].shape if stage.finish is None else stage.row.shape
    return all(slots[s].shape[stage.lead :] == shape for s in stage.states) and bool(stage.states)


def _driver_fits(placed: PlacedStage) -> bool:
    stage = placed.stage
    if not isinstance(stage, Fused) or stage.driver < 0:
        return True
    return placed.plan.slots[stage.reads[stage.driver].slot].format != "dense"


def _value_is_last(placed: PlacedStage) -> bool:
    finishes = [f for f in _passes(placed.stage) if f is not placed.stage]
    early = [r.slot for one in _passes(placed.stage) for r in one.reads[: -1 if one in finishes else None]]
    return VALUE not in early and all(f.reads[-1].slot == VALUE for f in finishes)


STAGE_RULES: tuple[SpecRule[PlacedStage], ...] = (
    SpecRule(
        "order",
        "what a stage reads is an input, or some stage before has written it",
        lambda p: {*p.stage.read_slots()} <= p.there,
    ),
    SpecRule("grid", "a pass is cut as its domain allows, on ranks that there are", _grid_fits),
    SpecRule("reads", "views stay inside their arrays, and labels name dimensions of equal size", _reads_fit),
    SpecRule("registers", "rows and reducers take registers that come before them", _registers_fit),
    SpecRule("rows", "a row's axes are as long as the dimensions that they follow", _rows_fit),
    SpecRule(
        "writes", "a result has its slot's shape and dtype; partial states have leading axes", _writes_fit
    ),
    SpecRule("combine", "states have the result's shape behind their leading axes", _combine_fits),
    SpecRule("driver", "what drives a pass over non-zeros is no dense array", _driver_fits),
    SpecRule("value", "a finish reads the stage's value last, and nothing else reads it", _value_is_last),
)
