"""Why a plan stores what it stores, and what would make it faster, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import Struct, field

from spartan_ng.arrays import ArrayRef
from spartan_ng.costs import Profile
from spartan_ng.graph.node import Node, topological
from spartan_ng.plan.fusion import ExplainedFusion
from spartan_ng.plan.plan import Plan
from spartan_ng.plan.stages import Combine, Stage
from spartan_ng.units import size_text, time_text

MOST_HINTS = 3
_LEAST_S = 1e-3
"""What would save less is not worth a line."""


class Hint(Struct, frozen=True):
    """What would make a program faster, and by how much as the cost model sees it."""

    text: str
    gain_seconds: float

    def __str__(self) -> str:
        return f"{self.text} (predicted to save {time_text(self.gain_seconds)})"


def why_stored(
    plan: Plan, reads: Sequence[tuple[int, ...]], writes: Sequence[tuple[int, ...]]
) -> dict[int, str]:
    """For arrays that a plan stores between its stages, why; `reads` and `writes` are the slots of each
    stage's."""
    readers: dict[int, list[int]] = {}
    for number, slots in enumerate(reads):
        for slot in slots:
            readers.setdefault(slot, []).append(number)
    found = {}
    for number, slots in enumerate(writes):
        for slot in slots:
            if slot in readers and slot not in plan.outputs:
                why = _reason(plan, slot, number, readers[slot])
                if why:
                    found[slot] = why
    return found


def _reason(plan: Plan, slot: int, writer: int, readers: list[int]) -> str:
    first: Stage = plan.stages[readers[0]]
    if isinstance(first, Combine) and slot in first.states:
        return f"parts of a result, which stage {readers[0]} combines"
    for number in readers:
        if plan.stages[number].DOES:
            return f"stage {number} {plan.stages[number].DOES}"
    stage = plan.stages[writer]
    if stage.DOES:
        return f"stage {writer} {stage.DOES}"
    if len(readers) > 1:
        numbers = f"{', '.join(map(str, readers[:-1]))} and {readers[-1]}"
        return f"stages {numbers} read what was made once"
    folded = {s for w in stage.results() if w.reducer is not None for s in w.slots}
    if isinstance(stage, Combine) or slot in folded:
        return f"sums have to be complete before stage {readers[0]} reads them"
    if _waits(plan, folded, writer, readers[0]):
        return f"stage {readers[0]} reads it again when sums over it are complete"
    places = sum(view.slot == slot for view in first.views())
    return f"stage {readers[0]} reads it at {places} places" if places > 1 else ""


def _waits(plan: Plan, folded: set[int], writer: int, reader: int) -> bool:
    """Whether a stage reads what is made of the sums of another."""
    made = set(folded)
    for stage in plan.stages[writer + 1 : reader]:
        if not made.isdisjoint(stage.read_slots()):
            made.update(stage.written_slots())
    return not made.isdisjoint(plan.stages[reader].read_slots())


class Facts(Struct, frozen=True):
    """What is known of a program besides its plan."""

    sent: Mapping[int, np.dtype[Any] | None] = field(default_factory=dict)
    """The slots of arrays that go from the program to the workers first, and what is made of all their
    elements at once where that is smaller."""
    apart: tuple[str, ...] = ()
    """Arrays of the user's that need the same steps, and are not asked for."""
    apart_s: float = 0.0
    """How much longer it takes to compute them by themselves."""


NO_FACTS = Facts()


def narrowed(roots: Sequence[Node]) -> dict[ArrayRef, np.dtype[Any]]:
    """Leaves of which only casts to one smaller dtype are read, and that dtype."""
    found: dict[ArrayRef, set[np.dtype[Any]]] = {}
    for node in topological(roots):
        for below in node.inputs:
            if below.data is not None:
                found.setdefault(below.data, set()).add(node.dtype if node.fn == "cast" else below.dtype)
    # Who asks for an array itself wants its elements as they are.
    asked = {root.data for root in roots}
    one = {ref: next(iter(kinds)) for ref, kinds in found.items() if len(kinds) == 1 and ref not in asked}
    return {ref: kind for ref, kind in one.items() if kind.itemsize < ref.dtype.itemsize}


def hints(
    sent: Mapping[str, int],
    profile: Profile,
    fusion: ExplainedFusion | None,
    narrow: Mapping[str, tuple[np.dtype[Any], int]] = MappingProxyType({}),
    disk_bytes: int = 0,
    apart: Sequence[str] = (),
    apart_s: float = 0.0,
) -> tuple[Hint, ...]:
    """At most three, those that save most first.

    Parameters
    ----------
    sent : arrays that this program would send to the workers, by what people call them, in bytes
    narrow : the dtypes that those are cast to at once, where these are smaller, and the bytes that saves
    disk_bytes : what memory has no room for, on a worker
    apart, apart_s : see `Facts`
    """
    kinds = (
        _uploads(sent, profile),
        _policy(fusion),
        _narrow(narrow, profile),
        _disk(disk_bytes, profile),
        _together(apart, apart_s),
    )
    every = sorted(chain.from_iterable(kinds), key=lambda hint: -hint.gain_seconds)
    return tuple(hint for hint in every if hint.gain_seconds >= _LEAST_S)[:MOST_HINTS]


def _uploads(sent: Mapping[str, int], profile: Profile) -> Iterator[Hint]:
    for name, nbytes in sent.items():
        yield Hint(
            f"{name} goes from this program to the workers, {size_text(nbytes)}: make it there (np.random, "
            "np.load, np.from_zarr, ...)",
            profile.move_ns(nbytes) / 1e9,
        )


def _policy(fusion: ExplainedFusion | None) -> Iterator[Hint]:
    formed = {} if fusion is None else fusion.formed_s
    if fusion is not None and fusion.policy in formed:
        gain = formed[fusion.policy] - formed["cost"]
        yield Hint(f'config.fusion is "{fusion.policy}"; "cost" chooses what runs in one pass', gain)


def _narrow(narrow: Mapping[str, tuple[np.dtype[Any], int]], profile: Profile) -> Iterator[Hint]:
    for name, (kind, less) in narrow.items():
        text = f"all of {name} becomes {kind} on the workers: send it so, np.asarray({name}, np.{kind})"
        yield Hint(text, profile.move_ns(less) / 1e9)


def _disk(nbytes: int, profile: Profile) -> Iterator[Hint]:
    yield Hint(
        f"{size_text(nbytes)} of a worker's arrays go to disk and come back: more workers, or more memory "
        "(config.memory_bytes, worker --memory), keep them",
        # Written, and read.
        2 * profile.outside_ns(nbytes) / 1e9,
    )


def _together(apart: Sequence[str], seconds: float) -> Iterator[Hint]:
    if apart:
        names = ", ".join(apart)
        need = "needs" if len(apart) == 1 else "need"
        yield Hint(f"{names} {need} the same steps: np.compute(..., {names}) takes them once", seconds)
