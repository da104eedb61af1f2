"""What a task of a product holds at one time, and how many parts it has to be done in.

A task holds its boxes of what it reads and of what it makes, beside the tiles that its worker holds anyway.
Along the dimension that is summed it can go part after part: then it holds the operands of one part and,
arriving meanwhile, of the next, and nothing is read twice. So a product runs in the memory there is with
more, smaller tasks, one after the other. Where even that is too much, what is written once goes to disk
first, then the tiles that are read, and the operands of one task last: nothing is refused for its memory.

FuseME (SIGMOD '22), Alg. 1 and Eq. 3, counted to the byte.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.options import Options, interned
from spartan_ng.optimizer.tiling.sketch import ArraySketch, Span, StageSketch, TaskAccess

MOST_PARTS = 256
"""A task is not cut into more parts than this."""


IN_MEMORY = ("tiles", "operands", "results"), ("tiles", "operands"), ("operands",)
"""What is to be in memory while a task runs; where it does not fit, less of it, and at last nothing."""
EVERYTHING = IN_MEMORY[0]


def task_bytes(
    stage: StageSketch,
    arrays: Sequence[ArraySketch],
    grid: Tiling,
    parts: int = 1,
    kept: Collection[str] = EVERYTHING,
    own: Collection[int] = (),
) -> int:
    """Bytes that the largest task of a grid holds at one time, in so many parts, of what is `kept` in memory.
    Of its `own` arrays it reads what its worker's tiles have, and copies nothing."""
    held = 0
    if "operands" in kept:
        for read in dict.fromkeys(r for r in stage.reads if arrays[r.array].chunks is None):
            if read.array in own:
                continue
            share = _share(read, arrays[read.array], grid)
            # A part's pieces, the same put together, and the next part's pieces on their way.
            held += 3 * -(-share // parts) if parts > 1 and stage.turns in read.labels else 2 * share
    if "results" in kept:  # the value, the sum of the parts before, and what the finish makes of it
        times = 1 + (parts > 1) + stage.finishes
        held += times * sum(_share(w, arrays[w.array], grid) for w in stage.writes)
    return held


def least_parts(
    stage: StageSketch,
    arrays: Sequence[ArraySketch],
    grid: Tiling,
    profile: Profile,
    kept: Collection[str] = EVERYTHING,
    own: Collection[int] = (),
) -> int | None:
    """The fewest parts in which what the tasks of a grid have in memory fits a worker; None where it never
    does."""
    budget_bytes = profile.memory_bytes
    if "tiles" in kept:
        budget_bytes -= _tiles_bytes(stage, arrays, profile.workers)

    def fits(parts: int) -> bool:
        return task_bytes(stage, arrays, grid, parts, kept, own) <= budget_bytes

    # By itself: in parts a task has the sum of those before beside its value, so that two may need more than
    # one.
    if fits(1):
        return 1
    low, high = 2, _most_parts(stage, grid)
    if not fits(high):
        return None
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low


def task_parts(
    stage: StageSketch,
    arrays: Sequence[ArraySketch],
    grid: Tiling,
    profile: Profile,
    own: Collection[int] = (),
) -> int:
    """In how many parts the tasks of a grid run: the fewest in which as much as can be is in memory.

    Of what their `own` tiles have tasks copy nothing; that counts where the tiles are on disk.
    """
    for kept in IN_MEMORY:
        found = least_parts(stage, arrays, grid, profile, kept, () if "tiles" in kept else own)
        if found is not None:
            return found
    return 1


def within(stage: StageSketch, arrays: Sequence[ArraySketch], grids: Options, profile: Profile) -> Options:
    """The grids whose tasks fit a worker. Where none does, and the memory is not only assumed, those whose
    tasks fit when results go to disk, then the tiles that they read, too; all, where all has to."""
    for kept in IN_MEMORY if profile.limited else IN_MEMORY[:1]:
        fitting = tuple(g for g in grids.tilings if least_parts(stage, arrays, g, profile, kept) is not None)
        if fitting:
            return grids if len(fitting) == len(grids) else interned(fitting, grids.workers)
    return grids


def outside_bytes(stage: StageSketch, arrays: Sequence[ArraySketch], grid: Tiling) -> int:
    """Bytes of what lies outside that the largest task of a grid reads: each box once, in whole chunks."""
    found: dict[int, int] = {}
    for a, labels, spans in dict.fromkeys(_box(r, grid) for r in stage.reads):
        array = arrays[a]
        if array.chunks is None:
            continue
        cells = 1
        spanned = spans or tuple((0, 1, n) for n in array.shape)
        for n, chunk, label, (_, step, size) in zip(array.shape, array.chunks, labels, spanned, strict=True):
            needed = (-(-size // grid.parts[label]) if label >= 0 else size) * abs(step)
            cells *= min(n, -(-needed // chunk) * chunk)
        found[a] = min(found.get(a, 0) + -(-array.nbytes * cells // max(array.size, 1)), array.nbytes)
    return sum(found.values())


def _box(read: TaskAccess, grid: Tiling) -> tuple[int, tuple[int, ...], tuple[Span, ...]]:
    """Which part of which array tasks read: equal where two reads are of the same part."""
    return read.array, tuple(d if d >= 0 and grid.parts[d] > 1 else WHOLE for d in read.labels), read.spans


def _tiles_bytes(stage: StageSketch, arrays: Sequence[ArraySketch], workers: int) -> int:
    """A worker's share of the arrays that are read."""
    held = {r.array for r in stage.reads if arrays[r.array].chunks is None}
    return sum(-(-arrays[a].nbytes // workers) for a in held)


def _most_parts(stage: StageSketch, grid: Tiling) -> int:
    if stage.turns is None:
        return 1
    return max(1, min(MOST_PARTS, stage.domain[stage.turns] // grid.parts[stage.turns]))


def _share(access: TaskAccess, array: ArraySketch, grid: Tiling) -> int:
    """Bytes of the largest box of an array that a task of the grid needs."""
    cells = 1
    for n, label in zip(array.shape, access.labels, strict=True):
        cells *= n if label < 0 else -(-n // grid.parts[label])
    return -(-array.nbytes * cells // max(array.size, 1))
