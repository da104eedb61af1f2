"""Plans on a real dask cluster, whose workers are killed, added and asked to stop."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy
import pytest
from scipy import sparse

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import MASTER_VARIABLE, config
from spartan_ng.errors import ConnectionFailed, MasterUnreachable, UserFunctionError, WorkerLost
from spartan_ng.worker import tasks
from tests.engines.inline import InlineEngine
from tests.engines.test_plans import PROGRAMS, check_one
from tests.test_programs import running_on
from tests.waiting import Gate, killing_one, until

rng = numpy.random.default_rng(0)

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dask_array = pytest.importorskip("dask.array")
dask_engine = pytest.importorskip("spartan_ng.backends.engines.kinds.dask")
dask_retries = pytest.importorskip("spartan_ng.backends.engines.dask_retries")
LOST_WORKER_TIMEOUT = "distributed.deploy.lost-worker-timeout"


@pytest.fixture
def on_dask(client):
    client.wait_for_workers(3)
    before = session.current().backend
    np.connect(client)
    with config.override(small_bytes=0):
        yield client
    session.current().backend.retire()
    session.use(before)


def made(*arrays):
    """The futures of arrays' tiles, when dask has made them."""
    backend: Any = session.current().backend
    handles = [tile.handle for a in arrays for tile in backend.tiles(a._node().data).values()]
    backend.tasks.wait(handles)
    return [handle.future for handle in handles]


