"""What a plan has in memory at one time: its projected peak, what goes to disk, and what can never fit.

Arrays live from the stage that makes them to the last one that reads them; a worker has its share of each.
What lies outside takes no memory but for what is read at a time. Where memory is limited, what it has no room
for goes to disk.

Cubed (https://cubed-dev.github.io/cubed): every plan has a projected memory, known before it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import accumulate
from math import prod

from msgspec import Struct

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.memory import band_bytes, readers_at_once, threads, too_large
from spartan_ng.plan.bands import stage_band
from spartan_ng.plan.destinations import destinations
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.reads import is_own
from spartan_ng.plan.rows import VALUE, Read, Slot
from spartan_ng.plan.stages import Assemble, Combine, Fused, ScanTile, ScanTotals, SortParts, Stage
from spartan_ng.plan.working import working_bytes

SLABS = 9
"""Parts of a source that are in memory at one time with two threads: being worked on, read ahead, and, while
they are read, what the source gives beside the place where it goes."""


class Peak(Struct, frozen=True):
    """The bytes of arrays that a worker has at the stage with the most, and what its threads work on."""

    stage: str
    memory_bytes: int
    disk_bytes: int
    """What lies on disk then, because memory has no room for it, beside the files that a plan writes."""
    working_bytes: int
    """What threads work on beside arrays at the stage where that is most."""
    together_bytes: int
    """The most that a stage has of both: where memory is limited, arrays leave room for what threads work
    on."""
    array_bytes: int
    """All arrays, wherever they are."""


def projected_peak(plan: Plan, profile: Profile, unpacked: bool = True) -> Peak:
    """What a plan takes at one time on one worker, with what is unpacked or without."""
    name, peak = "", sum(_share(plan.slots[n]) for n in plan.inputs)
    room = profile.memory_bytes if profile.limited else None
    most, together, disk = 0, 0, 0 if room is None else max(peak - room, 0)
    every, placed = _living(plan), _living(plan, destinations(plan))
    whole = _living(plan, _larger(plan, room))
    for i, (stage, live, there, large) in enumerate(zip(plan.stages, every, placed, whole, strict=False)):
        total = (
            live
            + sum(source_bytes(plan, stage, profile.memory_bytes))
            + _arriving_bytes(plan, i)
            + _between_bytes(plan, stage)
        )
        total += _beside_bytes(plan, stage, profile.memory_bytes) if unpacked else 0
        if total >= peak:
            name, peak = stage.name, total
        disk = max(disk, 0 if room is None else large + max(total - there - large - room, 0))
        working = working_bytes(plan, stage, profile.memory_bytes)
        most = max(most, working)
        together = max(together, working + (total if room is None else min(total, max(room - working, 0))))
    memory = peak if room is None else min(peak, room)
    return Peak(name, memory, disk, most, max(together, memory), peak)


def check(plan: Plan, profile: Profile, free_bytes: Callable[[], int]) -> None:
    """Raise MemoryBudgetError where a chunk that has to be unpacked has no room in memory, or the disk none
    for what the memory of all workers has none for; `free_bytes` says what it has, and is asked only then."""
    for stage in plan.stages:
        least = max((plan.slots[read.slot].whole_bytes for read in _outside(plan, stage)), default=0)
        if least > profile.memory_bytes:
            raise MemoryBudgetError(too_large(stage.name, least, profile.memory_bytes))
    peak = projected_peak(plan, profile, unpacked=False)  # which takes what there is, and goes to no disk
    if peak.disk_bytes and peak.disk_bytes * plan.workers > (free := free_bytes()):
        raise MemoryBudgetError(
            f"{peak.stage}: a worker has arrays of {peak.array_bytes:,} bytes at one time, with a budget of "
            f"{profile.memory_bytes:,} bytes, and the disk has {free:,} for the rest: "
            "fold them, write them to a file (np.save and np.to_zarr have a few blocks in memory), raise "
            "config.memory_bytes, or name another folder in config.disk_folder"
        )


def source_bytes(plan: Plan, stage: Stage, memory_bytes: int) -> Iterator[int]:
    """Bytes that a stage has of each source at one time, with so much memory."""
    if (band := stage_band(stage)) is not None:
        along, length = band
        for read in _outside(plan, stage):
            whole = stage.share_bytes(plan.slots, read)
            lines = next((a.size for a in read.axes if a.label == along), 1)
            parts = stage.cut(plan.slots).parts[along]  # of the band, over the workers
            yield min(2 * whole, whole * parts // lines * length * SLABS) if lines > 1 else whole
        return
    if isinstance(stage, SortParts) and stage.length:  # what a run, or a block of it, is filled with
        most = threads() * band_bytes(memory_bytes)
        yield from (min(stage.share_bytes(plan.slots, read), most) for read in _outside(plan, stage))
        return
    yield from _whole(plan, stage)


def _beside_bytes(plan: Plan, stage: Stage, memory_bytes: int) -> int:
    """Bytes that those who read sources have at a time, with so much memory, besides what they give."""
    beside = max((plan.slots[read.slot].beside_bytes for read in _outside(plan, stage)), default=0)
    readers = 1 if stage_band(stage) is None else readers_at_once(beside, memory_bytes)
    return min(beside * readers, memory_bytes)


def _whole(plan: Plan, stage: Stage) -> Iterator[int]:
    """A worker's bytes of sources that a stage has in memory as a whole, of each part once."""
    if isinstance(stage, Assemble):
        yield _assembled_bytes(plan, stage, [*_outside(plan, stage)])
        return
    along, _ = stage_band(stage) or (None, 0)
    cut = [d for d, parts in enumerate(stage.cut(plan.slots).parts) if parts > 1]
    found: dict[tuple[object, ...], Read] = {}
    for read in _outside(plan, stage):
        if all(a.label != along for a in read.axes):
            part = ((a.start, a.step, a.size, a.label if a.label in cut else WHOLE) for a in read.axes)
            found.setdefault((read.slot, *part), read)
    yield from (stage.share_bytes(plan.slots, read) for read in found.values())


