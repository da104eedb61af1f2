"""Connections that must not come about: each is a clear error within its timeout."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spartan_ng.wire.messages as messages
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.link import MasterLink
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    MasterUnreachable,
    VersionMismatch,
    WorkerUnreachable,
)
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.session import Session
from spartan_ng.wire.access import Access, private_folder
from spartan_ng.wire.keys import Keys, keygen, keygen_for, revoke
from spartan_ng.worker.server import WorkerServer
from tests.cluster.conftest import once, refusal, running, serve
from tests.cluster.programs import doubled, evaluate, total
from tests.faults.stranger import Stranger
from tests.waiting import until

NOBODY_S = 0.2
"""How long to wait for whom there is not."""


@pytest.mark.slow
def test_nobody_there():
    text = refusal(MasterUnreachable, "tcp://127.0.0.1:9", NOBODY_S, insecure=True)
    assert "no master answers at tcp://127.0.0.1:9" in text
    folder = private_folder()
    assert str(folder) in refusal(MasterUnreachable, f"ipc://{folder}/master", NOBODY_S)
    folder.rmdir()


@pytest.mark.slow
def test_who_says_no_time_waits_as_long_as_the_option_says():
    with config.override(timeout_s=NOBODY_S):
        assert "within 0.2 s" in refusal(MasterUnreachable, "tcp://127.0.0.1:9", insecure=True)
        assert LocalCluster(1).timeout_s == NOBODY_S


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


@pytest.mark.slow
def test_a_port_that_speaks_something_else():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refusal(ConnectionFailed, f"tcp://127.0.0.1:{port}", NOBODY_S, insecure=True)


def test_a_master_without_workers(master, monkeypatch):
    """Once it has answered, nobody waits for them."""
    wait = MasterLink.wait_for_workers
    monkeypatch.setattr(MasterLink, "wait_for_workers", lambda link, least, _: wait(link, least, 0.0))
    assert "0 workers" in refusal(ConnectionFailed, master.address)


def test_another_protocol(master, monkeypatch):
    monkeypatch.setattr("spartan_ng.backends.reconnecting.PROTOCOL", messages.PROTOCOL + 1)
    text = refusal(VersionMismatch, master.address)
    assert f"protocol {messages.PROTOCOL}" in text
    assert "same version" in text


def test_a_client_cannot_be_a_worker_or_an_admin(keyed, keys):
    access = Access(Keys.load(keys, "client"))
    for role in ("worker", "admin"):
        with pytest.raises(AuthenticationFailed, match=f"client is no '{role}'"):
            MasterLink(keyed.address, access, config.timeout_s, role).open()


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
        once(lambda: is_refused(client._link.peers), tell)
        assert evaluate(Session(client), total(build.constant(x))) == x.sum()
        client.close()


@pytest.mark.slow
def test_a_worker_that_never_lets_us_in_is_an_error(keys):
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    worker = WorkerServer(server.address, access=Access(Keys.load(keys, "worker")))
    with running(server, worker):
        client = ClusterBackend.connect(server.address, keys)
        heard_of_clients(worker).users = {}
        peers = client._link.peers
        once(lambda: is_refused(peers), lambda: setattr(peers, "timeout_s", 0.5))
        with config.override(retries=0), pytest.raises(WorkerUnreachable, match=r"is not let in for 0\.5 s"):
            evaluate(Session(client), total(build.constant(np.ones((200, 100)))))
        client.close()


@pytest.mark.slow
def test_a_socket_that_somebody_has_removed_is_said():
    """Who tidies the folder of temporary files takes sockets, too: nobody said so."""
    server = MasterServer(f"ipc://{private_folder()}/master")
    worker = WorkerServer(server.address)
    with running(server, worker):
        client = ClusterBackend.connect(server.address)
        client._link.peers.timeout_s = 0.5
        place = Path(worker._tiles.address.removeprefix("ipc://"))
        place.unlink()
        said = rf"has not reached it for 0\.5 s: its socket {place} has been removed; XDG_RUNTIME_DIR"
        with config.override(retries=0), pytest.raises(WorkerUnreachable, match=said):
            evaluate(Session(client), total(build.constant(np.ones((200, 100)))))
        client.close()


def is_refused(peers):
    """Whether a worker has refused one who wants to read."""
    return any(link.is_refused for link in list(peers._links.values()))


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
        MasterLink.shut_down(connected := opened(server.address, keys, "admin"))
        assert (
            server._state.ends
        )  # whoever ends the master's process next ends none that has yet to tell its workers
        until(lambda: server.loop.closed and worker.loop.closed)
        assert connected._error is not None
        other.close()


def opened(address, keys, role):
    link = MasterLink(address, Access(Keys.load(keys, role)), config.timeout_s, role)
    link.open()
    return link


@pytest.mark.slow
def test_a_key_is_added_and_revoked_while_the_cluster_runs(keyed, tmp_path_factory, keys):
    keygen_for(keys, "alice", "client")
    client = None

    def let_in():
        nonlocal client
        try:
            client = ClusterBackend.connect(keyed.address, keys / "alice", workers=2)
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
