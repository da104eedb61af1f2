"""Connections that must not come about: each is a clear error within its timeout."""

import gc
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from collections import deque
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest

import spartan_ng as np_
import spartan_ng.wire.messages as messages
from spartan_ng import session
from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.link import Link
from spartan_ng.config import config
from spartan_ng.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    MasterUnreachable,
    OutOfResources,
    VersionMismatch,
    WorkerUnreachable,
)
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.rates import Rate
from spartan_ng.session import Session
from spartan_ng.wire.access import Access, private_folder
from spartan_ng.wire.codec import encode
from spartan_ng.wire.keys import Keys, keygen, keygen_for, revoke
from spartan_ng.wire.messages import PROTOCOL, AskStatus, Hello
from spartan_ng.wire.monitor import Connection
from spartan_ng.wire.port import greeting
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import once, running, serve, start
from tests.cluster.programs import doubled, evaluate, total
from tests.faults.connects import connect_again
from tests.faults.soak import JOBS
from tests.faults.stranger import Stranger, connected, has_ended
from tests.waiting import until


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys") / "ours"
    keygen(directory)
    return directory


@pytest.fixture
def master():
    """A master at a socket of this user's own."""
    with running(MasterServer(f"ipc://{private_folder()}/master")) as server:
        yield server


@pytest.fixture
def insecure():
    """A master that lets in everybody."""
    with running(MasterServer("tcp://127.0.0.1:*", Access(insecure=True))) as server:
        yield server


@pytest.fixture
def keyed(keys):
    """A master and two workers that demand keys."""
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    access = Access(Keys.load(keys, "worker"))
    with running(server, *[WorkerServer(server.address, access=access) for _ in range(2)]):
        yield server


NOBODY_S = 0.2
"""How long to wait for whom there is not."""


def refusal(kind, address, timeout_s=86_400.0, **options):
    """The message of the error that connecting raises."""
    with pytest.raises(kind) as caught:
        ClusterBackend.connect(address, timeout_s=timeout_s, **options)
    assert isinstance(caught.value, ConnectionError)
    return str(caught.value)


def test_nobody_there():
    text = refusal(MasterUnreachable, "tcp://127.0.0.1:9", NOBODY_S, insecure=True)
    assert "no master answers at tcp://127.0.0.1:9" in text
    folder = private_folder()
    assert str(folder) in refusal(MasterUnreachable, f"ipc://{folder}/master", NOBODY_S)
    folder.rmdir()


@pytest.mark.parametrize("address", ["nonsense", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:notaport"])
def test_addresses_that_are_none(address):
    assert address in refusal(MasterUnreachable, address, insecure=True)


def test_tcp_without_keys_is_not_even_tried():
    assert "keygen" in refusal(AuthenticationFailed, "tcp://127.0.0.1:9")
    with pytest.raises(AuthenticationFailed, match="keygen"):
        MasterServer("tcp://127.0.0.1:*")
    with pytest.raises(AuthenticationFailed, match="keygen"):
        WorkerServer("tcp://127.0.0.1:9")


def test_an_insecure_cluster_works(insecure):
    worker = WorkerServer(insecure.address, access=Access(insecure=True))
    with running(worker):
        client = ClusterBackend.connect(insecure.address, insecure=True)
        assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
        client.close()


def test_a_port_that_speaks_something_else():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refusal(ConnectionFailed, f"tcp://127.0.0.1:{port}", NOBODY_S, insecure=True)


def test_a_master_without_workers(master):
    assert "0 workers" in refusal(ConnectionFailed, master.address, 2.0)


def test_another_protocol(master, monkeypatch):
    monkeypatch.setattr("spartan_ng.backends.reconnecting.PROTOCOL", messages.PROTOCOL + 1)
    text = refusal(VersionMismatch, master.address)
    assert f"protocol {messages.PROTOCOL}" in text
    assert "same version" in text


def test_a_client_cannot_be_a_worker_or_an_admin(keyed, keys):
    access = Access(Keys.load(keys, "client"))
    for role in ("worker", "admin"):
        with pytest.raises(AuthenticationFailed, match=f"client is no '{role}'"):
            Link(keyed.address, access, 10.0, role).open()


def test_a_worker_may_hear_of_keys_later_than_they_of_it(keys):
    """Who is not let in tries again, and so comes in as soon as he may."""
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    worker = WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))
    with running(server, worker):
        client = ClusterBackend.connect(server.address, keys)
        door = heard_of_clients(worker)
        known, door.users = door.users, {}
        x = np.ones((200, 100))
        tell = lambda: setattr(door, "users", known)  # noqa: E731
        once(lambda: any(link.is_refused for link in client._link.peers._links.values()), tell)
        assert evaluate(Session(client), total(build.constant(x))) == x.sum()
        client.close()


