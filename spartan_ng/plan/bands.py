"""A pass over sources goes along one dimension of its domain, and reads some indices of it at a time.

The dimension is the one along which the least must be in memory: what one step reads of each source, which is
whole chunks where they fit, all of a source that does not follow it, and the states of results that are
reduced over it. A product that would be added to its result too often has its operands as a whole, on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import DEEP, WIDE_STATE_BYTES
from spartan_ng.memory import band_bytes
from spartan_ng.plan.absorb import is_heavy
from spartan_ng.plan.draft import Draft
from spartan_ng.plan.rows import VALUE, Read, Slot
from spartan_ng.plan.stages import Fused, ScanTile, ScanTotals, SortParts, Stage

_STATES = 4
"""States of results that are there at one time: those of two threads, and what they are added to."""


def band_of(
    draft: Draft, slots: Sequence[Slot], grid: Tiling, profile: Profile, whole: Sequence[int] = ()
) -> tuple[int, int] | None:
    """The dimension and the length of a draft's bands; None where it reads no source, or needs it as a
    whole, as other dimensions than its own that are to stay `whole`."""
    reads = [r for r in draft.reads if r.slot != VALUE and slots[r.slot].chunks is not None]
    stored = [slots[r.slot].format for r in draft.results]
    if not reads or draft.driver >= 0 or any(f != "dense" for f in stored):
        return None
    follows = [a.label for r in sorted(reads, key=lambda r: -slots[r.slot].nbytes) for a in r.axes]
    uncut = {WHOLE, *whole, *draft.whole}
    found = [d for d in dict.fromkeys(follows) if d not in uncut and draft.domain[d] > 1]
    if not found:
        return None
    target = band_bytes(profile.memory_bytes)
    # What is as little counts as much: rows are read, and written, as they lie.
    costs = {d: max(_cost(d, draft, reads, slots, grid, target), target) for d in found}
    best = min(found, key=lambda d: costs[d])
    length = _length(best, draft, reads, slots, grid, target)
    if _are_whole_besides(best, reads) or _is_added_too_often(best, length, draft, grid):
        return None
    return best, length


def _are_whole_besides(d: int, reads: Sequence[Read]) -> bool:
    """Whether other reads that do not follow dimension `d` show all of what those show that do: in bands it
    would be read again."""
    whole: dict[int, int] = {}
    for r in reads:
        if _axis(d, r) is None:
            whole[r.slot] = max(whole.get(r.slot, 0), prod(a.size for a in r.axes))
    followers = [r for r in reads if _axis(d, r) is not None]
    return all(whole.get(r.slot, 0) >= prod(a.size for a in r.axes) for r in followers)


def _is_added_too_often(d: int, length: int, draft: Draft, grid: Tiling) -> bool:
    """Whether bands of a product's reduced dimension are so short that adding their products up, which are as
    large as the result, takes longer than to write the operands to disk and read them from there."""
    if not is_heavy(draft) or length >= min(DEEP, -(-draft.domain[d] // grid.parts[d])):
        return False
    (result,) = draft.results
    parts = prod(grid.parts[o] for o in result.out if o != WHOLE)
    return d not in result.out and result.node.nbytes // parts >= WIDE_STATE_BYTES


def stage_band(stage: Stage) -> tuple[int, int] | None:
    """The dimension along which a stage goes over its sources, and how many indices of it are read at a time;
    None where it has none, or reads them as a whole."""
    return stage.band if isinstance(stage, Fused | ScanTile | ScanTotals) else None


def describe_band(stage: Stage) -> str:
    """For people: how a stage goes over its sources; empty where it has none, or reads them as a whole."""
    if isinstance(stage, SortParts) and stage.spans and stage.length:
        return "only if a sample and a look do not find what is asked for"
    if (band := stage_band(stage)) is None:
        return ""
    along, length = band
    return f"reads {length} indices of dimension {along} at a time"


def _length(
    d: int, draft: Draft, reads: Sequence[Read], slots: Sequence[Slot], grid: Tiling, target: int
) -> int:
    """Indices of dimension `d` in a band: whole chunks, unless one alone is far too much."""
    each = sum(_line_bytes(d, r, slots[r.slot], grid) for r in reads if _axis(d, r) is not None)
    chunk = max(_chunk(d, r, slots[r.slot]) for r in reads if _axis(d, r) is not None)
    fitting = max(1, target // max(each, 1))
    if fitting >= chunk:
        fitting = fitting // chunk * chunk
    elif chunk * each <= 2 * target:
        fitting = chunk
    return int(min(fitting, -(-draft.domain[d] // grid.parts[d])))


def _cost(
    d: int, draft: Draft, reads: Sequence[Read], slots: Sequence[Slot], grid: Tiling, target: int
) -> int:
    """Bytes that must be in memory at a time to go along dimension `d`."""
    length = _length(d, draft, reads, slots, grid, target)
    bands = -(-draft.domain[d] // grid.parts[d] // length)
    total = 0
    for r in reads:
        lines = length if _axis(d, r) is not None else 1
        total += lines * _line_bytes(d, r, slots[r.slot], grid)
        if _axis(d, r) is not None:  # a chunk that is not read whole is read again for each of its parts
            total += max(0, _chunk(d, r, slots[r.slot]) - length) * _line_bytes(d, r, slots[r.slot], grid)
    for result in draft.results:
        if d not in result.out:
            total += min(bands, _STATES) * result.node.nbytes
    return total


def _line_bytes(d: int, read: Read, slot: Slot, grid: Tiling) -> int:
    """Bytes of a read at one index of dimension `d`, for a task."""
    n = slot.dtype.itemsize
    for axis in read.axes:
        if axis.label == WHOLE:
            n *= axis.size
        elif axis.label != d:
            n *= -(-axis.size // grid.parts[axis.label])
    return n


def _axis(d: int, read: Read) -> int | None:
    """The axis of the array that follows dimension `d`, None where none does."""
    return next((i for i, a in enumerate(read.axes) if a.label == d), None)


def _chunk(d: int, read: Read, slot: Slot) -> int:
    """Indices of dimension `d` that a chunk has."""
    at = _axis(d, read)
    assert at is not None, "the read follows the dimension"
    assert slot.chunks is not None, "the slot is a source's"
    return max(1, -(-slot.chunks[at] // abs(read.axes[at].step)))
