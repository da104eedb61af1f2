"""Arrays that are kept twice: chosen, made, read, and still there for the next program."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks.brute import BRUTE
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import WHOLE
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.optimizer.tiling.choose import choose
from spartan_ng.optimizer.tiling.sketch import ArraySketch, StageSketch, TaskAccess

N, M = 160, 120


@pytest.fixture
def running() -> Iterator[session.Session]:
    """Four simulated workers between which messages take no time, so that small arrays show what large do."""
    before = session.current().backend
    backend = SimulatedBackend(4, Profile(message_ns=0, flops_s=10**6))
    with config.override(small_bytes=0):
        yield session.use(backend)
    session.use(before)
    backend.close()


def alternating(xp, a, rounds):
    """Rows, then columns, then rows again: every stage needs whole lines of `a`."""
    columns = xp.ones(a.shape[1])
    for _ in range(rounds):
        rows = xp.sort(a * columns, axis=1)[:, 1:].sum(1)
        columns = xp.sort(a * rows[:, None], axis=0)[1:].sum(0) / (1 + rows.sum() ** 2)
    return columns


def values():
    return np.random.default_rng(0).random((N, M)) - 0.5


def test_an_array_read_along_two_axes_is_kept_twice(running):
    a = values()
    moved = {}
    for budget in (None, 0):
        with config.override(duplicate_bytes=budget):
            x = sp.array(a)
            found = np.asarray(alternating(sp, x, 3).compute())
        np.testing.assert_allclose(found, alternating(np, a, 3))
        plan, stats = running.last_run
        assert plan.predicted_bytes == tuple(s.bytes_moved for s in stats.stages)
        copies = [(s.name, str(s.grid)) for s in plan.stages if s.name == "copy"]
        assert copies == ([] if budget == 0 else [("copy", copies[0][1])])
        moved[budget] = stats.bytes_moved
    assert moved[None] < moved[0] / 2
    once = 8 * N * M * 3 // 4
    assert once <= moved[None] < once + 60_000
    assert moved[0] >= 3 * once


def test_a_copy_stays_for_the_next_program(running):
    a = values()
    x = sp.array(a)
    columns = sp.ones(M)
    moved = []
    for _ in range(4):
        rows = sp.sort(x * columns, axis=1)[:, 1:].sum(1)
        columns = (sp.sort(x * rows[:, None], axis=0)[1:].sum(0) / (1 + rows.sum() ** 2)).compute()
        moved.append(running.last_run[1].bytes_moved)
        plans = len(running.planner._plans)
    np.testing.assert_allclose(np.asarray(columns), alternating(np, a, 4))
    assert moved[0] > 8 * N * M * 3 // 4
    assert moved[1] == moved[2] == moved[3] < 30_000
    assert plans == 2, "from the second iteration on, the plan is the same"
    tiles = running.backend.tiles
    del x
    assert running.backend.tiles == tiles - 8, "both copies go with the array"


def test_copies_of_other_programs_count_against_the_budget(running):
    nbytes = 8 * N * M
    first, second = sp.array(values()), sp.array(values() + 1)
    with config.override(duplicate_bytes=nbytes // 4):
        alternating(sp, first, 2).compute()
        assert any(s.name == "copy" for s in running.last_run[0].stages)
        alternating(sp, second, 2).compute()
        assert not any(s.name == "copy" for s in running.last_run[0].stages)
        del first
        alternating(sp, second, 2).compute()
        assert any(s.name == "copy" for s in running.last_run[0].stages)


def test_a_result_is_copied_inside_one_program(running):
    a = values()
    x = sp.array(a)
    found = alternating(sp, sp.cumsum(x, axis=0), 3).compute()
    np.testing.assert_allclose(np.asarray(found), alternating(np, np.cumsum(a, axis=0), 3))
    plan, _ = running.last_run
    assert sum(s.name == "copy" for s in plan.stages) == 1
    assert plan.keeps == ()


def test_a_readers_copy_is_the_best_that_brute_force_finds():
    arrays = [ArraySketch((N, M), 8 * N * M, driver=True, outlives=True)]
    stages = []
    for i in range(4):
        labels, size = ((0, WHOLE), N) if i % 2 else ((WHOLE, 0), M)
        arrays.append(ArraySketch((size,), 8 * size))
        stages.append(StageSketch((size,), (0,), (TaskAccess(0, labels),), (TaskAccess(i + 1, (0,)),), 10**9))
    profile = Profile(workers=4, message_ns=0)
    for budget in (0, 2 * N * M, 8 * N * M):
        best = choose(stages, arrays, profile, solver=BRUTE, duplicate_budget_bytes=budget)
        found = choose(stages, arrays, profile, duplicate_budget_bytes=budget)
        assert found.cost_ns == best.cost_ns
        assert found.exact
        assert len(found.copies) == (budget > 0)


def test_a_scan_reads_copies(running):
    """Its cascade charges for what the copies' arrays take, of however many there are."""
    a = np.arange(1000.0) % 7
    x = sp.array(a) * 2
    least, low, high = sp.persist(x.max() - 9, x.min() - 1, x.max() + 1)
    assert least._node().data.tiling is not None, "on a worker"
    found = np.asarray(sp.cumsum(sp.where(x > least, high, low)))
    plan, stats = running.last_run
    assert sum(s.name == "copy" for s in plan.stages) == 3
    assert plan.predicted_bytes == tuple(s.bytes_moved for s in stats.stages)
    np.testing.assert_array_equal(found, np.cumsum(np.where(a * 2 > 3, 13, -1)))