def test_a_worker_that_never_lets_us_in_is_an_error(keys):
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    worker = WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))
    with running(server, worker):
        client = ClusterBackend.connect(server.address, keys)
        heard_of_clients(worker).users = {}
        client._link.peers.timeout_s = 0.5
        with config.override(retries=0), pytest.raises(WorkerUnreachable, match=r"is not let in for 0\.5 s"):
            evaluate(Session(client), total(build.constant(np.ones((200, 100)))))
        client.close()


def heard_of_clients(worker):
    """The door of a worker, once its master has told it who may read its tiles."""
    door = worker._tiles._port.door
    until(lambda: any(user.startswith("client ") for user in door.users.values()))
    return door


def test_an_admin_stops_a_cluster_and_a_worker_may_not_ask(keys):
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    worker = WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))
    with running(server, worker):
        client = ClusterBackend.connect(server.address, keys)
        client._link.shut_down()  # costs the client its connection
        until(lambda: client._link._error is not None)
        other = ClusterBackend.connect(server.address, keys)
        assert other.workers == 1
        Link.shut_down(connected := opened(server.address, keys, "admin"))
        assert (
            server._state.ends
        )  # whoever ends the master's process next ends none that has yet to tell its workers
        until(lambda: server.loop.closed and worker.loop.closed)
        assert connected._error is not None
        other.close()


def opened(address, keys, role):
    link = Link(address, Access(Keys.load(keys, role)), 10.0, role)
    link.open()
    return link


def test_a_key_is_added_and_revoked_while_the_cluster_runs(keyed, tmp_path_factory, keys):
    keygen_for(keys, "alice", "client")
    client = None

    def let_in():
        nonlocal client
        try:
            client = ClusterBackend.connect(keyed.address, keys / "alice", timeout_s=2.0, workers=2)
        except AuthenticationFailed:
            return False
        return True

    until(let_in)
    assert client is not None
    x = np.random.default_rng(0).random((3000, 100))
    np.testing.assert_array_equal(evaluate(Session(client), doubled(build.constant(x))), 2 * x)
    revoke(keys, "alice")
    until(lambda: client._link._error is not None)  # a revoked key is cut off
    refusal(AuthenticationFailed, keyed.address, keys=keys / "alice")
    stays = ClusterBackend.connect(keyed.address, keys, workers=2)
    assert evaluate(Session(stays), total(build.constant(np.arange(10.0)))) == 45.0
    stays.close()


def test_workers_outlive_their_master(keys):
    """A master that stops, for whatever reason, stops nobody else; the next one finds the workers."""
    access = Access(Keys.load(keys, "server"))
    first = MasterServer("tcp://127.0.0.1:*", access)
    worker = WorkerServer(first.address, access=Access(Keys.load(keys, "worker")))
    with running(worker):
        with running(first):
            ClusterBackend.connect(first.address, keys).close()
        with running(MasterServer(first.address, access)):
            client = ClusterBackend.connect(first.address, keys)
            assert client.status().members.members[0].name == worker.name
            assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
            client.close()


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


def test_right_keys(keyed, keys):
    client = ClusterBackend.connect(keyed.address, keys, workers=2)
    x = np.random.default_rng(0).random((3000, 100))
    session = Session(client)
    np.testing.assert_allclose(evaluate(session, total(build.constant(x))), x.sum())
    np.testing.assert_allclose(evaluate(session, doubled(build.constant(x))), 2 * x)
    client.close()


def test_missing_keys(keyed):
    assert "keys" in refusal(AuthenticationFailed, keyed.address)


def test_keys_of_another_cluster(keyed, tmp_path):
    keygen(tmp_path)
    assert "keys" in refusal(AuthenticationFailed, keyed.address, keys=tmp_path)


def test_a_client_whose_key_is_not_known(keyed, keys, tmp_path):
    keygen(tmp_path)
    (tmp_path / "server.key").write_bytes((keys / "server.key").read_bytes())
    assert "keys" in refusal(AuthenticationFailed, keyed.address, keys=tmp_path)


def test_keys_for_a_master_that_has_none(insecure, keys):
    assert "keys" in refusal(AuthenticationFailed, insecure.address, keys=keys)


def test_a_directory_without_keys(insecure, tmp_path):
    assert "keygen" in refusal(AuthenticationFailed, insecure.address, keys=tmp_path)


