"""Arrays on workers that are killed: programs go on, and give the right answer."""

from __future__ import annotations

import gc
import os
import sys
import threading
from functools import partial

import numpy
import pytest
from msgspec.structs import replace
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.arrays import Tiling
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.held import Tiles
from spartan_ng.backends.link import MasterLink
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError, WorkerLost
from spartan_ng.graph import build
from spartan_ng.recovery import Amount, computed_again
from tests.cluster.conftest import once, start
from tests.cluster.programs import evaluate, value
from tests.waiting import Gate, killing_one, until

X = numpy.random.default_rng(0).random((3000, 7))
"""More than comes to the program with the end of a job."""


@pytest.fixture(params=[True, False], ids=["replaced", "not replaced"])
def cluster(request):
    """Three workers that programs run on."""
    before = session.current().backend
    for cluster in start(3, restart=request.param):
        backend = cluster.connect()
        session.use(backend)
        try:
            with config.override(small_bytes=0):
                yield cluster
        finally:
            session.use(before)
            backend.close()


def kill(cluster, number):
    process = cluster.workers[number]
    process.kill()
    process.wait()


def of_rank(cluster, rank):
    """Which of the cluster's processes has a rank."""
    backend = session.current().backend
    assert isinstance(backend, ClusterBackend)
    label = backend.status().members.members[rank].label
    (number,) = [k for k, worker in enumerate(cluster.workers) if f"pid {worker.pid} " in label]
    return number


def _is_later(backend, epoch):
    return backend._link.members.epoch > epoch


@pytest.mark.slow
def test_what_is_left_of_an_array_stays_where_it_is_when_more_are_lost(cluster):
    with config.override(tiling="row"):
        y = (np.array(X) * 2).persist()
    backend, ref = session.current().backend, y._leaf()
    assert isinstance(backend, ClusterBackend)
    assert ref is not None
    tiles: dict = {}
    for rank in (1, 0):  # the last one takes their places
        epoch = backend.status().members.epoch
        kill(cluster, of_rank(cluster, rank))
        until(partial(_is_later, backend, epoch))
        backend.take_notice()
        tiles = {**tiles, rank: backend.tiles_of(ref)}
    assert [tile is None for tile in tiles[0].values()] == [True, True, False]
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)
    assert all(tile.value is None for some in tiles.values() for tile in some.values() if tile is not None)
    amount = session.current().recovered
    assert amount.lost == amount.computed == 2 * X.size // 3


@pytest.mark.slow
def test_results_on_a_worker_that_dies_are_computed_again(cluster):
    x = np.array(X)
    with config.override(tiling="row"):
        y = (x * 2).persist()
        z = (y + 1).persist()
    kill(cluster, 1)
    numpy.testing.assert_array_equal(z, X * 2 + 1)
    numpy.testing.assert_allclose((y + z).sum(axis=0), (X * 2 + X * 2 + 1).sum(axis=0), rtol=1e-12)
    amount = session.current().recovered
    assert 0 < amount.lost < 2 * X.size
    assert amount.computed <= 1.3 * amount.lost


def test_survival_costs_no_job_where_nothing_is_lost(cluster):
    backend, y = session.current().backend, np.array(X)
    assert isinstance(backend, ClusterBackend)
    first = int(backend._link.new_job().rpartition("/")[2])
    for _ in range(20):
        y = (y + 1).persist()
    assert int(backend._link.new_job().rpartition("/")[2]) == first + 21


def test_arrays_on_workers_of_other_ranks_than_before_stay_there(cluster):
    cut = replace(Tiling.grid(2, 1), first=1)
    now, backend = session.current(), session.current().backend
    assert isinstance(backend, ClusterBackend)
    (ref,) = now.evaluate([build.tile_as(build.map_("add", build.constant(X), build.constant(1.0)), cut)])
    epoch = backend.status().members.epoch
    kill(cluster, of_rank(cluster, 0))
    until(partial(_is_later, backend, epoch))
    numpy.testing.assert_array_equal(
        evaluate(now, build.map_("add", build.data(ref), build.constant(1.0))), X + 2
    )
    assert ref.value is None
    assert now.recovered == Amount()
    numpy.testing.assert_array_equal(value(now, ref), X + 1)


