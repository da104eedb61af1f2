"""What is left of clients, connections and clusters that went, and of jobs that failed."""

import gc

import numpy as np
import pytest

import spartan_ng as np_
from spartan_ng import session
from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.errors import (
    ConnectionFailed,
    OutOfResources,
)
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.access import Access
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import running, start
from tests.cluster.programs import doubled, evaluate, total
from tests.disks import small_disk
from tests.faults.connects import connected_again, grown, settled
from tests.faults.soak import JOBS
from tests.waiting import until

__all__ = ["small_disk"]


def test_connecting_again_leaves_nothing_of_the_connection_before(shared):
    with connected_again(shared, 8) as before:
        until(lambda: not grown(before, settled(shared)))


@pytest.mark.slow
def test_nothing_is_left_of_clients_that_have_left(master):
    """No tile, no lease, no plan, and no function with what it has captured."""
    workers = [WorkerServer(master.address) for _ in range(2)]
    with running(*workers):
        rng = np.random.default_rng(0)
        for _ in range(4):
            client = ClusterBackend.connect(master.address, workers=2)
            for job in JOBS:
                job(Session(client), rng)
            client.close()
        for worker in workers:
            try:
                until(lambda: not left(worker))  # noqa: B023 - it is asked here
            except BaseException:
                print(left(worker))  # whoever waits in vain is told for what
                raise


def left(worker):
    """What a worker has of clients, by what it is."""
    pool, parts, tiles = worker._pool, worker._parts, worker._tiles
    held = {
        "tiles": worker.store.complete(),
        "plans": parts._plans,
        "parts": parts._running,
        "programs": [r._programs for r in parts._executors.values() if r._programs],
        "segments": pool._live,
        "free segments": pool._free,
        "bytes": pool.used_bytes,
        "requests": worker._peers._requests,
        "clients": [name for name in tiles._readers if name.startswith("c")],
        "leases": tiles.leases,
    }
    return {name: what for name, what in held.items() if what}


@pytest.mark.parametrize("axis", [0, 1])
def test_what_cannot_be_mapped_travels_in_pieces_and_is_put_together_where_it_belongs(
    insecure, monkeypatch, axis
):
    for place in ("worker.server", "worker.network.transfer"):
        monkeypatch.setattr(f"spartan_ng.{place}.host_identity", lambda: "")
    access = Access(insecure=True)
    with running(*[WorkerServer(insecure.address, access=access) for _ in range(2)]):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        x = np.random.default_rng(0).random((1003, 500))
        ref = ArrayRef(x.shape, x.dtype, value=x)
        client.upload(ref, Tiling.grid(2, 1) if axis == 0 else Tiling.grid(1, 2))
        ref.value = None
        np.testing.assert_array_equal(client.gather(ref, box_of(x.shape)), x)
        np.testing.assert_array_equal(client.gather(ref, ((3, 1000), (100, 499))), x[3:1000, 100:499])
        client.close()


def test_arrays_that_only_the_old_cluster_has_outlive_connecting_elsewhere(shared):
    with config.override(small_bytes=0):
        np_.connect(shared.address, workers=3)
        old = session.current().backend
        x = np_.arange(300_000.0) + 1.0
        np_.persist(x)
        np_.connect(shared.address, workers=3)
        np.testing.assert_array_equal(np.asarray(x + 1.0), np.arange(300_000.0) + 2.0)
        del x
        gc.collect()
        until(lambda: closed(old))
        session.embed()


def closed(backend):
    try:
        return backend.workers == 0
    except ConnectionFailed:
        return True


def test_a_full_disk_is_an_error_with_worker_folder_and_bytes_and_the_next_job_runs(small_disk, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(small_disk))
    for cluster in start(1, memory=4 << 20):
        client = cluster.connect()
        kept: list[ArrayRef] = []
        with pytest.raises(OutOfResources, match=rf"pid \d+ on .*1,048,576 bytes.*{small_disk}"):
            kept.extend(upload(client, np.ones((128, 1024))) for _ in range(12))
        kept.clear()
        x = np.arange(10.0)
        assert evaluate(Session(client), total(build.constant(x))) == 45.0
        np.testing.assert_array_equal(
            evaluate(Session(client), doubled(build.constant(np.ones((128, 1024))))), 2.0
        )
        client.close()


def upload(client, x):
    ref = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(ref, Tiling.grid(1, 1))
    return ref
