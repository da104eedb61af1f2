"""A network inside one process, by a clock of its own: connections break, delay and lose what they carry.

`Network.loop(host)` stands in for the `Loop` of a server. What the sockets do is ZeroMQ's: messages of one
connection arrive in order or not at all; an end hears of a break some time after it has happened, and
connects again; a ROUTER refuses to send to whom it knows to be gone, and of an identity's connections the
latest counts.
The clock stands still while a loop is at work, and else runs to the next event at once.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any

import zmq

from spartan_ng.wire.framing import join

_IDLE_S = 0.0005
"""Threads beside the loops get so long to say something before the clock goes on."""
_STEP_S = 0.25
"""While nobody says anything, it goes on by so much at a time."""
_NOTICE_S = 8.0
"""An end notices a break within this time."""
_CONNECT_S = 0.05


class Network:
    """Hosts, what is under way between them, and which of them are cut from each other."""

    def __init__(self, seed: int, delay_s: float = 0.001, loss: float = 0.0) -> None:
        self.rng = Random(seed)
        self.delay_s, self.loss = delay_s, loss
        self.changed = threading.Condition()
        self.now = 0.0
        self.messages = 0
        """How many have been sent, on all connections."""
        self.broken = 0
        """Connections that cuts have broken."""
        self.after_message: dict[int, Callable[[], None]] = {}
        """What happens when so many messages have been sent."""
        self.routers: dict[str, Socket] = {}
        self._loops: list[SimulatedLoop] = []
        self._cut: set[frozenset[str]] = set()
        self._wires: list[Wire] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._ended = False
        self._pump = threading.Thread(target=self._run, daemon=True)
        self._pump.start()

    def loop(self, host: str) -> SimulatedLoop:
        """A loop on a host."""
        with self.changed:
            loop = SimulatedLoop(self, host)
            self._loops.append(loop)
        return loop

    def at(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something so many seconds from now."""
        with self.changed:
            self.when(self.now + seconds, action)

    def when(self, time: float, action: Callable[[], None]) -> None:
        """Do something at a time, after all that was to happen then before."""
        heapq.heappush(self._events, (time, next(self._numbers), action))
        self.changed.notify_all()

    def cut(self, a: str, b: str, seconds: float | None) -> None:
        """Cut two hosts from each other, for ever if `seconds` is None; what is under way is lost."""
        with self.changed:
            self._cut.add(frozenset((a, b)))
            for wire in [w for w in self._wires if w.between == {a, b} and not w.severed]:
                self.broken += 1
                wire.sever()
            if seconds is not None:
                self.at(seconds, partial(self.heal, a, b))

    def heal(self, a: str, b: str) -> None:
        """Let two hosts reach each other again."""
        with self.changed:
            self._cut.discard(frozenset((a, b)))

    def cut_one(self, seconds: float | None) -> None:
        """Cut two hosts that are connected now, more often two workers."""
        live = [w for w in self._wires if not w.severed]
        peers = [w for w in live if "master" not in w.between]
        chosen = peers if peers and self.rng.random() < 0.8 else live
        if chosen:
            a, b = self.rng.choice(chosen).between
            self.cut(a, b, seconds)

    def is_cut(self, between: frozenset[str]) -> bool:
        """Whether nothing gets through between two hosts."""
        return between in self._cut

    def join(self, wire: Wire) -> None:
        """A connection has come about."""
        self._wires.append(wire)

    def count_message(self) -> None:
        """One more message has been sent."""
        self.messages += 1
        action = self.after_message.pop(self.messages, None)
        if action is not None:
            action()

    def close(self) -> None:
        """Stop the clock."""
        with self.changed:
            self._ended = True
            self.changed.notify_all()
        self._pump.join()

    def _run(self) -> None:
        heard = quiet_until = -1.0
        with self.changed:
            while not self._ended:
                if any(loop.is_at_work for loop in self._loops) or not self._events:
                    self.changed.wait(0.1)
                    continue
                if heard != self.messages or self._events[0][0] > quiet_until:
                    heard, quiet_until = self.messages, self._events[0][0] + _STEP_S
                    self.changed.wait(_IDLE_S)
                    continue
                at, _, action = heapq.heappop(self._events)
                self.now = max(self.now, at)
                action()


