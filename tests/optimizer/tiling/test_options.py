"""Candidate tilings."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spartan_ng.arrays import Tiling
from spartan_ng.config import TILINGS
from spartan_ng.optimizer.tiling.forced import nearest
from spartan_ng.optimizer.tiling.options import between_units, candidates, canonical, interned, uneven
from tests.sampling import examples


def names(options):
    return [str(t) for t in options.tilings]


def test_four_workers_two_axes():
    assert names(candidates((100, 100), (0, 1), 4)) == ["4x1", "1x4", "2x2", "2x2", "single", "duplicate"]
    first, second = candidates((100, 100), (0, 1), 4).tilings[2:4]
    assert first.transpose((1, 0)) == second


def test_short_axes_get_fewer_parts():
    assert names(candidates((3, 100), (0, 1), 4))[0] == "3x1"
    assert names(candidates((1, 1), (0, 1), 4)) == ["single", "duplicate"]
    assert names(candidates((0, 5), (0, 1), 4))[0] == "1x4"


def test_a_prime_number_of_workers_has_a_block_of_fewer():
    assert "2x2" in names(candidates((100, 100), (0, 1), 5))


@pytest.mark.parametrize("workers", [2, 3, 4, 5, 6, 12, 64, 1024])
@pytest.mark.parametrize("shape", [(), (7,), (5, 1000), (1000, 2000, 3), (9, 9, 9, 9, 9)])
def test_every_option_is_a_grid_over_distinct_ranks(workers, shape):
    options = candidates(shape, tuple(range(len(shape))), workers)
    assert len(options) <= len(shape) + 2 * (6 + 2) + 2
    assert len(set(options.tilings)) == len(options)
    for tiling in options.tilings:
        assert tiling == canonical(tiling)
        assert all(p <= max(n, 1) for p, n in zip(tiling.parts, shape, strict=True))
        held = [tiling.index_on(r) for r in range(workers)]
        tiles = [i for i in held if i is not None]
        if tiling.duplicate:
            assert len(tiles) == workers
        else:
            assert len(tiles) == len(set(tiles)) == tiling.ntiles <= workers


@given(st.lists(st.integers(1, 9), min_size=2, max_size=3), st.integers(2, 12))
@examples(200)
def test_blocks_over_two_axes_use_the_most_workers_and_are_square(shape, workers):
    options = candidates(tuple(shape), tuple(range(len(shape))), workers)
    for pair in combinations(range(len(shape)), 2):
        cut = [t.parts for t in options.tilings if {a for a, p in enumerate(t.parts) if p > 1} == {*pair}]
        a, b = (min(shape[axis], workers) for axis in pair)
        possible = [(p, q) for p in range(2, a + 1) for q in range(2, b + 1) if p * q <= workers]
        if not possible:
            assert not cut
            continue
        most = max(p * q for p, q in possible)
        square = min(max(p, q) for p, q in possible if p * q == most)
        assert {int(np.prod(p)) for p in cut} == {most}
        assert min(max(p) for p in cut) == square


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 9))
@examples(200)
def test_cuts_move_to_the_nearest_units(n, parts, length):
    """Where they are free to: two cuts never meet, and every unit that is needed is left to those behind."""
    parts, length = min(n, parts), min(n, length)
    before = interned((canonical(Tiling.grid(parts)),), parts)
    (after,) = between_units(before, (n,), {0: length}).tilings
    units = -(-n // length)
    assert after.parts[0] == min(parts, units)
    cuts = [after.cut(0, n, i)[0] for i in range(1, after.parts[0])]
    wanted = [
        round(before.tilings[0].cut(0, n, i * parts // after.parts[0])[0] / length)
        for i in range(1, len(cuts) + 1)
    ]
    if all(lo < hi for lo, hi in pairwise((0, *wanted, units))):
        assert cuts == [length * w for w in wanted]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("row", "4x1"), ("column", "1x4"), ("block", "2x2"), ("duplicate", "duplicate"), ("single", "single")],
)
def test_forced(kind, expected):
    assert names(nearest((8, 8), (0, 1), 4, kind, True)) == [expected]


@pytest.mark.parametrize("kind", TILINGS)
@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 3), (2, 1, 5)])
@pytest.mark.parametrize("workers", [2, 3, 5])
def test_forcing_always_finds_something(kind, shape, workers):
    (tiling,) = nearest(shape, tuple(range(len(shape))), workers, kind, False).tilings
    assert isinstance(tiling, Tiling)
    assert not tiling.duplicate
    assert tiling.ntiles <= workers


LENGTHS = st.sampled_from([1, 8, 64, 1 << 20])


@pytest.mark.slow
@examples(1000)
@given(
    shape=st.tuples(st.integers(1, 40), st.integers(60, 3000), st.integers(1, 300)),
    lengths=st.dictionaries(st.integers(0, 2), LENGTHS, min_size=2),
    workers=st.sampled_from([2, 3, 4, 5, 6, 12]),
)
def test_cuts_between_units(shape, lengths, workers):
    """Along every axis with units, and no other; some of the options have cuts of their own."""
    lengths = {d: min(n, shape[d]) for d, n in lengths.items()}
    options = candidates(shape, (0, 1, 2), workers)
    own = {shape[1]: tuple(shape[1] * i // (2 * workers) for i in range(1, workers))}
    before = uneven(options, shape, (1,), own) if shape[1] >= 2 * workers else options
    after = between_units(before, shape, lengths)
    for tiling in after.tilings:
        boxes = [b for r in range(workers) if (b := tiling.box_on(shape, r)) is not None]
        assert len(boxes) == (workers if tiling.duplicate else tiling.ntiles)
        assert all(lo < hi for box in boxes for lo, hi in box)
        assert not any(box[d][0] % n for box in boxes for d, n in lengths.items())
        for d, n in enumerate(shape):
            cuts = [tiling.cut(d, n, i) for i in range(tiling.parts[d])]
            assert [hi for _, hi in cuts] == [*(lo for lo, _ in cuts[1:]), n]
    kept = [t for t in before.tilings if all(t.parts[d] == 1 for d in lengths)]
    assert set(kept) <= set(after.tilings)
