"""What a stage of a plan is expected to take: its operations, the bytes it touches, and seconds.

The seconds come from the same profile and cost function that chose the tilings.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import Tiling
from spartan_ng.costs import Profile
from spartan_ng.costs.operations import by_blas, flops
from spartan_ng.costs.tuned import LOOKUP_FLOPS, TURNED
from spartan_ng.ops.joins import AXIS_FUNCTIONS
from spartan_ng.plan.plan import (
    VALUE,
    Accumulate,
    Combine,
    Fused,
    MergeParts,
    Plan,
    Read,
    Row,
    ScanOffsets,
    ScanTile,
    SortParts,
    Stage,
)

Stored = tuple[int, int]
"""Non-zeros of a sparse array, and its elements."""


def read_slots(stage: Stage) -> tuple[int, ...]:
    """The slots a stage reads, each once, in order."""
    match stage:
        case Combine():
            slots = stage.states
        case Accumulate():
            slots = (stage.updates,)
        case SortParts():
            slots = (stage.read.slot,)
        case ScanOffsets():
            slots = (stage.states,) if stage.offsets is None else (stage.states, stage.offsets)
        case ScanTile() if stage.offsets is not None:
            slots = (*(r.slot for r in stage.reads), stage.offsets)
        case MergeParts():
            slots = (stage.values,) if stage.indices is None else (stage.values, stage.indices)
        case _:
            slots = tuple(r.slot for r in stage.reads)
    if isinstance(stage, Fused | Combine) and stage.finish is not None:
        slots = (*slots, *(r.slot for r in stage.finish.reads if r.slot != VALUE))
    return tuple(dict.fromkeys(slots))


def written_slots(stage: Stage) -> tuple[int, ...]:
    """The slots a stage writes, partial states included."""
    if isinstance(stage, Fused | ScanTile):
        last = stage.finish or stage if isinstance(stage, Fused) else stage
        return tuple(slot for write in last.writes for slot in write.slots)
    if isinstance(stage, SortParts):
        return (stage.values,) if stage.indices is None else (stage.values, stage.indices)
    return (stage.slot,)


def operators(stage: Stage) -> tuple[str, ...]:
    """The user's operations in a stage, in order."""
    if not isinstance(stage, Fused | ScanTile):
        return (stage.name,)
    rows = [*stage.rows, *(w.reducer for w in stage.writes if w.reducer is not None)]
    if isinstance(stage, Fused) and stage.finish is not None:
        rows += stage.finish.rows
    return tuple(_operator(row) for row in rows) or ("copy",)


def _operator(row: Row) -> str:
    """A row under the name that a user knows it by."""
    if row.kind == "contract":
        return "matmul"
    if row.fn is None:
        return row.kind
    named = row.kind in ("fold", "random", "scan") and row.kind != row.fn
    return f"{row.kind} {row.fn}" if named else str(row.fn)


def grid(plan: Plan, stage: Stage) -> Tiling:
    """How a stage's tasks are cut over the workers."""
    if isinstance(stage, Fused | ScanTile):
        return stage.grid
    return plan.slots[written_slots(stage)[0]].tiling


def domain(plan: Plan, stage: Stage) -> tuple[int, ...]:
    """The sizes of the index space that a stage's tasks cover."""
    return stage.domain if isinstance(stage, Fused | ScanTile) else plan.slots[written_slots(stage)[0]].shape


def operations(plan: Plan, stage: Stage) -> int:
    """Operations of all tasks of a stage, in those of a loop over elements (`costs.operations`)."""
    if not isinstance(stage, Fused | ScanTile):
        size = prod(domain(plan, stage))
        if isinstance(stage, SortParts):
            return AXIS_FUNCTIONS["sort" if stage.indices is None else "argsort"].line_flops(size)
        return size
    rows = [*stage.rows, *(w.reducer for w in stage.writes if w.reducer is not None)]
    total = sum(
        row_operations(row, stage.reads, stage.rows, stage.domain, _stored(plan, stage, row)) for row in rows
    )
    if isinstance(stage, Fused) and stage.finish is not None:
        total += operations(plan, stage.finish)
    return total


def row_operations(
    row: Row,
    reads: Sequence[Read],
    rows: Sequence[Row],
    domain: tuple[int, ...],
    stored: Stored | None = None,
) -> int:
    """Operations of one row over all of a stage's domain, in those of a loop (`costs.operations`).

    `stored` tells of a product's sparse operand: each non-zero looks up where it belongs.
    """
    made = prod(row.shape)
    if row.kind != "contract":
        return flops(row.kind, row.fn, row.params, row.shape, max(made, prod(domain)))
    labels, _, out = row.params
    first = row.args[0]
    shape = reads[first].shape if first < len(reads) else rows[first - len(reads)].shape
    count = 2 * made * prod(n for letter, n in zip(labels, shape, strict=True) if letter not in out)
    if stored is not None:
        nonzeros, size = stored
        return count * nonzeros // max(size, 1) + LOOKUP_FLOPS * nonzeros
    return count if row.sampled else by_blas(count, made)


def _stored(plan: Plan, stage: Fused | ScanTile, row: Row) -> Stored | None:
    """What a product's sparse operand stores; None without one."""
    if row.kind != "contract":
        return None
    read = [plan.slots[stage.reads[a].slot] for a in row.args if a < len(stage.reads)]
    return min(((s.nonzeros, prod(s.shape)) for s in read if s.nonzeros is not None), default=None)


def touched_bytes(plan: Plan, stage: Stage) -> int:
    """Bytes of the arrays that a stage reads and writes, of those read against their order more."""
    turned: set[int] = set()
    if isinstance(stage, Fused):
        turned = {r.slot for r in stage.reads if not _is_in_order(r)}
    slots = (*read_slots(stage), *written_slots(stage))
    return sum(plan.slots[s].stored_bytes * (TURNED if s in turned else 1) for s in slots)


def _is_in_order(read: Read) -> bool:
    """Whether the axes follow the dimensions of the domain in their order."""
    labels = [a.label for a in read.axes if a.label >= 0]
    return labels == sorted(labels)


def seconds(plan: Plan, stage: Stage, moved_bytes: int, profile: Profile) -> float:
    """Expected seconds of a stage: its transfers, then its tasks side by side."""
    cut = grid(plan, stage)
    ranks = 1 if cut.duplicate else max(cut.ntiles, 1)
    compute = profile.compute_ns(operations(plan, stage), touched_bytes(plan, stage), ranks)
    return (profile.move_ns(moved_bytes) + compute) / 1e9
