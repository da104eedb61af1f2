"""The master's decisions, without I/O: what it hears in, what it says out.

`greet(peer, role, hello)`, `handle(peer, message)` and `lost(peer)` return `(receiver, message)` pairs.
Messages are looked up in `_HANDLERS` by the sender's role; what becomes of jobs is in `master.jobs`. The work
for a job is O(workers + stages): plans are relayed unread, once to each worker, and nothing is heard of
single tiles.

After dask.distributed's state machines: events in, instructions out, transitions in a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from spartan_ng.master.jobs import Instructions, Jobs
from spartan_ng.master.peers import Client, Worker
from spartan_ng.master.succession import OWNERS_S, RETURN_S, Succession
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.messages import (
    PROTOCOL,
    AskStatus,
    Authorized,
    Back,
    Bye,
    Cancel,
    CancelJob,
    Discard,
    Doing,
    Drain,
    DropOwner,
    ForgetPlan,
    Happened,
    Hello,
    Here,
    Holds,
    JobError,
    JobFailed,
    JobFinished,
    Leaving,
    Member,
    Members,
    Moved,
    Printed,
    Recovered,
    Release,
    Retain,
    RunJob,
    Shutdown,
    StagesDone,
    Status,
    Stop,
    Submit,
    Welcome,
)


class MasterState:
    """Who is there and what runs; at `now_s`, in seconds from some point, it begins. `clock_ns` is that of
    all processes of the `host`."""

    def __init__(self, now_s: float, host: str = "", clock_ns: Callable[[], int] = lambda: 0) -> None:
        self._host, self._clock_ns = host, clock_ns
        self.watched = False
        """Whether all jobs are observed, for a page."""
        self.ends = False
        """Whether an admin wants the cluster to end."""
        self._authorized = Authorized(())
        self._workers: dict[str, Worker] = {}
        self._clients: dict[str, Client] = {}
        self._jobs = Jobs(self._workers, self._clients, now_s)
        self._ranks: list[str] = []
        self._since: list[int] = []
        """The epoch in which each rank got its present worker."""
        self._epoch = 0
        self._now_s = now_s
        self._succession: Succession | None = None
        """While another master's workers come back."""
        self._first_epoch = 0
        """The first of this master's, where it follows another."""
        self._returning: dict[str, Hello] = {}
        """Workers that were here before, and have not said yet what they bring."""
        self._awaited: set[str] = set()
        """Clients of another master's that have tiles here."""
        self._awaited_until_s = 0.0
        self._leaving: dict[str, set[str] | None] = {}
        """Workers without a rank, and the clients that may need their tiles; None: it has been let go."""

    @property
    def peers(self) -> list[str]:
        """Everybody who has said hello."""
        return [*self._workers, *self._coming, *self._clients]

    @property
    def _coming(self) -> set[str]:
        """Workers that are not members yet."""
        waiting = self._succession
        new = set() if waiting is None else {*waiting.returned, *waiting.new}
        return new | set(self._returning)

    def handle(self, peer: str, message: Any) -> Instructions:
        """What to say after `peer`, who has greeted, said `message`.

        Raises ValueError for what it may not say; nothing has changed then.
        """
        role = self.role(peer)
        handler = _HANDLERS.get((role, type(message)))
        if role == "coming worker" and handler is None and ("worker", type(message)) in _HANDLERS:
            return []  # it speaks of what it had to do for another master
        if handler is None:
            raise ValueError(f"a {role} may not say {type(message).__name__}")
        if role == "worker":
            self._workers[peer].hear(self._now_s)
        return handler(self, peer, message) + self._let_go()

    @property
    def is_over(self) -> bool:
        """Whether an admin wanted the cluster to end, and all its workers have."""
        return self.ends and not self._workers and not self._coming

    def role(self, peer: str) -> str:
        """What `peer` was let in as; "stranger" for who has not greeted, or has gone."""
        if peer in self._workers:
            return "worker"
        if peer in self._coming:
            return "coming worker"
        client = self._clients.get(peer)
        return "stranger" if client is None else "admin" if client.is_admin else "client"

    def lost(self, peer: str) -> Instructions:
        """What to say after `peer` was disconnected or left."""
        if peer in self._workers:
            return self._worker_lost(peer) + self._let_go()
        self._returning.pop(peer, None)
        if self._succession is not None:
            self._succession.leaves(peer)
        return self._client_lost(peer) + self._let_go() if peer in self._clients else []

    def tick(self, now_s: float) -> Instructions:
        """What to say at a time, in seconds from the same point."""
        self._now_s = now_s
        out: Instructions = []
        if self._succession is not None and now_s - self._succession.begun_s >= RETURN_S:
            out += self._take_over()
        if self._awaited and now_s >= self._awaited_until_s:
            out += [(name, DropOwner(owner)) for name in self._workers for owner in self._awaited]
            self._awaited = set()
        return out + self._jobs.tick(now_s) + self._let_go()

    def held_up(self) -> list[str]:
        """Workers that were told to stop a job, and of whom nothing is heard."""
        return [name for name, worker in self._workers.items() if worker.is_held_up(self._now_s)]

    def label(self, peer: str) -> str:
        """A peer for people."""
        worker, client = self._workers.get(peer), self._clients.get(peer)
        if worker is not None:
            return worker.member.label
        return "a worker that comes back" if client is None else client.label

    @property
    def clients(self) -> list[str]:
        """Clients and admins that have said hello."""
        return list(self._clients)

    def members(self, lost: tuple[Member, ...] = ()) -> Members:
        """The workers in the order of their ranks."""
        ranked, leaving = (tuple(self._workers[n].member for n in ns) for ns in (self._ranks, self._leaving))
        return Members(self._epoch, ranked, lost, leaving)

    # --- coming and going

    def greet(self, peer: str, role: str, hello: Hello) -> Instructions:
        """What to say after `peer`, who has proved to be of a `role`, said hello."""
        out = self.lost(peer)  # it was here before: what it held is gone
        follows = self._follows(role, hello.epoch)
        if role == "worker":
            out.append((peer, Welcome(PROTOCOL, keeps=follows and hello.epoch > 0)))
            if self._authorized.users:
                out.append((peer, self._authorized))
            if hello.epoch == 0:
                return out + self._new_worker(peer, hello)
            self._returning[peer] = hello
            return out
        self._clients[peer] = Client(hello.label, role == "admin")
        keeps = peer in self._awaited or (follows and hello.epoch > 0)
        self._awaited.discard(peer)
        out.append((peer, Welcome(PROTOCOL, keeps=keeps)))
        return out if follows else [*out, (peer, self.members())]

    def _follows(self, role: str, epoch: int) -> bool:
        """Whether workers of another master are waited for, now that somebody was told of an epoch; a
        client's word is enough where there are no workers yet."""
        is_news = epoch > self._epoch and not self._first_epoch and (role == "worker" or not self._workers)
        if self._succession is None and is_news:
            self._succession = Succession(self._now_s)
        if self._succession is not None:
            self._succession.hear(epoch)
        return self._succession is not None

    def _back(self, peer: str, message: Back) -> Instructions:
        """A worker that was here before says what it brings."""
        hello = self._returning.get(peer)
        if hello is None:
            raise ValueError("it has said before what it brings")
        names = [m.name for m in message.members.members]
        if len(set(names)) < len(names):
            raise ValueError("a worker has two ranks")
        if message.members.epoch > 0 and self._succession is None:  # too late
            return [(peer, Welcome(PROTOCOL))]
        del self._returning[peer]
        if message.members.epoch == 0:
            return self._new_worker(peer, hello)
        assert self._succession is not None, "it has been looked at"
        self._succession.back(peer, hello, message.members, message.owners)
        return self._take_over() if self._succession.is_complete else []

    def _take_over(self) -> Instructions:
        """Go on where another master was; all know that by the news of who is there."""
        waiting, self._succession = self._succession, None
        assert waiting is not None, "somebody has been waited for"
        self._epoch = self._first_epoch = max(self._epoch, waiting.epoch) + 1
        members = waiting.ranks()
        self._workers.update((m.name, Worker(m, heard_s=self._now_s)) for m in members)
        self._ranks = [*(m.name for m in members), *self._ranks]
        self._since = [self._epoch] * len(self._ranks)
        for peer, hello in waiting.new.items():
            self._add(peer, hello)
        self._returning.update(waiting.late)
        self._awaited = waiting.owners - set(self._clients)
        self._awaited_until_s = self._now_s + OWNERS_S
        out: Instructions = [(peer, Welcome(PROTOCOL)) for peer in waiting.late]
        for name, client in self._clients.items():
            if client.holds is not None:
                out += [(worker, Retain(name, client.holds)) for worker in self._workers]
        return out + self._tell_members(waiting.missing)

    def _holds(self, peer: str, message: Holds) -> Instructions:
        self._clients[peer].holds = message
        return [(worker, Retain(peer, message)) for worker in self._workers]

    def authorize(self, users: tuple[tuple[str, str], ...]) -> Instructions:
        """What to say after the keys of those who may connect have changed."""
        self._authorized = Authorized(users)
        return [(name, self._authorized) for name in (*self._workers, *self._coming)]

    def _new_worker(self, peer: str, hello: Hello) -> Instructions:
        if self._succession is not None:
            self._succession.new[peer] = hello
            return []
        self._epoch += 1
        self._add(peer, hello)
        return self._tell_members()

    def _add(self, peer: str, hello: Hello) -> None:
        self._workers[peer] = Worker.who_said(hello, peer, self._epoch)
        self._ranks.append(peer)
        self._since.append(self._epoch)

    def _vacate(self, peer: str) -> None:
        """The last rank's worker takes one's place, so that all other ranks stay as they are."""
        self._epoch += 1
        rank = self._ranks.index(peer)
        last = self._ranks.pop()
        self._since.pop()
        if last != peer:
            self._ranks[rank] = last
            self._since[rank] = self._epoch

    def _worker_lost(self, peer: str) -> Instructions:
        member = self._workers.pop(peer).member
        if peer in self._leaving:
            del self._leaving[peer]
        else:
            self._vacate(peer)
        stopped = self._jobs.worker_lost(peer, member)
        orders = [(name, m) for name, m in stopped if isinstance(m, CancelJob)]  # before reads there fail
        rest = [(name, m) for name, m in stopped if not isinstance(m, CancelJob)]
        return orders + self._tell_members((member,)) + rest

    def _leaves(self, peer: str, message: Leaving) -> Instructions:
        """A worker gets no more work, and goes when nobody needs it."""
        if peer in self._leaving:
            return []
        self._vacate(peer)
        self._leaving[peer] = set(self._clients)
        return self._tell_members()

    def is_let_go(self, peer: str) -> bool:
        """Whether it is a worker that has been told to go."""
        return self._leaving.get(peer, {peer}) is None

    def _drain(self, peer: str, message: Drain) -> Instructions:
        return self._leaves(message.worker, Leaving()) if message.worker in self._workers else []

    def _moved(self, peer: str, message: Moved) -> Instructions:
        for worker in message.workers:
            (self._leaving.get(worker) or set()).discard(peer)
        return []

    def _let_go(self) -> Instructions:
        """Let workers go that nobody needs any more."""
        if not self._leaving:
            return []
        busy = self._jobs.busy
        free = [n for n, clients in self._leaving.items() if clients == set() and n not in busy]
        self._leaving.update(dict.fromkeys(free))
        return [(name, Stop()) for name in free]

    def _client_lost(self, peer: str) -> Instructions:
        del self._clients[peer]
        out: Instructions = self._moved(peer, Moved(tuple(self._leaving)))
        out += self._jobs.client_lost(peer)
        for name, worker in self._workers.items():
            worker.plans = {p for p in worker.plans if p[0] != peer}
            out.append((name, DropOwner(peer)))
        return out

    def _tell_members(self, lost: tuple[Member, ...] = ()) -> Instructions:
        if self._succession is not None:
            return []  # all hear of it when all are there
        members = self.members(lost)
        return [(p, members) for p in (*self._workers, *self._clients)]

    # --- jobs

    def _submit(self, peer: str, message: Submit) -> Instructions:
        self._jobs.check(peer, message)
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
        self._jobs.begin(peer, names, message)
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
            observed="all" if message.observed else "tasks" if self.watched else "",
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

    def _for_people(self, peer: str, message: Here | Recovered) -> Instructions:
        """What decides nothing."""
        return []

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
        clients = tuple(c.label for c in self._clients.values())
        return [(peer, Status(self.members(), clients, self._jobs.described(), self._clock_ns(), self._host))]

    def _bye(self, peer: str, message: Bye) -> Instructions:
        return self.lost(peer)

    def _shutdown(self, peer: str, message: Shutdown) -> Instructions:
        self.ends = True
        return [(name, Stop()) for name in self.peers if name != peer]


