"""Smart tiling on four real workers: bytes as predicted, arrays kept twice, equal shares of skewed rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import spartan_ng as sp
from benchmarks import skew
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from tests.cluster.conftest import start
from tests.optimizer.tiling.test_copies import alternating
from tests.optimizer.tiling.test_uneven import nonzeros, power_law, tiling_of


@pytest.fixture(scope="module")
def four() -> Iterator[LocalCluster]:
    yield from start(4)


@pytest.fixture
def running(four: LocalCluster) -> Iterator[session.Session]:
    """Programs of this process run on the four workers."""
    before = session.current().backend
    client = four.connect()
    with config.override(small_bytes=0):
        yield session.use(client)
    session.use(before)
    client.close()


def last(running: session.Session) -> tuple[list[int], list[int]]:
    """Bytes of the last run's stages, predicted and measured."""
    assert running.last_run is not None
    plan, stats = running.last_run
    return list(plan.predicted_bytes), [s.bytes_moved for s in stats.stages]


@pytest.mark.slow
def test_an_array_is_kept_twice_for_the_next_program_too(running):
    a = np.random.default_rng(0).random((1000, 800)) - 0.5  # too little work to lend
    x = sp.tile_as(sp.array(a), "row").persist()
    moved = []
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(alternating(sp, x, 1)), alternating(np, a, 1))
        predicted, measured = last(running)
        assert predicted == measured
        moved.append(sum(measured))
    assert moved[0] > a.nbytes / 2
    assert moved[1] == moved[2] < a.nbytes / 20


@pytest.mark.slow
def test_the_slowest_worker_of_a_skewed_array_has_at_most_a_third_more_than_the_mean(running):
    a = power_law(rows=60_000, columns=800)
    w, y = np.random.default_rng(1).random(800), np.random.default_rng(2).random(60_000)
    x = sp.asarray(a)
    for _ in range(2):
        gradient = x.T @ (x @ w - y)
        np.testing.assert_allclose(np.asarray(gradient), a.T @ (a @ w - y))
    shares = nonzeros(tiling_of(x), a, 4)
    assert sum(shares) == a.nnz
    assert max(shares) <= 1.3 * a.nnz / 4
    assert sum(last(running)[1]) <= 4 * (800 + 800) * 8


@pytest.mark.slow
@pytest.mark.parametrize("query", ["gnmf", "likelihood"])
def test_factors_of_a_skewed_array_share_its_non_zeros(running, query):
    a = skew.power_law(20_000, 2000)
    u, v = np.random.default_rng(1).random((20_000, 8)), np.random.default_rng(2).random((2000, 8))

    def value(xp, x, u, v):
        if query == "gnmf":
            return v.T * (u.T @ x) / (u.T @ u @ v.T)
        return (x * xp.log(u @ v.T + 1e-9)).sum()

    x, u_, v_ = sp.asarray(a), sp.asarray(u), sp.asarray(v)
    found = np.asarray(value(sp, x, u_, v_))
    rows = np.repeat(np.arange(20_000), np.diff(a.indptr))
    dots = np.einsum("ij,ij->i", u[rows], v[a.indices])
    expected = value(np, a, u, v) if query == "gnmf" else (a.data * np.log(dots + 1e-9)).sum()
    np.testing.assert_allclose(found, expected)
    shares = nonzeros(tiling_of(x), a, 4)
    assert sum(shares) == a.nnz
    assert max(shares) <= 1.3 * a.nnz / 4


@pytest.mark.slow
def test_one_copy_of_an_input_comes_to_a_worker_whatever_its_threads():
    u, v = np.random.default_rng(0).random((600, 3000)), np.random.default_rng(1).random((500, 3000))
    moved = []
    for threads in (1, 3):
        with (
            LocalCluster(2, threads) as client,
            config.override(small_bytes=0, duplicate_bytes=0),
        ):
            before = session.current().backend
            current = session.use(client)
            a, b = sp.tile_as(sp.asarray(u), "row").persist(), sp.tile_as(sp.asarray(v), "row").persist()
            np.testing.assert_allclose(
                np.asarray(sp.sqrt(sp.exp(a) @ sp.exp(b).T)), np.sqrt(np.exp(u) @ np.exp(v).T)
            )
            assert current.last_run is not None
            plan, stats = current.last_run
            moved.append(stats.bytes_moved)
            assert stats.bytes_moved == sum(plan.predicted_bytes)
            session.use(before)
    assert moved[0] == moved[1] <= max(u.nbytes, v.nbytes)


def test_a_tiling_by_hand(running):
    a = np.random.default_rng(0).random((600, 500))
    y = sp.tile_as(sp.array(a), "block").persist()
    assert str(tiling_of(y)) == "2x2"
    np.testing.assert_array_equal(np.asarray(y), a)


def test_updates_are_learned(running):
    bins = 400_000

    def few(extents, tiles):
        yield int(extents[0][0][0]), tiles[0].sum(0)

    x = (sp.tile_as(sp.array(np.ones((8000, 50))), "row") + 0).persist()
    moved = []
    for _ in range(3):
        out = sp.join_update(few, np.add, [x], [0], (bins,), dtype=float)
        assert float(out.sum()) == 8000 * 50
        moved.append(sum(last(running)[1]))
    assert moved[1] == moved[2] < moved[0] / 10


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize(("power", "parts"), [({"threads": 2}, [2, 1, 1]), ({"memory": 1 << 28}, [1, 4, 4])])
def test_unequal_workers_get_work_in_proportion(power: dict[str, int], parts: list[int]) -> None:
    """One worker of three has twice the threads, or a quarter of the memory; ranks come as workers join."""
    cluster = LocalCluster(1, 1, 1 << 30)
    cluster.start()
    before = session.current().backend
    try:
        cluster.add_worker()
        cluster.add_worker(**power)
        client = cluster.connect()
        session.use(client)
        value = np.random.default_rng(0).random((300_000, 9))
        with config.override(small_bytes=0):
            x = sp.asarray(value)
            found = np.asarray(sp.exp(x).sum(0))
            np.testing.assert_allclose(found, np.exp(value).sum(0))
            boxes = [tiling_of(x).box_on(value.shape, rank) for rank in range(3)]
        rows = sorted(b[0][1] - b[0][0] if b else 0 for b in boxes)
        expected = sorted(300_000 * p // sum(parts) for p in parts)
        assert rows == pytest.approx(expected, abs=3)
        client.close()
    finally:
        session.use(before)
        cluster.stop()
