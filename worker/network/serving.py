"""Reading and writing of this worker's tiles by other processes: the owner's side.

A read of a tile that is not complete parks in the store. Large data in shared memory is leased to readers on
the same host: the tile's buffer lives until they give the lease back, or are gone. Whatever takes a
while (copies, tiles on disk) runs on a thread of its own, so that the loop stays free. What is too long for
a message, and not shared, is leased, too, and read part by part (`long_reads`), and comes so (`long_writes`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from msgspec import Struct, field

from spartan_ng.arrays.copying import is_mapped
from spartan_ng.costs.choices import QUICK_BYTES
from spartan_ng.wire.access import Access
from spartan_ng.wire.channel import Channel, has_header
from spartan_ng.wire.codec import encode
from spartan_ng.wire.failures import describe_error
from spartan_ng.wire.hosts import label
from spartan_ng.wire.keys import Pair, Users
from spartan_ng.wire.loop import Frames, Loop
from spartan_ng.wire.messages import PROTOCOL, Hello, Probe, Refused, Welcome
from spartan_ng.wire.port import Peer, Port
from spartan_ng.wire.transfers import (
    FROM_READER,
    RESUMING,
    TO_OWNER,
    Borrow,
    Fetch,
    FetchOperand,
    FetchPart,
    GiveBack,
    LongTile,
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
from spartan_ng.wire.values import pack, unpack
from spartan_ng.worker.memory.pool import SHARED_BYTES
from spartan_ng.worker.memory.store import Region, Store, dropped, read_region, selected_places
from spartan_ng.worker.network.long_reads import is_read_in_parts, part_of_region
from spartan_ng.worker.network.long_writes import Arrivals
from spartan_ng.worker.network.sharing import describe_in_file, describe_shared, open_shared
from spartan_ng.worker.scheduling.stealing import Offers

_READERS = {"worker": TO_OWNER, "client": FROM_READER, "admin": FROM_READER}
_LOOK_S = 1.0
"""How often readers are told what has been heard of them."""


class _Reader(Struct):
    """Who reads tiles here, over one connection after the other."""

    session: int = 0
    channel: Channel = field(default_factory=Channel)


class _Lease(Struct, frozen=True):
    """What a reader looks at for a while, so that it stays."""

    message: Fetch
    data: np.ndarray[Any, Any]
    region: Region = ()
    """What of `data` a long read is for."""


class TileServer:
    """Answers readers and writers at `address`. All but the store's callbacks is on the loop's thread."""

    def __init__(
        self, loop: Loop, address: str, access: Access, pair: Pair | None, store: Store, offers: Offers
    ) -> None:
        self._loop = loop
        self._port = Port(loop, address, access, pair, self, Probe)
        self.address = self._port.address
        self._store = store
        self._offers = offers
        self._arrivals = Arrivals(store)
        self.sent_bytes = 0
        """Of tiles, since the start."""
        self._readers: dict[str, _Reader] = {}
        self._leases: dict[tuple[str, int], _Lease] = {}
        self._numbers = count(1)
        self._slow = ThreadPoolExecutor(2, thread_name_prefix="tile-server")
        loop.every(_LOOK_S, self._confirm)

    @property
    def leases(self) -> int:
        """Number of tiles that readers look at."""
        return len(self._leases)

    def forget(self, peer: str) -> None:
        """A reader is gone, with all its leases."""
        self._port.forget(peer)
        self.gone(peer)

    def gone(self, name: str) -> None:
        """A reader's connection is of no use any more, and so is what it has here."""
        self._readers.pop(name, None)
        self._arrivals.forget(name)
        for lease in [at for at in self._leases if at[0] == name]:
            self._unlease(*lease)

    def disconnected(self) -> None:
        """Readers come back, or the master says that they do not."""

    def forget_all(self) -> None:
        """The cluster is gone, with all readers."""
        for name in list(self._readers):
            self.gone(name)

    def authorize(self, users: Users) -> None:
        """Let in the holders of these keys, and nobody else any more."""
        self._port.door.users = users
        self._port.cut_unknown()

    def close(self) -> None:
        """Stop the helper threads."""
        self._slow.shutdown(wait=False, cancel_futures=True)

    def greeted(self, peer: Peer, hello: Hello) -> None:
        """A reader has connected, or connected again."""
        self._readers.setdefault(peer.name, _Reader()).channel.close()
        self._port.send(peer.name, encode(Welcome(PROTOCOL)))

    def heard(self, peer: Peer, frames: Frames) -> None:
        """A reader says something."""
        reader = self._readers.get(peer.name)
        if has_header(frames):
            self._hear(peer, reader, frames)
        elif reader is None:
            self._refuse(peer.name)
        else:
            self._resume(peer.name, reader, RESUMING(frames))

    def _resume(self, peer: str, reader: _Reader, message: Resume) -> None:
        """Go on with a reader's channel where it broke, or begin a new one."""
        if message.session != reader.session:
            if message.resumed:
                self._refuse(peer)
                return
            self.gone(peer)
            reader = self._readers[peer] = _Reader(message.session)
        self._port.send(peer, encode(Resumed(reader.channel.heard)))
        self._transmit(peer, reader.channel.open(message.heard))

    def _refuse(self, peer: str) -> None:
        gone = Refused("session", "what was under way has been given up here")
        self._port.send(peer, encode(gone))

    def _hear(self, peer: Peer, reader: _Reader | None, frames: Frames) -> None:
        """A message of a reader's channel."""
        name = peer.name
        if reader is None:
            self._refuse(name)
            return
        if not reader.channel.is_open:
            if len(frames) == 1:  # the reader thinks that all is well: begin again
                self._port.send(name, encode(Welcome(PROTOCOL)))
            return  # what it says comes again
        match reader.channel.take(frames):
            case "gap":
                reader.channel.close()
                self._port.send(name, encode(Welcome(PROTOCOL)))
            case "new":
                self._take(name, _READERS[peer.role](frames[1:]))
                if reader.channel.is_due:
                    self._transmit(name, [reader.channel.note()])

    def _confirm(self) -> None:
        for peer, reader in self._readers.items():
            channel = reader.channel
            if channel.is_open and (channel.owes or channel.unconfirmed):
                self._transmit(peer, [channel.note()])

    def _take(self, peer: str, message: Any) -> None:
        match message:
            case Fetch():
                self._fetch(peer, message)
            case FetchPart():
                self._fetch_part(peer, message)
            case Put():
                self._slow.submit(self._guard, peer, message.number, partial(self._put, peer, message))
            case PutShared():
                self._slow.submit(self._guard, peer, message.number, partial(self._adopt, message))
            case Borrow():
                self._slow.submit(self._guard, peer, message.number, lambda: self._lend(peer, message))
            case FetchOperand():
                self._slow.submit(self._guard, peer, message.number, lambda: self._operand(peer, message))
            case GiveBack():
                self._slow.submit(self._guard, peer, message.number, partial(self._take_back, message))
            case Unlease():
                for lease in message.leases:
                    self._unlease(peer, lease)

    def _fetch(self, peer: str, message: Fetch) -> None:
        if message.peeks and not self._store.holds(message.key):
            self._fail(peer, message.number, dropped(message.key))
            return
        self._store.when_ready(message.key, lambda: self._loop.call(partial(self._serve, peer, message)))

    def _serve(self, peer: str, message: Fetch) -> None:
        """The tile is complete: lease it, or send it."""
        if peer not in self._readers:
            self._has_read(message)
            return
        if message.looks and self._store.is_spilled(message.key):
            self._show_nothing(peer, message)
            return
        if message.picked or self._store.is_spilled(message.key):
            self._slow.submit(self._guard, peer, message.number, lambda: self._frames(peer, message))
            return
        try:
            tile = self._store.get(message.key)
            part = read_region(tile, message.region)
        except KeyError:
            self._fail(peer, message.number, dropped(message.key))
            return
        except Exception as error:  # noqa: BLE001 - a region that the tile does not have
            self._has_read(message)
            self._fail(peer, message.number, error)
            return
        if not self._lease(peer, message, part):
            if message.looks:
                self._show_nothing(peer, message)
            elif is_read_in_parts(tile, message.region):
                self._offer(peer, message, tile, message.region)
            elif not isinstance(part, np.ndarray) or part.nbytes <= QUICK_BYTES or part.flags.c_contiguous:
                self._answer(peer, message, part)
            else:
                self._slow.submit(self._guard, peer, message.number, lambda: self._frames(peer, message))

    def _lease(self, peer: str, message: Fetch, part: Any) -> bool:
        """Let a reader on the same host look at `part` where it is, if it lies in shared memory."""
        if not message.shared or not isinstance(part, np.ndarray) or part.nbytes < SHARED_BYTES:
            return False
        found = None if self._store.pool is None else self._store.pool.locate(part)
        where = None if found is None else describe_shared(*found, part)
        if where is None and message.looks:
            where = describe_in_file(part)
        if where is None:
            return False
        number = next(self._numbers)
        self._leases[peer, number] = _Lease(message, part)
        self.sent_bytes += 0 if where.of_file else part.nbytes
        self._send(peer, encode(SharedTile(message.number, number, where)))
        return True

    def _show_nothing(self, peer: str, message: Fetch) -> None:
        self._has_read(message)
        self._send(peer, encode(Stored(message.number)))

    def _offer(self, peer: str, message: Fetch, tile: np.ndarray[Any, Any], region: Region) -> None:
        """Have a reader ask for the parts of a long region."""
        if peer not in self._readers:
            self._has_read(message)
            return
        number = next(self._numbers)
        self._leases[peer, number] = _Lease(message, tile, region)
        shape = tuple(map(selected_places, region))
        self._send(peer, encode(LongTile(message.number, number, tile.dtype, shape)))

    def _fetch_part(self, peer: str, message: FetchPart) -> None:
        lease = self._leases.get((peer, message.lease))
        if lease is None or len(lease.region) != len(message.box):
            self._fail(peer, message.number, ValueError(f"there is no lease {message.lease}"))
            return
        self._slow.submit(self._guard, peer, message.number, lambda: self._part(peer, message, lease))

    def _part(self, peer: str, message: FetchPart, lease: _Lease) -> None:
        """Answer with a part, on a helper thread: it is the one that waits for the disk."""
        part = read_region(lease.data, part_of_region(lease.region, message.box))
        frames = encode(Tile(message.number, pack(part.copy() if is_mapped(part) else part)))
        self._loop.call(partial(self._send_tile, peer, frames))

    def _unlease(self, peer: str, lease: int) -> None:
        held = self._leases.pop((peer, lease), None)
        if held is not None:
            self._has_read(held.message)

    def _has_read(self, message: Fetch) -> None:
        """One of the reads is done that a tile is kept for."""
        if not message.peeks:
            self._store.release(message.key)

    def _answer(self, peer: str, message: Fetch, part: Any) -> None:
        self._send_tile(peer, encode(Tile(message.number, pack(part))))
        self._has_read(message)

    def _frames(self, peer: str, message: Fetch) -> None:
        """As `_answer`, on a helper thread."""
        region = unpack(message.picked) if message.picked else message.region
        tile = self._store.get(message.key)
        if is_read_in_parts(tile, region):
            self._loop.call(partial(self._offer, peer, message, tile, region))
            return
        frames = encode(Tile(message.number, pack(read_region(tile, region))))

        def answer() -> None:
            self._send_tile(peer, frames)
            self._has_read(message)

        self._loop.call(answer)

    def _lend(self, peer: str, message: Borrow) -> None:
        """Answer a worker that has nothing to do."""
        frames = encode(Tile(message.number, pack(self._offers.lend(*message.key, message.usual_s))))
        self._loop.call(partial(self._deliver, peer, frames))

    def _operand(self, peer: str, message: FetchOperand) -> None:
        """Answer a worker that stands in for this one."""
        frames = encode(Tile(message.number, pack(self._offers.operand(*message.key, message.place))))
        self._loop.call(partial(self._send_tile, peer, frames))

    def _take_back(self, message: GiveBack) -> Callable[[], Any]:
        result = unpack(message.result)
        return lambda: self._offers.come_back(*message.key, message.task, result)

    def _put(self, peer: str, message: Put) -> Callable[[], Any]:
        if message.box:
            return self._arrivals.take(peer, message)
        self._arrivals.give_up(peer, message.key)
        made: list[np.ndarray[Any, Any]] = []

        def make(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
            made.append(self._store.allocate(shape, dtype))
            return made[0]

        tile = unpack(message.data, make=make)
        if isinstance(tile, np.ndarray) and not made:
            # What came in one piece is a view of its message, which no budget counts.
            np.copyto(make(tile.shape, tile.dtype), tile)
        kept = made[0] if made else tile
        return lambda: self._store.put(message.key, kept)

    def _adopt(self, message: PutShared) -> Callable[[], Any]:
        where = message.array
        tile = self._store.adopt(open_shared(where, os.O_RDWR), where.size_bytes, where.shape, where.dtype)
        return lambda: self._store.put(message.key, tile)

    def _guard(self, peer: str, number: int, work: Callable[[], Any]) -> None:
        """Run a helper thread's work; whatever it raises is the requester's answer."""
        try:
            finish = work()
            if finish is not None:
                finish()
                self._loop.call(partial(self._reply, peer, Stored(number)))
        except KeyError as error:
            self._loop.call(partial(self._fail, peer, number, dropped(error.args[0])))
        except Exception as error:  # noqa: BLE001 - the requester's error
            self._loop.call(partial(self._fail, peer, number, error))

    def _fail(self, peer: str, number: int, error: Exception) -> None:
        kind, text = describe_error(error, label())
        self._send(peer, encode(TransferFailed(number, kind, text)))

    def _reply(self, peer: str, message: Any) -> None:
        self._send(peer, encode(message))

    def _deliver(self, peer: str, frames: Frames) -> None:
        self._send(peer, frames)

    def _send_tile(self, peer: str, frames: Frames) -> None:
        self.sent_bytes += sum(map(len, frames))
        self._send(peer, frames)

    def _send(self, peer: str, frames: Frames) -> None:
        reader = self._readers.get(peer)
        if reader is not None:
            self._transmit(peer, reader.channel.send(frames))

    def _transmit(self, peer: str, messages: Sequence[Frames]) -> None:
        """Send; a reader who cannot be reached now asks for it once it has connected again."""
        for frames in messages:
            if not self._port.send(peer, frames):
                self._readers[peer].channel.close()
                return
