"""A socket that others connect to: who has proved to be who, and one guard over all that they say.

ZeroMQ has asked the authenticator about a peer before its first byte of ours arrives. That must be a
greeting: one
short frame, whose beginning is fixed. Whoever has greeted may say what their role may say, and nothing else;
a message that cannot be read, or that raises where it is heard, costs its sender the connection. So does one
too many in a short time.

A peer's routing id is a secret of its own, so that nobody takes a connection over; its name is a hash of
that.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import struct
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import zmq
from msgspec import Struct

from spartan_ng.rates import Rate, TriesOfEach
from spartan_ng.system.heap import give_back
from spartan_ng.system.processes import kill
from spartan_ng.system.sockets import process_of
from spartan_ng.wire.access import Access, Authenticator, may_be
from spartan_ng.wire.codec import Message, encode
from spartan_ng.wire.framing import join
from spartan_ng.wire.keys import Pair
from spartan_ng.wire.loop import ROUND, Frames, Loop, send_frames
from spartan_ng.wire.messages import FROM_STRANGER, PROTOCOL, Hello, Refused
from spartan_ng.wire.monitor import Connection
from spartan_ng.wire.pieces import Buffer, Whole, whole
from spartan_ng.wire.strangers import Strangers

MOST_GREETING_BYTES = 4096
_MOST_LOGGED = 200
_MOST_PEERS = 1 << 14
_MOST_LEFT = 1 << 10
"""Peers that have left, and of whom something may still be read."""
GREETINGS = Rate(8192, 400.0)
"""Of one user, over all connections."""
MESSAGES = Rate(1 << 16, 8192.0)
"""Of one user of the cluster: a program says a few hundred a second. Workers say what there is to say."""
_LINES = Rate(64, 1.0)
"""In the log about one user at one host: what a connection had sent before it is cut is still heard."""
_TIDY_S = 1.0
_GREETING = struct.Struct("<10sH")
_MAGIC = b"spartan-ng"
_log = logging.getLogger("spartan_ng.wire")


def new_identity() -> bytes:
    """A routing id that nobody can guess."""
    return b"s" + secrets.token_bytes(16)


def name_of(role: str, identity: bytes) -> str:
    """What others call the peer with this routing id."""
    return role[0] + hashlib.sha256(identity).hexdigest()[:12]


def greeting(hello: Hello) -> list[Buffer]:
    """The first frame on every connection."""
    (header,) = encode(hello)
    return [_GREETING.pack(_MAGIC, hello.protocol) + whole(header)]


class Peer(Struct, frozen=True):
    """Who has greeted us."""

    name: str
    role: str
    user: str
    """What the authenticator said."""
    label: str
    identity: bytes
    connection: Connection
    process: int
    """Its process on this machine, where the kernel has said so; else 0."""

    def __str__(self) -> str:
        return f"{self.role} {self.label!r} ({self.user})"


class Hearer(Protocol):
    """What a server does with what its port lets through."""

    def greeted(self, peer: Peer, hello: Hello) -> None:
        """A peer has greeted; it may have done so before."""

    def heard(self, peer: Peer, frames: Frames) -> Any:
        """A peer that has greeted said something else."""

    def gone(self, name: str) -> None:
        """A peer's connection has been cut."""

    def disconnected(self) -> None:
        """Somebody's connection has ended."""


