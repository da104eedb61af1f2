"""The master's messages, one structure each, and who may say what: a reader for each kind of sender.

    client → master   Hello  Submit  Cancel  Release  Holds  Moved  ForgetPlan  Recovered
                      AskStatus  AskPage  Bye
    admin → master    what a client may say, and  Drain  Shutdown
    worker → master   Hello  Back  Leaving  Here  StagesDone  Doing  Printed  Happened  JobFinished  JobError
                      Bye
    master → client   Welcome  Refused  Members  Progress  Printed  Happened  JobDone  JobFailed  Status
                      Watched  PageAt
    master → worker   Welcome  Refused  Members  RunJob  CancelJob  Discard  DropOwner  Retain  ForgetPlan
                      Stop  Authorized
    master → anyone   Probe (its only purpose is to find out who is gone)

Those between workers, and between clients and workers, are in `wire.transfers`.

An owner is a client's name, a job is `client/number`, a key is `(owner, number)` as in `worker.store`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from spartan_ng.arrays import Key
from spartan_ng.events import Event
from spartan_ng.wire.codec import NOTHING, Blob, Message, Reader

PROTOCOL = 17
"""Both ends must speak the same version; raise it with every change of a message."""

Epoch = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""Counts changes of the membership; there is always a later one."""
Stats = tuple[tuple[float, int, int, int], ...]
"""`(seconds, bytes received from other workers, bytes made where their number depends on data, tasks that
others did)` a stage."""


class Hello(Message, frozen=True):
    """The first message on every connection: who speaks, and as what. Nothing in it is believed that gives
    rights: whether a peer may be what it says is the authenticator's business."""

    protocol: int
    role: str
    """One of `wire.keys.ROLES`."""
    label: str = ""
    """For people: host and process."""
    address: str = ""
    """Where a worker serves its tiles."""
    key: str = ""
    """The public key that it proves there who it is with."""
    host: str = ""
    """Equal for processes that can map each other's memory."""
    threads: int = 0
    memory_bytes: int = 0
    epoch: Epoch = 0
    """The last that the master, or another one before it, has told the sender."""
    processors: tuple[int, ...] = ()
    """Numbers of those of its host that it may use; nothing where they are not to count."""
    rates: tuple[int, int] = (0, 0)
    """Bytes that these stream together in a second, and operations that they do."""


class Refused(Message, frozen=True):
    """The connection is not accepted; `reason` is "version", "role", "rate" or "session"."""

    reason: str
    message: str


class Member(Message, frozen=True):
    """A worker as the others see it."""

    name: str
    label: str
    address: str
    host: str
    threads: int
    memory_bytes: int
    key: str = ""
    """The public key of the process at `address`."""
    since: Epoch = 0
    """The epoch in which it joined: one that has come back is another, without the tiles that it had."""
    processors: tuple[int, ...] = ()
    rates: tuple[int, int] = (0, 0)
    """As in its `Hello`."""


class Members(Message, frozen=True):
    """The workers in the order of their ranks; `lost` names those that went since the last epoch, `leaving`
    those that have no rank any more, and whose tiles can still be read."""

    epoch: Epoch
    members: tuple[Member, ...]
    lost: tuple[Member, ...] = ()
    leaving: tuple[Member, ...] = ()


class Welcome(Message, frozen=True):
    """The connection is accepted."""

    protocol: int
    name: str = ""
    keeps: bool = False
    """What the receiver had in the cluster before, it has still."""


class Back(Message, frozen=True):
    """A worker's answer to a `Welcome` after it had lost its master: the members that it knows, and whose
    tiles it has; nothing, where nothing is kept."""

    members: Members = Members(0, ())
    owners: tuple[str, ...] = ()


class Holds(Message, frozen=True):
    """A client that has lost its master holds these arrays, and no others up to `last`; its jobs up to
    `last_job` are over."""

    serials: tuple[int, ...]
    last: int
    last_job: int


class Retain(Message, frozen=True):
    """All else that a client had when it said what it `Holds` goes, and so does what its jobs have left.
    What is newer may have come before, from other peers."""

    owner: str
    holds: Holds


class Probe(Message, frozen=True):
    """Sending it tells whether the receiver is still connected; nobody but the master wants an answer."""

    sent_ns: int = 0
    """When it was sent, by the master's clock."""


class Here(Message, frozen=True):
    """A worker's answer to a `Probe` that was `sent_ns`: its interpreter runs, no function holds it up.
    ZeroMQ's heartbeat says only that it lives."""

    sent_ns: int = 0
    now_ns: int = 0
    """The worker's clock."""
    used_bytes: int = 0
    """Of tiles and buffers,"""
    free_bytes: int = 0
    """and what is kept for the next ones."""
    spilled_bytes: int = 0
    """Since it began; so are"""
    received_bytes: int = 0
    sent_bytes: int = 0


class Bye(Message, frozen=True):
    """The sender leaves on purpose."""


class Leaving(Message, frozen=True):
    """A worker is to end, and waits until nobody needs its tiles."""


class Drain(Message, frozen=True):
    """An admin's wish that a worker leaves."""

    worker: str


class Moved(Message, frozen=True):
    """A client has what was its own on workers that leave."""

    workers: tuple[str, ...]


class Stop(Message, frozen=True):
    """A worker's order to leave."""


class Shutdown(Message, frozen=True):
    """An admin's wish that the workers, and then the master, end."""


