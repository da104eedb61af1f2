"""What workers have no room for is sorted in runs, whose pieces they ask each other for."""

from unittest.mock import patch

import numpy as np
import pytest

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.graph import build
from spartan_ng.ops import line_sorts
from spartan_ng.optimizer.fusion import labels
from spartan_ng.plan.stages import MergeParts
from spartan_ng.session import Session
from spartan_ng.system import mapping
from spartan_ng.wire.access import Access
from spartan_ng.wire.transfers import SharedTile, Tile
from spartan_ng.worker.network.transfer import Peers
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import running, start
from tests.cluster.programs import value
from tests.waiting import until


@pytest.mark.slow
def test_lines_larger_than_memory_are_sorted_over_workers():
    x = np.random.default_rng(0).integers(0, 1000, 1_000_003).astype(float)
    for cluster in start(2, memory=8 << 20):
        client = cluster.connect()
        session = Session(client)
        with patch.object(labels, "_LONG_LINE_BYTES", 0):
            node = build.along_axis("argsort", [build.constant(x)], 0, dtype=np.dtype(np.intp))
            (found,) = session.evaluate([node])
        assert session.last_run is not None
        (merge,) = (s for s in session.last_run[0].stages if isinstance(s, MergeParts))
        assert 0 < merge.length < len(x) // 8
        np.testing.assert_array_equal(value(session, found), np.argsort(x, kind="stable"))
        client.close()


@pytest.mark.parametrize("name", ["sort", "argsort"])
@pytest.mark.parametrize("is_near", [True, False])
def test_runs_of_a_worker_of_the_same_host_are_read_where_they_lie(insecure, monkeypatch, name, is_near):
    if not is_near:
        for place in ("worker.server", "worker.network.transfer"):
            monkeypatch.setattr(f"spartan_ng.{place}.host_identity", lambda: "")
    monkeypatch.setattr(mapping, "_DESCRIBED", 0)
    monkeypatch.setattr(labels, "_LONG_LINE_BYTES", 0)
    monkeypatch.setattr(line_sorts, "_SHORTEST", 256)
    take, sent, shown = Peers._take, [0], [0]

    def noted(peers, link, message):
        if isinstance(message, Tile):
            sent[0] += sum(map(len, message.data.frames))
        shown[0] += isinstance(message, SharedTile) and message.array.of_file
        take(peers, link, message)

    monkeypatch.setattr(Peers, "_take", noted)
    x = np.random.default_rng(0).integers(0, 9999, 60_013).astype(float)
    access = Access(insecure=True)
    workers = [WorkerServer(insecure.address, access=access, memory_bytes=100_000) for _ in range(2)]
    with running(*workers):
        client = ClusterBackend.connect(insecure.address, insecure=True, workers=2)
        session = Session(client)
        dtype = x.dtype if name == "sort" else np.dtype(np.intp)
        node = build.along_axis(name, [build.constant(x)], 0, dtype=dtype)
        (found,) = session.evaluate([node])
        between = sent[0]
        np.testing.assert_array_equal(value(session, found), getattr(np, name)(x, kind="stable"))
        client.close()
        until(lambda: all(worker._tiles.leases == 0 for worker in workers))
    slots = 1 if name == "sort" else 2
    assert shown[0] == (2 * slots if is_near else 0)
    assert between < x.nbytes // 10 if is_near else between > x.nbytes // 4
