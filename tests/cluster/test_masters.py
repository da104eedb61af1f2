"""Masters that die, and those that follow them: arrays live, jobs are run again, clients need do nothing."""

import signal
import subprocess
import sys
from contextlib import ExitStack

import numpy as np
import pytest

from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.session import Session
from spartan_ng.wire.access import private_folder
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import once, running, serve, start
from tests.cluster.programs import doubled, evaluate, expected, held, total, user, value
from tests.faults.keyed import KeyedCluster
from tests.waiting import until

rng = np.random.default_rng(0)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.fixture
def cluster():
    """Whose master, and workers, are started again."""
    yield from start(3)


@pytest.fixture
def client(cluster):
    client = cluster.connect()
    with config.override(retries=0):  # nothing is lost, so nothing is computed again
        yield client
    client.close()


def uploaded(client, x):
    ref = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(ref, Tiling.grid(3, 1))
    ref.value = None
    return ref


@pytest.mark.slow
def test_arrays_outlive_their_master(cluster, client):
    session = Session(client)
    x = rng.random((20000, 8))
    (kept,) = session.evaluate([doubled(build.constant(x))])
    given = uploaded(client, x)
    members = client._link.members.members
    for _ in range(2):
        kill(cluster.master)
        np.testing.assert_array_equal(client.gather(given, box_of(x.shape)), x)  # needs no master
        np.testing.assert_array_equal(value(session, kept), 2 * x)
        assert evaluate(session, total(build.data(kept))) == pytest.approx(2 * x.sum())
    assert client._link.members.members == members


@pytest.mark.slow
def test_a_job_that_ran_is_run_again(cluster, client, gate):
    session = Session(client)
    node = build.constant(rng.random((60, 4)))
    once(lambda: gate.arrived, lambda: (kill(cluster.master), gate.open()))
    np.testing.assert_allclose(evaluate(session, total(user(held(gate), node))), expected(node))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


def test_what_is_released_while_there_is_no_master_goes():
    first = MasterServer(f"ipc://{private_folder()}/master")
    workers = [WorkerServer(first.address) for _ in range(3)]
    with ExitStack() as stack:
        thread = serve(first)
        stack.enter_context(running(*workers))
        client = ClusterBackend.connect(first.address, workers=3)
        session = Session(client)
        x = rng.random((600, 8))
        kept, gone = uploaded(client, x), uploaded(client, x)
        (made,) = session.evaluate([doubled(build.data(gone))])
        first.stop()
        thread.join()
        until(lambda: client._link._lost_at is not None)
        del gone, made
        until(lambda: not client._link._dead)  # said to nobody
        stack.enter_context(running(MasterServer(first.address)))
        assert evaluate(session, total(build.data(kept))) == pytest.approx(x.sum())
        (key,) = {held.key for held in client._held._arrays.values()}
        until(lambda: all(worker.store.complete() == [key] for worker in workers))
        client.close()


@pytest.mark.slow
def test_a_worker_that_dies_with_its_master_is_lost_alone(cluster):
    client = cluster.connect()
    session = Session(client)
    x = rng.random((20000, 8))
    (kept,) = session.evaluate([doubled(build.constant(x))])
    kill(cluster.workers[1])
    kill(cluster.master)
    np.testing.assert_array_equal(value(session, kept), 2 * x)  # computed again
    until(lambda: client.workers == 3)
    assert evaluate(session, total(build.data(kept))) == pytest.approx(2 * x.sum())
    client.close()


@pytest.mark.slow
def test_a_client_that_its_master_has_given_up_comes_back(cluster):
    """What it had is computed again, or is still on the driver."""
    with config.override(heartbeat_s=0.5):
        client = cluster.connect()
    session = Session(client)
    x = rng.random((20000, 8))
    (kept,) = session.evaluate([doubled(build.constant(x))])
    cluster.master.send_signal(signal.SIGSTOP)
    until(lambda: client._link._lost_at is not None)
    cluster.master.send_signal(signal.SIGCONT)
    np.testing.assert_array_equal(value(session, kept), 2 * x)
    client.close()


@pytest.mark.slow
def test_a_master_with_keys_is_followed():
    cluster = KeyedCluster(2)
    cluster.start()
    try:
        client = cluster.connect()
        session = Session(client)
        x = rng.random((20000, 8))
        (kept,) = session.evaluate([doubled(build.constant(x))])
        kill(cluster.master)
        with config.override(retries=0):
            np.testing.assert_array_equal(value(session, kept), 2 * x)
            assert evaluate(session, total(build.data(kept))) == pytest.approx(2 * x.sum())
        client.close()
    finally:
        cluster.stop()


@pytest.mark.slow
def test_a_standby_takes_over():
    for cluster in start(2, restart=False):
        client = cluster.connect()
        session = Session(client)
        x = rng.random((20000, 8))
        (kept,) = session.evaluate([doubled(build.constant(x))])
        command = [
            sys.executable,
            "-m",
            "spartan_ng.cli",
            "master",
            "--address",
            cluster.address,
            "--standby",
        ]
        standby = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert standby.stdout is not None
        try:
            assert "somebody else does" in standby.stdout.readline()
            kill(cluster.master)
            assert standby.stdout.readline() == f"master at {cluster.address}\n"
            with config.override(retries=0):
                assert evaluate(session, total(build.data(kept))) == pytest.approx(2 * x.sum())
            client.close()
        finally:
            standby.terminate()
            standby.wait()
            standby.stdout.close()