def _own(client: str, jobs: tuple[str, ...]) -> tuple[str, ...]:
    """The jobs that are the client's."""
    return tuple(job for job in jobs if job.startswith(client + "/"))


def _of_jobs(
    answer: Callable[[Jobs, str, Any], Instructions],
) -> Callable[[MasterState, str, Any], Instructions]:
    return lambda state, peer, message: answer(state._jobs, peer, message)


_HANDLERS: dict[tuple[str, type], Callable[[MasterState, str, Any], Instructions]] = {
    ("coming worker", Back): MasterState._back,
    ("worker", Leaving): MasterState._leaves,
    ("worker", Here): MasterState._for_people,
    ("worker", JobFinished): _of_jobs(Jobs.finished),
    ("worker", JobError): _of_jobs(Jobs.failed),
    ("worker", StagesDone): _of_jobs(Jobs.stages_done),
    ("worker", Doing): _of_jobs(Jobs.doing),
    ("worker", Printed): _of_jobs(Jobs.told),
    ("worker", Happened): _of_jobs(Jobs.happened),
    ("worker", Bye): MasterState._bye,
    ("client", Submit): MasterState._submit,
    ("client", Cancel): _of_jobs(Jobs.cancel),
    ("client", Release): MasterState._release,
    ("client", Holds): MasterState._holds,
    ("client", Moved): MasterState._moved,
    ("client", ForgetPlan): MasterState._forget_plan,
    ("client", Recovered): MasterState._for_people,
    ("client", AskStatus): MasterState._status,
    ("client", Bye): MasterState._bye,
    ("admin", Drain): MasterState._drain,
    ("admin", Shutdown): MasterState._shutdown,
}
"""Who may say what, and who answers it; an admin may say what a client may."""
_HANDLERS |= {("admin", kind): handler for (role, kind), handler in _HANDLERS.items() if role == "client"}
