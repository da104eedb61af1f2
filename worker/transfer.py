"""Reading and writing tiles that other processes hold: the requester's side.

A read names a tile and a region, and waits at the tile's owner until it is complete. Between processes that
share memory, large data does not travel: the answer says where it lies, the reader maps it, and tells
the owner when its last array on it has died. All else comes in frames, without copies on the way.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from spartan_ng.errors import WorkerLost
from spartan_ng.wire.codec import Buffer
from spartan_ng.wire.failures import rebuild
from spartan_ng.wire.hosts import host_identity
from spartan_ng.wire.loop import Loop, Socket, receive, send
from spartan_ng.wire.messages import (
    Borrow,
    Fetch,
    GiveBack,
    Hello,
    Key,
    Member,
    Members,
    Put,
    PutShared,
    Refused,
    Region,
    SharedArray,
    SharedTile,
    Stored,
    Tile,
    TransferFailed,
    Unlease,
    Welcome,
)
from spartan_ng.wire.security import Keys
from spartan_ng.worker.pool import SHARED_BYTES, Segment, size_class
from spartan_ng.worker.stealing import Offers

GREETING_TIMEOUT_S = 10.0
"""A worker that the master knows must answer a first call within this time."""

_MAPPINGS = 1024
"""Peers' segments that stay mapped, at most."""


@dataclass(slots=True)
class _Link:
    """The connection to one worker."""

    member: Member
    socket: Socket
    shared: bool
    greeted: bool = False


@dataclass(slots=True)
class _Request:
    """A message that waits for its answer."""

    peer: str
    message: Fetch | Put | PutShared | Borrow | GiveBack
    future: Future[Any]
    keep: Any = None
    """What must live until the answer is there."""


