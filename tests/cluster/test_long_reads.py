"""Between workers that share no memory no message is long; what is comes part by part."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.config import config
from spartan_ng.wire.access import Access
from spartan_ng.wire.transfers import Tile
from spartan_ng.worker.network import long_reads
from spartan_ng.worker.network.transfer import Peers
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import running
from tests.test_programs import running_on
from tests.waiting import until

PROGRAMS = {
    "turned": lambda m, x: x.T + 0,
    "line": lambda m, x: x.T.reshape(-1) + 0,
    "sort": lambda m, x: m.sort(x.reshape(-1)),
    "scan": lambda m, x: m.cumsum(x * 2, axis=1),
    "rows": lambda m, x: (x * 2)[::-3] + 1,
    "rows picked": lambda m, x: (x * 2)[m.asarray(numpy.arange(0, 300, 7)[::-1])],
    "product": lambda m, x: (x * 2) @ x.T,
}


@pytest.mark.some(4)
@pytest.mark.parametrize("memory", [None, 200_000])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_message_is_long_and_the_answer_is_numpys(
    insecure: Any, monkeypatch: pytest.MonkeyPatch, name: str, memory: int | None
) -> None:
    """With 200 kB there is room for next to nothing."""
    for place in ("worker.server", "worker.network.transfer"):
        monkeypatch.setattr(f"spartan_ng.{place}.host_identity", lambda: "")
    monkeypatch.setattr(long_reads, "LONG_BYTES", 4096)
    monkeypatch.setattr(long_reads, "PART_BYTES", 1000)
    take, longest = Peers._take, [0]

    def noted(peers: Any, link: Any, message: Any) -> None:
        if isinstance(message, Tile):
            longest[0] = max(longest[0], sum(map(len, message.data.frames)))
        take(peers, link, message)

    monkeypatch.setattr(Peers, "_take", noted)
    access = Access(insecure=True)
    workers = [WorkerServer(insecure.address, access=access, memory_bytes=memory) for _ in range(2)]
    value = numpy.random.default_rng(0).random((300, 200))
    with running(*workers):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        off = config.override(small_bytes=0, disabled_passes=frozenset({"home"}))
        with running_on(client), off:
            found = numpy.asarray(PROGRAMS[name](np, np.array(value)))
        numpy.testing.assert_allclose(found, PROGRAMS[name](numpy, value), rtol=1e-12)
        client.close()
        for worker in workers:
            until(partial(_has_no_lease, worker))
    assert 0 < longest[0] < 4096 + 200


def _has_no_lease(worker: WorkerServer) -> bool:
    return worker._tiles.leases == 0
