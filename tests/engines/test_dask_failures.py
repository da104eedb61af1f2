"""What dask gives up, forgets and loses, and workers that are killed."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import warnings
from contextlib import contextmanager
from functools import partial

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import MASTER_VARIABLE, config
from spartan_ng.errors import UserFunctionError
from spartan_ng.worker import tasks
from tests.engines.test_dask import made, wait_at
from tests.waiting import Gate, killing_one, until

rng = numpy.random.default_rng(0)

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dask_engine = pytest.importorskip("spartan_ng.backends.engines.kinds.dask")
dask_retries = pytest.importorskip("spartan_ng.backends.engines.dask_retries")
LOST_WORKER_TIMEOUT = "distributed.deploy.lost-worker-timeout"


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_no_answer(on_dask, tmp_path):
    """It has uploaded tiles, results and a task that runs."""
    x = np.array(numpy.arange(6000.0).reshape(60, 100))
    y = (x * 2).persist()
    with killing_one(tmp_path / "gate") as slow:
        z = np.map(slow, y, dtype=float).sum(axis=0) + x.sum()
        found = numpy.asarray(z)
    wanted = (numpy.arange(6000.0).reshape(60, 100) * 2 + 1).sum(axis=0) + numpy.arange(6000.0).sum()
    numpy.testing.assert_allclose(found, wanted)
    numpy.testing.assert_array_equal(y, numpy.arange(6000.0).reshape(60, 100) * 2)


def give_up(dask_scheduler, what, lost=()):
    """Have dask make again what is called so, and give it up meanwhile; then what is `lost` goes."""
    given_up = []
    for task in list(dask_scheduler.tasks.values()):
        key = task.key
        if task.prefix.name.startswith(what) and task.state == "memory":
            dask_scheduler.transitions({key: "released"}, "test")
            if task.state == "processing":
                worker = task.processing_on
                error = distributed.KilledWorker(key, worker.clean(), 3)
                told = {"exception": pickle.dumps(error), "cause": key, "worker": worker.address}
                left = dask_scheduler.transition(key, "erred", stimulus_id="test", **told)
                dask_scheduler.transitions(left, "test")
                freed = {"op": "free-keys", "keys": [key], "stimulus_id": "test"}
                dask_scheduler.stream_comms[worker.address].send(freed)  # it lives, other than dask believes
                given_up.append(key)
    dask_scheduler.transitions(dict.fromkeys(lost, "released"), "test")
    return len(given_up)


MADE = ["place", "plan", "upload", "multiply"]
"""What a job of a product by a number has dask make."""


@pytest.mark.slow
@pytest.mark.parametrize("what", MADE)
def test_what_dask_gave_up_is_made_all_the_same(on_dask, what):
    """It counts for each key, for as long as there is one, how many workers were lost while they made it."""
    a = numpy.arange(60_000.0).reshape(600, 100)
    x = np.array(a)
    y = (x * 2).persist()
    made(y)
    assert on_dask.run_on_scheduler(give_up, what=what)
    for _ in range(2):
        numpy.testing.assert_array_equal(x * 2 + 1, a * 2 + 1)
        numpy.testing.assert_array_equal(np.map(numpy.negative, x, dtype=float), -a)
        numpy.testing.assert_array_equal(y, a * 2)
        numpy.testing.assert_array_equal(y + np.arange(60_000.0).reshape(600, 100), a * 3)


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("reads", ["it", "a job", "a job under way"])
@pytest.mark.parametrize("what", MADE)
def test_what_is_lost_of_what_dask_gave_up_is_not_waited_for_in_vain(
    on_dask, what, reads, dropped, tmp_path, monkeypatch
):
    """dask neither makes it again nor says so, whether the program has what was given up, or only what was
    made of it."""
    monkeypatch.setattr(dask_engine, "_LOOK_S", 0.02)
    a = rng.random((600, 100))
    with config.override(tiling="row"):
        x = np.array(a)
        y = (x * 2).persist()
        z = np.sort(y, axis=1).persist()
        lost = [future.key for future in made(y, z)[-len(made(z)) :]]
        if dropped:
            del y
        wanted = numpy.sort(a * 2, axis=1)
        with Gate(tmp_path / "gate") as gate:
            found = z if reads == "it" else z + 1
            if reads == "a job under way":
                found = np.map(partial(wait_at, gate), x, dtype=float) * 0 + found

            def end():
                if reads == "a job under way":
                    until(lambda: gate.arrived)
                on_dask.run_on_scheduler(give_up, what=what, lost=lost)
                gate.open()

            ending = threading.Thread(target=end)
            ending.start()
            if reads != "a job under way":
                ending.join()
            numpy.testing.assert_array_equal(found, wanted + (reads != "it"))
            ending.join()
        numpy.testing.assert_array_equal(z, wanted)


def test_what_was_made_before_dask_has_answered_is_there(on_dask, monkeypatch):
    """The scheduler says on another connection that it is."""
    y = (np.array(rng.random((600, 100))) * 2).persist()
    futures = made(y)
    on_dask.run_on_scheduler(give_up, what="multiply")
    until(lambda: any(future.status == "error" for future in futures))
    answering = on_dask.run_on_scheduler

    def late(*args):
        answer = answering(*args)
        until(lambda: all(future.status == "finished" for future in futures))
        return answer

    monkeypatch.setattr(on_dask, "run_on_scheduler", late)
    dask_retries.try_again(on_dask, futures)
    assert [future.status for future in futures] == ["finished"] * len(futures)


def test_what_dask_does_not_know_any_more_is_forgotten(on_dask):
    y = (np.array(rng.random((600, 100))) * 2).persist()
    futures = made(y)
    on_dask.run_on_scheduler(give_up, what="multiply")
    until(lambda: all(future.status == "error" for future in futures))

    def forget(dask_scheduler, keys):
        dask_scheduler.transitions(dict.fromkeys(keys, "forgotten"), "test")

    on_dask.run_on_scheduler(forget, keys=[future.key for future in futures])
    dask_retries.try_again(on_dask, futures)
    assert {future.status for future in futures} == {"cancelled"}


@contextmanager
def giving_up():
    """Dask gives up at once each worker that it loses; else it does 15 s later, if that was lost anew."""
    before = session.current().backend
    with (
        dask.config.set({LOST_WORKER_TIMEOUT: 0}),
        config.override(small_bytes=0),
        warnings.catch_warnings(action="ignore"),  # the port of dask's page may be another's
    ):
        yield
    session.current().backend.retire()
    session.use(before)


@pytest.mark.slow
@pytest.mark.parametrize("during", [False, True])
def test_workers_that_dask_has_given_up_are_started_anew(during, tmp_path):
    """Before a job, and while it waits for them: nobody else would ever come."""
    a = numpy.arange(6000.0).reshape(60, 100)
    with (
        giving_up(),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        Gate(tmp_path / "gate") as gate,
    ):
        np.connect(client)
        y = (np.array(a) * 2).persist()
        made(y)
        if during:
            y = np.map(partial(wait_at, gate), y, dtype=float)
        killer = threading.Thread(target=_end_all, args=(cluster, gate if during else None))
        killer.start()
        if not during:
            killer.join()
        numpy.testing.assert_array_equal(y + 1, a * 2 + 1)
        killer.join()
        assert len(cluster.worker_spec) == 2


def _end_all(cluster, gate):
    """Kill all workers, one of them in the gate; return when dask has given them up."""
    workers = {w.pid: w for w in cluster.workers.values()}
    if gate is not None:
        until(lambda: gate.arrived)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    if gate is not None:
        gate.open()
    until(lambda: not {*workers.values()} & {*cluster.workers.values()})


@pytest.mark.slow
def test_a_worker_keeps_little_beside_what_dask_knows_of(on_dask):
    """What dask cannot spill counts for its limits, too: a worker that has much of it never goes on."""
    assert float((np.array(numpy.ones((60, 4))) * 2).sum()) == 480.0

    def kept(dask_worker):
        return tasks._recycler.keep_bytes, dask_worker.memory_manager.memory_limit

    found = on_dask.run(kept).values()  # some have had no task of ours yet
    assert any(0 < kept_bytes <= limit_bytes // tasks._LIMIT_SHARE for kept_bytes, limit_bytes in found)


@pytest.mark.slow
def test_workers_of_a_run_on_dask_are_never_given_up():
    """The cluster is another process's than the program."""
    with giving_up(), dask_engine.local(1, 1) as variables:
        np.connect(variables[MASTER_VARIABLE])
        y = (np.array(numpy.arange(6000.0)) * 2).persist()
        (future,) = made(y)
        (pid,) = future.client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        numpy.testing.assert_array_equal(y + 1, numpy.arange(6000.0) * 2 + 1)


@pytest.mark.slow
def test_workers_of_a_script_leave_ctrl_c_in_its_terminal_to_it():
    with dask_engine.local(1, 1) as variables:
        engine = dask_engine.connect(variables[MASTER_VARIABLE], 1)
        (found,) = engine._client.run(signal.getsignal, signal.SIGINT).values()
        engine.close()
    assert found == signal.SIG_IGN


@pytest.mark.slow
def test_a_function_that_kills_workers_is_named(on_dask):
    def exits(block):
        os._exit(3)

    with pytest.raises(UserFunctionError, match=r"exits \(at .*test_dask_failures.py:\d+\)"):
        np.map(exits, np.array(numpy.ones((60, 4))), dtype=float).compute()
    on_dask.wait_for_workers(3)
    assert float(np.array(numpy.ones((60, 4))).sum()) == 240.0
