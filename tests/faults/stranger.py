"""A peer as nobody writes one who means well: a plain socket of ZeroMQ, with or without a key."""

from __future__ import annotations

import os
import random
import socket as sockets
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import zmq

from spartan_ng.wire.keys import Keys, Pair
from spartan_ng.wire.messages import PROTOCOL, Hello
from spartan_ng.wire.monitor import Monitor
from spartan_ng.wire.port import greeting, new_identity

KINDS = ("no key", "wrong key", "valid key before hello", "valid key after hello")
_CUT = (
    zmq.EVENT_DISCONNECTED,
    zmq.EVENT_HANDSHAKE_FAILED_AUTH,
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL,
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL,
)


class Stranger:
    """A socket that connects to `address` once, as one of `KINDS`."""

    def __init__(self, address: str, kind: str, keys: Keys | None, server: bytes | None) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.DEALER)
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
        self._context.term()


def shout(address: str, data: bytes) -> None:
    """Bytes from a plain socket that has never heard of ZeroMQ."""
    at = urlsplit(address)
    family, to = (
        (sockets.AF_UNIX, at.path) if at.scheme == "ipc" else (sockets.AF_INET, (at.hostname, at.port))
    )
    with sockets.socket(family) as plain:
        try:
            plain.connect(to)
            plain.sendall(data)
        except OSError:  # cut off before the end, as it should
            return


def noise(draw: random.Random) -> bytes:
    """ZeroMQ's greeting, whole or not, and what may come after it."""
    start = b"\xff" + bytes(8) + b"\x7f\x03\x00" + draw.choice((b"NULL", b"CURVE", b"PLAIN")).ljust(20, b"\0")
    head = (start + bytes(32))[: draw.choice((3, 12, 64, 64, 64))]
    return head + draw.choice((b"\x04\x05HELLO", b"\x06" + (1 << 62).to_bytes(8, "big"), b"", os.urandom(40)))


def resident_bytes(pid: int) -> int:
    """Memory of a process."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