def test_a_refused_client_does_not_disturb_others(keyed, keys, tmp_path):
    keygen(tmp_path)
    client = ClusterBackend.connect(keyed.address, keys, workers=2)
    refusal(AuthenticationFailed, keyed.address, keys=tmp_path)
    x = np.arange(10.0)
    assert evaluate(Session(client), total(build.constant(x))) == 45.0
    client.close()


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "role", [["master", "--address", "tcp://0.0.0.0:*"], ["worker", "--bind", "tcp://0.0.0.0:*"]]
)
def test_daemons_refuse_open_addresses_without_keys(role):
    options = ["--master", "tcp://127.0.0.1:9"] if role[0] == "worker" else []
    done = subprocess.run(
        [sys.executable, "-m", "spartan_ng.cli", *role, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("spartan-ng keygen") == 1  # nobody starts it again
    assert "Traceback" not in done.stderr


def test_an_open_master_says_so_at_every_start():
    for _ in range(2):
        with subprocess.Popen(
            [
                sys.executable,
                "-m",
                "spartan_ng.cli",
                "master",
                "--address",
                "tcp://127.0.0.1:*",
                "--insecure",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            process.terminate()
            _, said = process.communicate()
        assert f"Warning: no keys protect {address}: whoever reaches it may run code" in said


def test_who_is_cut_off_stands_in_the_log(keyed, keys, caplog):
    mine = Keys.load(keys, "client")
    with Stranger(keyed.address, "valid key after hello", mine, mine.server_public) as stranger:
        stranger.say([b"{"])
        until(lambda: stranger.is_cut_off(0.1))
    until(lambda: "is cut off" in caplog.text)
    assert re.search(r"client 'a stranger' \(client client \S+\) is cut off: ", caplog.text)


def test_a_port_that_is_taken(master):
    with pytest.raises(ConnectionFailed, match="cannot serve"):
        MasterServer(master.address)


def test_a_worker_goes_on_looking_for_a_master(monkeypatch, caplog):
    """It says so, and joins the one that comes at last."""
    monkeypatch.setattr("spartan_ng.worker.server.ALONE_S", 0.01)
    address = f"ipc://{private_folder()}/master"
    with running(worker := WorkerServer(address)):
        until(lambda: caplog.text.count(f"no master answers at {address}") >= 2)
        assert "goes on trying" in caplog.text
        with running(MasterServer(address)):
            client = ClusterBackend.connect(address)
            assert client.status().members.members[0].name == worker.name
            client.close()


def test_a_worker_that_is_refused_ends(keyed, keys, monkeypatch, tmp_path):
    monkeypatch.setattr("spartan_ng.worker.server.ALONE_S", 0.5)
    keygen(tmp_path)
    (tmp_path / "server.key").write_bytes((keys / "server.key").read_bytes())
    worker = WorkerServer(keyed.address, access=Access(Keys.load(tmp_path, "worker")))
    with pytest.raises(AuthenticationFailed, match="refuses the connection"):
        worker.run()


def test_a_worker_does_not_look_for_a_master_where_others_could_be():
    folder = private_folder()
    server = MasterServer(f"ipc://{folder}/master")
    thread = serve(server)
    worker = WorkerServer(server.address)

    def open_it():
        folder.chmod(0o755)
        server.stop()

    once(lambda: worker._joined, open_it)
    try:
        with pytest.raises(AuthenticationFailed, match="are not safe: others may read or write"):
            worker.run()
        thread.join()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_strangers_get_no_tiles(keyed, keys, monkeypatch):
    """A process that knows the address of a worker, but not the cluster's keys, is not even heard."""
    client = ClusterBackend.connect(keyed.address, keys, workers=2)
    data = client.status().members.members[0].address
    refusal(AuthenticationFailed, data)
    client.close()


def test_connecting_again_leaves_nothing_of_the_connection_before(shared):
    before, after = connect_again(shared, 8)
    for name, usage in after.items():
        assert usage.descriptors <= before[name].descriptors + 2, name
        assert usage.threads <= before[name].threads + 2, name


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
            until(partial(has_nothing, worker))


def has_nothing(worker):
    pool, peers, parts = worker._pool, worker._peers, worker._parts
    held = [
        worker.store.complete(),
        parts._plans,
        parts._running,
        pool._live,
        pool._free,
        peers._requests,
    ]
    clients = [name for name in worker._tiles._readers if name.startswith("c")]
    programs = [r._programs for r in parts._runners.values()]
    return not any([*held, *programs, clients, worker._tiles.leases, pool.used_bytes])


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


def test_a_full_disk_is_an_error_with_worker_folder_and_bytes_and_the_next_job_runs(tmp_path, monkeypatch):
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "spartan-ng-test", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    try:
        for cluster in start(1, memory=4 << 20):
            client = cluster.connect()
            kept: list[ArrayRef] = []
            with pytest.raises(OutOfResources, match=rf"pid \d+ on .*1,048,576 bytes .*{tmp_path}"):
                kept.extend(upload(client, np.ones((128, 1024))) for _ in range(12))
            kept.clear()
            x = np.arange(10.0)
            assert evaluate(Session(client), total(build.constant(x))) == 45.0
            np.testing.assert_array_equal(
                evaluate(Session(client), doubled(build.constant(np.ones((128, 1024))))), 2.0
            )
            client.close()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def upload(client, x):
    ref = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(ref, Tiling.grid(1, 1))
    return ref