@pytest.mark.some(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_numpys_answer(on_dask, name):
    check_one(name)


def test_tasks_run_where_their_tiles_lie(on_dask):
    """None is taken for a root of the graph: those go to whichever worker is next."""
    with config.override(tiling="row"):
        x = np.array(numpy.ones((3000, 400))).persist()
        held = [np.sqrt(x).persist() for _ in range(5)]
    made(*held)

    def roots(dask_scheduler):
        tasks = [ts for ts in dask_scheduler.tasks.values() if ts.prefix.name == "sqrt"]
        return len(tasks), [ts.key for ts in tasks if dask_scheduler.is_rootish(ts)]

    count, found = on_dask.run_on_scheduler(roots)
    assert count > 2 * 3, f"as many as dask calls a large group, of {len(held)} programs"
    assert not found


def test_uploads_begin_where_words_do(on_dask):
    """What comes in a message of dask's lies anywhere in it."""
    held = [np.array(rng.random((n, 7))) for n in (2000, 2501, 3003, 4007)]
    with config.override(tiling="row"):
        sums = [float(x.sum()) for x in held]

    def uploads(dask_worker):
        tiles = [made.tiles[0] for key, made in dask_worker.data.items() if "upload" in str(key)]
        return [tile.flags.aligned for tile in tiles]

    found = [one for each in on_dask.run(uploads).values() for one in each]
    assert len(found) >= len(sums)
    assert all(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_dask_was_told_to_forget_is_computed_again(on_dask, seed):
    """As when a cluster is restarted, which cancels all futures of all clients; but not dask's own arrays."""
    random = numpy.random.default_rng(seed)
    a = random.random((6000, 10))
    x = np.array(a)

    def program():
        return (x * 3).sum(axis=0) + np.arange(60000.0).reshape(6000, 10).sum(axis=0)

    wanted = (a * 3).sum(axis=0) + numpy.arange(60000.0).reshape(6000, 10).sum(axis=0)
    numpy.testing.assert_allclose(program(), wanted)
    y = (x * 3).persist()
    z = np.sort(np.cumsum(y, axis=0), axis=0).persist()
    taken = np.from_dask(dask_array.from_array(a))
    every = [distributed.Future(key, on_dask) for key in list(on_dask.futures)]
    futures = [future for future in every if future.status != "cancelled"]
    with on_dask.as_current():  # dask's scheduler trips over what is under way to what is cancelled
        distributed.wait(futures)
    chosen = [future for future in futures if seed == 0 or random.random() < 0.5]
    on_dask.cancel(chosen, force=True)
    numpy.testing.assert_allclose(z + 1, numpy.sort(numpy.cumsum(a * 3, axis=0), axis=0) + 1)
    numpy.testing.assert_array_equal(y, a * 3)
    numpy.testing.assert_array_equal(on_dask.compute((y + 1).to_dask(), sync=True), a * 3 + 1)  # type: ignore[attr-defined]
    if seed == 0:
        for asks in (taken.compute, (taken + 1).compute, taken.to_dask):  # type: ignore[attr-defined]
            with pytest.raises(WorkerLost, match=r"dask was restarted, or .* an array of shape \(6000, 10\)"):
                asks()
    numpy.testing.assert_allclose(program(), wanted)
    numpy.testing.assert_array_equal(on_dask.compute(x.to_dask(), sync=True), a)  # type: ignore[attr-defined]
    np.connect(on_dask)
    numpy.testing.assert_allclose(program(), wanted)


@pytest.mark.slow
def test_a_bar_sees_tasks_between(on_dask, tmp_path):
    """What is done of a job whose result is not there yet; what nobody needs any more is done, too."""
    backend: Any = session.current().backend
    engine = backend.engine
    with Gate(tmp_path / "gate") as gate:
        last = engine.submit("first", float)
        for _ in range(2):
            last = engine.submit("next", abs, last)
        held = engine.submit("held", _held, gate, last)
        told = []

        def report(done):
            told.append(done)
            if done == 0.75:
                gate.open()

        engine.follow([held], report)
        assert engine.get([held]) == [0.0]
    assert told[-1] == 1.0 or 0.75 in told


def _held(gate, value):
    gate.enter()
    return value


def test_what_is_made_of_nothing_is_spread(on_dask):
    """All of it would be made where the plan lies, were that an object that each task reads."""
    for n in range(5):
        with config.override(tiling="row"):
            x = (np.arange(3_000_000.0) + n).persist()
        held = on_dask.who_has(made(x))
        assert len({worker for workers in held.values() for worker in workers}) == 3, held
        del x


def test_the_tiles_of_a_rank_lie_together(on_dask):
    """Of arrays of the program and of what is made of nothing; a task that reads several finds them there."""
    backend = session.current().backend
    assert isinstance(backend, EngineBackend)
    with config.override(tiling="row"):
        x, y = np.array(rng.random((900, 200))), np.array(rng.random((900, 60)))
        z = np.arange(90_000.0).reshape(900, 100).persist()
        float(x.sum() + y.sum() + z.sum())
    held = []
    for tiles in backend._held.every():
        found = on_dask.who_has([tile.handle.future for tile in tiles.values()])
        held.append([found[tile.handle.future.key] for tile in tiles.values()])
    assert len(held) == 3
    assert held[0] == held[1] == held[2]
    assert len({worker for workers in held[0] for worker in workers}) == 3


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
                found = np.map(partial(_held, gate), x, dtype=float) * 0 + found

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
            y = np.map(partial(_held, gate), y, dtype=float)
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


@pytest.mark.parametrize("lazy", [False, True])
def test_functions_read_arrays_that_are_on_the_engine(on_dask, lazy):
    """dask pickles them while nothing can be computed."""
    a = numpy.arange(60_000.0).reshape(3000, 20)
    x = np.array(a) * 2
    if not lazy:
        x.persist()
    found = np.map(lambda tile: tile * numpy.asarray(x[1, 1]), np.array(a + 1))
    numpy.testing.assert_array_equal(found, (a + 1) * 42)


@pytest.mark.slow
def test_a_function_that_kills_workers_is_named(on_dask):
    def exits(block):
        os._exit(3)

    with pytest.raises(UserFunctionError, match=r"exits \(at .*test_dask.py:\d+\)"):
        np.map(exits, np.array(numpy.ones((60, 4))), dtype=float).compute()
    on_dask.wait_for_workers(3)
    assert float(np.array(numpy.ones((60, 4))).sum()) == 240.0


def test_an_address_is_a_schedulers(client):
    before = session.current().backend
    try:
        np.connect("dask://" + client.scheduler.address.removeprefix("tcp://"))
        with config.override(small_bytes=0):
            assert float((np.array(numpy.ones((30, 4))) * 2).sum()) == 240.0
        session.current().backend.close()
        assert client.status == "running"
    finally:
        session.use(before)


@pytest.mark.slow
def test_dask_computes_what_it_is_given_where_only_an_address_is_known(client):
    """No other scheduler of dask's could. A client of the user's goes first; in the end dask is as it was."""
    address = "dask://" + client.scheduler.address.removeprefix("tcp://")
    a = numpy.arange(60_000.0)
    before = session.current().backend
    try:
        with config.override(small_bytes=0):
            for _ in range(2):  # the second comes before the first has gone
                np.connect(address)
                there = np.to_dask((np.array(a) * 2).persist())
                assert float(there.sum().compute()) == (a * 2).sum()
            mine = distributed.default_client()
            with distributed.Client(client.scheduler.address) as theirs:
                np.connect(address)
                assert distributed.default_client() is theirs is not mine
        session.current().backend.close()
    finally:
        session.use(before)
    del there
    mine.close()
    assert float(dask_array.ones(5, chunks=2).sum().compute()) == 5
    with pytest.raises(ValueError, match="No client"):
        distributed.default_client()


def test_an_address_where_nobody_is_says_so():
    with config.override(timeout_s=0.2), pytest.raises(MasterUnreachable, match=r"dask://127\.0\.0\.1:9"):
        np.connect("dask://127.0.0.1:9")


def test_more_workers_than_come_are_waited_for_in_vain(client):
    address = "dask://" + client.scheduler.address.removeprefix("tcp://")
    with config.override(timeout_s=0.2), pytest.raises(ConnectionFailed, match="dask"):
        np.connect(address, workers=50)


def test_a_client_that_was_closed_is_said_to_be(client):
    """Of arrays that were there, and of new work; another client, or none, begins anew."""
    a = numpy.arange(60_000.0).reshape(60, 1000)
    before = session.current().backend
    mine = distributed.Client(client.scheduler.address, set_as_default=False)
    try:
        np.connect(mine)
        with config.override(small_bytes=0):
            x, y = np.array(a), (np.array(a) * 2).persist()
            z = np.cumsum(x, axis=0).persist()
            x.persist()
            mine.close()
            for asks in (
                lambda: (x * 3).compute(),
                y.compute,
                (np.array(a) + 1).sum,
                lambda: y + 1,
            ):
                with pytest.raises(
                    MasterUnreachable, match=r"client was closed.*np\.connect.*np\.disconnect"
                ):
                    numpy.asarray(asks())
            np.disconnect()
            numpy.testing.assert_array_equal(x * 3, a * 3)
            numpy.testing.assert_array_equal(y, a * 2)
            np.connect(client)
            numpy.testing.assert_array_equal(x * 3, a * 3)
            numpy.testing.assert_array_equal(z + 1, numpy.cumsum(a, axis=0) + 1)
            numpy.testing.assert_array_equal(client.compute(z.to_dask(), sync=True), numpy.cumsum(a, axis=0))  # type: ignore[attr-defined]
    finally:
        session.current().backend.retire()
        session.use(before)


def test_what_is_no_client_is_refused():
    with pytest.raises(TypeError, match=r"distributed\.Client, not int"):
        np.connect(7)


@pytest.mark.parametrize("kind", ["submit", "map", "delayed"])
def test_arrays_are_arguments_of_dasks_own_tasks(on_dask, kind):
    """Those that are there; what waits would be computed in locks that dask's loop waits for."""
    a = numpy.arange(6000.0).reshape(60, 100)
    there, waits = (np.array(a) * 2).persist(), np.array(a) * 2
    given = {
        "submit": lambda x: on_dask.submit(_total, x).result(),
        "map": lambda x: on_dask.gather(on_dask.map(_total, [x]))[0],
        "delayed": lambda x: on_dask.compute(dask.delayed(_total)(x), sync=True),
    }[kind]
    assert given(there) == given(a * 2) == (a * 2).sum()
    with pytest.raises(TypeError, match="serialize") as raised:
        given(waits)
    # of a delayed object dask says what went wrong when it had tried again otherwise
    assert "persist()" in _causes(raised.value) or kind == "delayed"
    assert given(waits.persist()) == (a * 2).sum()


def _total(x):
    return float(numpy.asarray(x).sum())


def _causes(error):
    """What an error, and those that it comes of, say."""
    return "" if error is None else f"{error} {_causes(error.__cause__)}"


def test_dask_knows_arrays_by_their_elements_and_others_by_a_name(on_dask):
    from dask.tokenize import tokenize

    a = numpy.arange(60.0)
    here = np.array(a)
    assert tokenize(here) == tokenize(here) == tokenize(np.array(a))
    here[3] = 7
    assert tokenize(here) != tokenize(np.array(a))
    lazy = np.arange(1e6) * 2
    assert tokenize(lazy) != tokenize(lazy + 1)
    assert lazy._peek() is None


def test_a_cluster_object_is_connected_to(client):
    before = session.current().backend
    try:
        np.connect(client.cluster)
        with config.override(small_bytes=0):
            assert float((np.array(numpy.ones((30, 4))) * 2).sum()) == 240.0
        session.current().backend.close()
        assert client.status == "running"
        with pytest.raises(TypeError, match="cluster of dask's, not Future"):
            np.connect(distributed.Future("a", client))
    finally:
        session.use(before)


@pytest.mark.slow
def test_a_script_runs_on_an_engine_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import spartan_ng as np\n"
        "from spartan_ng import session\n"
        "np.config.small_bytes = 0\n"
        "print(session.current().backend.engine.name, session.current().backend.workers)\n"
        "print(float(np.ones((200, 3)).cumsum(axis=0).sum()))\n"
    )
    command = [
        sys.executable,
        "-m",
        "spartan_ng.cli",
        "run",
        "--on",
        "dask",
        "-n",
        "2",
        "--threads",
        "1",
        script,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["dask 2", "60300.0"]


@pytest.mark.parametrize("kind", ["csr", "compressed"])
def test_what_is_not_dense_here_is_to_dask(on_dask, kind):
    x = numpy.random.default_rng(0).integers(0, 5, (600, 50)).astype(float)
    ours = np.compress_columns(x, always=True) if kind == "compressed" else np.asarray(sparse.csr_array(x))
    there = ours.to_dask()  # type: ignore[attr-defined]
    for chunks, expected in ((there, x), (there.sum(axis=0), x.sum(axis=0)), (there.T @ there, x.T @ x)):
        found = on_dask.compute(chunks, sync=True)
        assert isinstance(found, numpy.ndarray)
        numpy.testing.assert_allclose(found, expected)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("shape", [(), (5,), (0, 3), (60, 7), (2, 50), (4, 5, 6)])
def test_arrays_pass_to_dask_and_back(on_dask, shape):
    x = numpy.arange(float(numpy.prod(shape))).reshape(shape)
    there = dask_array.from_array(x, chunks=3 if shape else -1)
    ours = np.from_dask(there + 1)
    numpy.testing.assert_array_equal(ours, x + 1)
    back = (ours * 2).to_dask()  # type: ignore[attr-defined]
    assert isinstance(back, dask_array.Array)
    assert back.shape == x.shape
    numpy.testing.assert_array_equal(on_dask.compute(back - 1, sync=True), (x + 1) * 2 - 1)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(600, 5), (2, 40), (1,), (0, 3), ()])
