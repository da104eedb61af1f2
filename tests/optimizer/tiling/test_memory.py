"""What tasks hold and read, against counting boxes task by task, and the fewest parts against all of them."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.tiling.memory import MOST_PARTS, least_parts, outside_bytes, task_bytes, within
from spartan_ng.optimizer.tiling.options import candidates
from spartan_ng.optimizer.tiling.sketch import WHOLE, Access, ArraySketch, StageSketch
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
        reads += [Access(number, labels)] * draw(st.integers(1, 2))
    turns = draw(st.sampled_from([None, *dims]))
    kept = tuple(d for d in dims if d != turns)
    shape = tuple(domain[d] for d in kept)
    arrays.append(ArraySketch(shape, ITEM * prod(shape)))
    stage = StageSketch(domain, tuple(dims), tuple(reads), (Access(len(arrays) - 1, kept),), turns=turns)
    return stage, arrays


@given(stages(), st.integers(1, 6), st.integers(1, 4))
@examples(150)
def test_bytes_of_the_largest_task_are_counted(case, workers, parts):
    """Operands twice where they are read at once; in parts, those that the parts cut thrice, a part each."""
    stage, arrays = case
    for grid in candidates(stage.domain, stage.cuttable, workers).tilings:
        boxes = [grid.box_on(stage.domain, rank) for rank in range(workers)]
        held = []
        for box in filter(None, boxes):
            total = 0
            for read in {*stage.reads}:
                share = box_bytes(read, arrays[read.array], box)
                cut = parts > 1 and stage.turns in read.labels
                total += 3 * -(-share // parts) if cut else 2 * share
            total += 3 * sum(box_bytes(w, arrays[w.array], box) for w in stage.writes)
            held.append(total)
        assert task_bytes(stage, arrays, grid, parts) == max(held)


@given(stages(), st.integers(1, 5), st.integers(0, 4000))
@examples(150)
def test_parts_are_the_fewest_that_fit_beside_the_tiles(case, workers, memory_bytes):
    stage, arrays = case
    tiles = sum(-(-arrays[a].nbytes // workers) for a in {r.array for r in stage.reads})
    profile = Profile(workers=workers, memory_bytes=memory_bytes, limited=True)
    grids = candidates(stage.domain, stage.cuttable, workers)
    fitting = []
    for grid in grids.tilings:
        longest = 1 if stage.turns is None else stage.domain[stage.turns] // grid.parts[stage.turns]
        tried = range(1, max(1, min(MOST_PARTS, longest)) + 1)
        fit = [p for p in tried if tiles + task_bytes(stage, arrays, grid, p) <= memory_bytes]
        assert least_parts(stage, arrays, grid, profile) == (fit[0] if fit else None)
        fitting += [grid] * bool(fit)
    if fitting:
        assert within(stage, arrays, grids, profile).tilings == tuple(fitting)
    else:
        with pytest.raises(MemoryBudgetError, match=f"budget is {memory_bytes:,} bytes"):
            within(stage, arrays, grids, profile)
    assumed = within(stage, arrays, grids, Profile(workers=workers, memory_bytes=memory_bytes))
    assert assumed.tilings == (tuple(fitting) or grids.tilings)


@given(stages(), st.integers(1, 5))
@examples(100)
def test_a_task_fits_to_the_byte(case, workers):
    stage, arrays = case
    tiles = sum(-(-arrays[a].nbytes // workers) for a in {r.array for r in stage.reads})
    for grid in candidates(stage.domain, stage.cuttable, workers).tilings:
        longest = 1 if stage.turns is None else stage.domain[stage.turns] // grid.parts[stage.turns]
        taken = [tiles + task_bytes(stage, arrays, grid, p) for p in range(1, max(1, longest) + 1)]
        for memory_bytes in {t + more for t in taken for more in (-1, 0)}:
            fit = [p for p, t in enumerate(taken, 1) if t <= memory_bytes]
            profile = Profile(workers=workers, memory_bytes=memory_bytes)
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
