"""Reading and writing tiles that other processes hold: the requester's side.

A read names a tile and a region, and waits at the tile's owner until it is complete. Between processes that
share memory, large data does not travel: the answer says where it lies, the reader maps it, and tells
the owner when its last array on it has died. All else comes in frames, without copies on the way; what is
long in parts (`long_reads`).

A connection that breaks is made anew, and goes on where it was (`wire.channel`); what waits for a worker that
cannot be reached for `timeout_s` fails by name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import zmq
from msgspec import Struct, field
from msgspec.structs import replace

from spartan_ng.arrays import Box, Key
from spartan_ng.errors import ConnectionFailed, OutOfResources, WorkerLost, WorkerUnreachable
from spartan_ng.system.segments import host_identity
from spartan_ng.wire.access import Access, patience_s, why_gone
from spartan_ng.wire.channel import Channel, has_header
from spartan_ng.wire.codec import NOTHING, encode
from spartan_ng.wire.connection import REFUSED
from spartan_ng.wire.failures import rebuild_error
from spartan_ng.wire.loop import Frames, Loop, Socket, send, send_frames
from spartan_ng.wire.messages import Hello, Member, Members, Probe, Refused, Welcome
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.port import greeting
from spartan_ng.wire.transfers import (
    ALL,
    FROM_OWNER,
    GREETED,
    Borrow,
    Fetch,
    FetchOperand,
    FetchPart,
    GiveBack,
    LongTile,
    Part,
    Put,
    PutShared,
    Resume,
    Resumed,
    SharedTile,
    Stored,
    Tile,
    TransferFailed,
    Unlease,
)
from spartan_ng.wire.values import Make, pack, unpack
from spartan_ng.worker.memory.pool import SHARED_BYTES
from spartan_ng.worker.memory.store import Region
from spartan_ng.worker.network.long_reads import LongRead
from spartan_ng.worker.network.sharing import Mappings, copy_out

_log = logging.getLogger("spartan_ng.worker")

TIMEOUT_S = 30.0
"""How long a worker may stay out of reach, where nobody says anything else."""
_LOOK_S = 1.0
"""How often connections are looked at."""
_GREET_S = 5.0
"""A greeting without an answer is repeated after this long."""
_TRY_S = 0.1
"""Who does not let us in is asked again after this long: ZeroMQ would not."""


class _Link(Struct):
    """The way to one worker, over one connection after the other."""

    member: Member
    shared: bool
    session: int
    """Tells our channel from others that we had with this worker before."""
    down_since: float
    """Since when there is no connection, where there is none."""
    greeted_at: float = 0.0
    channel: Channel = field(default_factory=Channel)
    socket: Socket | None = None
    is_up: bool = False
    is_refused: bool = False
    """Whether the worker does not know our key: it may hear of it later than we have heard of the worker."""
    resumed: bool = False
    """Whether the worker knows our channel."""


class _Request(Struct):
    """A message that waits for its answer."""

    peer: str
    message: Fetch | FetchPart | Put | PutShared | Borrow | FetchOperand | GiveBack
    future: Future[Any]
    keep: Any = None
    """What must live until the answer is there."""
    since: int | None = None
    """The epoch in which the worker has joined that is meant."""
    asked_at: float = 0.0
    into: np.ndarray[Any, Any] | None = None
    """Where the data is wanted."""
    is_there: Callable[[], bool] | None = None
    """Whether the tile can still be there, as the loop's thread knows it."""


