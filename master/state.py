"""The master's decisions, without I/O: what it hears in, what it says out.

`greet(peer, role, hello)`, `handle(peer, message)` and `lost(peer)` return `(receiver, message)` pairs. Jobs
follow `JOB_STEPS`, messages are looked up in `_HANDLERS` by the sender's role. The work for a job is
O(workers + stages): the master relays plans unread, once to each worker, and never hears of single tiles.

After dask.distributed's state machines: events in, instructions out, transitions in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import (
    PROTOCOL,
    AskStatus,
    Authorized,
    Bye,
    Cancel,
    CancelJob,
    Discard,
    Doing,
    DropOwner,
    ForgetPlan,
    Happened,
    Hello,
    Here,
    JobDone,
    JobError,
    JobFailed,
    JobFinished,
    Key,
    Member,
    Members,
    Printed,
    Progress,
    Release,
    RunJob,
    Shutdown,
    StagesDone,
    Status,
    Stop,
    Submit,
    Welcome,
)

SILENT_S = 10.0
"""A worker that was told to stop a job, and says nothing for so long, is held up by a function for good."""
_UNDER_WAY_S = 2.0

Instructions = list[tuple[str, Any]]
"""`(receiver, message)` in the order of sending."""

JOB_STEPS: dict[tuple[str, str], str] = {
    ("running", "part finished"): "running",
    ("running", "last part finished"): "done",
    ("running", "part failed"): "stopping",
    ("running", "last part failed"): "gone",
    ("running", "cancelled"): "stopping",
    ("running", "worker lost"): "stopping",
    ("running", "last worker lost"): "gone",
    ("running", "client lost"): "stopping",
    ("running", "timed out"): "stopping",
    ("stopping", "part finished"): "stopping",
    ("stopping", "last part finished"): "gone",
    ("stopping", "part failed"): "stopping",
    ("stopping", "last part failed"): "gone",
    ("stopping", "cancelled"): "stopping",
    ("stopping", "worker lost"): "stopping",
    ("stopping", "last worker lost"): "gone",
    ("stopping", "client lost"): "stopping",
    ("stopping", "timed out"): "stopping",
}
"""`(state, event) → state` of a job. "last" means that no worker has a part left to report."""


@dataclass(slots=True)
class _Worker:
    """A worker that has said hello."""

    member: Member
    plans: set[tuple[str, str]] = field(default_factory=set)
    """`(client, plan key)` of the plans it has."""
    heard_s: float = 0.0
    """When it last said something."""
    told_s: float | None = None
    """When it was told to stop a job, where nothing that it has said since answers that."""

    def hear(self, now_s: float) -> None:
        """It has said something; soon after an order, that may have been under way before."""
        self.heard_s = now_s
        if self.told_s is not None and now_s - self.told_s > _UNDER_WAY_S:
            self.told_s = None

    def tell(self, now_s: float) -> None:
        """It is told to stop a job."""
        self.told_s = now_s if self.told_s is None else self.told_s

    def is_held_up(self, now_s: float) -> bool:
        """Whether it was told to stop a job, and nothing has been heard of it for long."""
        return self.told_s is not None and now_s - max(self.told_s, self.heard_s) > SILENT_S


@dataclass(slots=True)
class _Client:
    """A client that has said hello."""

    label: str
    is_admin: bool = False
    plans: dict[str, Blob] = field(default_factory=dict)


@dataclass(slots=True)
class _Job:
    """A job on its way."""

    client: str
    names: tuple[str, ...]
    outputs: tuple[Key, ...]
    waiting: set[str]
    state: str = "running"
    parts: dict[str, JobFinished] = field(default_factory=dict)
    stages: dict[str, int] = field(default_factory=dict)
    shown: int = 0
    deadline_s: float = 0.0
    since_s: float | None = None
    """When the clock was first looked at while it ran."""
    doing: dict[str, str] = field(default_factory=dict)
    """What workers have been at for a while."""
    observed: bool = False


class MasterState:
    """Who is there and what runs; at `now_s`, in seconds from some point, it begins. `clock_ns` is that of
    all processes of the `host`."""

    def __init__(self, now_s: float, host: str = "", clock_ns: Callable[[], int] = lambda: 0) -> None:
        self._host, self._clock_ns = host, clock_ns
        self.watched = False
        """Whether all jobs are observed, for a page."""
        self._ends = False
        """Whether an admin wants the cluster to end."""
        self._authorized = Authorized(())
        self._workers: dict[str, _Worker] = {}
        self._clients: dict[str, _Client] = {}
        self._jobs: dict[str, _Job] = {}
        self._ranks: list[str] = []
        self._since: list[int] = []
        """The epoch in which each rank got its present worker."""
        self._epoch = 0
        self._now_s = now_s

    @property
    def peers(self) -> list[str]:
        """Everybody who has said hello."""
        return [*self._workers, *self._clients]

    def handle(self, peer: str, message: Any) -> Instructions:
        """What to say after `peer`, who has greeted, said `message`.

        Raises ValueError for what it may not say; nothing has changed then.
        """
        role = self.role(peer)
        handler = _HANDLERS.get((role, type(message)))
        if handler is None:
            raise ValueError(f"a {role} may not say {type(message).__name__}")
        if role == "worker":
            self._workers[peer].hear(self._now_s)
        return handler(self, peer, message)

    @property
    def is_over(self) -> bool:
        """Whether an admin wanted the cluster to end, and all its workers have."""
        return self._ends and not self._workers

    def role(self, peer: str) -> str:
        """What `peer` was let in as; "stranger" for who has not greeted, or has gone."""
        if peer in self._workers:
            return "worker"
        client = self._clients.get(peer)
        return "stranger" if client is None else "admin" if client.is_admin else "client"

    def lost(self, peer: str) -> Instructions:
        """What to say after `peer` was disconnected or left."""
        if peer in self._workers:
            return self._worker_lost(peer)
        return self._client_lost(peer) if peer in self._clients else []

    def tick(self, now_s: float) -> Instructions:
        """What to say at a time, in seconds from the same point."""
        self._now_s = now_s
        out: Instructions = []
        for job, record in list(self._jobs.items()):
            if record.since_s is None:
                record.since_s = now_s
            elif record.state == "running" and 0 < record.deadline_s <= now_s - record.since_s:
                text = f"the job has run for more than {record.deadline_s:g} s: {self._described(record)}"
                out += self._step(job, "timed out", "JobTimeout", text)
        return out

    def held_up(self) -> list[str]:
        """Workers that were told to stop a job, and of whom nothing is heard."""
        return [name for name, worker in self._workers.items() if worker.is_held_up(self._now_s)]

    def _described(self, record: _Job) -> str:
        """How long a job has run, and who waits for whom."""
        ran_s = 0.0 if record.since_s is None else self._now_s - record.since_s
        parts = [f"{record.state} for {ran_s:.0f} s"]
        for rank, name in enumerate(record.names):
            if name in record.waiting and name in record.doing:
                parts.append(f"worker {rank} {record.doing[name]}")
        return "; ".join(parts)

    def label(self, peer: str) -> str:
        """A peer for people."""
        worker = self._workers.get(peer)
        return self._clients[peer].label if worker is None else worker.member.label

    @property
    def clients(self) -> list[str]:
        """Clients and admins that have said hello."""
        return list(self._clients)

    def members(self, lost: tuple[Member, ...] = ()) -> Members:
        """The workers in the order of their ranks."""
        return Members(self._epoch, tuple(self._workers[n].member for n in self._ranks), lost)

    # --- coming and going

    def greet(self, peer: str, role: str, hello: Hello) -> Instructions:
        """What to say after `peer`, who has proved to be of a `role`, said hello."""
        out = self.lost(peer)  # it was here before: what it held is gone
        if role == "worker":
            known = [(peer, self._authorized)] if self._authorized.users else []
            return [*out, (peer, Welcome(PROTOCOL)), *known, *self._worker_joined(peer, hello)]
        self._clients[peer] = _Client(hello.label, role == "admin")
        return [*out, (peer, Welcome(PROTOCOL)), (peer, self.members())]

    def authorize(self, users: tuple[tuple[str, str], ...]) -> Instructions:
        """What to say after the keys of those who may connect have changed."""
        self._authorized = Authorized(users)
        return [(name, self._authorized) for name in self._workers]

    def _worker_joined(self, peer: str, hello: Hello) -> Instructions:
        self._epoch += 1
        self._workers[peer] = _Worker(
            Member(
                peer,
                hello.label,
                hello.address,
                hello.host,
                hello.threads,
                hello.memory_bytes,
                hello.key,
                self._epoch,
            )
        )
        self._ranks.append(peer)
        self._since.append(self._epoch)
        return self._tell_members()

    def _worker_lost(self, peer: str) -> Instructions:
        """The last rank's worker takes the lost one's place, so that all other ranks stay as they are."""
        member = self._workers.pop(peer).member
        self._epoch += 1
        rank = self._ranks.index(peer)
        last = self._ranks.pop()
        self._since.pop()
        if last != peer:
            self._ranks[rank] = last
            self._since[rank] = self._epoch
        out = self._tell_members((member,))
        text = f"worker {rank} ({member.label}) died while the job ran; its tiles are lost"
        for job in [j for j, record in self._jobs.items() if peer in record.names]:
            record = self._jobs[job]
            needed = peer in record.waiting or record.state == "running"
            record.waiting.discard(peer)
            if needed:
                event = "worker lost" if record.waiting else "last worker lost"
                out += self._step(job, event, "WorkerDied", text)
        return out

    def _client_lost(self, peer: str) -> Instructions:
        del self._clients[peer]
        out: Instructions = []
        for job in [j for j, record in self._jobs.items() if record.client == peer]:
            out += self._step(job, "client lost", "JobCancelled", "the client is gone")
        for name, worker in self._workers.items():
            worker.plans = {p for p in worker.plans if p[0] != peer}
            out.append((name, DropOwner(peer)))
        return out

    def _tell_members(self, lost: tuple[Member, ...] = ()) -> Instructions:
        members = self.members(lost)
        return [(p, members) for p in self.peers]

    # --- jobs

    def _submit(self, peer: str, message: Submit) -> Instructions:
        self._check(peer, message)
        client = self._clients[peer]
        if message.plan:
            client.plans[message.plan_key] = message.plan
        plan = client.plans.get(message.plan_key)
        problem = self._problem(message, plan)
        if problem is not None:
            rest = self._release(peer, Release(message.released, message.retired))
            return [*rest, (peer, JobFailed(message.job, *problem))]
        assert plan is not None
        names = tuple(self._ranks[: message.ranks])
        self._jobs[message.job] = _Job(
            peer,
            names,
            message.outputs,
            set(names),
            deadline_s=message.deadline_s,
            observed=message.observed,
        )
        retired = _own(peer, message.retired)
        run = RunJob(
            message.job,
            message.plan_key,
            message.epoch,
            message.world,
            message.inputs,
            message.outputs,
            message.inline,
            message.progress,
            tuple((peer, serial) for serial in message.released),
            retired,
            message.values,
            timeout_s=message.timeout_s,
            observed=message.observed or self.watched,
        )
        out: Instructions = []
        if (run.released or retired) and len(names) < len(self._ranks):
            out += [(n, Discard(run.released, retired)) for n in self._ranks[len(names) :]]
        for name in names:
            known = self._workers[name].plans
            new = (peer, message.plan_key) not in known
            known.add((peer, message.plan_key))
            out.append((name, replace(run, plan=plan) if new else run))
        return out

    def _check(self, peer: str, message: Submit) -> None:
        """ValueError for a job that no program of ours would send."""
        if message.job in self._jobs or not message.job.startswith(peer + "/"):
            raise ValueError(f"{message.job!r} is no new job of {peer}")
        if not 1 <= message.ranks <= message.world:
            raise ValueError(f"{message.ranks} of {message.world} ranks cannot take part")
        if any(owner != peer for owner, _ in message.outputs):
            raise ValueError("results are their client's own")

    def _problem(self, message: Submit, plan: Blob | None) -> tuple[str, str] | None:
        """Why a job cannot start: error type and message."""
        if plan is None:
            return "EvaluationError", f"the master has no plan {message.plan_key}"
        if message.world > len(self._ranks):
            return (
                "WorkersChanged",
                f"the plan is for {message.world} workers, but {len(self._ranks)} are left",
            )
        if any(since > message.epoch for since in self._since[: message.world]):
            return "WorkersChanged", "a worker was lost between planning and running; its tiles are lost"
        return None

    def _cancel(self, peer: str, message: Cancel) -> Instructions:
        record = self._jobs.get(message.job)
        if record is None or record.client != peer:
            return []
        return self._step(message.job, "cancelled", "JobCancelled", "the job was cancelled")

    def _finished(self, peer: str, message: JobFinished) -> Instructions:
        record = self._jobs.get(message.job)
        if record is None or peer not in record.waiting:
            return []
        if any(_form(part) != _form(message) for part in record.parts.values()):
            raise ValueError(f"the parts of job {message.job} differ in their form")
        record.waiting.discard(peer)
        record.parts[peer] = message
        return self._step(message.job, "part finished" if record.waiting else "last part finished")

    def _failed(self, peer: str, message: JobError) -> Instructions:
        record = self._jobs.get(message.job)
        if record is None or peer not in record.waiting:
            return []
        record.waiting.discard(peer)
        event = "part failed" if record.waiting else "last part failed"
        return self._step(message.job, event, message.kind, message.message)

    def _stages_done(self, peer: str, message: StagesDone) -> Instructions:
        record = self._jobs.get(message.job)
        if record is None or record.state != "running":
            return []
        record.stages[peer] = message.done
        done = min(record.stages.get(n, 0) for n in record.names)
        if done <= record.shown:
            return []
        record.shown = done
        return [(record.client, Progress(message.job, done))]

    def _here(self, peer: str, message: Here) -> Instructions:
        return []

    def _doing(self, peer: str, message: Doing) -> Instructions:
        record = self._jobs.get(message.job)
        if record is not None:
            record.doing[peer] = message.text
        return []

    def _printed(self, peer: str, message: Printed) -> Instructions:
        return self._told(peer, message)

    def _happened(self, peer: str, message: Happened) -> Instructions:
        record = self._jobs.get(message.job)
        return [] if record is None or not record.observed else self._told(peer, message)

    def _told(self, peer: str, message: Printed | Happened) -> Instructions:
        """Tell a job's client what a worker says, and which worker it is."""
        record = self._jobs.get(message.job)
        if record is None or peer not in record.names or record.client not in self._clients:
            return []
        where = f"worker {record.names.index(peer)} ({self._workers[peer].member.label})"
        return [(record.client, replace(message, worker=where))]

    def _step(self, job: str, event: str, kind: str = "", text: str = "") -> Instructions:
        """Move a job along `JOB_STEPS`; say what the new state asks for."""
        record = self._jobs[job]
        before, record.state = record.state, JOB_STEPS[record.state, event]
        out: Instructions = []
        if record.state == "done":
            out.append((record.client, _summary(job, record)))
        if before == "running" and record.state in ("stopping", "gone"):
            if record.client in self._clients:
                out.append((record.client, JobFailed(job, kind, text)))
            out += [(n, CancelJob(job)) for n in record.names if n in record.waiting]
            for name in record.names:  # who has finished may do the work of others
                if name in self._workers:
                    self._workers[name].tell(self._now_s)
        if record.state == "gone":
            discard = Discard(record.outputs, (job,))
            out += [(n, discard) for n in record.names if n in self._workers]
        if record.state in ("done", "gone"):
            del self._jobs[job]
        return out

    # --- housekeeping

    def _release(self, peer: str, message: Release) -> Instructions:
        if not message.serials and not message.jobs:
            return []
        discard = Discard(tuple((peer, serial) for serial in message.serials), _own(peer, message.jobs))
        return [(name, discard) for name in self._workers]

    def _forget_plan(self, peer: str, message: ForgetPlan) -> Instructions:
        self._clients[peer].plans.pop(message.plan_key, None)
        out: Instructions = []
        for name, worker in self._workers.items():
            if (peer, message.plan_key) in worker.plans:
                worker.plans.discard((peer, message.plan_key))
                out.append((name, ForgetPlan(message.plan_key, peer)))
        return out

    def _status(self, peer: str, message: AskStatus) -> Instructions:
        jobs = tuple((job, self._described(record)) for job, record in self._jobs.items())
        clients = tuple(c.label for c in self._clients.values())
        return [(peer, Status(self.members(), clients, jobs, self._clock_ns(), self._host))]

    def _bye(self, peer: str, message: Bye) -> Instructions:
        return self.lost(peer)

    def _shutdown(self, peer: str, message: Shutdown) -> Instructions:
        self._ends = True
        return [(name, Stop()) for name in self.peers if name != peer]


