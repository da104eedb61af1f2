"""Messages between the two ends of one connection, over sockets in a folder and over TCP."""

import shutil
import socket as sockets
from pathlib import Path

import pytest

from spartan_ng.wire.access import Access, Authenticator, private_folder
from spartan_ng.wire.connection import REFUSED
from spartan_ng.wire.framing import (
    ACCEPTED_BYTES,
    LONG_ACCEPTED_BYTES,
    LONG_FRAME_BYTES,
    OWN_FRAME_BYTES,
    join,
)
from spartan_ng.wire.keys import Keys, keygen
from spartan_ng.wire.loop import Loop, send_frames
from spartan_ng.wire.pieces import whole

HEADER = b"\x91header"


class Pair:
    """A server and who has connected to it, on one loop; what each of them receives."""

    def __init__(self, address):
        self.loop = Loop()
        access = Access(insecure=True)
        self.router, address = self.loop.router(address, access, None, Authenticator())
        self.dealer = self.loop.dealer(address, b"reader", access, None)
        self.heard = []
        self.loop.watch(self.router, lambda: self.read(self.router, 1))
        self.loop.watch(self.dealer, lambda: self.read(self.dealer, 0))
        self.exchange([HEADER])  # the server knows the other end from then on

    def read(self, socket, first):
        frames = [f.buffer for f in socket.recv_multipart(copy=False)]
        self.heard.append(join(frames[first:]))

    def exchange(self, frames, to=None):
        """Send from one end; what arrives at the other."""
        send_frames(self.dealer if to is None else self.router, frames, to)
        while not self.heard:
            self.loop.turn()
        return self.heard.pop()


@pytest.fixture(params=["ipc", "tcp"])
def pair(request):
    folder = private_folder()
    pair = Pair(f"ipc://{folder}/one" if request.param == "ipc" else "tcp://127.0.0.1:*")
    yield pair
    pair.loop.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("size", [1, LONG_FRAME_BYTES + 1, OWN_FRAME_BYTES + 1])
@pytest.mark.parametrize("to", [None, b"reader"], ids=["to the server", "from the server"])
def test_frames_of_any_size_arrive(pair, size, to):
    frames = [HEADER, bytes(size), b"end"]
    assert [bytes(whole(f)) for f in pair.exchange(frames, to)] == frames


@pytest.mark.parametrize("pair", ["ipc"], indirect=True)
def test_who_connects_to_a_socket_of_their_own_gets_frames_whole(pair):
    size = OWN_FRAME_BYTES
    (frame,) = pair.exchange([bytes(size)], b"reader")
    assert isinstance(frame, memoryview)
    assert len(frame) == size


def test_a_server_takes_no_long_frames_from_anybody(pair):
    at_folder = pair.router.last_endpoint.startswith(b"ipc")
    assert pair.router.maxmsgsize == (LONG_ACCEPTED_BYTES if at_folder else ACCEPTED_BYTES)


@pytest.mark.parametrize("pair", ["ipc"], indirect=True)
def test_much_may_be_on_its_way_over_a_local_socket(pair):
    allowed = int(Path("/proc/sys/net/core/wmem_max").read_text())
    for socket in (pair.router, pair.dealer):
        (connection,) = pair.loop.connections(socket)
        with connection._socket() as end:
            assert end.getsockopt(sockets.SOL_SOCKET, sockets.SO_SNDBUF) == 2 * min(1 << 20, allowed)


@pytest.mark.slow
def test_nothing_is_sent_to_who_does_not_let_us_in(tmp_path):
    """ZeroMQ would wait for ever for another to connect to, and the loop with it."""
    loop = Loop()
    try:
        keygen(tmp_path / "keys")
        server = Keys.load(tmp_path / "keys", "server")
        assert server.own is not None, "who serves has a pair"
        _, address = loop.router("tcp://127.0.0.1:*", Access(server), server.own, Authenticator())
        events: list[int] = []
        access = Access(Keys.load(tmp_path / "keys", "client"))
        dealer = loop.dealer(address, b"reader", access, server.server_public, events.append)
        while not {*events} & {*REFUSED} or send_frames(dealer, [HEADER]):
            loop.turn()
    finally:
        loop.close()
