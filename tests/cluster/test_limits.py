"""Who connects, greets or says too much is cut off or told so, and nobody else suffers."""

import threading
from collections import deque
from contextlib import ExitStack

import numpy as np
import pytest

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.errors import (
    AuthenticationFailed,
    ConnectionFailed,
)
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.rates import Rate
from spartan_ng.session import Session
from spartan_ng.wire.access import Access
from spartan_ng.wire.codec import encode
from spartan_ng.wire.keys import Keys, keygen_for
from spartan_ng.wire.messages import PROTOCOL, AskStatus, Hello
from spartan_ng.wire.monitor import Connection
from spartan_ng.wire.port import greeting
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import refusal, running
from tests.cluster.programs import doubled, evaluate, total
from tests.faults.stranger import Stranger, connected, has_ended
from tests.waiting import until


@pytest.mark.slow
def test_who_connects_too_often_is_cut_off_before_anything_is_read(keys, monkeypatch):
    """Those who are there are served; whoever greets costs their host nothing."""
    monkeypatch.setattr("spartan_ng.wire.strangers.OF_A_HOST", Rate(3, 0.0))
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    with running(server, WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))):
        for _ in range(8):
            ClusterBackend.connect(server.address, keys).close()
        client = ClusterBackend.connect(server.address, keys)
        with ExitStack() as stack:
            occupied = [stack.enter_context(connected(server.address)) for _ in range(4)]
            while occupied[-1].recv(100):  # ZeroMQ's greeting at most, and then the end
                pass
            assert "connected without any" in refusal(AuthenticationFailed, server.address, keys=keys)
            assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
        client.close()


def test_who_is_refused_and_goes_on_is_cut_off(keyed, keys):
    """The reason is told once: nobody who has not greeted has us send as often as they like."""
    mine = Keys.load(keys, "client")
    refused = [bytes(f) for f in greeting(Hello(PROTOCOL + 1, "client"))]
    with Stranger(keyed.address, "valid key before hello", mine, mine.server_public) as stranger:
        stranger.say(refused)
        stranger.say(refused)
        until(lambda: stranger.is_cut_off(0.1))


def test_who_says_too_much_is_told_so_and_others_are_served(keys, monkeypatch):
    """At the master and at workers; the next message costs the connection."""
    monkeypatch.setattr("spartan_ng.wire.port.MESSAGES", Rate(40, 0.0))
    keygen_for(keys, "loud", "client")
    loud = keys / "loud"
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    with running(server, WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))):
        client = ClusterBackend.connect(server.address, keys, workers=1)
        other = ClusterBackend.connect(server.address, loud, workers=1)
        worker = client.status().members.members[0]
        with pytest.raises(ConnectionFailed, match=r"client loud sends more than 0 messages a second"):
            deque((other.status() for _ in range(100)), maxlen=0)
        mine = Keys.load(loud, "client")
        for address, key in ((server.address, mine.server_public), (worker.address, worker.key.encode())):
            with Stranger(address, "valid key after hello", mine, key) as stranger:
                until(lambda: stranger.has_heard)
                for _ in range(100):
                    stranger.say([bytes(f) for f in encode(AskStatus())])
                until(lambda: stranger.is_cut_off(0.1))
        x = np.arange(400_000.0).reshape(4000, 100)
        np.testing.assert_array_equal(evaluate(Session(client), doubled(build.constant(x))), 2 * x)
        client.close()
        other.close()


def test_who_greets_too_often_is_told_so_and_others_come_as_before(keys, monkeypatch):
    monkeypatch.setattr("spartan_ng.wire.port.GREETINGS", Rate(3, 0.0))
    keygen_for(keys, "restless", "client")
    restless = keys / "restless"
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    with running(server, WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))):
        for _ in range(3):
            ClusterBackend.connect(server.address, restless).close()
        text = refusal(ConnectionFailed, server.address, keys=restless)
        assert "client restless connects more than 0 times a second" in text
        client = ClusterBackend.connect(server.address, keys, workers=1)
        assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
        client.close()


def test_what_a_peer_had_sent_before_it_is_cut_fills_no_log(keys, monkeypatch, caplog):
    monkeypatch.setattr("spartan_ng.wire.port._LINES", Rate(5, 0.0))
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    mine = Keys.load(keys, "client")
    with running(server):
        with Stranger(server.address, "valid key before hello", mine, mine.server_public) as stranger:
            for _ in range(500):
                stranger.say([b"no greeting"])
            until(lambda: stranger.is_cut_off(0.1))
        client = ClusterBackend.connect(server.address, keys, workers=0)
        client.close()
    assert 1 <= caplog.text.count("is cut off") <= 5


def test_the_last_words_of_who_has_left_are_no_strangers(insecure, caplog):
    """A peer that closes is forgotten where nothing can be sent to it, and what it had said is read then."""
    with Stranger(insecure.address, "valid key after hello", None, None) as peer:
        until(lambda: peer.has_heard)
        (there,) = insecure._port.peers
        insecure.loop.call(lambda: insecure._port.forget(there.name))
        until(lambda: not insecure._port.peers)
        peer.say([b"goodbye"])
        until(lambda: peer.is_cut_off(0.1))
    assert "is cut off" not in caplog.text


def test_what_a_peer_leaves_behind_cuts_nobody_else_off(insecure, caplog):
    """Its messages are read after it has gone, when another's connection has its descriptor."""
    go_on = threading.Event()
    bad = Stranger(insecure.address, "valid key after hello", None, None)
    until(lambda: bad.has_heard)
    before = insecure._port.peers[0].connection
    standing = threading.Event()

    def stand() -> None:
        standing.set()
        go_on.wait()

    insecure.loop.call(stand)
    until(standing.is_set)  # or the first message is read before, and its connection cut
    for _ in range(20):
        bad.say([b"what nobody says"])
    bad.leave()
    until(lambda: Connection.of(before.descriptor) != before)
    with ExitStack() as stack:
        others = [stack.enter_context(connected(insecure.address)) for _ in range(16)]
        until(lambda: Connection.of(before.descriptor).inode not in (0, before.inode))
        go_on.set()
        until(lambda: caplog.text.count("is cut off") == 20)
        assert not any(map(has_ended, others))


def test_who_has_greeted_and_left_takes_nobodys_place(keyed, keys, monkeypatch):
    """A worker waits for readers whose connections have broken, but not for more than there may be."""
    monkeypatch.setattr("spartan_ng.wire.port._MOST_PEERS", 5)
    mine = Keys.load(keys, "client")
    client = ClusterBackend.connect(keyed.address, keys, workers=2)
    worker = client.status().members.members[0]
    for _ in range(12):
        with Stranger(worker.address, "valid key after hello", mine, worker.key.encode()) as stranger:
            until(lambda: stranger.has_heard)
    x = np.random.default_rng(0).random((3000, 100))
    np.testing.assert_array_equal(evaluate(Session(client), doubled(build.constant(x))), 2 * x)
    client.close()
