"""The loop of one process that owns its ZeroMQ sockets: poll, hand frames on, run what other threads ask.

ZeroMQ sockets belong to one thread. Other threads pass a call in and wake the loop by a bell.
Liveness of connections is ZeroMQ's own heartbeat, answered by its C++ threads, so that a process whose
Python threads are busy for long is not taken for dead.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from math import ceil
from typing import Any

import zmq

from spartan_ng.config import config
from spartan_ng.errors import ConnectionFailed
from spartan_ng.system.bell import Bell
from spartan_ng.wire.access import Access, Authenticator, is_local, is_taken
from spartan_ng.wire.codec import Message, encode
from spartan_ng.wire.framing import (
    ACCEPTED_BYTES,
    FRAME_BYTES,
    LONG_ACCEPTED_BYTES,
    LONG_FRAME_BYTES,
    OWN_FRAME_BYTES,
    join,
    split_frames,
)
from spartan_ng.wire.keys import Pair
from spartan_ng.wire.monitor import Connection, Monitor
from spartan_ng.wire.pieces import Buffer, Whole

Frames = Sequence[Buffer]
Socket = zmq.Socket[bytes]

HEARTBEAT_S = 1.0
"""How often a connection is asked for a sign of life, or more often: """
_BEATS = 5
"""so many times in `config.heartbeat_s`."""

HANDSHAKE_S = 15.0
"""Who has not proved who they are after this long is disconnected."""

CONNECT_TIMEOUT_S = 2.0
"""A first packet that nobody answers is given up after this long, and sent again."""

ROUND = 64
"""Messages taken from one socket before the others get their turn."""


class Loop:
    """A poll loop; everything but `call`, `stop` and `stopped` belongs to the thread that runs it."""

    def __init__(self, failed: Callable[[Exception], None] | None = None) -> None:
        """`failed` hears of errors in calls and timers, and the loop goes on; without it, they end it."""
        self._failed = failed
        self._silence_s = config.heartbeat_s
        """A peer whose host is silent for so long is disconnected; a dead process on a live host at once."""
        self.context: zmq.Context[Socket] = zmq.Context()
        # One for each peer that is read from; ZeroMQ's own limit is about a thousand.
        self.context.set(zmq.MAX_SOCKETS, 65536)
        self._poller = zmq.Poller()
        self._handlers: dict[Any, tuple[Any, Callable[[], None]]] = {}
        self._timers: list[list[Any]] = []
        self._calls: deque[Callable[[], None]] = deque()
        self._sockets: list[Socket] = []
        self._monitors: dict[Socket, Monitor] = {}
        self._bell = Bell()
        self._awake = False
        self.stopped = False
        self.closed = False
        self.watch(self._bell.descriptor, self._drain)

    def call(self, function: Callable[[], None]) -> None:
        """Have `function` called by the loop soon. Thread-safe; dropped once the loop has ended."""
        self._calls.append(function)
        if not self._awake and not self.closed:
            self._awake = True
            with contextlib.suppress(OSError):  # the loop has just closed
                self._bell.ring()

    def stop(self) -> None:
        """End `run` soon. Thread-safe."""
        self.stopped = True
        self._awake = False
        self.call(lambda: None)

    def watch(self, source: Any, handler: Callable[[], None]) -> None:
        """Call `handler` whenever the socket or file descriptor `source` can be read."""
        self._poller.register(source, zmq.POLLIN)
        self._handlers[source] = (source, handler)

    def unwatch(self, source: Any) -> None:
        """Forget what `watch` was told."""
        if self._handlers.pop(source, None) is not None:
            self._poller.unregister(source)

    @staticmethod
    def now() -> float:
        """The time by the loop's clock, in seconds from some point."""
        return time.monotonic()

    def every(self, seconds: float, function: Callable[[], None]) -> None:
        """Call `function` at least each `seconds`."""
        self._timers.append([time.monotonic() + seconds, seconds, function])

    def after(self, seconds: float, function: Callable[[], None]) -> None:
        """Call `function` once, `seconds` from now."""
        self._timers.append([time.monotonic() + seconds, None, function])

    def router(
        self, address: str, access: Access, pair: Pair | None, door: Authenticator, most_waiting: int = 0
    ) -> tuple[Socket, str]:
        """A bound ROUTER that lets in whom `door` does, and its full address; sends to peers that are gone
        raise. At most so many messages of one peer wait."""
        socket = self._socket(zmq.ROUTER, address)
        socket.maxmsgsize = LONG_ACCEPTED_BYTES if is_local(address) else ACCEPTED_BYTES
        socket.router_mandatory = True
        # Who comes again before it is noticed that his old connection is dead takes its place.
        socket.router_handover = True
        socket.rcvhwm = most_waiting
        socket.handshake_ivl = int(HANDSHAKE_S * 1000)
        self._serve_zap(door)
        access.serve(socket, address, pair)
        if is_taken(address):
            raise ConnectionFailed(f"cannot serve on {address}: somebody else does")
        try:
            socket.bind(address)
        except zmq.ZMQError as error:
            raise ConnectionFailed(f"cannot serve on {address}: {error}") from error
        return socket, bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).rstrip(b"\0").decode()

    def dealer(
        self,
        address: str,
        identity: bytes,
        access: Access,
        server: bytes | None,
        events: Callable[[int], None] | None = None,
    ) -> Socket:
        """A DEALER that connects to `address` under an identity, where the holder of the key `server` must
        be; `events` hears of its connection."""
        socket = self._socket(zmq.DEALER, address)
        socket.maxmsgsize = OWN_FRAME_BYTES if is_local(address) else LONG_ACCEPTED_BYTES
        try:
            access.connect(socket, address, server)
        except BaseException:
            self.release(socket)
            raise
        socket.routing_id = identity
        if events is not None:
            self.monitor(socket, events)
        socket.connect(address)
        return socket

    def monitor(self, socket: Socket, handler: Callable[[int], None]) -> None:
        """Call `handler` with each connection event of `socket`."""
        self._monitors[socket].handler = handler

    def connections(self, socket: Socket) -> Collection[Connection]:
        """A socket's connections, the oldest first."""
        return self._monitors[socket].connections

    def receive(
        self,
        socket: Socket,
        handler: Callable[[Frames], None],
        broken: Callable[[Exception], None],
        copy: bool = False,
    ) -> None:
        """Call `handler` with the frames of each message that `socket` receives; what it raises goes to
        `broken`, which gives the connection up.

        `copy` is faster for small messages; large ones must not be copied.
        """

        def read() -> None:
            for _ in range(ROUND):
                frames: Sequence[Whole]
                try:
                    if copy:
                        frames = socket.recv_multipart(zmq.NOBLOCK)
                    else:
                        frames = [f.buffer for f in socket.recv_multipart(zmq.NOBLOCK, copy=False)]
                except zmq.Again:
                    return
                try:
                    handler(join(frames))
                except Exception as error:  # noqa: BLE001 - a bad message must not end the process
                    broken(error)
                # Whoever heard it may have given the connection up.
                if socket.closed:
                    return

        self.watch(socket, read)

    def release(self, socket: Socket) -> None:
        """Close a socket, and all its connections before."""
        self.unwatch(socket)
        self._sockets.remove(socket)
        monitor = self._monitors.pop(socket)
        self.unwatch(monitor.events)
        monitor.part()
        monitor.close()
        socket.close(linger=0)

    def run(self) -> None:
        """Serve until `stop`."""
        while not self.stopped:
            self.turn()

    def turn(self, timeout_s: float = 1.0) -> None:
        """Wait for something to do, and do it."""
        now = time.monotonic()
        due = min((t[0] for t in self._timers), default=now + timeout_s)
        wait = 0.0 if self._calls else max(0.0, min(due - now, timeout_s))
        for source, _ in self._poller.poll(ceil(wait * 1000)):
            found = self._handlers.get(source)
            if found is not None:
                found[1]()
        if self._calls:
            self._drain()
        now = time.monotonic()
        for timer in [t for t in self._timers if t[0] <= now]:
            if timer[1] is None:
                self._timers.remove(timer)
            else:
                # From now on: a loop that was held up has nothing to make up for.
                timer[0] = now + timer[1]
            self._do(timer[2])

    def close(self, linger_s: float = 0.0) -> None:
        """Close all sockets; what is still to be sent gets `linger_s`. Call after `run` has returned."""
        if self.closed:
            return
        self.closed = True
        for monitor in self._monitors.values():
            if not linger_s:
                monitor.part()
            monitor.close()
        for socket in self._sockets:
            socket.close(linger=int(linger_s * 1000))
        self.context.term()
        self._bell.close()
        for held in (self._handlers, self._timers, self._calls, self._sockets, self._monitors):
            held.clear()  # those whom we call hold us

    def _socket(self, kind: int, address: str) -> Socket:
        socket: Socket = self.context.socket(kind)
        socket.linger = 0
        socket.sndhwm = 0  # readers ask for what they get, so queues are bounded by requests
        socket.rcvhwm = 0
        socket.sndtimeo = 0  # nothing waits: where nobody can be sent to, nobody may ever come
        socket.heartbeat_ivl = int(min(HEARTBEAT_S, self._silence_s / _BEATS) * 1000)
        socket.heartbeat_timeout = int(self._silence_s * 1000)
        socket.connect_timeout = int(CONNECT_TIMEOUT_S * 1000)
        socket.ipv6 = "[" in address
        self._sockets.append(socket)
        try:
            monitor = self._monitors[socket] = Monitor(socket)
        except zmq.ZMQError:  # there are no descriptors left
            self._sockets.remove(socket)
            socket.close()
            raise
        self.watch(monitor.events, monitor.read)
        return socket

    def _serve_zap(self, door: Authenticator) -> None:
        socket: Socket = self.context.socket(zmq.ROUTER)
        socket.linger = 0
        socket.bind("inproc://zeromq.zap.01")
        self._sockets.append(socket)

        def answer() -> None:
            frames = socket.recv_multipart()
            at = frames.index(b"") + 1
            socket.send_multipart([*frames[:at], *door.answer(frames[at:])])

        self.watch(socket, answer)

    def _drain(self) -> None:
        self._awake = False
        self._bell.quiet()
        # Those that are there: what they add waits until sockets have had their turn.
        for _ in range(len(self._calls)):
            self._do(self._calls.popleft())

    def _do(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:
            if self._failed is None:
                raise
            self._failed(error)


def _longest(socket: Socket, serves: bool) -> int:
    """The most bytes of a frame that the other end takes."""
    local = is_local(bytes(socket.getsockopt(zmq.LAST_ENDPOINT)).decode())
    if serves and local:
        return OWN_FRAME_BYTES
    return LONG_FRAME_BYTES if serves or local else FRAME_BYTES


def send(socket: Socket, message: Message) -> bool:
    """Send a message, large buffers without copies; False where nobody is there to send to."""
    return send_frames(socket, encode(message))


def send_frames(socket: Socket, frames: Frames, to: bytes | None = None) -> bool:
    """Send a message that is encoded already."""
    pieces = split_frames(frames, lambda: _longest(socket, to is not None))
    try:
        socket.send_multipart(pieces if to is None else [to, *pieces], copy=False)
    except zmq.ZMQError as error:
        if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
            return False
        raise
    return True