def _outside(plan: Plan, stage: Stage) -> Iterator[Read]:
    return (r for r in stage.views() if r.slot != VALUE and plan.slots[r.slot].chunks is not None)


def _arriving_bytes(plan: Plan, number: int) -> int:
    """Bytes that a task of a stage has of operands that come from other workers: as they came, and as it puts
    them together with what it has of them; a copy puts them together to its result."""
    if not plan.predicted_bytes[number]:
        return 0
    stage = plan.stages[number]
    grid = stage.cut(plan.slots)
    tasks = plan.workers if grid.duplicate else max(grid.ntiles, 1)
    parts = stage.parts if isinstance(stage, Fused | Combine) else 1  # which come one after the other
    arrived = -(-plan.predicted_bytes[number] // (tasks * parts))
    if isinstance(stage, Fused) and not stage.rows and all(w.reducer is None for w in stage.writes):
        return arrived
    if isinstance(stage, Combine):
        return arrived + max(arrived, -(-sum(plan.slots[s].nbytes for s in stage.states) // (tasks * parts)))
    scattered = [read for read in dict.fromkeys(stage.views()) if _is_scattered(plan, stage, grid, read)]
    if isinstance(stage, Assemble):
        together = _assembled_bytes(plan, stage, scattered)
    else:
        together = sum(stage.share_bytes(plan.slots, read) for read in scattered)
    return arrived + max(arrived, -(-together // parts))


def _between_bytes(plan: Plan, stage: Stage) -> int:
    """Bytes of what a pass has beside its result before that is stored: of a part of a sum what it adds to
    those before, and what its finish reads."""
    if isinstance(stage, Combine):
        slot, is_beside = plan.slots[stage.slot], stage.parts > 1 and stage.finish is not None
        return _share(slot) // slot.dtype.itemsize * stage.row.dtype.itemsize if is_beside else 0
    if not isinstance(stage, Fused):
        return 0
    times = (stage.parts > 1) + (stage.finish is not None)
    return times * sum(_share(plan.slots[n]) for n in stage.written_slots()) if times else 0


def _is_scattered(plan: Plan, stage: Stage, grid: Tiling, read: Read) -> bool:
    """Whether a task finds parts of an operand in several tiles; not where it lies in one, or nobody can
    know."""
    slot = plan.slots[read.slot] if read.slot != VALUE else None
    if slot is None or slot.is_outside or slot.tiling.ntiles <= 1 or slot.tiling.duplicate:
        return False
    if isinstance(stage, Assemble):
        cut = zip(read.shape, plan.slots[stage.slot].shape, grid.parts, strict=False)
        # What is shorter than the result has its tiles elsewhere than the result.
        if stage.how == "reshape" or any(n != whole and parts > 1 for n, whole, parts in cut):
            return True
    elif not isinstance(stage, Fused | ScanTile | ScanTotals | SortParts):
        return False
    return not is_own(read, slot, grid)


def _assembled_bytes(plan: Plan, stage: Assemble, reads: Sequence[Read]) -> int:
    """Bytes of what a task sees of operands that it puts together, at most: its tile may be all of one of
    them."""
    own = prod(_tile_shape(plan.slots[stage.slot]))
    if stage.how == "reshape":  # a box that covers the tile's elements
        seen = [min(own + 2 * prod(read.shape[1:]), prod(plan.slots[read.slot].shape)) for read in reads]
    else:
        seen = [min(own, prod(axis.size for axis in read.axes)) for read in reads]
    sizes = [plan.slots[read.slot].dtype.itemsize for read in reads]
    most = sum(n * size for n, size in zip(seen, sizes, strict=True))
    # Each element is one of a concatenation's operands', and of no other's.
    return min(most, own * max(sizes, default=0)) if stage.how == "concatenate" else most


def _slots(stage: Stage) -> Iterator[int]:
    yield from stage.read_slots()
    yield from stage.written_slots()


def _living(plan: Plan, among: Container[int] | None = None) -> Iterator[int]:
    """The bytes of arrays, or of those in some slots, that a worker has at each stage, and after the last."""
    first, last = _lives(plan)
    changes = [0] * (len(plan.stages) + 2)
    for n, begin in first.items():
        if among is not None and n not in among:
            continue
        share = _share(plan.slots[n])
        changes[begin] += share
        changes[last[n] + 1] -= share
    return accumulate(changes)


def _larger(plan: Plan, room: int | None) -> frozenset[int]:
    """The slots that a plan makes of which memory has no room for a tile, which lies on disk as a whole."""
    if room is None:
        return frozenset()
    made = range(len(plan.slots))
    kept = {*plan.inputs, *destinations(plan)}
    return frozenset(n for n in made if n not in kept and _share(plan.slots[n]) > room)


def _lives(plan: Plan) -> tuple[dict[int, int], dict[int, int]]:
    """The stages from and to which each slot is in memory."""
    # Inputs are the program's: they are there from the start, and to the end.
    first: dict[int, int] = dict.fromkeys(plan.inputs, 0)
    last: dict[int, int] = {}
    for i, stage in enumerate(plan.stages):
        for n in _slots(stage):
            first.setdefault(n, i)
            last[n] = i
    sought = (n for stage in plan.stages for n in stage.sought_slots())  # which stay until the job ends
    last |= dict.fromkeys((*plan.inputs, *plan.outputs, *sought), len(plan.stages))
    return first, last


def _share(slot: Slot) -> int:
    """Bytes of the largest tile of an array."""
    if slot.is_outside:
        return 0
    # Of a sparse array the tiles are taken to be alike.
    if slot.expected_bytes is not None:
        return -(-slot.expected_bytes // prod(slot.tiling.parts))
    return prod(_tile_shape(slot)) * slot.dtype.itemsize


def _tile_shape(slot: Slot) -> tuple[int, ...]:
    """The shape of the largest tile of an array."""
    return tuple(-(-size // parts) for size, parts in zip(slot.shape, slot.tiling.parts, strict=True))
