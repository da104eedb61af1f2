"""What a plan has in memory at one time: its projected peak, and what can never fit.

Arrays live from the stage that makes them to the last one that reads them; a worker has its share of each.
What lies outside takes no memory but for what is read at a time. Where memory is limited, what a stage does
not need goes to disk meanwhile.

Cubed (https://cubed-dev.github.io/cubed): every plan has a projected memory, known before it runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.plan import estimate
from spartan_ng.plan.plan import VALUE, WHOLE, Fused, Plan, Read, Slot, Stage

_LEAST = 1 << 16
"""Smaller tiles are not counted."""
SLABS = 9
"""Parts of a source that are in memory at one time with two threads: being worked on, read ahead, and, while
they are read, what the source gives beside the place where it goes."""


def projected_peak(plan: Plan, profile: Profile) -> int:
    """Bytes of arrays on one worker at the stage with the most; what kernels need for blocks is not
    counted."""
    first, last = _lives(plan)
    peak = sum(_share(plan.slots[n]) for n in plan.inputs)
    for i, stage in enumerate(plan.stages):
        live = sum(_share(s) for n, s in enumerate(plan.slots) if first.get(n, i + 1) <= i <= last.get(n, -1))
        reading = sum(read_bytes(plan, stage))
        needed = reading + sum(_share(plan.slots[n]) for n in {*_slots(stage)})
        if profile.limited:
            live = min(live, max(needed - reading, profile.memory_bytes - reading))
        peak = max(min(peak, profile.memory_bytes) if profile.limited else peak, live + reading)
    return peak


def check(plan: Plan, limit_bytes: int) -> None:
    """Raise MemoryBudgetError where a stage makes or reads at one time what no worker has room for."""
    for stage in plan.stages:
        made = [(plan.slots[n].shape, _share(plan.slots[n])) for n in estimate.written_slots(stage)]
        read = [(r.shape, n) for r, n in _whole(plan, stage)]
        for what, every in (("makes", made), ("reads", read)):
            shape, nbytes = max(every, key=lambda one: one[1], default=((), 0))
            if nbytes > max(limit_bytes, _LEAST):
                raise MemoryBudgetError(
                    f"{stage.name} {what} an array of shape {shape}, of which a worker has {nbytes:,} bytes "
                    f"at one time, with a budget of {limit_bytes:,} bytes: fold it, write it to a file "
                    "(np.save and np.to_zarr have a few blocks in memory), use more workers, or raise "
                    "config.memory_bytes"
                )


def read_bytes(plan: Plan, stage: Stage) -> Iterator[int]:
    """Bytes that a stage has of each source at one time."""
    if isinstance(stage, Fused) and stage.band is not None:
        along, length = stage.band
        for read in _outside(plan, stage):
            whole = _read_share(plan, stage, read)
            lines = next((a.size for a in read.axes if a.label == along), 1)
            parts = stage.grid.parts[along]
            yield min(2 * whole, whole * parts // lines * length * SLABS) if lines > 1 else whole
        return
    yield from (n for _, n in _whole(plan, stage))


def _whole(plan: Plan, stage: Stage) -> Iterator[tuple[Read, int]]:
    """The sources that a stage has in memory as a whole, and a worker's bytes of them."""
    for read in _outside(plan, stage):
        follows = isinstance(stage, Fused) and stage.band is not None
        if not follows or all(a.label != stage.band[0] for a in read.axes):  # type: ignore[union-attr, index]
            yield read, _read_share(plan, stage, read)


def _outside(plan: Plan, stage: Stage) -> Iterator[Read]:
    reads = getattr(stage, "reads", ())
    reads = (*reads, stage.read) if hasattr(stage, "read") else reads
    return (r for r in reads if r.slot != VALUE and plan.slots[r.slot].chunks is not None)


def _read_share(plan: Plan, stage: Stage, read: Read) -> int:
    """Bytes of the part of a read that a worker's task sees, at least."""
    grid = estimate.grid(plan, stage)
    n = plan.slots[read.slot].dtype.itemsize
    for axis in read.axes:
        cut = grid.parts[axis.label] if axis.label != WHOLE and axis.label < len(grid.parts) else 1
        n *= -(-axis.size // cut)
    return n


def _slots(stage: Stage) -> Iterator[int]:
    yield from estimate.read_slots(stage)
    yield from estimate.written_slots(stage)


def _lives(plan: Plan) -> tuple[dict[int, int], dict[int, int]]:
    """The stages from and to which each slot is in memory."""
    first: dict[int, int] = dict.fromkeys(plan.inputs, 0)
    last: dict[int, int] = {}
    for i, stage in enumerate(plan.stages):
        for n in _slots(stage):
            first.setdefault(n, i)
            last[n] = i
    last |= dict.fromkeys((*plan.inputs, *plan.outputs), len(plan.stages))
    return first, last


def _share(slot: Slot) -> int:
    """Bytes of the largest tile of an array."""
    if slot.chunks is not None or slot.mapped:
        return 0
    n = slot.dtype.itemsize
    for size, parts in zip(slot.shape, slot.tiling.parts, strict=True):
        n *= -(-size // parts)
    return n
