"""What dies, and what is left: workers, masters and clients killed at any time, and the next start."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.config import config
from spartan_ng.errors import MasterUnreachable, UserFunctionError, WorkerLost
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.cluster.conftest import alive, await_no_litter, litter, once, pids, start
from tests.cluster.programs import doubled, evaluate, expected, held, leaf, total, user, value
from tests.waiting import until

rng = np.random.default_rng(0)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def line(process):
    """The next line that a child prints."""
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.slow
def test_a_worker_killed_during_a_job(cluster, gate):
    client = cluster.connect()
    session = Session(client)
    node = build.constant(rng.random((60, 4)))
    x = rng.random((20000, 8))
    (lost,) = session.evaluate([doubled(build.constant(x))])
    once(lambda: gate.arrived, lambda: (kill(cluster.workers[1]), gate.open()))
    slow = total(user(held(gate), node))
    np.testing.assert_allclose(evaluate(session, slow), expected(node))  # once more, on the others
    until(lambda: client.workers == 2)  # the job may have needed the others alone
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    with config.override(retries=0), pytest.raises(WorkerLost, match=f"pid {cluster.workers[1].pid}"):
        value(session, lost)
    np.testing.assert_array_equal(value(session, lost), 2 * x)  # computed again
    client.close()


@pytest.mark.slow
def test_a_worker_killed_between_jobs(cluster):
    client = cluster.connect()
    session = Session(client)
    x = rng.random((50, 30))
    node, copies = build.constant(x), ArrayRef(x.shape, x.dtype, value=x)
    client.upload(copies, Tiling.copies(2))
    copies.value = None
    y = rng.random((20000, 8))
    (lost,) = session.evaluate([doubled(build.constant(y))])
    evaluate(session, total(node))
    kill(cluster.workers[0])
    until(lambda: client.workers == 2)
    np.testing.assert_allclose(evaluate(session, total(node)), x.sum())  # the driver has its value
    np.testing.assert_array_equal(client.gather(copies, box_of(x.shape)), x)  # a copy lives on
    for _ in range(2):
        with config.override(retries=0), pytest.raises(WorkerLost):
            evaluate(session, total(build.data(lost)))
    np.testing.assert_allclose(evaluate(session, total(build.data(lost))), 2 * y.sum())
    client.close()


def test_news_of_a_release_may_come_after_a_new_upload(cluster, monkeypatch):
    client = cluster.connect()
    session = Session(client)
    x = rng.random((50, 30))
    node = build.constant(x)
    evaluate(session, total(node))
    monkeypatch.setattr(client._link, "flush", lambda: None)  # the release goes out with the next job
    kill(cluster.workers[0])
    until(lambda: client.workers == 2)
    np.testing.assert_allclose(evaluate(session, total(node)), x.sum())
    client.close()


@pytest.mark.slow
def test_workers_may_join_at_any_time(cluster):
    client = cluster.connect()
    session = Session(client)
    x = rng.random((50, 30))
    (kept,) = session.evaluate([doubled(build.constant(rng.random((20000, 8))))])
    copies = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(copies, Tiling.copies(2))
    copies.value = None
    cluster.add_worker()
    until(lambda: client.workers == 4)
    assert value(session, kept).shape == (20000, 8)
    both = build.map_("add", build.data(copies), build.constant(x))
    np.testing.assert_array_equal(evaluate(session, both), 2 * x)
    client.close()


def test_a_master_killed_during_a_job_that_nobody_follows(cluster, gate, monkeypatch):
    client = cluster.connect()
    session = Session(client)
    node = build.constant(rng.random((60, 4)))
    monkeypatch.setattr(client._link, "_timeout_s", 0.0)  # none is waited for
    once(lambda: gate.arrived, lambda: kill(cluster.master))
    with pytest.raises(MasterUnreachable, match=r"is lost; np\.connect makes a new one"):
        evaluate(session, total(user(held(gate), node)))
    with pytest.raises(MasterUnreachable):
        evaluate(session, total(node))
    client.close()


CLIENT = """
import os, sys
import numpy as np
from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.cluster import ClusterBackend
client = ClusterBackend.connect(sys.argv[1])
x = np.ones((3000, 1000))
ref = ArrayRef(x.shape, x.dtype, value=x)
client.upload(ref, Tiling.grid(client.workers, 1))
print("ready", flush=True)
sys.stdin.read()
"""


def resident_bytes(cluster):
    total_bytes = 0
    for w in cluster.workers:
        with open(f"/proc/{w.pid}/status") as file:
            total_bytes += sum(int(line.split()[1]) << 10 for line in file if line.startswith("RssShmem"))
    return total_bytes


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_client_that_goes_away_leaves_no_tiles(shared, how):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    watcher = shared.connect()
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, shared.address],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert line(process) == b"ready\n"
        until(lambda: len(watcher.status().clients) == 2)  # one of before may have yet to be heard of
        process.send_signal(how)
        process.wait()
    until(lambda: len(watcher.status().clients) == 1)
    # What a client uploaded lay in segments of its own size: once dropped, the next one reuses them.
    before = resident_bytes(shared)
    x = np.ones((3000, 1000))
    ref = ArrayRef(x.shape, x.dtype, value=x)
    watcher.upload(ref, Tiling.grid(3, 1))
    assert resident_bytes(shared) <= before + x.nbytes + (1 << 20)
    watcher.close()


PARENT = """
import sys
import numpy as np
from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.backends.local import LocalCluster
cluster = LocalCluster(2, memory=4 << 20)
cluster.start()
client = cluster.connect()
for i in range(8):
    x = np.ones((128, 1024))
    ref = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(ref, Tiling.copies(2))
    globals()[f"kept{i}"] = ref
