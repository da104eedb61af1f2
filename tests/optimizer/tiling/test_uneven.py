"""Cuts that fit the data and the workers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import Tiling
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.moves import combine_bytes, pulled_bytes
from spartan_ng.optimizer.tiling.options import candidates, uneven
from spartan_ng.optimizer.tiling.sketch import Load
from spartan_ng.optimizer.tiling.uneven import cut_points
from tests.sampling import examples
from tests.test_programs import running_on

SLOW = Profile(10**8, 10**8, 10**9, message_ns=0)
"""Workers slow enough to share even small work."""


def power_law(rows: int = 4000, columns: int = 300, exponent: float = 1.1) -> sparse.csr_array:
    """Row i has about i ** -exponent as many non-zeros as the first."""
    rng = np.random.default_rng(0)
    counts = np.minimum(columns, 1 + (columns * np.arange(1, rows + 1) ** -exponent * 5)).astype(int)
    indices = [np.sort(rng.choice(columns, c, replace=False)) for c in counts]
    ends = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array((rng.random(ends[-1]), np.concatenate(indices), ends), (rows, columns))


def nonzeros(tiling: Tiling, a: sparse.csr_array, workers: int) -> list[int]:
    """Non-zeros of each worker's tile."""
    boxes = [tiling.box_on(a.shape, r) for r in range(workers)]
    return [int(a.indptr[b[0][1]] - a.indptr[b[0][0]]) if b else 0 for b in boxes]


def tiling_of(x) -> Tiling:
    ref = x._node().data
    assert ref is not None
    assert ref.tiling is not None
    return ref.tiling


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_skewed_rows_are_cut_at_equal_non_zeros(workers):
    a = power_law()
    even = nonzeros(Tiling.grid(workers, 1), a, workers)
    w, y = np.random.default_rng(1).random(300), np.random.default_rng(2).random(4000)
    with running_on(SimulatedBackend(workers, SLOW)), config.override(small_bytes=0):
        x = sp.asarray(a)
        for _ in range(2):
            r = x @ w - y
            g = (x.T @ r).compute()
            np.testing.assert_allclose(np.asarray(g), a.T @ (a @ w - y))
            ran = session.current().last_run
            assert ran is not None
            plan, stats = ran
            assert stats.bytes_moved == sum(plan.predicted_bytes)
        mine = nonzeros(tiling_of(x), a, workers)
    assert sum(mine) == a.nnz
    assert max(mine) <= 1.05 * a.nnz / workers
    assert max(even) > 1.5 * a.nnz / workers
    assert stats.bytes_moved < 8 * 4000, "what goes with the rows is cut in the same places"


def test_equal_rows_are_cut_evenly():
    a = sparse.random(4000, 300, 0.05, format="csr", random_state=0)
    with running_on(SimulatedBackend(4, SLOW)), config.override(small_bytes=0):
        x = sp.asarray(a)
        (x @ np.ones(300)).compute()
        assert tiling_of(x) == Tiling((4, 1), (1, 0))


def test_unequal_workers_get_parts_in_proportion():
    a = np.random.default_rng(0).random((8000, 10))
    with (
        running_on(SimulatedBackend(4, replace(SLOW, weights=(16, 16, 8, 4)))),
        config.override(small_bytes=0),
    ):
        x = sp.array(a)
        np.testing.assert_allclose(np.asarray(sp.exp(x).sum(0).compute()), np.exp(a).sum(0))
        boxes = [tiling_of(x).box_on(a.shape, r) for r in range(4)]
        rows = [b[0][1] - b[0][0] for b in boxes if b]
        assert rows == [2909, 2909, 1455, 727]