class Wire:
    """One connection: both of its directions, until it is severed."""

    def __init__(self, network: Network, dealer: Socket, router: Socket) -> None:
        self.network = network
        self.ends = (dealer, router)
        self.between = frozenset((dealer.loop.host, router.loop.host))
        self.severed = False
        self._free_at = [network.now, network.now]
        """When the last message to each end has arrived."""

    def carry(self, to: int, frames: list[bytes]) -> None:
        """Let a message arrive at an end, after those before it."""
        network = self.network
        network.count_message()
        lossy = "master" not in self.between  # the master is only ever lost as a whole
        if self.severed or (lossy and network.rng.random() < network.loss):
            return
        wait = network.rng.expovariate(1 / network.delay_s) if network.delay_s else 0.0
        self._free_at[to] = max(self._free_at[to], network.now + wait)
        network.when(self._free_at[to], lambda: self._arrive(to, frames))

    def sever(self, at_once: bool = False) -> None:
        """Lose what is under way; each end notices in its own time."""
        if self.severed:
            return
        self.severed = True
        for end in self.ends:
            wait = 0.0 if at_once else self.network.rng.uniform(0.0, _NOTICE_S)
            self.network.at(wait, partial(end.lose, self))

    def _arrive(self, to: int, frames: list[bytes]) -> None:
        if not self.severed:
            self.ends[to].arrive(self, frames)


class Frame:
    """A part of a message from a process of the same user."""

    def __init__(self, buffer: bytes, wire: Wire | None = None) -> None:
        self.buffer = buffer
        self.wire = wire
        """What the first part came by."""

    @staticmethod
    def get(name: int | str) -> int | str:
        """What ZeroMQ says of the connection."""
        assert name != zmq.SRCFD, "there are no descriptors: `connection_of` stands for what has one"
        return "owner"


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection, to be cut by whoever has had a message by it."""

    wire: Wire
    host = ""
    """As of a local socket's."""
    received_bytes = 0

    def cut(self) -> None:
        """End it, if it has not ended yet; both ends see it at once."""
        self.wire.sever(at_once=True)


def connection_of(frame: Frame) -> Connection:
    """The connection that the first part of a message came by: instead of `wire.port`'s."""
    assert frame.wire is not None, "the first part of a message knows what it came by"
    return Connection(frame.wire)


class Socket:
    """A DEALER with one wire after the other, or a ROUTER with a wire for each identity."""

    def __init__(self, loop: SimulatedLoop, identity: bytes = b"") -> None:
        self.loop = loop
        self.identity = identity
        self.address = ""
        self.wires: dict[bytes, Wire] = {}
        self.on_event: Callable[[int], None] | None = None
        self.on_message: Callable[[Any], None] | None = None
        self.closed = False
        self._waiting: deque[list[bytes]] = deque()
        self._arrived: deque[tuple[Wire, list[bytes]]] = deque()
        self._rest: list[bytes] = []

    @property
    def network(self) -> Network:
        """The network that the socket is on."""
        return self.loop.network

    def connect(self, address: str) -> None:
        """Connect as soon as the other end can be reached."""
        self.address = address
        self.network.at(self.network.rng.uniform(0.0, _CONNECT_S), self._try)

    def _try(self) -> None:
        router = self.network.routers.get(self.address)
        if self.closed:
            return
        if router is None or self.network.is_cut(frozenset((self.loop.host, router.loop.host))):
            self.network.at(self.network.rng.uniform(0.1, 2.0), self._try)
            return
        wire = Wire(self.network, self, router)
        self.network.join(wire)
        self.wires = {b"": wire}
        before = router.wires.pop(self.identity, None)
        if before is not None:
            before.severed = True
        router.wires[self.identity] = wire
        for event in (zmq.EVENT_CONNECTED, zmq.EVENT_HANDSHAKE_SUCCEEDED):
            self._tell(event)
        while self._waiting:
            wire.carry(1, self._waiting.popleft())

    def send_multipart(self, frames: Any, copy: bool = True) -> None:
        """Send as ZeroMQ would."""
        parts = [bytes(f) for f in frames]
        with self.network.changed:
            if self.identity:
                wire = self.wires.get(b"")
                if wire is None:
                    self._waiting.append(parts)
                else:
                    wire.carry(1, parts)
                return
            found = self.wires.get(parts[0])
            if found is None:
                raise zmq.ZMQError(zmq.EHOSTUNREACH)
            found.carry(0, parts[1:])

    def getsockopt(self, option: int) -> bytes | int:
        """Where it is connected to; of what has happened it is always aware."""
        if option == zmq.EVENTS:
            return 0
        assert option == zmq.LAST_ENDPOINT
        return self.address.encode()

    def arrive(self, wire: Wire, frames: list[bytes]) -> None:
        """A message is here."""
        if self.closed or self.on_message is None:
            return
        if not self.identity:
            self._arrived.append((wire, [wire.ends[0].identity, *frames]))
        handler = self.on_message
        self.loop.post(lambda: None if self.closed else handler(frames))

    def recv(self, flags: int, copy: bool) -> Frame:
        """The first part of the next message that a ROUTER has."""
        if not self._arrived:
            raise zmq.Again
        wire, (first, *self._rest) = self._arrived.popleft()
        return Frame(first, wire)

    def recv_multipart(self, flags: int = 0, copy: bool = True) -> list[Any]:
        """The other parts."""
        return self._rest if copy else [Frame(part) for part in self._rest]

    def lose(self, wire: Wire) -> None:
        """This end notices that a connection is broken."""
        for identity in [i for i, w in self.wires.items() if w is wire]:
            del self.wires[identity]
            self._tell(zmq.EVENT_DISCONNECTED)
            if self.identity and not self.closed:
                self.connect(self.address)

    def close(self) -> None:
        """Leave; the other ends notice at once."""
        with self.network.changed:
            self.closed = True
            for wire in list(self.wires.values()):
                wire.sever(at_once=True)
            if self.network.routers.get(self.address) is self:
                del self.network.routers[self.address]

    def _tell(self, event: int) -> None:
        handler = self.on_event
        if handler is not None:
            self.loop.post(lambda: None if self.closed else handler(event))


