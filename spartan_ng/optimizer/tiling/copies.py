"""Which readers of an array may have a copy of their own, in another tiling.

An array that is read along two axes is kept twice, one copy cut along each, where that pays. Readers that
can cut the same axes share a copy; making it moves what the new tiling needs and the old
one does not have. A copy is considered where it can pay:

- for a result: when there are several kinds of readers, for each kind that reads it at least twice;
- for an array that was there before the program: for every kind, since a later program may read it again;
- never for an array that arrives faster than a message;
- in one program for a few readers only, so that the problem stays small: those first who can cut no axis
  that some other reader cuts, then those who read the most bytes.

Spartan (ATC '15), section 3.4, "Duplication of arrays".
"""

from __future__ import annotations

from collections import Counter

from spartan_ng.arrays import WHOLE
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess

Readers = tuple[int, tuple[int, ...]]
"""An array, and the labels under which some stages read it, WHOLE for dimensions they cannot cut."""

_MOST, _MOST_LIKELY = 16, 2
"""Own copies in one program, at most; and of readers that could share a tiling with all others."""


def readers(stage: StageSketch, read: TaskAccess) -> Readers:
    """The readers that a stage's read belongs to."""
    return read.array, tuple(d if d in stage.cuttable else WHOLE for d in read.labels)


def own_copies(
    stages: tuple[StageSketch, ...], arrays: tuple[ArraySketch, ...], profile: Profile, budget: int
) -> tuple[Readers, ...]:
    """The readers that may have a copy of their own; all others read the array where it lies."""
    least = max(1, profile.message_ns * profile.network_bytes_s // 1_000_000_000)
    kinds: dict[int, Counter[tuple[int, ...]]] = {}
    for stage in stages:
        for read in dict.fromkeys(stage.reads):
            a, labels = readers(stage, read)
            if arrays[a].nbytes >= least and (
                arrays[a].kept or arrays[a].nbytes // profile.workers <= budget
            ):
                kinds.setdefault(a, Counter())[labels] += 1
    written = {w.array for stage in stages for w in stage.writes}
    lasting = {a for a, array in enumerate(arrays) if array.kept or (array.outlives and a not in written)}
    must: list[Readers] = []
    may: list[tuple[int, Readers]] = []
    for a, counts in kinds.items():
        once = 1 if a in lasting else 2
        for labels in _of_array(arrays[a], a in written, once, counts):
            if arrays[a].pinned is not None or _alone(labels, counts):
                must.append((a, labels))
            else:
                may.append((-counts[labels] * arrays[a].nbytes, (a, labels)))
    return (*must[:_MOST], *(who for _, who in sorted(may)[:_MOST_LIKELY]))


def _of_array(
    array: ArraySketch, written: bool, least: int, counts: Counter[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The kinds of readers that read the array at least so often, the most often first."""
    often = [labels for labels, count in counts.most_common() if count >= least]
    if array.pinned is not None:
        return often
    if len(counts) == 1:
        return []
    # An array that may lie anywhere lies where the first kind of readers wants it.
    return often if written else often[1:]


def _alone(labels: tuple[int, ...], counts: Counter[tuple[int, ...]]) -> bool:
    """Whether some other readers cut none of the axes that these do."""
    axes = {axis for axis, d in enumerate(labels) if d != WHOLE}
    return any(not axes & {axis for axis, d in enumerate(other) if d != WHOLE} for other in counts)
