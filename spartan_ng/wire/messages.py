"""Every message, one frozen dataclass each.

    client → master   Hello  Submit  Cancel  Release  ForgetPlan  AskStatus  Bye
    worker → master   Hello  StagesDone  JobFinished  JobError  Bye
    master → client   Welcome  Refused  Members  Progress  JobDone  JobFailed  Status
    master → worker   Welcome  Refused  Members  RunJob  CancelJob  Discard  DropOwner  ForgetPlan  Stop
    master → anyone   Probe (its only purpose is to find out who is gone)
    peer → worker     Hello  Resume  Fetch  Put  PutShared  Unlease  Borrow  GiveBack
    worker → peer     Welcome  Refused  Resumed  Tile  SharedTile  Stored  TransferFailed

An owner is a client's name, a job is `client/number`, a key is `(owner, number)` as in `worker.store`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spartan_ng.wire.codec import NOTHING, Blob, register

PROTOCOL = 4
"""Both ends must speak the same version; raise it with every change of a message."""

Key = tuple[str, int]
Region = tuple[Any, ...]
"""See `worker.store`."""
Stats = tuple[tuple[float, int, int, int], ...]
"""`(seconds, bytes received from other workers, bytes made where their number depends on data, tasks that
others did)` a stage."""


@register
@dataclass(frozen=True, slots=True)
class Hello:
    """The first message on every connection: who speaks, and with which right."""

    protocol: int
    role: str
    """"worker", "client" or "peer"."""
    name: str
    token: str = ""
    label: str = ""
    """For people: host and process."""
    address: str = ""
    """Where a worker serves its tiles."""
    host: str = ""
    """Equal for processes that can map each other's memory."""
    threads: int = 0
    memory_bytes: int = 0


@register
@dataclass(frozen=True, slots=True)
class Refused:
    """The connection is not accepted; `reason` is "version", "token" or "role"."""

    reason: str
    message: str


@register
@dataclass(frozen=True, slots=True)
class Member:
    """A worker as the others see it."""

    name: str
    label: str
    address: str
    host: str
    threads: int
    memory_bytes: int


@register
@dataclass(frozen=True, slots=True)
class Members:
    """The workers in the order of their ranks; `lost` names those that went since the last epoch."""

    epoch: int
    members: tuple[Member, ...]
    lost: tuple[Member, ...] = ()


@register
@dataclass(frozen=True, slots=True)
class Welcome:
    """The connection is accepted."""

    protocol: int
    name: str = ""


@register
@dataclass(frozen=True, slots=True)
class Probe:
    """Nothing; sending it tells the master whether the receiver is still connected."""


@register
@dataclass(frozen=True, slots=True)
class Bye:
    """The sender leaves on purpose."""


@register
@dataclass(frozen=True, slots=True)
class Stop:
    """A worker's order to leave."""


@register
@dataclass(frozen=True, slots=True)
class Submit:
    """Run a plan: `plan` is empty where the master has it under `plan_key` already."""

    job: str
    plan_key: str
    epoch: int
    world: int
    ranks: int
    """The first so many ranks take part; `world` is what the plan was made for."""
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]
    inline: bool
    progress: bool
    released: tuple[int, ...] = ()
    """With `retired`: as in `Release`, without a message of its own."""
    retired: tuple[str, ...] = ()
    values: Blob = NOTHING
    """Small inputs that are not on the workers yet: `((position in inputs, value), ...)`."""
    plan: Blob = NOTHING


@register
@dataclass(frozen=True, slots=True)
class RunJob:
    """A worker's part of a `Submit`; what is `released`, and the scratch of the jobs `retired`, may go."""

    job: str
    plan_key: str
    epoch: int
    world: int
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]
    inline: bool
    progress: bool
    released: tuple[Key, ...]
    retired: tuple[str, ...]
    values: Blob = NOTHING
    plan: Blob = NOTHING


@register
@dataclass(frozen=True, slots=True)
class Cancel:
    """A client's wish to stop its job."""

    job: str


@register
@dataclass(frozen=True, slots=True)
class CancelJob:
    """A worker's order to stop its part of a job."""

    job: str


@register
@dataclass(frozen=True, slots=True)
class StagesDone:
    """How many stages a worker has finished."""

    job: str
    done: int