class SimulatedLoop:
    """A server's loop over sockets of the network."""

    def __init__(self, network: Network, host: str) -> None:
        self.network = network
        self.host = host
        self.stopped = False
        self.closed = False
        self._inbox: deque[Callable[[], Any]] = deque()
        self._busy = False
        self._sockets: list[Socket] = []

    @property
    def is_at_work(self) -> bool:
        """Whether something has been handed to the loop that it has not done yet."""
        return not self.closed and (self._busy or (bool(self._inbox) and not self.stopped))

    def post(self, action: Callable[[], Any]) -> None:
        """Have the loop's thread do something."""
        with self.network.changed:
            self._inbox.append(action)
            self.network.changed.notify_all()

    call = post

    def stop(self) -> None:
        """End `run`."""
        self.stopped = True
        self.post(lambda: None)

    def now(self) -> float:
        """The network's clock."""
        return self.network.now

    def every(self, seconds: float, function: Callable[[], Any]) -> None:
        """Call a function again and again."""

        def again() -> None:
            if not self.closed:
                self.post(function)
                self.network.at(seconds, again)

        self.network.at(seconds, again)

    def after(self, seconds: float, function: Callable[[], Any]) -> None:
        """Call a function once."""
        self.network.at(seconds, lambda: None if self.closed else self.post(function))

    def router(self, address: str, *rest: Any) -> tuple[Socket, str]:
        """A ROUTER that others reach at the address that is returned."""
        socket = Socket(self)
        socket.address = f"tcp://{self.host}:{len(self.network.routers)}"
        self.network.routers[socket.address] = socket
        self._sockets.append(socket)
        return socket, socket.address

    def dealer(
        self,
        address: str,
        identity: bytes,
        access: object,
        server: object,
        events: Callable[[int], None] | None = None,
    ) -> Socket:
        """A DEALER of an identity."""
        socket = Socket(self, identity)
        socket.on_event = events
        self._sockets.append(socket)
        socket.connect(address)
        return socket

    def monitor(self, socket: Socket, handler: Callable[[int], None]) -> None:
        """Hear of a socket's connections."""
        socket.on_event = handler

    @staticmethod
    def connections(socket: Socket) -> tuple[()]:
        """No strangers come here."""
        return ()

    def receive(
        self,
        socket: Socket,
        handler: Callable[[Any], None],
        broken: Callable[[Exception], None],
        copy: bool = False,
    ) -> None:
        """Hear the messages of a DEALER; what cannot be read is a fault of ours."""
        socket.on_message = lambda frames: handler(join(frames))

    def watch(self, socket: Socket, handler: Callable[[], None]) -> None:
        """Hear that a ROUTER has messages."""
        socket.on_message = lambda frames: handler()

    def release(self, socket: Socket) -> None:
        """Close a socket."""
        socket.close()
        self._sockets.remove(socket)

    def run(self) -> None:
        """Serve until `stop`."""
        changed = self.network.changed
        while not self.stopped:
            with changed:
                self._busy = False
                changed.notify_all()
                changed.wait_for(lambda: bool(self._inbox) or self.stopped)
                self._busy = True
                actions = [self._inbox.popleft() for _ in range(len(self._inbox))]
            for action in actions:
                action()
        with changed:
            self._busy = False

    def close(self, linger_s: float = 0.0) -> None:
        """Close all sockets."""
        self.closed = True
        for socket in self._sockets:
            socket.close()