class Peers:
    """Reads and writes of tiles on other workers, to whom we say `hello` first; `allocate` makes room for
    what is long.

    `fetch`, `put` and `abort` are thread-safe.
    """

    def __init__(
        self, loop: Loop, identity: bytes, hello: Hello, access: Access, allocate: Make = np.empty
    ) -> None:
        self.timeout_s = TIMEOUT_S
        """How long a worker may stay out of reach."""
        self.received_bytes = 0
        """Of tiles, since the start."""
        self._loop = loop
        self._hello = hello
        self._identity = identity
        self._access = access
        self._members: dict[str, Member] = {}
        self._links: dict[str, _Link] = {}
        self._requests: dict[int, _Request] = {}
        self._numbers = count(1)
        self._sessions = count(1)
        self._mappings = Mappings()
        self._allocate = allocate
        self._helper = ThreadPoolExecutor(1, thread_name_prefix="long-reads")
        loop.every(_LOOK_S, self._look)

    def fetch(
        self,
        peer: str,
        key: Key,
        region: Region,
        since: int | None = None,
        into: np.ndarray[Any, Any] | None = None,
        is_there: Callable[[], bool] | None = None,
        peeks: bool = False,
        looks: bool = False,
    ) -> Future[Any]:
        """The region of a tile that the worker `peer` holds, as soon as it is complete there; WorkerLost
        where it has joined in another epoch than `since`, or the tile `is_there` no more when the loop's
        thread asks. It is `into` itself where it was written there. For `peeks`, `looks` see `Transfer`."""
        picks = any(isinstance(along, np.ndarray) for along in region)
        box, picked = ((), pack(region)) if picks else (region, NOTHING)
        message = Fetch(next(self._numbers), key, box, True, picked, peeks, looks)
        return self._ask(_Request(peer, message, Future(), since=since, into=into, is_there=is_there))

    def put(self, peer: str, key: Key, tile: Any, since: int | None = None, part: Part = ALL) -> Future[Any]:
        """Give a tile, or a part of one, to the worker `peer`; done when it is there."""
        number = next(self._numbers)
        member = self._members.get(peer)
        near = member is not None and member.host == host_identity() != "" and part is ALL
        if near and isinstance(tile, np.ndarray) and tile.nbytes >= SHARED_BYTES and not tile.dtype.hasobject:
            segment, array = copy_out(tile)
            return self._ask(_Request(peer, PutShared(number, key, array), Future(), segment, since))
        return self._ask(_Request(peer, Put(number, key, pack(tile), *part), Future(), tile, since))

    def borrow(self, peer: str, job: str, stage: int, usual_s: float) -> Future[Any]:
        """Ask the worker `peer` for a task of a job, with what the own share of a stage took."""
        return self._ask(_Request(peer, Borrow(next(self._numbers), (job, stage), usual_s), Future()))

    def operand(self, peer: str, job: str, offer: int, place: int) -> Future[Any]:
        """What the worker `peer` has read for a share of its own."""
        return self._ask(_Request(peer, FetchOperand(next(self._numbers), (job, offer), place), Future()))

    def give_back(self, peer: str, job: str, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a borrowed task's result to the worker `peer`."""
        message = GiveBack(next(self._numbers), (job, offer), task, pack(result))
        return self._ask(_Request(peer, message, Future(), result))

    def abort(self, matches: Callable[[Key], bool], error: Exception) -> None:
        """Fail all waiting reads of keys that match."""
        self._loop.call(lambda: self._fail(lambda r: matches(r.message.key), error))

    def use(self, members: Members) -> None:
        """Take the new address book; requests to workers that are gone fail. On the loop's thread."""
        self._members = {m.name: m for m in (*members.members, *members.leaving)}
        for lost in members.lost:
            self.lose(lost.name, f"{lost.label} died")
        for name in [n for n in self._links if n not in self._members]:
            self.lose(name, f"{self._links[name].member.label} left")

    def lose(self, peer: str, why: str) -> None:
        """Fail all that waits for `peer`. On the loop's thread."""
        self._give_up(peer, WorkerLost(f"worker {why}; its tiles are lost"))

    def _give_up(self, peer: str, error: Exception) -> None:
        link = self._links.pop(peer, None)
        if link is not None and link.socket is not None:
            self._loop.release(link.socket)
            link.socket = None
        self._fail(lambda r: r.peer == peer, error)

    def close(self, error: Exception) -> None:
        """Fail all that waits, and leave all workers. On the loop's thread."""
        for peer in list(self._links):
            self._give_up(peer, error)
        self._fail(lambda r: True, error)
        self._helper.shutdown(wait=False, cancel_futures=True)

    def _ask(self, request: _Request) -> Future[Any]:
        self._loop.call(partial(self._send, request))
        return request.future

    def _send(self, request: _Request) -> None:
        try:
            link = self._link(request.peer)
        except (ConnectionFailed, OutOfResources) as error:
            _settle(request.future, error)
            return
        if link is None or request.since not in (None, link.member.since):
            gone = WorkerLost(f"worker {request.peer} is not a member of the cluster any more")
            _settle(request.future, gone)
            return
        if request.is_there is not None and not request.is_there():
            _settle(request.future, WorkerLost(f"array {request.message.key[1]} has been dropped"))
            return
        message = request.message
        if isinstance(message, Fetch) and not link.shared:
            message = request.message = replace(message, shared=False)
        request.asked_at = self._loop.now()
        self._requests[message.number] = request
        self._transmit(link, link.channel.send(encode(message)))

    def _transmit(self, link: _Link, messages: Sequence[Frames]) -> None:
        for frames in messages:
            assert link.socket is not None, "an open channel has a socket"
            send_frames(link.socket, frames)

    def _link(self, peer: str) -> _Link | None:
        link = self._links.get(peer)
        if link is None:
            member = self._members.get(peer)
            if member is None:
                return None
            shared = member.host == host_identity() != ""
            link = _Link(member, shared, next(self._sessions), self._loop.now())
            self._links[peer] = link
            try:
                self._connect(peer, link)
            except BaseException:
                del self._links[peer]
                raise
        return link

    def _connect(self, peer: str, link: _Link) -> None:
        """Connect, or connect again: a socket whose connection broke may hold half of what was under way."""
        if link.socket is not None:
            self._loop.release(link.socket)
        link.is_up = False
        link.greeted_at = self._loop.now()
        link.channel.close()
        notice = partial(self._connection_event, peer, link)
        key = link.member.key.encode()
        link.socket = None
        try:
            socket = self._loop.dealer(link.member.address, self._identity, self._access, key, notice)
        except zmq.ZMQError as error:
            text = f"{self._hello.label or 'this process'} cannot connect to {link.member.label}: {error}"
            raise OutOfResources(error.errno, text) from error
        link.socket = socket
        broken = partial(self._broken, peer, link)
        self._loop.receive(socket, partial(self._receive, peer, link, socket), broken)
        send_frames(socket, greeting(self._hello))

    def _broken(self, peer: str, link: _Link, error: Exception) -> None:
        """What a worker says cannot be read, so nothing that is under way there will come."""
        _log.error("%s is not understood", link.member.label, exc_info=error)
        if self._links.get(peer) is link:
            self.lose(peer, f"{link.member.label} said what cannot be read ({type(error).__name__}: {error})")

    def _connection_event(self, peer: str, link: _Link, event: int) -> None:
        if self._links.get(peer) is not link:
            return
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            link.is_up, link.is_refused = True, False
        elif event in REFUSED:
            link.is_refused = True
            self._loop.after(_TRY_S, partial(self._connect_again, peer, link))
        elif event == zmq.EVENT_DISCONNECTED and link.is_up:
            link.is_up = False
            link.down_since = self._loop.now()
            link.channel.close()
            self._loop.call(partial(self._connect_again, peer, link))

    def _connect_again(self, peer: str, link: _Link) -> None:
        if self._links.get(peer) is link:
            try:
                self._connect(peer, link)
            except (ConnectionFailed, OutOfResources) as error:
                self._give_up(peer, error)

    def _look(self) -> None:
        """Give up who is out of reach for too long; tell the others what we have, and what we wait for."""
        now = self._loop.now()
        asked: dict[str, list[_Request]] = {}
        for request in self._requests.values():
            asked.setdefault(request.peer, []).append(request)
        for peer, link in list(self._links.items()):
            wanted = asked.get(peer, [])
            longest_s = patience_s(link.member.address, self.timeout_s)
            if link.channel.is_open:
                if wanted or link.channel.owes or link.channel.unconfirmed:
                    self._transmit(link, [link.channel.note()])
            elif not link.is_up and now - link.down_since > longest_s:
                late = [r for r in wanted if now - r.asked_at > longest_s]
                if len(late) < len(wanted):  # each has the whole time, whoever has asked before
                    for request in late:
                        self._answer(request.message.number, self._unreachable(link))
                elif wanted or link.channel.unconfirmed:
                    self._give_up(peer, self._unreachable(link))
            elif link.is_up and now - link.greeted_at > _GREET_S:
                link.greeted_at = now
                assert link.socket is not None, "what is connected has a socket"
                send_frames(link.socket, greeting(self._hello))

    def _unreachable(self, link: _Link) -> WorkerUnreachable:
        return WorkerUnreachable(
            f"the worker {link.member.label} at {link.member.address} is a member of the cluster, but "
            f"{self._hello.label or 'this process'} "
            + ("is not let in" if link.is_refused else "has not reached it")
            + f" for {patience_s(link.member.address, self.timeout_s):g} s{why_gone(link.member.address)}"
        )

    def _receive(self, peer: str, link: _Link, socket: Socket, frames: Sequence[Buffer]) -> None:
        if link.socket is not socket:
            return  # given up a moment ago
        if has_header(frames):
            self._hear(link, socket, frames)
            return
        message = GREETED(frames)
        match message:
            case Welcome():
                send(socket, Resume(link.session, link.resumed, link.channel.heard))
            case Resumed():
                link.resumed = True
                self._transmit(link, link.channel.open(message.heard))
            case Refused():
                self.lose(peer, f"{link.member.label} refused the connection: {message.message}")
            case Probe():
                pass  # what its sender has learned is whether we are connected

    def _hear(self, link: _Link, socket: Socket, frames: Frames) -> None:
        """A message of the channel."""
        if not link.channel.is_open:
            return  # it comes again
        match link.channel.take(frames):
            case "gap":
                link.channel.close()
                send(socket, Resume(link.session, link.resumed, link.channel.heard))
            case "new":
                self._take(link, FROM_OWNER(frames[1:]))
                if link.channel.is_due:
                    self._transmit(link, [link.channel.note()])

    def _take(self, link: _Link, message: Any) -> None:
        match message:
            case Tile():
                request = self._requests.get(message.number)
                self.received_bytes += sum(map(len, message.data.frames))
                if request is not None:
                    self._answer(message.number, unpack(message.data, make=partial(_place, request.into)))
            case Stored():
                self._answer(message.number, None)
            case SharedTile():
                self._map(link, message)
            case LongTile():
                self._read_on(link, message)
            case TransferFailed():
                self._answer(message.number, rebuild_error(message.kind, message.message))

    def _answer(self, number: int, result: Any) -> None:
        request = self._requests.pop(number, None)
        if request is not None:
            _settle(request.future, result)

    def _map(self, link: _Link, message: SharedTile) -> None:
        """Answer a read with a view of the owner's memory, or read again where it may not be mapped."""
        give_back = partial(self._unlease, link, message.lease)
        request = self._requests.get(message.number)
        if request is None:  # aborted meanwhile
            give_back()
            return
        try:
            array = self._mappings.view(message.array, lambda: self._loop.call(give_back))
        except OSError:
            give_back()
            link.shared = False
            self._send(request)
            return
        self.received_bytes += 0 if message.array.of_file else array.nbytes
        self._answer(message.number, array)

    def _read_on(self, link: _Link, message: LongTile) -> None:
        """Ask for the parts of a read that is too long for one message."""
        request = self._requests.get(message.number)
        if request is None:  # aborted meanwhile
            self._unlease(link, message.lease)
            return
        peer, key, into = request.peer, request.message.key, request.into

        def ask(box: Box, into: np.ndarray[Any, Any] | None) -> Future[Any]:
            part = FetchPart(next(self._numbers), key, message.lease, box)
            return self._ask(_Request(peer, part, Future(), since=link.member.since, into=into))

        def done(result: Any) -> None:
            self._unlease(link, message.lease)
            self._answer(message.number, result)

        room = partial(_place, into, make=self._allocate)
        LongRead(ask, done, self._loop.call, self._helper).begin(room, message.shape, message.dtype)

    def _unlease(self, link: _Link, lease: int) -> None:
        if self._links.get(link.member.name) is link:
            self._transmit(link, link.channel.send(encode(Unlease((lease,)))))

    def _fail(self, matches: Callable[[_Request], bool], error: Exception) -> None:
        for number in [n for n, r in self._requests.items() if matches(r)]:
            _settle(self._requests.pop(number).future, error)


def _place(
    into: np.ndarray[Any, Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any], make: Make = np.empty
) -> np.ndarray[Any, Any]:
    """Where an array that has come in pieces is put together."""
    if into is None or into.shape != shape or into.dtype != dtype or not into.flags.c_contiguous:
        return make(shape, dtype)
    return into


def _settle(future: Future[Any], result: Any) -> None:
    """Complete a future, unless its reader has cancelled it."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
