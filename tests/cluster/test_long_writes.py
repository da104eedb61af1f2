"""What the driver gives to workers comes part by part where it is long, or more than they have room for."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends import carrying
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.errors import OutOfResources
from spartan_ng.wire.access import Access
from spartan_ng.wire.transfers import Put, PutShared
from spartan_ng.worker.memory.store import Store
from spartan_ng.worker.network import long_reads
from spartan_ng.worker.network.serving import TileServer
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import running
from tests.test_programs import running_on
from tests.waiting import until

LONG = 4096
SHAPES = [(300, 200), (60_000,), (3, 4, 5000), (60_000, 1), (1, 60_000)]
TURNED = {
    "as it lies": lambda x: x,
    "turned": lambda x: numpy.asfortranarray(x),
    "every other": lambda x: numpy.repeat(x, 2, axis=0)[::2],
}


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages with tiles that workers have heard."""
    monkeypatch.setattr(long_reads, "LONG_BYTES", LONG)
    monkeypatch.setattr(carrying, "PART_BYTES", 1000)
    take, found = TileServer._take, []

    def noted(server: Any, peer: str, message: Any) -> None:
        if isinstance(message, Put | PutShared):
            found.append(message)
        take(server, peer, message)

    monkeypatch.setattr(TileServer, "_take", noted)
    return found


def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no two processes share memory."""
    for place in ("worker.server", "worker.network.transfer", "worker.network.long_writes"):
        monkeypatch.setattr(f"spartan_ng.{place}.host_identity", lambda: "")


def _workers(address: str, memory: int | None) -> list[WorkerServer]:
    return [WorkerServer(address, access=Access(insecure=True), memory_bytes=memory) for _ in range(2)]


@pytest.mark.some(6)
@pytest.mark.parametrize("near", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", TURNED)
def test_no_message_is_long_and_the_array_is_the_drivers(
    insecure: Any, monkeypatch: pytest.MonkeyPatch, heard: list[Any], turned: str, shape: Any, near: bool
) -> None:
    """With 200 kB a worker has no room for its half of the array, and no use for a copy in memory."""
    if not near:
        _apart(monkeypatch)
    value = TURNED[turned](numpy.random.default_rng(0).random(shape))
    with running(*_workers(insecure.address, 200_000 if near else None)):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        off = config.override(small_bytes=0, disabled_passes=frozenset({"home"}))
        with running_on(client), off:
            found = numpy.asarray(np.array(value) * 2)
        numpy.testing.assert_array_equal(found, value * 2)
        client.close()
    parts = [message for message in heard if isinstance(message, Put) and message.box]
    assert len(parts) > 2
    assert all(sum(map(len, message.data.frames)) <= LONG + 200 for message in heard)


def test_workers_on_this_host_take_over_what_they_have_room_for(insecure: Any, heard: list[Any]) -> None:
    value = numpy.random.default_rng(0).random((300, 200))
    with running(*_workers(insecure.address, 100 * value.nbytes)):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        off = config.override(small_bytes=0, disabled_passes=frozenset({"home"}))
        with running_on(client), off:
            numpy.testing.assert_array_equal(numpy.asarray(np.array(value) * 2), value * 2)
        client.close()
    assert [type(message) for message in heard if message.key[0]] == [PutShared, PutShared]


def test_a_disk_that_is_full_ends_an_upload_and_nothing_is_left(
    insecure: Any, monkeypatch: pytest.MonkeyPatch, heard: list[Any]
) -> None:
    def full(store: Any, shape: Any, dtype: Any) -> Any:
        raise OutOfResources("the disk is full")

    workers = _workers(insecure.address, 200_000)
    value = numpy.random.default_rng(0).random((300, 200))
    with running(*workers):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        off = config.override(small_bytes=0, disabled_passes=frozenset({"home"}), retries=0)
        with running_on(client), off:
            with monkeypatch.context() as patch:
                patch.setattr(Store, "allocate", full)
                with pytest.raises(OutOfResources, match="the disk is full"):
                    numpy.asarray(np.array(value) * 2)
            for worker in workers:
                until(partial(_has_no_parts, worker))
            numpy.testing.assert_array_equal(numpy.asarray(np.array(value) * 2), value * 2)
        client.close()


def _has_no_parts(worker: WorkerServer) -> bool:
    return not worker._tiles._arrivals._arriving
