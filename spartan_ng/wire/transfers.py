"""Messages between workers, and between clients and workers: tiles and tasks, over channels that outlive
their connections. Those of the master are in `wire.messages`.

    peer → worker     Hello  Resume  Fetch  FetchPart  Put  PutShared  Unlease  Borrow  GiveBack
    worker → peer     Welcome  Refused  Resumed  Probe  Tile  SharedTile  LongTile  Stored  TransferFailed
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spartan_ng.arrays import Key
from spartan_ng.wire.codec import NOTHING, Blob, Message, Reader
from spartan_ng.wire.messages import Probe, Refused, Welcome

Part = tuple[tuple[int, ...], tuple[tuple[int, int], ...]]
"""The shape of a tile, and a box of it."""
ALL: Part = ((), ())
"""Of a tile that comes as one."""


class Resume(Message, frozen=True):
    """Begin a channel, or go on with it after a break: all messages that follow belong to it."""

    session: int
    resumed: bool
    """Whether the receiver must know the channel: what it sent before is not to be had again."""
    heard: int
    """The sender has so many of the channel's messages."""


class Resumed(Message, frozen=True):
    """The answer to `Resume`: so many of the channel's messages are here."""

    heard: int


class Fetch(Message, frozen=True):
    """Read a region of a tile; waits at its owner until the tile is complete."""

    number: int
    key: Key
    region: tuple[tuple[int, int, int], ...]
    """Start, stop and step an axis."""
    shared: bool
    """The reader can map the owner's memory."""
    picked: Blob = NOTHING
    """The whole region instead, where indices or several ranges pick elements along an axis."""
    peeks: bool = False
    """The tile has to be there, and this is none of the reads that it is kept for."""
    looks: bool = False
    """The reader wants to look at the region where it lies, in memory or in a file without a name; where it
    cannot, the answer is `Stored`."""


class Borrow(Message, frozen=True):
    """A worker with nothing to do asks for a task of the job `key[0]`, and says what its own share of the
    stage `key[1]` took; the answer is a `Tile` of what `Offers.lend` gives."""

    number: int
    key: Key
    usual_s: float = 0.0


class FetchOperand(Message, frozen=True):
    """Read what a share that is run here too has read, and nobody else has any more: `key` is its job and its
    number, `place` that of the operand among those of its task. The answer is a `Tile`."""

    number: int
    key: Key
    place: int


class GiveBack(Message, frozen=True):
    """What a borrowed task has made; `key` is its job and its offer's number."""

    number: int
    key: Key
    task: int
    result: Blob


class Tile(Message, frozen=True):
    """The data a `Fetch` asked for."""

    number: int
    data: Blob


class SharedArray(Message, frozen=True):
    """Where an array lies in the shared memory of its process."""

    pid: int
    descriptor: int
    segment: int
    """Never used twice by one process, unlike the descriptor."""
    size_bytes: int
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    of_file: bool = False
    """It lies in a file on disk that has no name; `segment` is the file's own number."""


class SharedTile(Message, frozen=True):
    """The place of the data a `Fetch` asked for; it stays there until the reader's `Unlease`."""

    number: int
    lease: int
    array: SharedArray


class LongTile(Message, frozen=True):
    """The data a `Fetch` asked for is too long for one message: the reader asks for parts of it, until its
    `Unlease`."""

    number: int
    lease: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class FetchPart(Message, frozen=True):
    """Read a box of what is leased as a `LongTile` of the tile `key`."""

    number: int
    key: Key
    lease: int
    box: tuple[tuple[int, int], ...]


class Unlease(Message, frozen=True):
    """The reader has let go of shared or long tiles."""

    leases: tuple[int, ...]


class Put(Message, frozen=True):
    """A tile from the driver, or a part of one."""

    number: int
    key: Key
    data: Blob
    shape: tuple[int, ...] = ()
    """Of a tile that comes in parts;"""
    box: tuple[tuple[int, int], ...] = ()
    """where in it this one belongs."""


class PutShared(Message, frozen=True):
    """A tile from the driver, in memory that the worker takes over."""

    number: int
    key: Key
    array: SharedArray


class Stored(Message, frozen=True):
    """The tile of a `Put` is there."""

    number: int


class TransferFailed(Message, frozen=True):
    """A `Fetch` or `Put` failed with the error `kind` (see `wire.failures`)."""

    number: int
    kind: str
    message: str


RESUMING = Reader(Resume)
GREETED = Reader(Welcome, Refused, Resumed, Probe)
FROM_READER = Reader(Fetch, FetchPart, Put, PutShared, Unlease)
TO_OWNER = Reader(Fetch, FetchPart, Put, PutShared, Unlease, Borrow, FetchOperand, GiveBack)
FROM_OWNER = Reader(Tile, SharedTile, LongTile, Stored, TransferFailed)