class Peers:
    """Reads and writes of tiles on other workers, to whom we say `hello` first.

    `fetch`, `put` and `abort` are thread-safe.
    """

    def __init__(self, loop: Loop, hello: Hello, keys: Keys | None) -> None:
        self._loop = loop
        self._hello = hello
        self._keys = keys
        self._members: dict[str, Member] = {}
        self._links: dict[str, _Link] = {}
        self._requests: dict[int, _Request] = {}
        self._numbers = count(1)
        self._mappings = _Mappings()

    def fetch(self, peer: str, key: Key, region: Region) -> Future[Any]:
        """The region of a tile that the worker `peer` holds, as soon as it is complete there."""
        message = Fetch(next(self._numbers), key, region, True)
        return self._ask(_Request(peer, message, Future()))

    def put(self, peer: str, key: Key, tile: Any) -> Future[Any]:
        """Give a tile to the worker `peer`; done when it is there."""
        number = next(self._numbers)
        member = self._members.get(peer)
        near = member is not None and member.host == host_identity() != ""
        if near and isinstance(tile, np.ndarray) and tile.nbytes >= SHARED_BYTES and not tile.dtype.hasobject:
            segment, array = _copy_out(tile)
            return self._ask(_Request(peer, PutShared(number, key, array), Future(), segment))
        return self._ask(_Request(peer, Put(number, key, tile), Future(), tile))

    def borrow(self, peer: str, job: str) -> Future[Any]:
        """Ask the worker `peer` for a task of a job."""
        return self._ask(_Request(peer, Borrow(next(self._numbers), (job, 0)), Future()))

    def give_back(self, peer: str, job: str, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a borrowed task's result to the worker `peer`."""
        message = GiveBack(next(self._numbers), (job, offer), task, result)
        return self._ask(_Request(peer, message, Future(), result))

    def abort(self, matches: Callable[[Key], bool], error: Exception) -> None:
        """Fail all waiting reads of keys that match."""
        self._loop.call(lambda: self._fail(lambda r: matches(r.message.key), error))

    def use(self, members: Members) -> None:
        """Take the new address book; requests to workers that are gone fail. On the loop's thread."""
        self._members = {m.name: m for m in members.members}
        for lost in members.lost:
            self.lose(lost.name, f"{lost.label} died")
        for name in [n for n in self._links if n not in self._members]:
            self.lose(name, f"{self._links[name].member.label} left")

    def lose(self, peer: str, why: str) -> None:
        """Fail all that waits for `peer`. On the loop's thread."""
        link = self._links.pop(peer, None)
        if link is not None:
            self._loop.release(link.socket)
        self._fail(lambda r: r.peer == peer, WorkerLost(f"worker {why}; its tiles are lost"))

    def close(self, error: Exception) -> None:
        """Fail all that waits. On the loop's thread."""
        self._fail(lambda r: True, error)

    def _ask(self, request: _Request) -> Future[Any]:
        self._loop.call(partial(self._send, request))
        return request.future

    def _send(self, request: _Request) -> None:
        link = self._link(request.peer)
        if link is None:
            gone = WorkerLost(f"worker {request.peer} is not a member of the cluster any more")
            _settle(request.future, gone)
            return
        message = request.message
        if isinstance(message, Fetch) and not link.shared:
            message = request.message = Fetch(message.number, message.key, message.region, False)
        self._requests[message.number] = request
        try:
            send(link.socket, message)
        except TypeError as error:  # a dtype that cannot travel
            del self._requests[message.number]
            _settle(request.future, error)

    def _link(self, peer: str) -> _Link | None:
        link = self._links.get(peer)
        if link is None:
            member = self._members.get(peer)
            if member is None:
                return None
            socket = self._loop.dealer(member.address, self._hello.name, self._keys)
            link = _Link(member, socket, member.host == host_identity() != "")
            self._links[peer] = link
            self._loop.receive(socket, partial(self._receive, peer, link))
            send(socket, self._hello)
            self._loop.after(GREETING_TIMEOUT_S, partial(self._check_greeting, peer, link))
        return link

    def _check_greeting(self, peer: str, link: _Link) -> None:
        if not link.greeted and self._links.get(peer) is link:
            where = f"{link.member.label} at {link.member.address}"
            self.lose(peer, f"{where} did not answer within {GREETING_TIMEOUT_S:.0f} s")

    def _receive(self, peer: str, link: _Link, frames: Sequence[Buffer]) -> None:
        message = receive(frames)
        match message:
            case Welcome():
                link.greeted = True
            case Refused():
                self.lose(peer, f"{link.member.label} refused the connection: {message.message}")
            case Tile():
                self._answer(message.number, message.data)
            case Stored():
                self._answer(message.number, None)
            case SharedTile():
                self._map(link, message)
            case TransferFailed():
                self._answer(message.number, rebuild(message.kind, message.message))

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
        self._answer(message.number, array)

    def _unlease(self, link: _Link, lease: int) -> None:
        if self._links.get(link.member.name) is link:
            send(link.socket, Unlease((lease,)))

    def _fail(self, matches: Callable[[_Request], bool], error: Exception) -> None:
        for number in [n for n, r in self._requests.items() if matches(r)]:
            _settle(self._requests.pop(number).future, error)


class RankedPeers:
    """The workers of one job by rank, as the executor sees them."""

    def __init__(self, peers: Peers, names: Sequence[str], offers: Offers) -> None:
        self._peers = peers
        self._names = tuple(names)
        self.offers = offers

    def borrow(self, job: str, rank: int) -> Future[Any]:
        """What the worker on `rank` has to lend, see `Offers.lend`."""
        return self._peers.borrow(self._names[rank], job)

    def give_back(self, job: str, rank: int, offer: int, task: int, result: Any) -> Future[Any]:
        """Give a borrowed task's result to the worker on `rank`; done when it has arrived."""
        return self._peers.give_back(self._names[rank], job, offer, task, result)

    def fetch(self, key: Key, rank: int, region: Region) -> Future[Any]:
        """The region of the tile on `rank`, as soon as it is complete there: an array (read-only), a CSR
        array or updates; WorkerLost if that worker dies."""
        return self._peers.fetch(self._names[rank], key, region)


class _Mappings:
    """Other processes' segments, mapped read-only; the ones used least recently are let go."""

    def __init__(self) -> None:
        self._maps: OrderedDict[tuple[int, int], mmap.mmap] = OrderedDict()

    def view(self, where: SharedArray, when_dead: Callable[[], None]) -> np.ndarray[Any, Any]:
        """The array at `where`; OSError if its process's memory may not be mapped."""
        mapped = self._map(where)
        root: np.ndarray[Any, Any] = np.frombuffer(mapped, np.uint8)
        weakref.finalize(root, when_dead).atexit = False
        if where.dtype.itemsize == 0 or 0 in where.shape:
            return np.empty(where.shape, where.dtype)
        return _strided(root, where)

    def _map(self, where: SharedArray) -> mmap.mmap:
        key = (where.pid, where.segment)
        mapped = self._maps.get(key)
        if mapped is not None:
            self._maps.move_to_end(key)
            return mapped
        descriptor = open_shared(where, os.O_RDONLY)
        try:
            mapped = mmap.mmap(descriptor, where.size_bytes, access=mmap.ACCESS_READ)
        finally:
            os.close(descriptor)
        self._maps[key] = mapped
        if len(self._maps) > _MAPPINGS:
            self._maps.popitem(last=False)
        return mapped


def open_shared(where: SharedArray, flags: int) -> int:
    """A descriptor of our own for another process's segment."""
    return os.open(f"/proc/{where.pid}/fd/{where.descriptor}", flags | os.O_CLOEXEC)


def describe_shared(segment: Segment, offset: int, array: np.ndarray[Any, Any]) -> SharedArray:
    """Where `array` lies, for a process that maps our memory."""
    return SharedArray(
        os.getpid(),
        segment.descriptor,
        segment.serial,
        segment.size,
        offset,
        array.dtype,
        array.shape,
        array.strides,
    )


def _strided(root: np.ndarray[Any, Any], where: SharedArray) -> np.ndarray[Any, Any]:
    """The array of `where` inside the bytes `root`; negative strides never occur in a region."""
    first = root[where.offset : where.offset + where.dtype.itemsize].view(where.dtype)
    view: np.ndarray[Any, Any] = as_strided(first, where.shape, where.strides, writeable=False)
    return view


class _Handover:
    """A segment that another process takes over: we close our descriptor, its pages live on there."""

    def __init__(self, segment: Segment) -> None:
        weakref.finalize(self, os.close, segment.descriptor).atexit = False


def _copy_out(tile: np.ndarray[Any, Any]) -> tuple[_Handover, SharedArray]:
    """A copy of `tile` in a segment of its own, in C order."""
    segment = Segment.create(size_class(tile.nbytes))
    target: np.ndarray[Any, Any] = np.frombuffer(segment.map, np.uint8, tile.nbytes).view(tile.dtype)
    target = target.reshape(tile.shape)
    target[...] = tile
    return _Handover(segment), describe_shared(segment, 0, target)


def _settle(future: Future[Any], result: Any) -> None:
    """Complete a future, unless its reader has cancelled it."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
