"""What a run teaches: the second iteration of a loop is tiled better than the first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import Tiling
from spartan_ng.config import TILINGS, config
from spartan_ng.costs import Profile
from spartan_ng.graph.node import topological
from spartan_ng.optimizer.sizes import expected_bytes, expected_nonzeros
from spartan_ng.plan.lessons import learn_bytes, subjects
from spartan_ng.plan.stages import Join
from spartan_ng.plan.stats import StageStats
from tests.test_programs import running_on

BINS = 40_000


@pytest.fixture
def running() -> Iterator[session.Session]:
    """Four simulated workers that are slow enough to share even small work."""
    before = session.current().backend
    backend = SimulatedBackend(4, Profile(message_ns=0, flops_s=10**9))
    with config.override(small_bytes=0, duplicate_bytes=0):
        yield session.use(backend)
    session.use(before)
    backend.close()


def few(extents, tiles):
    """An update of eight elements, wherever the piece begins."""
    yield 8 * (extents[0][0][0] % 100), tiles[0][:, :8].sum(0)


def many(extents, tiles):
    """Far more than one output's worth."""
    for row in tiles[0]:
        yield 0, np.full(BINS, row[0])


def expected(a, workers):
    out = np.zeros(BINS)
    for p in range(workers):
        lo, hi = p * len(a) // workers, (p + 1) * len(a) // workers
        out[8 * (lo % 100) : 8 * (lo % 100) + 8] += a[lo:hi, :8].sum(0)
    return out


def test_the_second_iteration_of_a_loop_moves_less(running):
    """At first each task is charged a whole output, so that one worker gathers the input and does it all."""
    a = np.random.default_rng(0).random((400, 50))
    x = (sp.tile_as(sp.array(a), "row") + 0).persist()
    moved, grids = [], []
    for _ in range(4):
        y = sp.join_update(few, np.add, [x], [0], (BINS,), dtype=float)
        found = np.asarray(y.compute())
        plan, stats = running.last_run
        moved.append(stats.bytes_moved)
        grids.append(plan.stages[0].grid)
        np.testing.assert_allclose(found, expected(a, grids[-1].ntiles))
    assert [str(g) for g in grids] == ["single", "4", "4", "4"]
    assert moved[0] == 3 * a.nbytes // 4
    assert moved[1] == moved[2] == moved[3] <= 4 * 64
    assert len(running.planner._plans) == 2, (
        "the better plan has taken the place of the first (the other made x)"
    )


def test_updates_of_more_than_a_whole_output_are_learned_too(running):
    a = np.ones((64, 50))
    moved = []
    for _ in range(3):
        x = sp.array(a)
        np.testing.assert_allclose(
            np.asarray(sp.join_update(many, np.add, [x], [0], (BINS,), dtype=float).compute()), 64.0
        )
        moved.append(running.last_run[1].bytes_moved)
    assert moved[2] <= moved[1] <= moved[0]
    (bytes_learned,) = running.planner._measured.values()
    assert bytes_learned == pytest.approx(64 * 8 * BINS, rel=0.01)


def whole(extents, tiles):
    """An update of all of the output."""
    yield 0, np.full(BINS, tiles[0].sum())


@pytest.mark.parametrize("workers", [2, 3, 4])
@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("copied", [False, True])
def test_what_is_learned_explains_what_moves(workers, tiling, copied):
    """Wherever updates are made and put together: the next plan predicts what it moves, to the byte."""
    with config.override(small_bytes=0, tiling=tiling), running_on(SimulatedBackend(workers)):
        now = session.current()
        x = (sp.tile_as(sp.array(np.ones((60, 5))), "row") + 0).persist()
        for run in range(2):
            y = sp.join_update(whole, np.add, [x], [0], (BINS,), dtype=float)
            y = sp.tile_as(y, "duplicate") if copied else y
            np.testing.assert_allclose(np.asarray(y.compute()), 300.0)
            assert now.last_run is not None
            plan, stats = now.last_run
            (join,) = (stage for stage in plan.stages if isinstance(stage, Join))
            if join.grid.ntiles == 1:
                assert [*now.planner._measured.values()] == [8 * BINS]
            if run:
                assert sum(plan.predicted_bytes) == stats.bytes_moved
            if join.grid.ntiles > 1:  # had each worker all of the result, it would get the others' updates
                slots = (*(replace(s, tiling=Tiling.copies(len(s.shape))) for s in plan.slots),)
                known: dict[Hashable, int] = {}
                learn_bytes(
                    replace(plan, slots=slots),
                    [StageStats(0.0, 1000 * (workers - 1))] * len(plan.stages),
                    known,
                )
                assert 1000 in known.values()