def test_what_was_let_go_is_made_again_on_the_way(cluster):
    w = np.array(X)
    for k in range(10):
        w = (w * 1.5 - k).persist()
    kill(cluster, 2)
    wanted = X
    for k in range(10):
        wanted = wanted * 1.5 - k
    numpy.testing.assert_allclose(w.sum(axis=0), wanted.sum(axis=0), rtol=1e-12)


def test_a_plan_that_asks_for_a_copy_which_went_is_made_again(cluster, monkeypatch):
    made = []
    plan = session.Session.plan

    def planned_too_early(self, roots, order=None):
        planned, leaves = plan(self, roots, order)
        made.append(planned)
        if len(made) == 1:
            planned = replace(planned, plan=replace(planned.plan, also=((0, 0),)))
        return planned, leaves

    y = (np.array(X) * 2).persist()
    monkeypatch.setattr(session.Session, "plan", planned_too_early)
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)
    assert len(made) == 2


def test_of_what_two_workers_have_nothing_is_computed_again(cluster):
    with config.override(tiling="row"):
        y = np.array(X)
        for k in range(3):
            y = (y * 2 - k).persist()
    np.checkpoint(y)
    kill(cluster, 1)
    numpy.testing.assert_array_equal(y + 1, ((X * 2) * 2 - 1) * 2 - 2 + 1)
    assert session.current().recovered.computed == 0


def test_copies_are_made_by_who_is_left_when_a_worker_dies_meanwhile(cluster, monkeypatch):
    with config.override(tiling="row"):
        y = (np.array(X) * 2).persist()
    replicas, backend = session.current()._replicas, session.current().backend
    assert replicas is not None
    assert isinstance(backend, ClusterBackend)
    looked, partner = [], backend.partner

    def partner_and_a_death():
        looked.append(partner())
        if len(looked) == 1:
            epoch = backend.status().members.epoch
            kill(cluster, of_rank(cluster, 2))
            until(partial(_is_later, backend, epoch))
        return looked[-1]

    monkeypatch.setattr(backend, "partner", partner_and_a_death)
    np.checkpoint(y)
    assert looked[0] == (1, 3)
    assert len(looked) > 1
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)


def test_who_is_left_alone_goes_on_without_copies(cluster):
    y = (np.array(X) * 2).persist()
    np.checkpoint(y)
    backend = session.current().backend
    assert isinstance(backend, ClusterBackend)
    for _ in range(2):
        epoch = backend.status().members.epoch
        kill(cluster, of_rank(cluster, 1))
        until(partial(_is_later, backend, epoch))
    z = (y + 1).persist()
    np.checkpoint(z)
    numpy.testing.assert_array_equal(z, X * 2 + 1)


@pytest.mark.slow
def test_of_a_sparse_array_that_two_workers_have_nothing_is_computed_again(cluster):
    matrix = sparse.random_array((3000, 70), density=0.05, rng=numpy.random.default_rng(0), format="csr")
    y = (np.array(matrix) * 2).persist()
    ref = y._leaf()
    assert ref is not None
    assert (ref.format, ref.value) == ("csr", None)
    np.checkpoint(y)
    kill(cluster, of_rank(cluster, 1))
    numpy.testing.assert_allclose(y.sum(axis=0), 2 * matrix.sum(axis=0), rtol=1e-12)
    assert session.current().recovered.computed == 0


def test_a_copy_takes_the_place_of_an_array_on_one_worker(cluster):
    with config.override(tiling="single"):
        y = (np.array(X) * 2).persist()
        np.checkpoint(y)
    kill(cluster, of_rank(cluster, 0))
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)
    numpy.testing.assert_array_equal(y + 2, X * 2 + 2)
    assert session.current().recovered.computed == 0


