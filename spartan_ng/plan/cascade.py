"""The cascades of a distributed scan, as stages: states go up, what lies before each part comes down.

Distributed cumulative aggregates (BTW '19), section 3.1. Parts along the scanned axis form lines. The parts
of a line put their states into one array; a level collects up to `fan` neighbours at one place, where
their state is one row of the next level's array, until a single place holds a line. On the way back, each
place turns its states into those of everything before, starting from its own row of the level above. One row
a part and level moves in each direction, less those that are where they are needed; the input stays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from spartan_ng.arrays import WHOLE, Tiling, part_span
from spartan_ng.ops.functions import UserFunction
from spartan_ng.ops.scans import states_of
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.reads import plain_read
from spartan_ng.plan.rows import Read, Row, Slot, Write
from spartan_ng.plan.stages import Fused, ScanOffsets, ScanTile, ScanTotals, Stage

Emit = Callable[[Stage, int], None]


class Cascade:
    """The stages around one scan (a row over `domain`) whose axis is cut by `grid`."""

    def __init__(self, scan: Row, domain: tuple[int, ...], grid: Tiling, fan: int) -> None:
        assert scan.fn is not None, "a scan has a function"
        (axis,) = scan.params
        self.fn: str | UserFunction = scan.fn
        self.axis, self.dtype, self.domain = axis, scan.dtype, domain
        self.states = states_of(scan.fn)
        self.tilings = levels(grid, axis, fan)
        across = prod(n for i, n in enumerate(domain) if i != axis)
        self.row_bytes = self.states * across * scan.dtype.itemsize

    def emit(
        self,
        reads: tuple[Read, ...],
        rows: tuple[Row, ...],
        args: tuple[int, ...],
        slots: list[Slot],
        emit: Emit,
        read_bytes: int,
        band: tuple[int, int] | None,
    ) -> tuple[int, int, int]:
        """Emit both cascades; the slots of the parts' states and offsets, and the bytes that reading the
        offsets moves.

        The registers `args` of `reads` and `rows` are scanned; reading them moves `read_bytes`, and goes in
        the bands of the scan itself.
        """
        collected, first = [], len(slots)
        tilings = self.tilings
        for level, tiling in enumerate(tilings[:-1]):
            totals = self._slot(slots, level, tiling)
            name, shape = f"totals {self.fn}", self._shape(level)
            own = band if level == 0 else None
            stage = ScanTotals(
                name, shape, tiling, reads, rows, self.fn, self.axis, args, totals, level > 0, own
            )
            emit(stage, read_bytes if level == 0 else 0)
            above = self._slot(slots, level, tilings[level + 1])
            emit(self._collect(slots[above], totals, above), self.up_bytes(level))
            collected.append(above)
            reads, rows, args = (plain_read(above, slots[above]),), (), (0,)
        offsets, moved = None, 0
        for level in reversed(range(len(collected))):
            slot = self._slot(slots, level, tilings[level + 1])
            name = f"offsets {self.fn}"
            emit(ScanOffsets(name, self.fn, self.axis, collected[level], offsets, slot), moved)
            offsets, moved = slot, self.down_bytes(level)
        assert offsets is not None, "a cut axis has a level"
        return first, offsets, moved

    def up_bytes(self, level: int) -> int:
        """Bytes that collecting the states of a level's parts moves."""
        return self.row_bytes * sum(a != b for a, b in self._ranks(level))

    def down_bytes(self, level: int) -> int:
        """Bytes that the offsets of a level's parts move; the first part has none."""
        return self.row_bytes * sum(a != b for a, b in self._ranks(level)[1:])

    def _ranks(self, level: int) -> list[tuple[int, int]]:
        """For each part of a level, its rank within the line, and that of the place it belongs to."""
        lower, upper = self.tilings[level], self.tilings[level + 1]
        n, groups = lower.parts[self.axis], upper.parts[self.axis]
        out = []
        for g in range(groups):
            own = g * upper.strides[self.axis]
            out += [(i * lower.strides[self.axis], own) for i in range(*part_span(n, groups, g))]
        return out

    def _slot(self, slots: list[Slot], level: int, tiling: Tiling) -> int:
        """A slot for the states of a level's parts, lying as `tiling` says."""
        shape = list(self.domain)
        shape[self.axis] = self.tilings[level].parts[self.axis]
        wide = Tiling((1, *tiling.parts), (0, *tiling.strides))
        slots.append(Slot((self.states, *shape), self.dtype, wide))
        return len(slots) - 1

    def _shape(self, level: int) -> tuple[int, ...]:
        """What a level's parts are parts of: the domain, or the states of the level below."""
        if level == 0:
            return self.domain
        n = self.tilings[level - 1].parts[self.axis]
        return (*self.domain[: self.axis], n, *self.domain[self.axis + 1 :])

    def _collect(self, slot: Slot, source: int, target: int) -> Fused:
        """States from where they were made to the places of the next level."""
        labels = tuple(range(len(slot.shape)))
        write = Write((target,), 0, labels)
        return Fused("collect", slot.shape, slot.tiling, (plain_read(source, slot),), (), (write,))


