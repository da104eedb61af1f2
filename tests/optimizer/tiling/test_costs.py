"""What a program is said to cost and to move, against counting both element by element.

Programs are drawn with all that changes a cost: arrays outside and on the workers, kept twice, or read later;
sorts, updates that were measured, reads behind partial sums, workers of unequal power.
"""

from __future__ import annotations

import random
from itertools import product
from math import prod

import pytest
from msgspec.structs import replace

from benchmarks.tiling import Program, random_program, weighed
from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.config import TILINGS
from spartan_ng.costs import Profile
from spartan_ng.ops.line_sorts import merge_bytes
from spartan_ng.optimizer.tiling.choose import choose
from spartan_ng.optimizer.tiling.copies import Readers, readers
from spartan_ng.optimizer.tiling.memory import outside_bytes
from spartan_ng.optimizer.tiling.options import candidates, canonical
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess
from tests.optimizer.tiling.test_choose import small_program

LARGE = [random_program(random.Random(seed), 2 + seed % 9) for seed in range(40)]
ITEM = 8
SPARSE = 3
"""Bytes for each element of a sparse array; each row has an item more,"""
PIECE = 5
"""and each piece that is pulled these."""


def drawn(seed, workers):
    """A small random program, of every kind of array and stage."""
    rng = random.Random(seed)
    program = small_program(seed, rng.randint(1, 6), rng.choice([6, 6, 30]))
    arrays, stages = [*program.arrays], [*program.stages]
    for _ in range(rng.randint(0, 3)):
        _add_stage(rng, arrays, stages)
    written = {w.array for s in stages for w in s.writes}
    for number, array in enumerate(arrays):
        array = replace(array, outlives=rng.random() < 0.3)
        if number not in written and len(array.shape) == 2 and rng.random() < 0.3:
            nbytes = SPARSE * prod(array.shape) + ITEM * array.shape[0] + PIECE
            array = replace(array, nbytes=nbytes, uncut=(1,), row_bytes=ITEM, piece_bytes=PIECE)
        cuttable = tuple(a for a in range(len(array.shape)) if a not in array.uncut)
        tilings = candidates(array.shape, cuttable, workers).tilings
        kind = "driver" if number in written else rng.choice(["driver", "outside", "held", "held twice"])
        if kind == "outside":
            chunks = tuple(rng.randint(1, n) for n in array.shape)
            array = replace(array, driver=False, chunks=chunks, outlives=False)
        elif kind.startswith("held"):
            array = replace(array, driver=False, pinned=rng.choice(tilings))
        if kind == "held twice":
            array = replace(array, kept=(rng.choice(tilings),))
        arrays[number] = array
    stages = [weighed(replace(s, flops=rng.choice([10, 10**5, 10**7, 10**12])), arrays) for s in stages]
    return Program(tuple(stages), tuple(arrays))


def _add_stage(rng, arrays, stages):
    """A sort, a join whose updates were measured, or a fold whose result meets another array."""
    a = rng.randrange(len(arrays))
    shape = arrays[a].shape
    axes = tuple(range(len(shape)))
    new = len(arrays)
    kind = rng.choice(["sort", "join", "behind"])
    if len(shape) == 1:
        arrays.append(ArraySketch(shape, ITEM * shape[0]))
        sorts = ITEM, rng.choice([ITEM, 2 * ITEM])
        stages.append(StageSketch(shape, axes, (TaskAccess(a, axes),), (TaskAccess(new, axes),), sorts=sorts))
    elif kind == "join" and shape:
        out = rng.randint(1, 9)
        arrays.append(ArraySketch((out,), ITEM * out))
        update = rng.choice([None, 16, 100])
        write = TaskAccess(new, (WHOLE,))
        stages.append(StageSketch(shape, axes, (TaskAccess(a, axes),), (write,), 100, update_bytes=update))
    elif kind == "behind" and len(shape) == 2:
        arrays += [
            ArraySketch(shape[:1], ITEM * shape[0], driver=True),
            ArraySketch(shape[:1], ITEM * shape[0]),
        ]
        reads = TaskAccess(a, axes), TaskAccess(new, (0,), behind=True)
        stages.append(StageSketch(shape, axes, reads, (TaskAccess(new + 1, (0,)),), 50))


def cells(box):
    return set() if box is None else set(product(*(range(lo, hi) for lo, hi in box)))


def counted_reads(program, tilings, workers, s):
    """Bytes that the tasks of a stage need and their workers do not hold."""
    stage, grid, total = program.stages[s], tilings.grids[s], 0
    for read, tiling in dict(zip(stage.reads, tilings.sources[s], strict=True)).items():
        shape = program.arrays[read.array].shape
        reduced = [d for d in range(len(stage.domain)) if d not in stage.writes[0].labels]
        is_late = read.behind and any(grid.parts[d] > 1 for d in reduced)
        for rank in range(workers):
            task = grid.box_on(stage.domain, rank)
            if is_late:
                need = cells(tilings.arrays[stage.writes[0].array].box_on(shape, rank))
            elif task is None:
                need = set()
            else:
                box = [(0, n) if d == WHOLE else task[d] for d, n in zip(read.labels, shape, strict=True)]
                need = cells(box)
            held = cells(tiling.box_on(shape, rank))
            if program.arrays[read.array].row_bytes:
                tiles = [cells(tiling.box_on(shape, other)) for other in range(workers)]
                pulled = {tuple(sorted(t)) for t in tiles if t & (need - held)}
                total += PIECE * len(pulled)
                total += SPARSE * len(need - held) + ITEM * len({i for i, _ in need} - {i for i, _ in held})
            else:
                total += ITEM * len(need - held)
    if stage.sorts is not None:
        key_bytes, element_bytes = stage.sorts
        total += merge_bytes(stage.domain[0], key_bytes, element_bytes, grid.ntiles)
    return total