class Authorized(Message, frozen=True):
    """Who may read and write a worker's tiles from now on: pairs of a public key and its user."""

    users: tuple[tuple[str, str], ...]


class Submit(Message, frozen=True):
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
    timeout_s: float = 30.0
    """How long a worker may stay out of another's reach."""
    deadline_s: float = 0.0
    """How long the job may run; 0 for ever."""
    observed: bool = False
    """Whether the client wants to know what `Happened`."""
    line: str = ""
    """Of a `Watched` client: the user's line, and"""
    described: bytes = b""
    """what the plan does, for people, where the master has not heard it yet: `page.drawing` reads it."""


class RunJob(Message, frozen=True):
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
    timeout_s: float = 30.0
    observed: str = ""
    """What is to be told of what happens: "" nothing, "tasks" what the page shows, or "all"."""


class Cancel(Message, frozen=True):
    """A client's wish to stop its job, and to be told what is left of it where it `goes_on` from there."""

    job: str
    goes_on: bool = False


class CancelJob(Message, frozen=True):
    """A worker's order to stop its part of a job. Where results are to be kept, so is the job's scratch: the
    answer is a `JobError` that says what is left, also where the part had ended."""

    job: str
    keeps: tuple[Key, ...] = ()


class StagesDone(Message, frozen=True):
    """How many stages a worker has finished."""

    job: str
    done: int


class Progress(Message, frozen=True):
    """How many stages all workers have finished."""

    job: str
    done: int


class Doing(Message, frozen=True):
    """What a worker's part of a job has been at for a while: for whom it waits, or which function it runs."""

    job: str
    text: str


class Printed(Message, frozen=True):
    """Lines that users' functions have printed; the master says on which `worker`."""

    job: str
    text: str
    worker: str = ""


class Happened(Message, frozen=True):
    """What a worker has done for an observed job, by the receiver's clock as far as the sender knows it; the
    master says on which `worker`."""

    job: str
    events: tuple[Event, ...]
    worker: str = ""


class JobFinished(Message, frozen=True):
    """A worker's part is done: its stages' cost, the non-zeros of its CSR results, small results' tiles."""

    job: str
    stats: Stats
    nnz: tuple[int, ...]
    values: Blob = NOTHING


class JobDone(Message, frozen=True):
    """All parts are done; `values` holds the workers' small results in the order of their ranks."""

    job: str
    stats: Stats
    nnz: tuple[int, ...]
    values: tuple[Blob, ...] = ()


class JobError(Message, frozen=True):
    """A worker's part failed with the error `kind` (see `wire.failures`); the tiles that are `left` of what
    it was to keep."""

    job: str
    kind: str
    message: str
    left: tuple[Key, ...] = ()


class JobFailed(Message, frozen=True):
    """The job failed as a whole. What a lost worker's peers have `left` of it, by their ranks, stays there
    until the client says that the job is over."""

    job: str
    kind: str
    message: str
    left: tuple[tuple[Key, ...], ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether a worker was lost, so that the client goes on without it."""
        return self.kind in ("WorkerLost", "WorkerDied", "WorkersChanged")


class Release(Message, frozen=True):
    """Arrays of the client that nobody refers to any more, and jobs that are over: what is left of their
    scratch may go."""

    serials: tuple[int, ...]
    jobs: tuple[str, ...] = ()


class Discard(Message, frozen=True):
    """Tiles and whole owners that a worker drops."""

    keys: tuple[Key, ...]
    owners: tuple[str, ...] = ()


class DropOwner(Message, frozen=True):
    """A client is gone: its tiles, jobs, plans and leases go too."""

    owner: str


class ForgetPlan(Message, frozen=True):
    """A plan that will not be run by its key again; `owner` is set by the master."""

    plan_key: str
    owner: str = ""


class Watched(Message, frozen=True):
    """Somebody looks at a page: say what your jobs are for."""


class Recovered(Message, frozen=True):
    """A `Watched` client has computed again what workers took with them; for people."""

    text: str


class AskPage(Message, frozen=True):
    """Ask for the page's link; a master of this user's own opens one where there is none."""


class PageAt(Message, frozen=True):
    """The page's link, or why there is none."""

    url: str
    why: str = ""


class AskStatus(Message, frozen=True):
    """Ask for `Status`."""


class Status(Message, frozen=True):
    """Who is there and what runs."""

    members: Members
    clients: tuple[str, ...]
    jobs: tuple[tuple[str, str], ...]
    now_ns: int = 0
    """The master's clock, which all processes of its `host` share."""
    host: str = ""


FROM_STRANGER = Reader(Hello)
FROM_WORKER = Reader(Back, Leaving, Here, StagesDone, Doing, Printed, Happened, JobFinished, JobError, Bye)
_OF_CLIENT = (Submit, Cancel, Release, Holds, Moved, ForgetPlan, Recovered, AskStatus, AskPage, Bye)
FROM_CLIENT, FROM_ADMIN = Reader(*_OF_CLIENT), Reader(*_OF_CLIENT, Drain, Shutdown)
_TO_ALL = (Welcome, Refused, Probe, Members, Stop)
TO_WORKER = Reader(*_TO_ALL, Authorized, RunJob, CancelJob, Discard, DropOwner, Retain, ForgetPlan)
TO_CLIENT = Reader(*_TO_ALL, Progress, Printed, Happened, JobDone, JobFailed, Status, Watched, PageAt)