def test_what_would_take_long_to_compute_again_is_copied_without_being_asked_for(cluster):
    with config.override(tiling="row", recover_s=0.01):
        y, steps, now = np.array(X), 0, session.current()
        assert now._replicas is not None
        while not now._replicas.copies:
            y, steps = (y * 0.5 + 1).persist(), steps + 1
    kill(cluster, 1)
    wanted = X
    for _ in range(steps):
        wanted = wanted * 0.5 + 1
    numpy.testing.assert_array_equal(y, wanted)
    assert len(now._replicas.copies) == 1
    assert now.recovered == Amount(len(X) // 3 * 7, len(X) // 3 * 7), "one step, from the copy"


def test_random_draws_are_the_same_again(cluster):
    a = np.random.default_rng(7).random((3000, 5)).persist()
    before = numpy.array(a)
    b = (a + 1).persist()
    kill(cluster, 0)
    numpy.testing.assert_array_equal(b, before + 1)


def test_a_job_under_which_a_worker_dies_goes_on(cluster, tmp_path):
    x = (np.array(X) * 2).persist()
    with killing_one(tmp_path / "gate") as slow:
        numpy.testing.assert_array_equal(np.map(slow, x, dtype=float), X * 2 + 1)


def test_stages_that_were_done_are_run_again_for_what_was_lost_only(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(session, "SAVED_S", 0.0)
    with killing_one(tmp_path / "gate") as adds_one, config.override(tiling="row"):
        z = np.map(adds_one, np.sort(np.array(X), axis=0), dtype=float)
        numpy.testing.assert_array_equal(z, numpy.sort(X, axis=0) + 1)
    amount = session.current().recovered
    assert amount.computed == amount.lost > 0


def test_nothing_stays_of_a_job_under_which_a_worker_died(cluster, tmp_path, monkeypatch):
    """It is let go at once: a driver that waits for somebody looks for no circles of objects."""
    monkeypatch.setattr(session, "SAVED_S", 0.0)
    gc.collect()
    before = [o.key for o in gc.get_objects() if isinstance(o, Tiles)]
    gc.disable()
    try:
        with killing_one(tmp_path / "gate") as adds_one:
            total = float(np.map(adds_one, np.sort(np.array(X), axis=0), dtype=float).sum())
        assert total == pytest.approx((X + 1).sum())
        assert [o.key for o in gc.get_objects() if isinstance(o, Tiles)] == before
    finally:
        gc.enable()


def test_workers_may_die_one_after_the_other(cluster):
    y = (np.array(X) * 2).persist()
    for number in (0, 1):
        kill(cluster, number)
        y = (y + 1).persist()
        numpy.testing.assert_array_equal(y, X * 2 + number + 1)


def test_a_function_that_kills_is_called_on_two_workers_only(cluster, tmp_path):
    with Gate(tmp_path / "gate") as gate:

        def exits(block):
            gate.arrive()
            os._exit(1)

        with pytest.raises((UserFunctionError, WorkerLost), match=r"exits|no workers"):
            np.map(exits, np.array(X), dtype=float).compute()
        assert len(gate.arrived) <= 2


def test_with_no_retries_a_loss_is_an_error(cluster):
    y = (np.array(X) * 2).persist()
    kill(cluster, 1)
    with config.override(retries=0), pytest.raises(WorkerLost):
        numpy.asarray(y + 1)
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)


@pytest.mark.slow
def test_workers_that_join_take_part_in_what_is_left_of_a_job(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "pays", lambda plan, way, workers, profile: workers > plan.workers)
    before = session.current().backend
    for cluster in start(2):
        session.use(cluster.connect())
        with (
            Gate(tmp_path / "done") as done,
            Gate(tmp_path / "waits") as waits,
            config.override(small_bytes=0, tiling="row"),
        ):

            def first(block):
                done.arrive()
                return block + 1

            def last(block):
                waits.enter()
                return block * 2

            calls: list[int] = []

            def join(cluster=cluster, calls=calls):
                calls.extend(done.arrived)
                cluster.add_worker()

            once(lambda: len(set(waits.arrived)) == 2, join)
            once(lambda: len(set(waits.arrived)) == 3, waits.open)
            x = np.sort(np.map(first, np.array(X), dtype=float), axis=0)
            numpy.testing.assert_array_equal(np.map(last, x, dtype=float), numpy.sort(X + 1, axis=0) * 2)
            now = session.current()
            assert now.last_run is not None
            assert now.last_run[0].workers == 3
            assert len(done.arrived) == len(calls) > 0, "what was done is not done again"
            assert now.recovered == Amount(), "nothing was lost"
        session.current().backend.close()
        session.use(before)


def lost_one(cluster):
    """An array of which a worker has taken a tile with it, as is noticed."""
    backend = session.current().backend
    assert isinstance(backend, ClusterBackend)
    with config.override(tiling="row"):
        y = (np.array(X) * 2).persist()
    epoch = backend.status().members.epoch
    kill(cluster, of_rank(cluster, 1))
    until(partial(_is_later, backend, epoch))
    backend.take_notice()
    return backend, y, y._leaf()


@pytest.mark.slow
def test_tiles_stay_as_long_as_somebody_has_them(cluster):
    backend, y, ref = lost_one(cluster)
    left = {box: tile for box, tile in backend.tiles_of(ref).items() if tile is not None}
    assert len(left) == 2
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)  # it has been given other tiles
    for ((lo, hi), _), tile in left.items():
        found = evaluate(session.current(), build.map_("add", build.data(tile), build.constant(1.0)))
        numpy.testing.assert_array_equal(found, X[lo:hi] * 2 + 1)