def copied(program, tilings):
    """What copies move, and a nanosecond for each; two less for what later programs may read.

    Each kind of readers pays for its own, even where two of them want the same.
    """
    owners: dict[Readers, Tiling] = {}
    for stage, sources in zip(program.stages, tilings.sources, strict=True):
        owners |= {readers(stage, r): t for r, t in zip(stage.reads, sources, strict=True)}
    moved = {(c.array, c.tiling): c.moved_bytes for c in tilings.copies}
    written = {w.array for s in program.stages for w in s.writes}
    total = 0
    for (a, _), tiling in owners.items():
        if (a, tiling) in moved:
            is_likely = program.arrays[a].outlives and a not in written and moved[a, tiling] > 0
            total += moved[a, tiling] + 1 - 2 * is_likely
    return total


def slowest(profile, stage, grid):
    """How many times the work of a mean worker the slowest one has."""
    weights = profile.weights or (1,) * profile.workers
    boxes = [grid.box_on(stage.domain, rank) for rank in range(profile.workers)]
    shares = [0.0 if box is None else prod(hi - lo for lo, hi in box) / prod(stage.domain) for box in boxes]
    return max(s * sum(weights) / len(weights) / w for s, w in zip(shares, weights, strict=True))


def counted_cost(program, tilings, profile, is_free):
    """Nanoseconds of a choice where messages are free, and a byte moves in one."""
    total = sum(tilings.moved_bytes) + tilings.upload_bytes + copied(program, tilings)
    lengths = {n for s in program.stages for n in s.domain}
    for stage, grid in zip(program.stages, tilings.grids, strict=True):
        total += profile.outside_ns(outside_bytes(stage, program.arrays, grid))
        if profile.weights and is_free and any(n >= 4 * profile.workers for n in lengths):
            alone = profile.compute_ns(stage.flops, stage.touched_bytes, 1) - profile.task_ns
            total += alone * round(10**6 * slowest(profile, stage, grid)) // 10**6
            total += profile.task_ns * grid.ntiles
        else:
            total += profile.compute_ns(stage.flops, stage.touched_bytes, grid.ntiles)
    for array, tiling in zip(program.arrays, tilings.arrays, strict=True):
        if array.outlives and array.pinned is None and array.shape and is_free:
            longest = array.shape.index(max(array.shape))
            if not (tiling.duplicate or 1 < tiling.ntiles == tiling.parts[longest]):
                total += array.nbytes * (profile.workers - 1) // profile.workers // 8
    return total


@pytest.mark.parametrize("workers", [2, 4, 5])
def test_costs_and_bytes_are_those_of_what_is_chosen(workers, some):
    even = Profile(workers=workers, message_ns=0, memory_bytes=1 << 40)
    uneven = replace(even, weights=tuple(range(2, workers + 2)))
    for seed in some(range(400), 40):
        program, profile = drawn(seed, workers), random.choice([even, uneven])
        forced = random.choice([None, None, None, *TILINGS])
        tilings = choose(program.stages, program.arrays, profile, forced=forced)
        for array, tiling in zip(program.arrays, tilings.arrays, strict=True):
            assert array.pinned is None or tiling == canonical(array.pinned)
        for s in range(len(program.stages)):
            assert tilings.read_bytes[s] == counted_reads(program, tilings, workers, s)
        assert tilings.cost_ns == counted_cost(program, tilings, profile, forced is None)
        assert tilings.exact


@pytest.mark.parametrize("workers", [2, 4, 5])
def test_costs_of_large_programs_are_those_of_what_is_chosen(workers, some):
    profile = Profile(workers=workers, message_ns=0, memory_bytes=1 << 40)
    for program in some(LARGE, 4):
        for forced in (None, random.choice(TILINGS)):
            tilings = choose(program.stages, program.arrays, profile, forced=forced)
            assert tilings.cost_ns == counted_cost(program, tilings, profile, forced is None)


def test_tilings_of_kinds(some):
    """Somewhere in the draws everything happens that the counts are about."""
    seen = set()
    for seed in range(60):
        program = drawn(seed, 4)
        tilings = choose(program.stages, program.arrays, Profile(workers=4, message_ns=0))
        seen |= {"copy"} if tilings.copies else set()
        for stage, grid, states in zip(program.stages, tilings.grids, tilings.combine_bytes, strict=True):
            cut = any(states)
            seen |= {"late"} if cut and any(r.behind for r in stage.reads) else set()
            seen |= {"sort"} if stage.sorts and grid.ntiles > 1 else set()
            seen |= {"update"} if cut and stage.update_bytes else set()
    assert seen == {"copy", "late", "sort", "update"}