@register
@dataclass(frozen=True, slots=True)
class Progress:
    """How many stages all workers have finished."""

    job: str
    done: int


@register
@dataclass(frozen=True, slots=True)
class JobFinished:
    """A worker's part is done: its stages' cost, the non-zeros of its CSR results, small results' tiles."""

    job: str
    stats: Stats
    nnz: tuple[int, ...]
    values: Blob = NOTHING


@register
@dataclass(frozen=True, slots=True)
class JobDone:
    """All parts are done; `values` holds the workers' small results in the order of their ranks."""

    job: str
    stats: Stats
    nnz: tuple[int, ...]
    values: tuple[Blob, ...] = ()


@register
@dataclass(frozen=True, slots=True)
class JobError:
    """A worker's part failed with the error `kind` (see `wire.failures`)."""

    job: str
    kind: str
    message: str


@register
@dataclass(frozen=True, slots=True)
class JobFailed:
    """The job failed as a whole."""

    job: str
    kind: str
    message: str


@register
@dataclass(frozen=True, slots=True)
class Release:
    """Arrays of the client that nobody refers to any more, and jobs that are over: what is left of their
    scratch may go."""

    serials: tuple[int, ...]
    jobs: tuple[str, ...] = ()


@register
@dataclass(frozen=True, slots=True)
class Discard:
    """Tiles and whole owners that a worker drops."""

    keys: tuple[Key, ...]
    owners: tuple[str, ...] = ()


@register
@dataclass(frozen=True, slots=True)
class DropOwner:
    """A client is gone: its tiles, jobs, plans and leases go too."""

    owner: str


@register
@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """A plan that will not be run by its key again; `owner` is set by the master."""

    plan_key: str
    owner: str = ""


@register
@dataclass(frozen=True, slots=True)
class AskStatus:
    """Ask for `Status`."""


@register
@dataclass(frozen=True, slots=True)
class Status:
    """Who is there and what runs."""

    members: Members
    clients: tuple[str, ...]
    jobs: tuple[tuple[str, str], ...]


@register
@dataclass(frozen=True, slots=True)
class Resume:
    """Begin a channel, or go on with it after a break: all messages that follow belong to it."""

    session: int
    resumed: bool
    """Whether the receiver must know the channel: what it sent before is not to be had again."""
    heard: int
    """The sender has so many of the channel's messages."""


@register
@dataclass(frozen=True, slots=True)
class Resumed:
    """The answer to `Resume`: so many of the channel's messages are here."""

    heard: int


@register
@dataclass(frozen=True, slots=True)
class Fetch:
    """Read a region of a tile; waits at its owner until the tile is complete."""

    number: int
    key: Key
    region: Region
    shared: bool
    """The reader can map the owner's memory."""


@register
@dataclass(frozen=True, slots=True)
class Borrow:
    """A worker with nothing to do asks for a task of the job `key[0]`; the answer is a `Tile` of what
    `Offers.lend` gives."""

    number: int
    key: Key


@register
@dataclass(frozen=True, slots=True)
class GiveBack:
    """What a borrowed task has made; `key` is its job and its offer's number."""

    number: int
    key: Key
    task: int
    result: Any


@register
@dataclass(frozen=True, slots=True)
class Tile:
    """The data a `Fetch` asked for."""

    number: int
    data: Any


@register
@dataclass(frozen=True, slots=True)
class SharedArray:
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


@register
@dataclass(frozen=True, slots=True)
class SharedTile:
    """The place of the data a `Fetch` asked for; it stays there until the reader's `Unlease`."""

    number: int
    lease: int
    array: SharedArray


@register
@dataclass(frozen=True, slots=True)
class Unlease:
    """The reader has let go of shared tiles."""

    leases: tuple[int, ...]


@register
@dataclass(frozen=True, slots=True)
class Put:
    """A tile from the driver."""

    number: int
    key: Key
    data: Any


@register
@dataclass(frozen=True, slots=True)
class PutShared:
    """A tile from the driver, in memory that the worker takes over."""

    number: int
    key: Key
    array: SharedArray


@register
@dataclass(frozen=True, slots=True)
class Stored:
    """The tile of a `Put` is there."""

    number: int


@register
@dataclass(frozen=True, slots=True)
class TransferFailed:
    """A `Fetch` or `Put` failed with the error `kind` (see `wire.failures`)."""

    number: int
    kind: str
    message: str
