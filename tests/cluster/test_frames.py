"""What harmed clusters harms them no more: a bad message costs its sender the connection, and no more."""

import os
import secrets
import stat
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import zmq

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.errors import AuthenticationFailed, ConnectionFailed
from spartan_ng.graph import build
from spartan_ng.master.server import MasterServer
from spartan_ng.session import Session
from spartan_ng.wire.access import private_folder
from spartan_ng.wire.keys import Keys, Pair, keygen
from spartan_ng.wire.strangers import MOST
from tests.cluster.conftest import start
from tests.cluster.programs import evaluate, total
from tests.faults.frames import ANYBODY, MOST_STRANGERS_BYTES, Campaign, cluster_with_keys
from tests.faults.payloads import the_fifteen
from tests.faults.stranger import KINDS, Stranger, beginning, connected, has_ended
from tests.faults.usage import own_bytes
from tests.waiting import until

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
NOBODY = 65534
LONG_S = 60.0
"""Only a cluster that hangs takes so long."""

HALF_A_HANDSHAKE = beginning(b"CURVE") + b"\x06" + (250_000).to_bytes(8, "big") + bytes(199_000)
"""A frame as long as any may be, but for its end."""

IGNORED = {"a greeting without a role", "a channel's header alone"}
"""They are answered, or say nothing, and so cost nothing."""


@pytest.fixture(scope="module")
def ports():
    with cluster_with_keys(1) as found:
        yield found


@pytest.mark.some(40)
@pytest.mark.parametrize("port", [0, 1], ids=["master", "worker"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", the_fifteen(Path("unused")))
def test_a_bad_message_costs_its_sender_the_connection(ports, tmp_path, port, kind, name):
    mark = tmp_path / f"m{secrets.token_hex(4)}"
    address, server = ports.addresses[port]
    keys = Keys.load(ports.keys, "client")
    with Stranger(address, kind, keys, server) as stranger:
        stranger.say(the_fifteen(mark)[name])
        if not (name in IGNORED and kind.startswith("valid")):
            assert stranger.is_cut_off(LONG_S)
    assert ports.dead == 0
    assert not mark.exists()
    assert len(ports.client.status().members.members) == 1


def test_clients_are_served_meanwhile(ports):
    ports.check()
    assert ports.dead == 0


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("port", [0, 1], ids=["master", "worker"])
def test_who_only_occupies_connections_makes_room_for_others(ports, port):
    address, _ = ports.addresses[port]
    more = 20
    with ExitStack() as stack:
        occupied = [stack.enter_context(connected(address)) for _ in range(MOST + more)]
        for first in occupied[:more]:
            while first.recv(100):  # ZeroMQ's greeting, and then the end
                pass
        client = ClusterBackend.connect(ports.addresses[0][0], ports.keys, timeout_s=LONG_S)
        assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
        client.close()
    ports.check()
    assert ports.dead == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1], ids=["master", "worker"])
def test_what_strangers_have_sent_goes_back_to_the_system_though_they_stay(ports, number):
    """Frames that are under way have 256 kB each, and ZeroMQ takes memory for them at once."""
    ports.check()
    taken = partial(own_bytes, ports.processes[number].pid)
    before = taken()
    with ExitStack() as stack:
        strangers = [stack.enter_context(connected(ports.addresses[number][0])) for _ in range(200)]
        for stranger in strangers:
            with suppress(OSError):  # it is cut off already
                stranger.sendall(HALF_A_HANDSHAKE)
        until(lambda: all(map(has_ended, strangers)))
        until(lambda: taken() < before + (5 << 20))
    assert ports.dead == 0


@pytest.mark.slow
def test_random_damage(ports):
    campaign = Campaign(8, secrets.randbelow(1 << 32))
    campaign.harm(ports, "with keys", ANYBODY)
    found = campaign.found
    assert found.dead == 0
    assert not found.ran
    assert found.stranger_bytes <= MOST_STRANGERS_BYTES


@pytest.mark.parametrize("proof", ["none", "a key of its own"])
def test_a_false_master_learns_nothing(tmp_path, proof):
    """It has taken the address, but not the key: it does not even get a greeting."""
    keygen(tmp_path)
    context = zmq.Context()
    false = context.socket(zmq.ROUTER)
    if proof != "none":
        pair = Pair.fresh()
        false.curve_server, false.curve_secretkey = True, pair.secret
    port = false.bind_to_random_port("tcp://127.0.0.1")
    try:
        with pytest.raises(ConnectionFailed):
            ClusterBackend.connect(f"tcp://127.0.0.1:{port}", tmp_path, timeout_s=1.0)
        assert not false.poll(0)
    finally:
        context.destroy(linger=0)


@root
def test_a_false_master_in_a_folder_of_another_user_is_not_connected_to():
    folder = private_folder()
    context = zmq.Context()
    false = context.socket(zmq.ROUTER)
    false.bind(f"ipc://{folder}/master")
    os.chown(folder, NOBODY, NOBODY)
    try:
        with pytest.raises(AuthenticationFailed, match="another user"):
            ClusterBackend.connect(f"ipc://{folder}/master", timeout_s=1.0)
        assert not false.poll(0)
    finally:
        context.destroy(linger=0)
        os.chown(folder, 0, 0)
        (folder / "master").unlink(missing_ok=True)
        folder.rmdir()


ANOTHER_USER = """
import os, sys, socket, zmq
address, pids = sys.argv[1], sys.argv[2:]
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
path = address.removeprefix("ipc://")
try:
    os.listdir(os.path.dirname(path))
    print("listed")
except PermissionError:
    pass
with socket.socket(socket.AF_UNIX) as plain:
    try:
        plain.connect(path)
        print("connected")
    except PermissionError:
        pass
for pid in pids:
    try:
        print("mapped", [os.open(f"/proc/{pid}/fd/{n}", os.O_RDWR) for n in os.listdir(f"/proc/{pid}/fd")])
    except PermissionError:
        pass
dealer = zmq.Context().socket(zmq.DEALER)
dealer.linger = 0
dealer.reconnect_ivl = -1
monitor = dealer.get_monitor_socket()
dealer.connect(address)
while monitor.poll(5000):
    event = int.from_bytes(monitor.recv_multipart()[0][:2], "little")
    if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
        print("let in")
    if event in (zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL):
        break
    if event in (zmq.EVENT_CLOSED, zmq.EVENT_DISCONNECTED):
        break
print("done")
"""


def another_user(address, pids):
    done = subprocess.run(
        [sys.executable, "-c", ANOTHER_USER, address, *map(str, pids)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.slow
@root
def test_another_user_gets_nothing_of_a_local_cluster():
    for cluster in start(1):
        client = cluster.connect()
        folder = Path(cluster.address.removeprefix("ipc://")).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        pids = [w.pid for w in cluster.workers]
        worker = client.status().members.members[0].address
        for address in (cluster.address, worker):
            assert another_user(address, pids) == ["done"]
        assert evaluate(Session(client), total(build.constant(np.arange(10.0)))) == 45.0
        client.close()


@root
def test_the_kernel_tells_another_user_where_the_folder_does_not_stop_him():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        server = MasterServer(f"ipc://{folder}/master")
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            os.chmod(folder, 0o755)
            os.chmod(f"{folder}/master", 0o777)
            assert another_user(server.address, []) == ["listed", "connected", "done"]
        finally:
            server.stop()
            thread.join()
        os.makedirs(folder, exist_ok=True)  # the master has removed what was empty
