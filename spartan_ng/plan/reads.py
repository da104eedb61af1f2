"""What is asked of reads, and made of them, whoever does: plans as they are made, and workers."""

from __future__ import annotations

from msgspec.structs import replace

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.plan.rows import Axis, Read, Row, Slot


def plain_read(slot: int, of: Slot) -> Read:
    """The whole of the array in `slot`, in its own axes."""
    labels = tuple(range(len(of.shape)))
    axes = tuple(Axis(label, 0, 1, n) for label, n in zip(labels, of.shape, strict=True))
    return Read(slot, axes, labels, of.shape, labels)


def is_own(read: Read, slot: Slot, grid: Tiling) -> bool:
    """Whether tasks read of an array what their own tiles have."""
    for axis, size, parts in zip(read.axes, slot.shape, slot.tiling.parts, strict=True):
        if parts == 1:
            continue
        cut = grid.parts[axis.label] if axis.label != WHOLE and axis.label < len(grid.parts) else 1
        if cut != parts or (axis.start, axis.step, axis.size) != (0, 1, size):
            return False
    return True


def rows_before(
    reads: tuple[Read, ...], rows: tuple[Row, ...]
) -> tuple[tuple[Read, ...], tuple[Row, ...], tuple[int, ...]]:
    """The reads and rows that the scan among `rows` rests on, numbered anew, and the scanned registers."""
    scan = next(row for row in rows if row.kind == "scan")
    needed, waiting = set[int](), list(scan.args)
    while waiting:
        register = waiting.pop()
        if register not in needed:
            needed.add(register)
            waiting += rows[register - len(reads)].args if register >= len(reads) else ()
    number = {register: i for i, register in enumerate(sorted(needed))}
    kept = tuple(
        replace(row, args=tuple(number[a] for a in row.args))
        for i, row in enumerate(rows, len(reads))
        if i in needed
    )
    return (
        tuple(r for i, r in enumerate(reads) if i in needed),
        kept,
        tuple(number[a] for a in scan.args),
    )
