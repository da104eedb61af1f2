"""A few of the programs of `python -m tests.faults cuts`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from spartan_ng.config import config
from spartan_ng.errors import WorkerUnreachable
from spartan_ng.graph import build
from spartan_ng.session import Session
from spartan_ng.wire.channel import has_header
from spartan_ng.wire.codec import encode
from tests.cluster.programs import evaluate, user
from tests.faults.cuts import Cluster, outcomes
from tests.faults.network import Network, Wire
from tests.waiting import until

NAMED = {"WorkerDied", "WorkerLost", "WorkerUnreachable", "MasterUnreachable"}


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [21, 27, 28, 47])
def test_programs_over_breaking_connections_are_right_or_say_why(seed):
    found = outcomes(seed)
    assert found.pop("connections broken") > 0
    assert set(found) <= {"right", *NAMED}  # which of them hangs on what threads do in a simulated second
    assert found.total() == 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 2])
def test_who_could_not_be_reached_for_long_is_given_the_whole_time_by_a_new_request(seed):
    network = Network(seed)
    cluster = Cluster(network, shares_memory=False)
    cluster.client._link.peers.timeout_s = 3.0
    session = Session(cluster.client)
    x = np.random.default_rng(seed).random((60, 20))
    rows = user(lambda tile: tile + 1.0, build.constant(x))
    product = build.matmul(build.transpose(rows, (1, 0)), rows, x.dtype)
    try:
        with config.override(tiling="row"):
            evaluate(session, product)
            network.cut("worker 0", "worker 1", None)
            begin = network.now
            until(lambda: network.now > begin + 15.0)  # nobody waits meanwhile
            network.heal("worker 0", "worker 1")
            np.testing.assert_allclose(evaluate(session, product), (x + 1).T @ (x + 1))
            network.cut("worker 0", "worker 1", None)
            with pytest.raises(WorkerUnreachable, match="has not reached it for 3 s"):
                evaluate(session, product)
    finally:
        cluster.close()


def test_a_request_has_its_whole_time_whatever_was_asked_before():
    network = Network(0)
    cluster = Cluster(network, shares_memory=False)
    peers, other = cluster.workers[0]._peers, cluster.workers[1].name
    asked = []

    def ask():
        asked.append(peers.borrow(other, "a job", 0, 1.0))

    try:
        until(lambda: other in peers._members)
        network.cut("worker 0", "worker 1", None)
        peers.timeout_s = 10.0
        with network.changed:
            network.at(0.0, ask)
            network.at(9.0, ask)
            network.at(12.0, lambda: network.heal("worker 0", "worker 1"))
        until(lambda: len(asked) == 2)
        with pytest.raises(WorkerUnreachable, match="has not reached it for 10 s"):
            asked[0].result()
        assert asked[1].result() == ()  # that job has not begun there
    finally:
        cluster.close()


def test_readers_do_not_answer_what_is_sent_before_their_connection_is_cut():
    network = Network(0)
    cluster = Cluster(network, shares_memory=False)
    session = Session(cluster.client)
    x = np.ones((60, 20))
    probed, answers = [], []

    def carry(wire, to, frames):
        if to == 1 and not has_header(frames):  # else what comes each second
            answers.append(frames)
        Wire.carry(wire, to, frames)

    try:
        with config.override(tiling="row"):
            rows = user(lambda tile: tile + 1.0, build.constant(x))
            np.testing.assert_array_equal(evaluate(session, rows), x + 1)
        with network.changed:
            for worker in cluster.workers:
                port = worker._tiles._port
                socket: Any = port.socket
                for peer in port.peers:
                    wire = socket.wires[peer.identity]
                    network.at(0.0, partial(wire.carry, 0, encode(port._probe())))
                    wire.carry = partial(carry, wire)
                    probed.append(wire)
            begin = network.now
        until(lambda: network.now > begin + 0.5)
    finally:
        cluster.close()
    assert len(probed) >= len(cluster.workers)
    assert answers == []