class Port:
    """A bound ROUTER at `address`; all on the loop's thread.

    Parameters
    ----------
    pair : the key pair that proves who we are, where there are keys
    hearer : whom it tells
    probe : makes a message that asks nothing of who hears it, greeted or not
    copy : whether messages are small
    most_waiting : messages of one peer that may wait to be read; 0 for no limit
    """

    def __init__(
        self,
        loop: Loop,
        address: str,
        access: Access,
        pair: Pair | None,
        hearer: Hearer,
        probe: Callable[[], Message],
        copy: bool = False,
        most_waiting: int = 0,
    ) -> None:
        self.door = Authenticator()
        self._loop = loop
        self._hearer = hearer
        self._probe = probe
        self._copy = copy
        self._peers: dict[bytes, Peer] = {}
        self._names: dict[str, Peer] = {}
        self._left: dict[bytes, str] = {}
        self.socket, self.address = loop.router(address, access, pair, self.door, most_waiting)
        self._strangers = Strangers(
            loop.now,
            lambda: loop.connections(self.socket),
            lambda: {p.connection for p in self._peers.values()},
        )
        self._greetings, self._messages = TriesOfEach(GREETINGS), TriesOfEach(MESSAGES)
        self._lines = TriesOfEach(_LINES)
        self._has_lost = False
        loop.every(_TIDY_S, self._tidy)
        loop.monitor(self.socket, self._connection_event)
        loop.watch(self.socket, self._read)

    @property
    def peers(self) -> list[Peer]:
        """Who has greeted, and has not been forgotten."""
        return list(self._names.values())

    def send(self, name: str, frames: Frames) -> bool:
        """Send a message that is encoded; whether its receiver is there."""
        peer = self._names.get(name)
        return peer is not None and send_frames(self.socket, frames, peer.identity)

    def forget(self, name: str) -> None:
        """A peer is gone; what it had said before may still have to be read."""
        peer = self._forget(name)
        if peer is not None:
            self._left[peer.identity] = str(peer)
            if len(self._left) > _MOST_LEFT:
                del self._left[next(iter(self._left))]

    def _forget(self, name: str) -> Peer | None:
        peer = self._names.pop(name, None)
        if peer is not None:
            del self._peers[peer.identity]
        return peer

    def cut(self, name: str) -> None:
        """Close a peer's connection, and forget it."""
        peer = self._forget(name)
        if peer is not None:
            self._cut(peer.identity, peer.connection)
            self._hearer.gone(name)

    def end(self, name: str) -> None:
        """Kill a peer's process, if it is another one on this machine; cut its connection in any case."""
        peer = self._names.get(name)
        if peer is not None and peer.process not in (0, os.getpid()):
            kill(peer.process)
        self.cut(name)

    def cut_unknown(self) -> None:
        """Close the connections of those whom the authenticator would not let in again."""
        for peer in self.peers:
            if not self.door.knows(peer.user):
                _log.warning("%s is not allowed any more; its connection is cut", peer)
                self.cut(peer.name)

    def _cut(self, identity: bytes, connection: Connection) -> None:
        """Cut a connection, where it has not ended: messages outlive it, and another may have its descriptor.

        ZeroMQ lets go of a peer before it closes the descriptor, so that whoever can be sent to still has it.
        """
        self.socket.getsockopt(zmq.EVENTS)  # has ZeroMQ take notice of who has left
        if send_frames(self.socket, encode(self._probe()), identity):
            connection.cut()

    def _read(self) -> None:
        for _ in range(ROUND):
            try:
                # Only a frame that is not copied knows which connection it came by, and whose that is.
                first = self.socket.recv(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            rest: Sequence[Whole]
            if self._copy:
                rest = self.socket.recv_multipart()
            else:
                rest = [f.buffer for f in self.socket.recv_multipart(copy=False)]
            identity = bytes(first.buffer)
            try:
                self._take(identity, first, rest)
            except Exception as error:  # noqa: BLE001 - the guard: a message costs its sender the connection
                self._refuse(identity, first, error)

    def _connection_event(self, event: int) -> None:
        if event == zmq.EVENT_ACCEPTED:
            self._strangers.come()
        elif event == zmq.EVENT_DISCONNECTED:
            self._has_lost = True
            self._hearer.disconnected()

    def _tidy(self) -> None:
        """What those who have left had sent goes back to the system."""
        self._strangers.look()
        if self._has_lost:
            self._has_lost = False
            give_back()

    def _take(self, identity: bytes, first: zmq.Frame, frames: Sequence[Whole]) -> None:
        peer = self._peers.get(identity)
        if len(frames[0]) >= _GREETING.size and frames[0][: len(_MAGIC)] == _MAGIC:
            self._greet(identity, first, frames)
        elif peer is None:
            raise ValueError("the first message is no greeting")
        elif peer.role == "worker" or self._messages.take(peer.user, self._loop.now()):
            self._hearer.heard(peer, join(frames))
        else:
            self._forget(peer.name)
            self._hearer.gone(peer.name)
            text = f"{_plain(peer.user)} sends more than {MESSAGES.a_second:,.0f} messages a second"
            _log.warning("%s is given up: %s", peer, text)
            self._decline(identity, first, "rate", text)

    def _greet(self, identity: bytes, first: zmq.Frame, frames: Sequence[Whole]) -> None:
        if len(frames) != 1 or len(frames[0]) > MOST_GREETING_BYTES:
            raise ValueError("a greeting is one short frame")
        _, protocol = _GREETING.unpack_from(frames[0])
        if protocol != PROTOCOL:
            text = f"protocol {PROTOCOL} is spoken here, not {protocol}"
            self._decline(identity, first, "version", f"{text}; install the same version on both sides")
            return
        hello: Hello = FROM_STRANGER([frames[0][_GREETING.size :]])
        user = str(first.get("User-Id"))
        if not may_be(user, hello.role):
            text = f"whoever is let in as {user.partition(' ')[0]} is no {hello.role!r}"
            self._decline(identity, first, "role", text)
            return
        if hello.role != "worker" and not self._greetings.take(user, self._loop.now()):
            text = f"{_plain(user)} connects more than {GREETINGS.a_second:,.0f} times a second"
            self._decline(identity, first, "rate", text)
            return
        before = self._peers.get(identity)
        if before is None and len(self._peers) >= _MOST_PEERS:
            self._forget_absent()
        if before is None and len(self._peers) >= _MOST_PEERS:
            self._decline(identity, first, "role", f"{_MOST_PEERS:,} others are here already")
            return
        connection = _connection(first)
        if before is None or before.connection != connection:
            self._strangers.greeted(connection)
        name = name_of(hello.role, identity)
        self._left.pop(identity, None)
        self._peers[identity] = self._names[name] = peer = Peer(
            name,
            hello.role,
            user,
            hello.label,
            identity,
            connection,
            process_of(str(first.get("Peer-Address"))),
        )
        self._hearer.greeted(peer, hello)

    def _forget_absent(self) -> None:
        """Keep nobody's place who has left without a word."""
        present = set(self._loop.connections(self.socket))
        for peer in self.peers:
            if peer.connection not in present:
                self.forget(peer.name)
                self._hearer.gone(peer.name)

    def _decline(self, identity: bytes, first: zmq.Frame, reason: str, text: str) -> None:
        """Tell a stranger why not; whoever goes on all the same is cut off."""
        if not self._strangers.may_be_answered(_connection(first)):
            raise ValueError(f"it has been told already: {text}")
        send_frames(self.socket, encode(Refused(reason, text)), identity)

    def _refuse(self, identity: bytes, first: zmq.Frame, error: Exception) -> None:
        peer = self._peers.get(identity)
        if (
            peer is None and identity in self._left
        ):  # its last words were read after nothing could be sent to it
            _log.debug("%s has left; what it still says is not heard", self._left[identity])
            self._cut(identity, _connection(first))
            return
        whom = str(peer) if peer is not None else f"a stranger at {first.get('Peer-Address')}"
        text = str(error)[:_MOST_LOGGED]
        if self._lines.take((first.get("User-Id"), first.get("Peer-Address")), self._loop.now()):
            _log.warning("%s is cut off: %s: %s", whom, type(error).__name__, text, exc_info=_detail())
        if peer is None:
            self._cut(identity, _connection(first))
            return
        try:
            self.cut(peer.name)
        except Exception:  # noqa: BLE001 - the rest of the cluster goes on
            _log.exception("forgetting %s failed", whom)


def _plain(user: str) -> str:
    """A user for people: without the key."""
    return " ".join(user.split(" ")[:2])


def _connection(frame: zmq.Frame) -> Connection:
    """The connection that a frame came by."""
    return Connection.of(int(frame.get(zmq.SRCFD)))


def _detail() -> bool:
    return _log.isEnabledFor(logging.DEBUG)
