"""Sockets that are closed while the other end breaks their connections: the process goes on."""

import os
import socket as sockets
import subprocess
import sys

import pytest

from spartan_ng.wire.monitor import Connection
from tests.waiting import until

BROKEN_BY_THE_OTHER_END = """
import random, socket, struct, sys, threading
from spartan_ng.wire.access import Access
from spartan_ng.wire.loop import Loop, send_frames

RESET = struct.pack("ii", 1, 0)
READY = b"\\x05READY" + b"\\x0bSocket-Type" + (6).to_bytes(4, "big") + b"ROUTER" + b"\\x08Identity" + bytes(4)

def greeted(server):
    connection, _ = server.accept()
    connection.sendall(b"\\xff" + bytes(8) + b"\\x7f\\x03\\x00" + b"NULL".ljust(20, b"\\0") + bytes(32))
    connection.recv(64, socket.MSG_WAITALL)
    connection.sendall(b"\\x04" + bytes([len(READY)]) + READY)
    connection.recv(1000)  # much more is on its way
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return connection

def breaks(connection, draw):
    for _ in range(draw.randrange(16_000)):  # at another moment each time
        pass
    connection.close()

draw = random.Random(0)
with socket.create_server(("127.0.0.1", 0)) as server:
    address = "tcp://127.0.0.1:%d" % server.getsockname()[1]
    for number in range(int(sys.argv[1])):
        loop = Loop()
        dealer = loop.dealer(address, b"identity", Access(insecure=True), None)
        for _ in range(3):
            send_frames(dealer, [bytes(250_000)] * 20)
        thread = threading.Thread(target=breaks, args=(greeted(server), draw))
        thread.start()
        if number % 2:
            loop.release(dealer)
        loop.close()
        thread.join()
print("goes on")
"""


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
    )


@pytest.mark.slow
def test_a_socket_is_closed_while_its_connection_breaks():
    """Half a message is under way then, which libzmq takes for a fault of its own, and aborts."""
    done = run(BROKEN_BY_THE_OTHER_END, 150)
    assert done.stdout == "goes on\n", done.stderr


def test_what_has_come_over_a_connection_is_known_before_it_is_read():
    with sockets.create_server(("127.0.0.1", 0)) as server, sockets.socket() as ours:
        ours.connect(server.getsockname())
        theirs, _ = server.accept()
        with theirs:
            connection = Connection.of(theirs.fileno())
            assert connection.received_bytes == 0
            ours.sendall(bytes(30_000))
            until(lambda: connection.received_bytes == 30_000)
    assert connection.received_bytes == 0
    one, other = sockets.socketpair()
    with one, other:
        other.sendall(bytes(10))
        assert Connection.of(one.fileno()).received_bytes == 0
