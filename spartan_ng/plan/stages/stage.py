"""A stage: what it reads and writes, how its tasks are cut, and what they cost.

A kind of stage is a file of this folder: a frozen record that names which of its fields are read and which
are written. Everything else has an answer here that most kinds keep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Profile
from spartan_ng.costs.traffic import ArrayBytes, Seen, touched
from spartan_ng.plan.rows import VALUE, Read, Slot, Write

if TYPE_CHECKING:
    from spartan_ng.plan.stages.fused import Fused


class Stage(Struct, frozen=True):
    """One step of a plan, the same on every worker."""

    READS: ClassVar[tuple[str, ...]] = ("reads",)
    """The fields that have what it reads: slots, or views of them."""
    WRITES: ClassVar[tuple[str, ...]] = ("slot",)
    """The fields that have what it writes: slots, or results that name theirs."""
    DOES: ClassVar[str] = ""
    """What it does in words, unless it is a single pass over its operands."""

    name: str

    @property
    def finish(self) -> Fused | None:
        """The pass over what it has made, before that is stored."""
        return None

    def views(self) -> tuple[Read, ...]:
        """What it reads by views of slots."""
        return tuple(one for one in self._in(self.READS) if isinstance(one, Read))

    def results(self) -> tuple[Write, ...]:
        """What it writes of its registers."""
        return tuple(one for one in self._in(self.WRITES) if isinstance(one, Write))

    def read_slots(self) -> tuple[int, ...]:
        """The slots it reads, each once, in order."""
        own = [one.slot if isinstance(one, Read) else one for one in self._in(self.READS)]
        after = () if self.finish is None else self.finish.read_slots()
        return tuple(slot for slot in dict.fromkeys((*own, *after)) if slot != VALUE)

    def written_slots(self) -> tuple[int, ...]:
        """The slots it writes, partial states included."""
        return tuple(
            slot
            for one in self._in(self.WRITES)
            for slot in (one.slots if isinstance(one, Write) else (one,))
        )

    def sought_slots(self) -> tuple[int, ...]:
        """The slots of which it reads what data say: they stay until the job ends."""
        return ()

    def cut(self, slots: Sequence[Slot]) -> Tiling:
        """How its tasks are cut over the workers."""
        return slots[self.written_slots()[0]].tiling

    def space(self, slots: Sequence[Slot]) -> tuple[int, ...]:
        """The sizes of the index space that its tasks cover."""
        return slots[self.written_slots()[0]].shape

    def operators(self) -> tuple[str, ...]:
        """The user's operations in it, in order."""
        return (self.name,)

    def operations(self, slots: Sequence[Slot]) -> int:
        """Operations of all its tasks, in those of a loop over elements (`costs.operations`)."""
        return prod(self.space(slots))

    def added(self, slots: Sequence[Slot]) -> int:
        """Those of them that no node of the graph has: they are done because arrays are cut."""
        return 0

    def touched_bytes(self, slots: Sequence[Slot]) -> int:
        """Bytes that pass through memory, see `costs.traffic`."""
        return sum(touched(self.seen(slots), self.written_slots(), stored_in(slots)).values())

    def seen(self, slots: Sequence[Slot]) -> Iterator[Seen[int]]:
        """What it sees of slots: by its views, those of its finish, and whole."""
        views = [one for one in self._in(self.READS) if isinstance(one, Read)]
        yield from seen_by(views, self._either_way, self._found(slots))
        if self.finish is not None:
            yield from self.finish.seen(slots)
        whole = [one for one in self._in(self.READS) if not isinstance(one, Read)]
        yield from ((slot, prod(slots[slot].shape), False) for slot in whole)

    @property
    def _either_way(self) -> Collection[int]:
        """The numbers of the views that take no longer where they go against the order of the elements."""
        return ()

    def _found(self, slots: Sequence[Slot]) -> Mapping[int, int]:
        """By the numbers of the views in which elements are looked up, how many are found."""
        return {}

    def seconds(self, slots: Sequence[Slot], moved_bytes: int, profile: Profile) -> float:
        """What it is expected to take: its transfers, then its tasks side by side, with reading files.

        The seconds come from the same profile and cost functions that chose the tilings.
        """
        cut = self.cut(slots)
        ranks = 1 if cut.duplicate else max(cut.ntiles, 1)
        compute = profile.compute_ns(self.operations(slots), self.touched_bytes(slots), ranks)
        outside = profile.outside_ns(self._outside_bytes(slots))
        return (profile.move_ns(moved_bytes) + compute + outside) / 1e9

    def share_bytes(self, slots: Sequence[Slot], read: Read) -> int:
        """Bytes of the part of a read that a task sees, at least."""
        grid = self.cut(slots)
        n = slots[read.slot].dtype.itemsize
        for axis in read.axes:
            cut = grid.parts[axis.label] if axis.label != WHOLE and axis.label < len(grid.parts) else 1
            n *= -(-axis.size // cut)
        return n

    def _outside_bytes(self, slots: Sequence[Slot]) -> int:
        """Bytes that a task reads of what lies outside, of each array once."""
        found: dict[int, int] = {}
        for read in self.views():
            if read.slot != VALUE and slots[read.slot].is_outside:
                share = max(found.get(read.slot, 0), self.share_bytes(slots, read))
                found[read.slot] = min(share, slots[read.slot].nbytes)
        return sum(found.values())

    def _in(self, fields: tuple[str, ...]) -> Iterator[Any]:
        """What these fields have, of tuples one after the other; None is nothing."""
        for field in fields:
            value = getattr(self, field)
            yield from value if isinstance(value, tuple) else () if value is None else (value,)


def seen_by(
    reads: Sequence[Read], either_way: Collection[int], found: Mapping[int, int]
) -> Iterator[Seen[int]]:
    """What views show of slots: how many elements, of some no more than are `found`, and whether a pass goes
    over them in another order than the one in which they lie, which takes longer but for those that may be
    read `either_way`."""
    for number, read in enumerate(reads):
        if read.slot != VALUE:
            labels = [axis.label for axis in read.axes if axis.label >= 0 and axis.size > 1]
            is_turned = number not in either_way and labels != sorted(labels)
            shown = prod(axis.size for axis in read.axes)
            yield read.slot, min(shown, found.get(number, shown)), is_turned


def stored_in(slots: Sequence[Slot]) -> Callable[[int], ArrayBytes]:
    """How the arrays of slots are stored."""
    return lambda slot: ArrayBytes(prod(slots[slot].shape), slots[slot].stored_bytes)
