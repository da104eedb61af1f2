"""Bytes moved, against counting element by element with sets."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays import WHOLE, Tiling
from spartan_ng.ops.units import Folded, leading
from spartan_ng.optimizer.tiling.moves import combine_bytes, pulled_bytes
from spartan_ng.optimizer.tiling.options import between_units, candidates, interned, project
from spartan_ng.optimizer.tiling.sketch import FlatView
from tests.sampling import examples

LENGTHS = st.one_of(st.integers(1, 7), st.sampled_from([4, 6, 12]))
"""Many are cut evenly."""


def indices(bounds):
    return set(product(*(range(lo, hi) for lo, hi in bounds)))


def held(tiling, shape, rank):
    box = tiling.box_on(shape, rank)
    return set() if box is None else indices(box)


def needed(domain, grid, shape, labels, spans, rank):
    """Indices of the array that the task on `rank` reads."""
    box = grid.box_on(domain, rank)
    if box is None:
        return set()
    axes = []
    for label, (start, step, size) in zip(labels, spans, strict=True):
        lo, hi = (0, size) if label == WHOLE or size == 1 else box[label]
        axes.append([start + step * i for i in range(lo, hi)])
    return set(product(*axes))


@st.composite
def reads(draw):
    workers = draw(st.integers(2, 6))
    domain = tuple(draw(st.lists(LENGTHS, min_size=1, max_size=3)))
    dims = draw(st.permutations(range(len(domain))))[: draw(st.integers(0, len(domain)))]
    if draw(st.booleans()):
        plain = tuple(domain[d] for d in dims)
        return workers, domain, tuple(dims), tuple((0, 1, n) for n in plain), plain
    labels, spans, shape = [], [], []
    for d in dims:
        label = WHOLE if draw(st.booleans()) and draw(st.booleans()) else d
        size = draw(st.integers(1, 6)) if label == WHOLE else domain[d]
        step = draw(st.sampled_from([1, 1, 1, 2, -1, -3]))
        before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        extent = (size - 1) * abs(step) + 1
        labels.append(label)
        spans.append((before + (extent - 1 if step < 0 else 0), step, size))
        shape.append(before + extent + after)
    return workers, domain, tuple(labels), tuple(spans), tuple(shape)


def some_of(data, options):
    """Some of the tilings: two that are compared need not be cut into as many parts as each other."""
    tilings = st.sampled_from(options.tilings)
    return interned(tuple(data.draw(st.lists(tilings, min_size=1, max_size=2, unique=True))), options.workers)


@given(reads(), st.data())
@examples(300)
def test_read_bytes_counts_what_is_needed_and_not_held(case, data):
    workers, domain, labels, spans, shape = case
    grids = some_of(data, candidates(domain, tuple(range(len(domain))), workers))
    tilings = some_of(data, candidates(shape, tuple(range(len(shape))), workers))
    nbytes = 8 * int(np.prod(shape, dtype=int))
    plain = spans == tuple((0, 1, n) for n in shape)
    table = pulled_bytes(domain, grids, shape, tilings, labels, () if plain else spans, True, nbytes)
    for g, grid in enumerate(grids.tilings):
        for t, tiling in enumerate(tilings.tilings):
            expected = sum(
                len(needed(domain, grid, shape, labels, spans, r) - held(tiling, shape, r))
                for r in range(workers)
            )
            assert table[g, t] == 8 * expected, (grid, tiling)


@pytest.mark.slow
@given(st.integers(2, 6), st.lists(LENGTHS, min_size=1, max_size=3), st.data())
@examples(400)
def test_combine_bytes_counts_the_states_of_other_workers(workers, domain, data):
    domain = tuple(domain)
    labels = tuple(sorted(data.draw(st.sets(st.sampled_from(range(len(domain)))))))
    reduced = tuple(d for d in range(len(domain)) if d not in labels)
    shape = tuple(domain[d] for d in labels)
    grids = some_of(data, candidates(domain, tuple(range(len(domain))), workers))
    results = some_of(data, candidates(shape, tuple(range(len(shape))), workers))
    nbytes = 4 * int(np.prod(shape, dtype=int))
    table = combine_bytes(shape, grids, results, labels, reduced, nbytes)
    for g, grid in enumerate(grids.tilings):
        states = {
            grid.rank(index): (tuple(index[d] for d in reduced), index)
            for index in product(*map(range, grid.parts))
        }
        if grid.duplicate:
            states = {r: ((0,) * len(reduced), (0,) * len(domain)) for r in range(workers)}
        parts = set(product(*(range(grid.parts[d]) for d in reduced)))
        for t, tiling in enumerate(results.tilings):
            expected = 0
            for rank in range(workers):
                wanted = {(p, i) for p in parts for i in held(tiling, shape, rank)}
                if rank in states:
                    part, index = states[rank]
                    box = project(grid, labels).box(shape, tuple(index[d] for d in labels))
                    wanted -= {(part, i) for i in indices(box)}
                expected += len(wanted)
            assert table[g, t] == 4 * expected, (grid, tiling)


def test_transposed_block_stays_in_place():
    n = 8
    grids = interned((Tiling((2, 2), (2, 1)),), 4)
    tilings = interned((Tiling((2, 2), (2, 1)), Tiling((2, 2), (1, 2))), 4)
    table = pulled_bytes((n, n), grids, (n, n), tilings, (1, 0), (), True, 8 * n * n)
    assert table.tolist() == [[8 * n * n // 2, 0]]


def test_counts_above_64_bits():
    n = 1 << 30
    grids = candidates((n, n, n), (0, 1, 2), 4)
    tilings = candidates((n, n, n), (0, 1, 2), 4)
    table = pulled_bytes((n, n, n), grids, (n, n, n), tilings, (0, 1, 2), (), True, 8 * n**3)
    single = [str(t) for t in tilings.tilings].index("single")
    assert table[0, 0] == 0
    assert table[0, single] == 8 * n**3 * 3 // 4


def test_sparse_bytes_are_spread_evenly():
    grids = candidates((100, 100), (0, 1), 4)
    tilings = candidates((100, 100), (0,), 4)
    table = pulled_bytes((100, 100), grids, (100, 100), tilings, (1, 0), (), True, 1234)
    assert abs(int(table[0, 0]) - 1234 * 3 / 4) <= 1


def test_scaled_view_of_another_length():
    grids = candidates((10,), (0,), 2, single=False, copies=False)
    tilings = candidates((20,), (0,), 2, single=False, copies=False)
    assert pulled_bytes((10,), grids, (20,), tilings, (0,), (), False, 160).tolist() == [[0]]


@given(st.integers(2, 5), st.integers(1, 12), st.integers(0, 8), st.integers(1, 3), st.integers(0, 9))
@examples(100)
def test_a_piece_is_read_where_it_lies_in_the_domain(workers, size, first, step, more):
    n = first + (size - 1) * step + 1 + more
    grids = candidates((n,), (0,), workers)
    tilings = candidates((size,), (0,), workers)
    table = pulled_bytes((n,), grids, (size,), tilings, (0,), (), True, 8 * size, ((first, step),))
    for g, grid in enumerate(grids.tilings):
        for t, tiling in enumerate(tilings.tilings):
            expected = 0
            for rank in range(workers):
                box = grid.box_on((n,), rank)
                own = indices(box) if box is not None else set()
                wanted = {(i,) for i in range(size) if (first + step * i,) in own}
                expected += len(wanted - held(tiling, (size,), rank))
            assert table[g, t] == 8 * expected, (grid, tiling)


def test_rows_that_are_asked_for_come_from_anywhere():
    grids = candidates((400, 6), (0, 1), 4)
    tilings = candidates((1000, 6), (0, 1), 4)
    table = pulled_bytes((400, 6), grids, (1000, 6), tilings, (WHOLE, 1), (), False, 48_000, (), (0, 0))
    for g, grid in enumerate(grids.tilings):
        for t, tiling in enumerate(tilings.tilings):
            expected = 0.0
            for rank in range(4):
                box = grid.box_on((400, 6), rank)
                if box is None:
                    continue
                (lo, hi), (left, right) = box
                own = tiling.box_on((1000, 6), rank) or ((0, 0), (0, 0))
                share = (own[0][1] - own[0][0]) / 1000
                common = max(0, min(right, own[1][1]) - max(left, own[1][0]))
                expected += 8 * (hi - lo) * (right - left - share * common)
            assert abs(int(table[g, t]) - expected) <= 8, (grid, tiling)


@given(st.integers(2, 6), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
@examples(150)
def test_a_reshape_reads_the_box_around_each_run(workers, view, data):
    """The domain has the view's elements in other lengths, and is cut along its first axis."""
    size = int(np.prod(view))
    rows = data.draw(st.sampled_from([n for n in range(1, size + 1) if size % n == 0]))
    domain = (rows, size // rows)
    spans, shape = [], []
    for n in view:
        step = data.draw(st.sampled_from([1, 1, 2, -1, -2]))
        before, after = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))
        extent = (n - 1) * abs(step) + 1
        spans.append((before + (extent - 1 if step < 0 else 0), step, n))
        shape.append(before + extent + after)
    axes = tuple(range(len(view)))
    run = FlatView(tuple(view), tuple(data.draw(st.sampled_from([a, a, -1])) for a in axes))
    grids = candidates(domain, (0,), workers)
    tilings = candidates(tuple(shape), axes, workers)
    nbytes, labels = 8 * int(np.prod(shape)), (WHOLE,) * len(view)
    rest = (labels, tuple(spans), True, nbytes, (), (), run)
    table = pulled_bytes(domain, grids, tuple(shape), tilings, *rest)
    for g, grid in enumerate(grids.tilings):
        for t, tiling in enumerate(tilings.tilings):
            expected = 0
            for rank in range(workers):
                box = grid.box_on(domain, rank)
                if box is None:
                    continue
                own = np.ravel_multi_index(np.array(sorted(indices(box))).T, domain)
                places = np.unravel_index(own, view)
                needed = [
                    range(p.min(), p.max() + 1) if v >= 0 else range(n)
                    for p, n, v in zip(places, view, run.along, strict=True)
                ]
                seen = [
                    {start + step * i for i in r} for r, (start, step, _) in zip(needed, spans, strict=True)
                ]
                expected += len(set(product(*seen)) - held(tiling, shape, rank))
            assert table[g, t] == 8 * expected, (grid, tiling)