def test_what_a_job_reads_stays_until_its_end(cluster, monkeypatch):
    """Arrays that are moved, or computed again, by one thread while another one's job begins."""
    backend = session.current().backend
    assert isinstance(backend, ClusterBackend)
    y = (np.array(X) * 2).persist()
    by = (np.array(X) + X).persist()
    ref, other, submit, one = y._leaf(), by._leaf(), MasterLink.submit, threading.Event()
    assert ref is not None
    assert other is not None

    def meanwhile(link, *args):
        if not one.is_set():
            one.set()
            backend.restore(ref, other)
            link.flush()
            numpy.testing.assert_array_equal(
                (np.array(X) + 3).persist(), X + 3
            )  # the workers have heard of it
        submit(link, *args)

    monkeypatch.setattr(MasterLink, "submit", meanwhile)
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)
    assert one.is_set()
    numpy.testing.assert_array_equal(y + 1, X * 2 + 1)


@pytest.mark.slow
def test_what_two_threads_have_lost_is_computed_once(cluster, monkeypatch):
    _, y, _ = lost_one(cluster)
    found: list = []
    here: list = []

    def work(k):
        found.append((k, (y + k).compute()))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]

    def with_the_other(*args):
        """The first goes on once the other one is here, too, or waits to be."""
        here.append(threading.current_thread())
        until(lambda: len(here) > 1 or any(_is_in(t, "_recover") for t in threads if t is not here[0]))
        return computed_again(*args)

    monkeypatch.setattr(session, "computed_again", with_the_other)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, values in found:
        numpy.testing.assert_array_equal(values, X * 2 + k)
    assert sorted(k for k, _ in found) == [0, 1]
    assert len(here) == 1


def _is_in(thread, function):
    """Whether a thread is in a function itself, and in none that it calls."""
    frame = sys._current_frames().get(thread.ident)
    return frame is not None and frame.f_code.co_name == function


@pytest.mark.slow
def test_threads_go_on_where_a_worker_is_killed_under_them(cluster):
    with config.override(tiling="row"):
        x = (np.array(X) * 2).persist()
    wrong: list = []
    begun, stop = [0] * 5, threading.Event()

    def work(column):
        try:
            while not stop.is_set() or begun[column] < 3:
                begun[column] += 1
                k = begun[column]
                found = np.sort(x[:, column] + k).compute()
                numpy.testing.assert_array_equal(found, numpy.sort(X[:, column] * 2 + k))
        except BaseException as error:  # noqa: BLE001 - it is told below
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(column,)) for column in range(5)]
    for thread in threads:
        thread.start()
    for number in range(2):
        until(_have_gone_on(begun, wrong))
        kill(cluster, number)
    until(_have_gone_on(begun, wrong))
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong


def _have_gone_on(begun, wrong):
    """Whether each has begun two more from now on, so that it has ended one, or something is wrong."""
    before = list(begun)
    return lambda: wrong or all(now > then + 1 for now, then in zip(begun, before, strict=True))