def _form(part: JobFinished) -> tuple[int, int]:
    """What is equal in all parts of a job: the number of stages, and of results."""
    return len(part.stats), len(part.nnz)


def _own(client: str, jobs: tuple[str, ...]) -> tuple[str, ...]:
    """The jobs that are the client's."""
    return tuple(job for job in jobs if job.startswith(client + "/"))


def _summary(job: str, record: _Job) -> JobDone:
    """What the client hears: a stage takes as long as on its slowest worker; bytes add up."""
    parts = [record.parts[n] for n in record.names]
    stats = tuple(
        (max(s for s, *_ in stage), *(sum(counts) for counts in zip(*(c for _, *c in stage), strict=True)))
        for stage in zip(*[p.stats for p in parts], strict=True)
    )
    nnz = tuple(sum(counts) for counts in zip(*[p.nnz for p in parts], strict=True))
    return JobDone(job, stats, nnz, tuple(p.values for p in parts))


_HANDLERS: dict[tuple[str, type], Callable[[MasterState, str, Any], Instructions]] = {
    ("worker", Here): MasterState._here,
    ("worker", JobFinished): MasterState._finished,
    ("worker", JobError): MasterState._failed,
    ("worker", StagesDone): MasterState._stages_done,
    ("worker", Doing): MasterState._doing,
    ("worker", Printed): MasterState._printed,
    ("worker", Happened): MasterState._happened,
    ("worker", Bye): MasterState._bye,
    ("client", Submit): MasterState._submit,
    ("client", Cancel): MasterState._cancel,
    ("client", Release): MasterState._release,
    ("client", ForgetPlan): MasterState._forget_plan,
    ("client", AskStatus): MasterState._status,
    ("client", Bye): MasterState._bye,
    ("admin", Shutdown): MasterState._shutdown,
}
"""Who may say what, and who answers it; an admin may say what a client may."""
_HANDLERS |= {("admin", kind): handler for (role, kind), handler in _HANDLERS.items() if role == "client"}