def scanned_rows(stage: ScanTotals | ScanTile, plan: Plan) -> tuple[Row, ...]:
    """The rows of a scan's pass; those of the first level's states end in the scan itself."""
    if isinstance(stage, ScanTile):
        return stage.rows
    labels, dtype = tuple(range(len(stage.domain))), plan.slots[stage.slot].dtype
    return (*stage.rows, Row("scan", stage.fn, stage.args, (stage.axis,), dtype, stage.domain, labels))


def levels(grid: Tiling, axis: int, fan: int) -> list[Tiling]:
    """The tiling of each level: at most `fan` parts of one belong to a part of the next, the last has one.

    A place is the rank of one of the parts in its line.
    """
    out = [grid]
    first = grid.parts[axis]
    while (parts := out[-1].parts[axis]) > 1:
        parts = -(-parts // fan)
        stride = grid.strides[axis] * (first // parts)
        out.append(
            Tiling(
                (*grid.parts[:axis], parts, *grid.parts[axis + 1 :]),
                (*grid.strides[:axis], stride, *grid.strides[axis + 1 :]),
            )
        )
    return out


def copied_operand(read: Read, grid: Tiling, slots: list[Slot], emit: Emit, moved: int) -> Read:
    """An operand brought to the grid's places once, for the two stages that read it."""
    slots.append(Slot(read.shape, slots[read.slot].dtype, grid))
    slot = len(slots) - 1
    write = Write((slot,), 0, tuple(range(len(read.shape))))
    emit(Fused("copy", read.shape, grid, (read,), (), (write,)), moved)
    return plain_read(slot, slots[slot])


def is_full(read: Read, domain: tuple[int, ...]) -> bool:
    """Whether an operand has the domain's axes."""
    return read.shape == domain and read.labels == tuple(range(len(domain)))


def moved_bytes(read: Read, slot: Slot, domain: tuple[int, ...], grid: Tiling, nbytes: int) -> int:
    """Bytes that all tasks of a grid together pull for an operand of which all takes `nbytes`."""
    if slot.tiling.duplicate or grid.ntiles == 1 == slot.tiling.ntiles:
        return 0
    moved = 0
    for rank in _ranks(grid):
        box = grid.box_on(domain, rank)
        own = slot.tiling.box_on(slot.shape, rank)
        if box is None:
            continue
        needed, held = 1, int(own is not None)
        for k, axis in enumerate(read.axes):
            lo, hi = box[axis.label] if axis.label != WHOLE else (0, axis.size)
            every = range(axis.start + axis.step * lo, axis.start + axis.step * hi, axis.step)
            needed *= len(every)
            held *= _within(every, *own[k]) if own is not None else 0
        moved += needed - held
    return moved * nbytes // max(prod(slot.shape), 1)


def _ranks(grid: Tiling) -> range:
    """The ranks that may have a task of a grid."""
    return range(1 + grid.highest)


def _within(indices: range, lo: int, hi: int) -> int:
    """How many of the indices lie in `[lo, hi)`."""
    # Reversed, they are the same indices, in ascending order.
    if indices.step < 0:
        indices = indices[::-1]
    first = max(0, -(-(lo - indices.start) // indices.step))
    return max(0, min(len(indices), -(-(hi - indices.start) // indices.step)) - first)
