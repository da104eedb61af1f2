"""Plans on a real dask cluster, and who may join it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import config
from spartan_ng.errors import ConnectionFailed, MasterUnreachable, WorkerLost
from tests.engines.test_plans import PROGRAMS, check_one
from tests.waiting import Gate

rng = numpy.random.default_rng(0)

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dask_array = pytest.importorskip("dask.array")


def made(*arrays):
    """The futures of arrays' tiles, when dask has made them."""
    backend: Any = session.current().backend
    handles = [tile.handle for a in arrays for tile in backend.tiles(a._node().data).values()]
    backend.tasks.wait(handles)
    return [handle.future for handle in handles]


@pytest.mark.slow
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
        held = engine.submit("held", wait_at, gate, last)
        told = []

        def report(done):
            told.append(done)
            if done == 0.75:
                gate.open()

        engine.follow([held], report)
        assert engine.get([held]) == [0.0]
    assert told[-1] == 1.0 or 0.75 in told


def wait_at(gate, value):
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


@pytest.mark.parametrize("lazy", [False, True])
def test_functions_read_arrays_that_are_on_the_engine(on_dask, lazy):
    """dask pickles them while nothing can be computed."""
    a = numpy.arange(60_000.0).reshape(3000, 20)
    x = np.array(a) * 2
    if not lazy:
        x.persist()
    found = np.map(lambda tile: tile * numpy.asarray(x[1, 1]), np.array(a + 1))
    numpy.testing.assert_array_equal(found, (a + 1) * 42)


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


@pytest.mark.slow
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