@pytest.mark.parametrize(
    "compute",
    [
        lambda xp, a: xp.cumsum(a, 0),
        lambda xp, a: xp.sort(a[:, 0]),
        lambda xp, a: xp.argsort(a[:, 1]),
        lambda xp, a: a[a[:, 0] > 0.5].sum(0),
        lambda xp, a: a[::-3, 1:].T @ a[::-3],
        lambda xp, a: xp.concatenate([a, a * 2])[1::2],
        lambda xp, a: a.reshape(40, -1).sum(0),
        lambda xp, a: xp.max(a, 0) - xp.argmin(a, 0),
        lambda xp, a: xp.take(a, xp.arange(0, 400, 7), 0),
        lambda xp, a: (a.T - a.mean(1)).var(1),
        lambda xp, a: xp.median(a, 0),
    ],
)
@pytest.mark.parametrize("workers", [3, 4])
def test_uneven_cuts_never_change_an_answer(compute, workers):
    a = np.random.default_rng(5).random((400, 6))
    backend = SimulatedBackend(workers, replace(SLOW, weights=(1, 5, 2, 9)[:workers]))
    with running_on(backend), config.override(small_bytes=0):
        x = sp.array(a)
        (x * 2).persist()
        for _ in range(2):
            np.testing.assert_allclose(np.asarray(compute(sp, x)), compute(np, a))
        assert tiling_of(x).splits


@given(
    st.integers(1, 60),
    st.lists(st.integers(1, 20), min_size=1, max_size=6),
    st.lists(st.integers(0, 50), min_size=60, max_size=60),
    st.booleans(),
)
@examples(200)
def test_cut_points_leave_no_part_empty(n, weights, work, skewed):
    load = Load(np.concatenate([[0], np.cumsum(work[:n])])) if skewed else None
    points = cut_points(n, tuple(weights), load)
    assert not points or len(points) == len(weights) - 1
    assert all(lo < hi for lo, hi in pairwise((0, *points, n)) if points)
    if skewed and points:
        ends = np.concatenate([[0], np.cumsum(work[:n])])
        goals = np.cumsum(weights) / sum(weights) * ends[-1]
        nearest = [int(np.argmin(np.abs(ends[1:] - g))) + 1 for g in goals[:-1]]
        if all(lo < hi for lo, hi in pairwise((0, *nearest, n))):
            reached = [abs(ends[p] - g) for p, g in zip(points, goals, strict=False)]
            assert reached == [abs(ends[p] - g) for p, g in zip(nearest, goals, strict=False)]
    if not skewed and points:
        for p, target in zip(points, np.cumsum(weights) / sum(weights) * n, strict=False):
            assert abs(p - target) <= len(weights)


@given(st.integers(16, 40), st.integers(1, 5), st.sampled_from([(3, 9, 11), (1, 2, 15), (8, 9, 10)]))
@examples(40)
def test_bytes_of_uneven_cuts_are_counted_exactly(n, m, points):
    shape, workers = (n, m), 4
    options = uneven(candidates(shape, (0, 1), workers), shape, (0, 1), {n: points})
    assert any(t.splits for t in options.tilings)
    moved = pulled_bytes(shape, options, shape, options, (0, 1), (), True, 8 * n * m)
    states = combine_bytes(
        (n,), options, uneven(candidates((n,), (0,), workers), (n,), (0,), {n: points}), (0,), (1,), 8 * n
    )
    assert states.min() >= 0

    def cells(tiling, rank):
        box = tiling.box_on(shape, rank)
        return {(i, j) for i in range(*box[0]) for j in range(*box[1])} if box else set()

    for g, grid in enumerate(options.tilings):
        for t, tiling in enumerate(options.tilings):
            expected = sum(len(cells(grid, r) - cells(tiling, r)) for r in range(workers))
            assert moved[g, t] == 8 * expected


@given(st.integers(0, 19), st.integers(0, 19), st.sampled_from([(3, 9, 11), (1, 2, 15)]))
def test_tiles_of_a_box(a, b, points):
    tiling = Tiling((4,), (1,), splits=(points,))
    lo, hi = min(a, b), max(a, b)
    found = list(tiling.tiles((20,), ((lo, hi),)))
    expected = [r for r in range(4) for ((x, y),) in [tiling.box((20,), (r,))] if max(x, lo) < min(y, hi)]
    assert [r for r, _ in found] == expected