def test_what_lies_outside_passes_to_dask_as_it_is(on_dask, shape, tmp_path):
    """Neither the program nor the cluster has read it."""
    zarr = pytest.importorskip("zarr")
    a = rng.random(shape)
    zarr.create_array(tmp_path / "a.zarr", shape=shape, dtype=a.dtype)[...] = a
    x = np.from_zarr(tmp_path / "a.zarr")
    for found in (np.to_dask(x), np.to_dask(x * 1)):
        assert found.shape == shape
        numpy.testing.assert_array_equal(on_dask.compute(found + 1, sync=True), a + 1)
    numpy.testing.assert_array_equal(x, a)


def test_what_lies_on_another_cluster_passes_to_dask(on_dask):
    a = rng.random((600, 50))
    with running_on(EngineBackend(InlineEngine(2))):
        y = (np.array(a) * 2).persist()
        with running_on(EngineBackend(dask_engine.over(on_dask))):
            numpy.testing.assert_array_equal(on_dask.compute(np.to_dask(y), sync=True), a * 2)
            numpy.testing.assert_array_equal(y, a * 2)


def test_chunks_of_unknown_size_are_counted(on_dask):
    x = numpy.arange(50.0)
    there = dask_array.from_array(x, chunks=7)
    numpy.testing.assert_array_equal(np.from_dask(there[there > 20]), x[x > 20])


