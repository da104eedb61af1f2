"""What tasks hold and read, against counting boxes task by task, and the fewest parts against all of them."""

from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.memory import (
    IN_MEMORY,
    MOST_PARTS,
    least_parts,
    outside_bytes,
    task_bytes,
    task_parts,
    within,
)
from spartan_ng.optimizer.tiling.options import candidates
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess
from tests.sampling import examples

ITEM = 8


def box_bytes(access, array, box):
    """Bytes of the part of an array that the task over `box` needs."""
    lengths = [
        n if d == WHOLE else hi - lo
        for d, n, (lo, hi) in zip(
            access.labels, array.shape, [(0, 0) if d == WHOLE else box[d] for d in access.labels], strict=True
        )
    ]
    return ITEM * prod(lengths)


@st.composite
def stages(draw):
    """A stage over a small domain that sums one dimension (or none), part after part if it may."""
    domain = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    dims = range(len(domain))
    arrays, reads = [], []
    for number in range(draw(st.integers(1, 3))):
        labels = tuple(draw(st.permutations(dims))[: draw(st.integers(0, len(domain)))])
        shape = tuple(domain[d] for d in labels)
        labels = tuple(WHOLE if draw(st.integers(0, 4)) == 0 else d for d in labels)
        arrays.append(ArraySketch(shape, ITEM * prod(shape)))
        reads += [TaskAccess(number, labels)] * draw(st.integers(1, 2))
    turns = draw(st.sampled_from([None, *dims]))
    kept = tuple(d for d in dims if d != turns)
    shape = tuple(domain[d] for d in kept)
    arrays.append(ArraySketch(shape, ITEM * prod(shape)))
    write, finishes = (TaskAccess(len(arrays) - 1, kept),), draw(st.booleans())
    return StageSketch(domain, tuple(dims), tuple(reads), write, turns=turns, finishes=finishes), arrays


@given(stages(), st.integers(1, 6), st.integers(1, 4), st.sampled_from(IN_MEMORY), st.data())
@examples(150)
def test_bytes_of_the_largest_task_are_counted(case, workers, parts, kept, data):
    """Operands twice where they are read at once; in parts, those that the parts cut thrice, a part each. The
    value, the sum of the parts before it, and what is made of it. What goes to disk takes no memory."""
    stage, arrays = case
    own = data.draw(st.sets(st.sampled_from([r.array for r in stage.reads])))
    for grid in candidates(stage.domain, stage.cuttable, workers).tilings:
        boxes = [grid.box_on(stage.domain, rank) for rank in range(workers)]
        held = []
        for box in filter(None, boxes):
            total = 0
            for read in {*stage.reads} if "operands" in kept else ():
                share = box_bytes(read, arrays[read.array], box)
                cut = parts > 1 and stage.turns in read.labels
                total += 0 if read.array in own else 3 * -(-share // parts) if cut else 2 * share
            if "results" in kept:
                made = sum(box_bytes(w, arrays[w.array], box) for w in stage.writes)
                total += made * (1 + (parts > 1) + stage.finishes)
            held.append(total)
        assert task_bytes(stage, arrays, grid, parts, kept, own) == max(held)


def all_parts(stage, grid):
    longest = 1 if stage.turns is None else stage.domain[stage.turns] // grid.parts[stage.turns]
    return range(1, max(1, min(MOST_PARTS, longest)) + 1)


@given(stages(), st.integers(1, 5), st.integers(0, 4000))
@examples(150)
def test_parts_are_the_fewest_with_which_as_much_as_can_be_is_in_memory(case, workers, memory_bytes):
    """Where nothing fits, results are the first to go to disk, tiles the next, and operands the last."""
    stage, arrays = case
    tiles = sum(-(-arrays[a].nbytes // workers) for a in {r.array for r in stage.reads})
    profile = Profile(workers=workers, memory_bytes=memory_bytes, limited=True)
    grids = candidates(stage.domain, stage.cuttable, workers)
    expected: dict[Tiling, int] = {}
    for kept in IN_MEMORY:
        beside = tiles if "tiles" in kept else 0
        fitting = []
        for grid in grids.tilings:
            held = {p: task_bytes(stage, arrays, grid, p, kept) for p in all_parts(stage, grid)}
            fit = [p for p, n in held.items() if beside + n <= memory_bytes]
            assert least_parts(stage, arrays, grid, profile, kept) == (fit[0] if fit else None)
            fitting += [grid] * bool(fit)
            if fit:
                expected.setdefault(grid, fit[0])
        if fitting:
            break
    assert within(stage, arrays, grids, profile).tilings == (tuple(fitting) or grids.tilings)
    for grid in fitting or grids.tilings:
        assert task_parts(stage, arrays, grid, profile) == expected.get(grid, 1)
    assumed = within(stage, arrays, grids, Profile(workers=workers, memory_bytes=memory_bytes))
    whole = [g for g in grids.tilings if least_parts(stage, arrays, g, profile) is not None]
    assert assumed.tilings == (tuple(whole) or grids.tilings)


@given(stages(), st.integers(1, 5))
@examples(100)
def test_a_task_fits_to_the_byte(case, workers):
    stage, arrays = case
    tiles = sum(-(-arrays[a].nbytes // workers) for a in {r.array for r in stage.reads})
    for grid in candidates(stage.domain, stage.cuttable, workers).tilings:
        taken = [tiles + task_bytes(stage, arrays, grid, p) for p in all_parts(stage, grid)]
        for memory_bytes in {t + more for t in taken for more in (-1, 0)}:
            fit = [p for p, t in enumerate(taken, 1) if t <= memory_bytes]
            profile = Profile(workers=workers, memory_bytes=memory_bytes)
            # More parts than one hold a sum beside their value: one part may fit where two do not.
            assert least_parts(stage, arrays, grid, profile) == (fit[0] if fit else None)


@given(stages(), st.integers(1, 5), st.data())
@examples(150)
def test_whole_chunks_are_read_from_outside_once(case, workers, data):
    """A task at the beginning of every axis counts the chunks that it touches; equal boxes are one read."""
    stage, arrays = case
    outside = [
        ArraySketch(a.shape, a.nbytes, chunks=tuple(data.draw(st.integers(1, 5)) for _ in a.shape))
        if data.draw(st.booleans())
        else a
        for a in arrays
    ]
    for grid in candidates(stage.domain, stage.cuttable, workers).tilings:
        expected = 0
        for number, array in enumerate(outside[:-1]):
            if array.chunks is None:
                continue
            boxes = set()
            for read in (r for r in stage.reads if r.array == number):
                lengths = [
                    n if d == WHOLE else -(-n // grid.parts[d])
                    for d, n in zip(read.labels, array.shape, strict=True)
                ]
                touched = {
                    tuple(i // c for i, c in zip(index, array.chunks, strict=True))
                    for index in product(*map(range, lengths))
                }
                cells = {
                    index
                    for index in product(*map(range, array.shape))
                    if tuple(i // c for i, c in zip(index, array.chunks, strict=True)) in touched
                }
                boxes.add(ITEM * len(cells))
            expected += max(boxes)
        assert outside_bytes(stage, outside, grid) == expected
