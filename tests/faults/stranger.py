"""A peer as nobody writes one who means well: a plain socket of ZeroMQ, with or without a key."""

from __future__ import annotations

import os
import random
import socket as sockets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import zmq

from spartan_ng.wire.access import is_local
from spartan_ng.wire.framing import ACCEPTED_BYTES, LONG_ACCEPTED_BYTES
from spartan_ng.wire.keys import Keys, Pair
from spartan_ng.wire.messages import PROTOCOL, Hello
from spartan_ng.wire.monitor import Monitor
from spartan_ng.wire.port import greeting, new_identity
from tests.faults.payloads import damaged
from tests.faults.usage import own_bytes

KINDS = ("no key", "wrong key", "valid key before hello", "valid key after hello")
_CUT = (
    zmq.EVENT_DISCONNECTED,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
)

_context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()


class Stranger:
    """A socket that connects to `address` once, as one of `KINDS`."""

    def __init__(self, address: str, kind: str, keys: Keys | None, server: bytes | None) -> None:
        self._socket: zmq.Socket[bytes] = _context.socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.reconnect_ivl = -1
        if kind == "wrong key" or (kind.startswith("valid") and keys is not None):
            pair = Pair.fresh() if kind == "wrong key" or keys is None else keys.own
            self._socket.curve_serverkey = server or Pair.fresh().public
            self._socket.curve_publickey = pair.public
            self._socket.curve_secretkey = pair.secret
        self._monitor = Monitor(self._socket)
        self._monitor.handler = self._note
        self._cut_off = False
        self._socket.routing_id = new_identity()
        self._socket.connect(address)
        if kind == "valid key after hello":
            self.say([bytes(f) for f in greeting(Hello(PROTOCOL, "client", "a stranger"))])

    def say(self, frames: Sequence[bytes]) -> None:
        """Send a message, now or once there is a connection; nothing, if we have been cut off already."""
        with suppress(zmq.Again):
            self._socket.send_multipart(frames, zmq.NOBLOCK)

    def leave(self) -> None:
        """Go once all has been sent that was said."""
        self._monitor.close()
        self._socket.close(linger=-1)

    @property
    def has_heard(self) -> bool:
        """Whether there is an answer."""
        return bool(self._socket.poll(0))

    def is_cut_off(self, timeout_s: float) -> bool:
        """Whether the other end has refused or closed the connection in time."""
        deadline = time.monotonic() + timeout_s
        while not self._cut_off and self._monitor.events.poll(
            max(0, int((deadline - time.monotonic()) * 1000))
        ):
            self._monitor.read()
        return self._cut_off

    def _note(self, event: int) -> None:
        self._cut_off |= event in _CUT

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._monitor.part()
        self._monitor.close()
        self._socket.close(linger=0)


def say(
    address: str,
    kind: str,
    keys: Keys | None,
    server: bytes | None,
    draw: random.Random,
    known: Sequence[list[bytes]],
) -> int:
    """What one stranger says before he is cut off: how many messages."""
    with Stranger(address, kind, keys, server) as stranger:
        count = draw.randint(1, 3)
        for _ in range(count):
            stranger.say(damaged(draw, known) if draw.random() < 0.8 else draw.choice(known))
        stranger.is_cut_off(0.02)
    return count


def connected(address: str) -> sockets.socket:
    """A plain socket that has never heard of ZeroMQ, at the other end of an address."""
    at = urlsplit(address)
    if at.scheme == "ipc":
        plain = sockets.socket(sockets.AF_UNIX)
        plain.connect(at.path)
    else:
        assert at.hostname is not None, "a tcp:// address has a host"
        plain = sockets.create_connection((at.hostname, at.port))
    return plain


def has_ended(plain: sockets.socket) -> bool:
    """Whether the other end has closed a socket, once all is read that has arrived."""
    plain.setblocking(False)
    try:
        while plain.recv(100):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


def shout(address: str, data: bytes) -> int:
    """One message of bytes that are ZeroMQ's or not."""
    with suppress(OSError), connected(address) as plain:  # cut off before the end, as it should
        plain.sendall(data)
    return 1


def crowd(address: str, count: int, pid: int, settle: Callable[[], None]) -> int:
    """Send much that does not end over many connections at once; the bytes that each takes of a process,
    once all that has arrived must have been read: `settle`."""
    head = beginning(b"NULL" if is_local(address) else b"CURVE")
    worst = 0
    most = LONG_ACCEPTED_BYTES if is_local(address) else ACCEPTED_BYTES
    for sort in (b"\x06", b"\x02", b"\x03"):
        for size in (most, 1 << 40):
            data = head + sort + size.to_bytes(8, "big") + bytes(most - 1)
            settle()
            before = own_bytes(pid)
            with ExitStack() as stack:
                for _ in range(count):
                    plain = stack.enter_context(connected(address))
                    with suppress(OSError):
                        plain.sendall(data)
                settle()
                worst = max(worst, (own_bytes(pid) - before) // count)
    return worst


def beginning(mechanism: bytes) -> bytes:
    """How a connection of ZeroMQ's begins, before anybody says who they are."""
    return b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32)


def noise(draw: random.Random) -> bytes:
    """ZeroMQ's greeting, whole or not, and what may come after it."""
    whole = beginning(draw.choice((b"NULL", b"CURVE", b"PLAIN")))
    head = whole[: draw.choice((3, 12, 64, 64, 64))]
    return head + draw.choice((b"\x04\x05HELLO", b"\x06" + (1 << 62).to_bytes(8, "big"), b"", os.urandom(40)))