def test_what_is_masked_is_refused_and_not_taken_for_data(on_dask):
    masked = dask_array.ma.masked_greater(dask_array.arange(20.0, chunks=6), 5)
    with pytest.raises(TypeError, match="masked"):
        np.from_dask(masked)
    numpy.testing.assert_array_equal(
        np.from_dask(dask_array.ma.filled(masked, -1)), [*range(6), *(14 * [-1])]
    )
    hidden = dask_array.arange(20.0, chunks=6).map_blocks(numpy.ma.masked_less, 5, meta=numpy.empty(0))
    with pytest.raises(Exception, match="masked"):
        np.from_dask(hidden).compute()


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix"])
def test_sparse_chunks_become_dense(on_dask, form):
    sparse = pytest.importorskip("scipy.sparse")
    x = rng.integers(0, 3, (30, 8)).astype(float)
    there = dask_array.from_array(x, chunks=(7, 8)).map_blocks(getattr(sparse, form))
    numpy.testing.assert_array_equal(np.from_dask(there) + 1, x + 1)


KINDS = ["f4", "i2", "u8", "?", "c8", "f2", "S3", "U4", "M8[ns]", "m8[s]", "i4,f8"]


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(40))
def test_arrays_pass_however_they_are_cut(on_dask, seed):
    random = numpy.random.default_rng(seed)
    shape = tuple(random.integers(0, 9, random.integers(1, 4)).tolist())
    x = random.integers(0, 50, shape).astype(random.choice(KINDS[:-1]))
    x = numpy.zeros(shape, KINDS[-1]) if seed % 11 == 0 else x
    cuts = [numpy.sort(random.integers(0, n + 1, 2)) for n in shape]
    chunks = tuple((int(a), int(b - a), int(n - b)) for n, (a, b) in zip(shape, cuts, strict=True))
    found = np.from_dask(dask_array.from_array(x, chunks=chunks))
    assert found.dtype == x.dtype
    numpy.testing.assert_array_equal(found, x)
    numpy.testing.assert_array_equal(on_dask.compute(np.to_dask(found), sync=True), x)


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", [">i4", ">f2", ">f8", ">c16", ">M8[s]", ">m8[ms]", ">U3", ">i4,<f8"])
@pytest.mark.parametrize("shape", [(1,), (3000,), (60, 7), (90, 2000)])
def test_the_order_of_bytes_is_the_programs(on_dask, kind, shape):
    """In what comes to the program, and in what dask makes of it."""
    x = (numpy.arange(numpy.prod(shape, dtype=int)) % 900).reshape(shape).astype(kind)
    made = [
        np.array(x).persist(),
        np.map(numpy.copy, np.array(x), dtype=kind).persist(),
        np.array(x.astype(x.dtype.newbyteorder("="))).astype(kind),
        np.from_dask(dask_array.from_array(x)),
    ]
    for ours in made:
        there = ours.to_dask()  # type: ignore[attr-defined]
        assert there.dtype == ours.dtype == x.dtype
        for found in (numpy.asarray(ours), on_dask.compute(there, sync=True)):
            assert found.dtype == x.dtype
            assert found.tobytes() == x.tobytes()


@pytest.mark.parametrize("other", [numpy.arange(3), 5, [1], None])
def test_what_is_no_array_of_dasks_is_refused(on_dask, other):
    with pytest.raises(TypeError, match=rf"takes a dask\.array\.Array, not {type(other).__name__}"):
        np.from_dask(other)


@pytest.mark.slow
def test_dasks_arrays_need_dasks_cluster():
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(client\)"):
        np.from_dask(dask_array.ones(3))
    with pytest.raises(ConnectionFailed, match=r"np\.connect\(client\)"):
        np.to_dask(np.ones(3))