@given(st.integers(2, 6), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.data())
@examples(80)
def test_states_of_subtrees_move_to_where_they_are_combined(workers, domain, data):
    """Of axes that are folded in order each part hands over its subtrees, and each of them is a state."""
    domain = tuple(domain)
    reduced = sorted(data.draw(st.sets(st.sampled_from(range(len(domain))), min_size=1)))
    labels = tuple(d for d in range(len(domain)) if d not in reduced)
    folded = tuple(Folded(d, d, domain[d], data.draw(st.integers(1, 3))) for d in reduced)
    shape = tuple(domain[d] for d in labels)
    every = candidates(domain, tuple(range(len(domain))), workers, copies=False)
    grids = between_units(every, domain, {f.dim: f.length for f in folded})
    results = candidates(shape, tuple(range(len(shape))), workers)
    nbytes = 4 * int(np.prod(shape, dtype=int))
    table = combine_bytes(shape, grids, results, labels, tuple(reduced), nbytes, (domain, folded))
    for g, grid in enumerate(grids.tilings):
        made: dict[int, set[tuple[Any, ...]]] = {}
        lead = leading(folded, grid, domain)
        where = {r: index for r in range(workers) if (index := grid.index_on(r)) is not None}
        for rank, index in where.items():
            made[rank] = set(product(*(parts[index[d] if len(parts) > 1 else 0] for d, parts in lead)))
        states = set().union(*made.values())
        for t, tiling in enumerate(results.tilings):
            expected = 0
            for rank in range(workers):
                wanted = {(p, i) for p in states for i in held(tiling, shape, rank)}
                if rank in made:
                    box = project(grid, labels).box(shape, tuple(where[rank][d] for d in labels))
                    wanted -= {(p, i) for p in made[rank] for i in indices(box)}
                expected += len(wanted)
            assert table[g, t] == 4 * expected, (grid, tiling)