def test_small_differences_are_not_learned(running):
    """Those of less than a factor of two and a kilobyte, either way: plans are to settle."""
    x = (sp.tile_as(sp.array(np.ones((60, 5))), "row") + 0).persist()
    sp.join_update(whole, np.add, [x], [0], (BINS,), dtype=float).compute()
    plan, _ = running.last_run
    slots = (*(replace(s, tiling=Tiling.copies(len(s.shape))) for s in plan.slots),)
    plan = replace(plan, slots=slots)
    (key,) = subjects(plan)
    for before in (0, 1, 100, 1024, 5000, 10**6):
        for near in (2 * before + 1024, max(0, before - 1024) // 2, before):
            for found in (max(0, near - 1), near, near + 1):
                known = {key: before}
                moved = 3 * found if plan.stages[0].grid.ntiles > 1 else 0
                learn_bytes(plan, [StageStats(0.0, moved, found)] * len(plan.stages), known)
                close = before <= 2 * found + 1024 and found <= 2 * before + 1024
                assert known[key] == (before if close else found)


def test_plans_without_lessons_stay(running):
    x = sp.array(np.ones((400, 50)))
    for _ in range(4):
        (x * 2).sum().compute()
    assert len(running.planner._plans) == 2, (
        "one for the array on the driver, one for the array on the workers"
    )
    assert running.planner._measured == {}


def test_sparse_results_are_sampled_before_and_measured_after(running):
    a = sparse.random(3000, 200, 0.02, format="csr", random_state=1)
    b = a.copy()
    b.data = b.data + 1  # the same pattern: a product keeps all of it, which densities alone do not tell
    x, y = sp.asarray(a), sp.asarray(b)
    product = x * y
    root = product._node()
    guess = expected_bytes(expected_nonzeros(topological([root]), {}))[root]
    truth = a.nnz * 12 + 8 * 3001
    assert guess == pytest.approx(truth, rel=0.2)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray((x * y).sum(0)), np.asarray(a.multiply(b).sum(0)).ravel())


def test_measured_sizes_take_the_place_of_estimates(running):
    x, y = (sp.asarray(sparse.random(3000, 200, d, format="csr", random_state=1)) for d in (0.02, 0.05))
    node = (x + y)._node()
    order = topological([node])
    before = expected_bytes(expected_nonzeros(order, {}))[node]
    (x + y).persist()
    (made,) = running.planner._measured.values()
    assert made == pytest.approx(before, rel=0.4)
    measured = dict.fromkeys(running.planner._measured, made // 2)
    after = expected_bytes(expected_nonzeros(order, measured))[node]
    assert after == pytest.approx(made // 2, rel=0.01)


@pytest.mark.parametrize("density", [0.005, 0.02, 0.08])
@pytest.mark.parametrize("measured", [0.005, 0.02, 0.08])
def test_what_others_measured_does_not_stand_for_what_is_known(running, measured, density):
    """An elementwise result of one sparse operand has an element where that has one, whatever ran before."""
    forms = [lambda x: x * 2, lambda x: abs(x) * 2, lambda x: (x.T * 2).T, lambda x: x * sp.ones(200) * 2]
    other, a = (sparse.random(3000, 200, d, format="csr", random_state=1) for d in (measured, density))
    for form in forms:
        form(sp.asarray(other)).persist()
        node = form(sp.asarray(a))._node()
        found = expected_nonzeros(topological([node]), running.planner._measured)
        assert found[node] == a.nnz