print(*[p.pid for p in (cluster.master, *cluster.workers)], flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_killed_program_takes_its_local_cluster_with_it():
    before = litter()
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        children = [int(p) for p in line(process).split()]
        assert len(children) == 3
        assert all(alive(p) for p in children)
        kill(process)
    until(lambda: not any(alive(p) for p in children))
    await_no_litter(before)


@pytest.mark.slow
def test_what_is_sent_beyond_the_memory_goes_to_disk_and_the_next_job_runs():
    for cluster in start(2, memory=8 << 20):
        client = cluster.connect()
        session = Session(client)
        x = rng.random((4000, 1000))
        np.testing.assert_allclose(evaluate(session, total(build.constant(x))), x.sum())
        small = rng.random((400, 100))
        np.testing.assert_allclose(evaluate(session, total(build.constant(small))), small.sum())
        client.close()


@pytest.mark.slow
def test_more_data_than_memory_spills_and_comes_back():
    for cluster in start(2, memory=8 << 20):
        client = cluster.connect()
        arrays = [rng.random((1 << 9, 1 << 10)) for _ in range(8)]
        refs = []
        for x in arrays:
            ref = ArrayRef(x.shape, x.dtype, value=x)
            client.upload(ref, Tiling.grid(2, 1))
            ref.value = None
            refs.append(ref)
        for x, ref in zip(arrays, refs, strict=True):
            np.testing.assert_array_equal(client.gather(ref, box_of(x.shape)), x)
        client.close()


def test_a_users_function_that_kills_its_process(cluster):
    client = cluster.connect()
    session = Session(client)
    node = build.constant(rng.random((60, 4)))

    def dies(tile):
        if tile[0, 0] == node_first:
            os._exit(3)
        return tile

    node_first = float(leaf(node)[0, 0])
    with pytest.raises(UserFunctionError, match=r"dies \(at .*programs.py:\d+\): the processes of two"):
        evaluate(session, total(user(dies, node)))
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))
    client.close()


@pytest.mark.slow
def test_a_worker_that_cannot_start_is_an_error_at_once():
    from spartan_ng.backends.local import LocalCluster

    cluster = LocalCluster(1)
    cluster.start()
    try:
        kill(cluster.workers[0])
        cluster.workers.append(cluster._spawn("worker", ["--master", cluster.address, "--threads", "none"]))
        with pytest.raises(ConnectionError, match="code 2"):
            cluster.connect()
    finally:
        cluster.stop()


def test_starting_again_after_everything_was_killed():
    before = litter()
    from spartan_ng.backends.local import LocalCluster

    cluster = LocalCluster(2)
    cluster.start()
    for process in (cluster.master, *cluster.workers):
        kill(process)
    cluster.stop()
    with LocalCluster(2) as client:
        node = build.constant(rng.random((60, 4)))
        np.testing.assert_allclose(evaluate(Session(client), total(node)), expected(node))
    assert pids(cluster) == []
    await_no_litter(before)


@pytest.fixture
def impatient():
    """Three workers and a master that gives them up after a third of the usual time."""
    with config.override(heartbeat_s=2.0):
        yield from start(3)


@pytest.mark.slow
def test_a_worker_that_falls_silent_is_given_up_and_may_come_back(impatient):
    cluster = impatient
    client = cluster.connect()
    session = Session(client)
    node = build.constant(rng.random((60, 4)))
    evaluate(session, total(node))
    silent = cluster.workers[2]
    silent.send_signal(signal.SIGSTOP)
    try:
        with config.override(tiling="row"):  # once more, on the others
            np.testing.assert_allclose(evaluate(session, total(doubled(node))), 2 * expected(node))
        assert client.workers == 2
    finally:
        silent.send_signal(signal.SIGCONT)
    until(lambda: client.workers == 3)
    np.testing.assert_allclose(evaluate(session, total(doubled(node))), 2 * expected(node))
    product = build.matmul(build.transpose(node, (1, 0)), node, np.dtype(float))
    np.testing.assert_allclose(evaluate(session, product), leaf(node).T @ leaf(node))
    client.close()


def test_a_worker_that_comes_back_has_not_the_tiles_that_it_had(shared):
    """It keeps its name; nobody may wait for what it has dropped."""
    client = shared.connect()
    session = Session(client)
    (ref,) = session.evaluate([doubled(build.constant(rng.random((20000, 8))))])
    held = client._held[ref]
    before = tuple(replace(m, since=m.since - 1) for m in held.members)
    held.members = before
    client.recover = None
    with pytest.raises(WorkerLost, match="not a member of the cluster any more"):
        client.gather(ref, box_of(ref.shape))
    client._held.settled = replace(client._held.settled, members=before)
    assert client.workers == 3
    with pytest.raises(WorkerLost, match="took tiles"):
        client.gather(ref, box_of(ref.shape))
    client.close()
