"""Which readers of an array may have a copy of their own, in another tiling.

An array that is read along two axes is kept twice, one copy cut along each, where that pays. Readers that
see the array under the same labels share a copy; making it moves what the new tiling needs and the old
one does not have. A copy is considered where it can pay:

- for a result: when there are several kinds of readers, for each kind that reads it at least twice;
- for an array that outlives the program: for every kind, since a later program may read it again;
- never for an array that arrives faster than a message.

Spartan (ATC '15), section 3.4, "Duplication of arrays".
"""

from __future__ import annotations

from collections import Counter

from spartan_ng.optimizer.tiling.profile import ClusterProfile
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch

Readers = tuple[int, tuple[int, ...]]
"""An array, and the labels under which some stages read it."""

_MOST = 3
"""Kinds of readers of one array that may have their own copy, at most."""


def own_copies(
    stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], profile: ClusterProfile, budget: int
) -> tuple[Readers, ...]:
    """The readers that may have a copy of their own; all others read the array where it lies."""
    least = max(1, profile.message_ns * profile.network_bytes_s // 1_000_000_000)
    kinds: dict[int, Counter[tuple[int, ...]]] = {}
    for stage in stages:
        for read in dict.fromkeys(stage.reads):
            array = arrays[read.array]
            if array.nbytes >= least and (array.kept or array.nbytes // profile.workers <= budget):
                kinds.setdefault(read.array, Counter())[read.labels] += 1
    written = {w.array for stage in stages for w in stage.writes}
    found: list[Readers] = []
    for a, counts in kinds.items():
        found += [(a, labels) for labels in _of_array(arrays[a], a in written, counts)]
    return tuple(found)


def _of_array(array: ArraySketch, written: bool, counts: Counter[tuple[int, ...]]) -> list[tuple[int, ...]]:
    most_first = [labels for labels, _ in counts.most_common()]
    often = [labels for labels in most_first if array.outlives or array.kept or counts[labels] > 1]
    if array.pinned is not None:
        return often[:_MOST]
    if len(counts) == 1:
        return []
    # An array that may lie anywhere lies where the first kind of readers wants it.
    return often[:_MOST] if written else often[1 : _MOST + 1]
