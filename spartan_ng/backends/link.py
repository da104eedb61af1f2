"""A client's connections: to the master for jobs, to the workers for tiles; one thread owns them all.

A lost connection to the master is made again, under the same name, as long as the timeout allows; see
`master.succession` for what becomes of what we have. Jobs that were under way fail as `WorkersChanged`, so
that they are planned and submitted again; transfers from and to workers need no master.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from itertools import chain, count
from typing import Any, TypeVar

from msgspec.structs import replace

from spartan_ng.backends.reconnecting import AGAIN, UNDER_WAY, Reconnecting
from spartan_ng.errors import (
    ConnectionFailed,
    MasterUnreachable,
    SpartanError,
    WorkersChanged,
)
from spartan_ng.events import now_ns, record
from spartan_ng.interrupts import is_of_a_handler
from spartan_ng.plan.plan import Plan
from spartan_ng.system.segments import host_identity
from spartan_ng.wire.access import Access
from spartan_ng.wire.clocks import Clock, on_our_clock
from spartan_ng.wire.codec import Blob
from spartan_ng.wire.failures import rebuild_error
from spartan_ng.wire.loop import send
from spartan_ng.wire.messages import (
    TO_CLIENT,
    AskPage,
    AskStatus,
    Cancel,
    Drain,
    ForgetPlan,
    Happened,
    Holds,
    JobDone,
    JobFailed,
    Members,
    Moved,
    PageAt,
    Printed,
    Probe,
    Progress,
    Recovered,
    Refused,
    Release,
    Shutdown,
    Status,
    Stop,
    Submit,
    Watched,
    Welcome,
)
from spartan_ng.wire.pieces import Buffer
from spartan_ng.wire.plans import encode_plan
from spartan_ng.worker.network.transfer import Peers

_RELEASE_S = 0.1
"""Arrays that died are given back at least this often, and before every job."""

_PLANS = 512
"""Plans that the cluster keeps for us; beyond, the one used longest ago is forgotten."""

_TRIPS = 4
"""Questions for the master's clock; before,"""
_TUNED_S = 10.0
"""an answer holds for so long."""


_log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer", Status, PageAt)
JobEvents = queue.SimpleQueue[JobDone | JobFailed | Progress | Printed | ConnectionFailed]


class MasterLink(Reconnecting):
    """A client of the master at `address`. Methods are thread-safe but for those with an underscore."""

    def __init__(self, address: str, access: Access, timeout_s: float, role: str = "client") -> None:
        self._jobs: dict[str, JobEvents] = {}
        self._plans: OrderedDict[str, None] = OrderedDict()
        self._dead: deque[int] = deque()
        self._over: deque[str] = deque()
        self._numbers = count(1)
        self._asked: dict[type, deque[tuple[Any, Future[Any]]]] = {Status: deque(), PageAt: deque()}
        """Questions under way, by the class of their answers."""
        self._clock = Clock(is_ours=False)
        """The master's."""
        self._tuned_s = float("-inf")
        self.is_watched = False
        """Whether somebody wants to know what our jobs are for."""
        self._described: set[str] = set()
        self.holding: Callable[[], tuple[Sequence[int], int]]
        """The arrays that we have on the workers, and the last number of any; called on a thread of ours."""
        self.hand_over: Callable[[Members], None]
        """Takes what is ours from workers that leave; called on a thread of its own."""
        self._leaving: frozenset[str] = frozenset()
        """Workers of which that was done, or is being done."""
        self.drops = 0
        """How often the workers have dropped all that was ours."""
        self.let_go: Callable[[], None]
        """Hears that the workers have nothing of ours any more; called on a thread of ours."""
        self._retired: tuple[Callable[[], bool], Callable[[], None]] | None
        self.forget()
        super().__init__(address, access, timeout_s, role)
        self.peers = Peers(self._loop, self._identity, self._hello, access)
        self.peers.timeout_s = timeout_s
        self._loop.every(_RELEASE_S, self._flush)

    def wait_for_workers(self, least: int, timeout_s: float) -> bool:
        """Wait until that many workers are there; whether they are."""
        with self._changed:
            enough = self._changed.wait_for(
                lambda: self._error is not None or len(self.members.members) >= least, timeout_s
            )
        self.check()
        return enough

    @property
    def is_busy(self) -> bool:
        """Whether a job of ours is under way."""
        return bool(self._jobs)

    def packed(self, plan: Plan) -> Blob | None:
        """A plan as it is sent, None where the cluster has it already.

        Not on the loop's thread, since functions of the user's may read arrays that come by the loop.
        """
        if plan.key in self._plans:
            return None
        try:
            return encode_plan(plan)
        except SpartanError:
            raise
        except Exception as error:
            if is_of_a_handler(error):
                raise
            raise rebuild_error(type(error).__name__, f"the plan cannot be sent: {error}") from error

    def submit(self, plan: Plan, packed: Blob | None, message: Submit, drops: int, events: JobEvents) -> None:
        """Start a job over arrays that were there after so many `drops`, with its plan as `packed` has given
        it; what becomes of it arrives in `events`."""
        self.check()
        self._loop.call(lambda: self._submit(plan, packed, message, drops, events))

    def new_job(self) -> str:
        """A job name of ours."""
        return f"{self.name}/{next(self._numbers)}"

    def cancel(self, job: str, goes_on: bool = False) -> None:
        """Ask for a job to be stopped, and for what is left of it where the program `goes_on` from there."""
        self._loop.call(lambda: self._send(Cancel(job, goes_on)))

    def release(self, number: int) -> None:
        """Drop the tiles called so some time soon. For finalizers: takes no lock, sends nothing."""
        self._dead.append(number)

    def end(self, job: str) -> None:
        """Drop what is left of a job some time soon. For finalizers, as `release`."""
        self._over.append(job)

    def flush(self) -> None:
        """Give back the arrays that died, now."""
        self._loop.call(self._flush)

    def status(self) -> Status:
        """Who is there and what runs."""
        return self._ask(AskStatus(), Status, "status")

    def tune(self) -> None:
        """Learn the master's clock, which is that of all it says has happened."""
        if self._loop.now() - self._tuned_s < _TUNED_S:
            return
        for _ in range(_TRIPS):
            sent_ns = now_ns()
            status = self.status()
            if status.host == host_identity() != "":
                self._clock = Clock(is_ours=True)
                break
            self._clock.note(sent_ns, status.now_ns, status.now_ns, now_ns())
        self._tuned_s = self._loop.now()

    def tell_recovered(self, text: str) -> None:
        """Let who looks at the page, if there is one, know what has been computed again."""
        if self.is_watched:
            self._loop.call(lambda: self._send(Recovered(text)))

    def page(self) -> str:
        """The link of the cluster's page; ConnectionFailed where it has none."""
        found = self._ask(AskPage(), PageAt, "page")
        if not found.url:
            raise ConnectionFailed(f"the cluster at {self.address} has no page: {found.why}")
        return found.url

    def _ask(self, question: AskStatus | AskPage, answer: type[_Answer], what: str) -> _Answer:
        """What the master answers; questions of a kind are answered in their order."""
        self.check()
        future: Future[Any] = Future()

        def ask() -> None:
            self._asked[answer].append((question, future))
            self._send(question)

        self._loop.call(ask)
        try:
            return future.result(self._timeout_s)  # type: ignore[no-any-return]
        except TimeoutError:
            raise MasterUnreachable(f"{self.address} gives no {what} within {self._timeout_s:g} s") from None

    def retire(self, is_idle: Callable[[], bool], close: Callable[[], None]) -> None:
        """Call `close` once `is_idle` says that nobody needs us."""
        self._retired = (is_idle, close)

    def drain(self, worker: str, timeout_s: float) -> bool:
        """Have a worker leave, if we are an admin; whether it has, within the timeout."""
        self._loop.call(lambda: self._send(Drain(worker)))
        with self._changed:
            gone = self._changed.wait_for(
                lambda: (
                    self._error is not None
                    or all(m.name != worker for m in (*self.members.members, *self.members.leaving))
                ),
                timeout_s,
            )
        self.check()
        return gone

    def shut_down(self) -> None:
        """Have the cluster end, if we are an admin; leave once the master has told all, and gone."""
        self._ends = True
        self._loop.call(lambda: self._send(Shutdown()))
        with self._changed:
            self._changed.wait_for(lambda: self._error is not None, self._timeout_s)
        self.close()

    def forget(self) -> None:
        """Hold nobody any more who holds us, so that what is left of a connection needs no collector."""
        self.holding, self.hand_over, self.let_go = lambda: ((), 0), lambda members: None, lambda: None
        self._retired = None

    # --- on the loop's thread

    def _submit(
        self, plan: Plan, packed: Blob | None, message: Submit, drops: int, events: JobEvents
    ) -> None:
        if self._error is not None:
            events.put(self._error)
            return
        if not self._is_up or drops != self.drops:
            events.put(JobFailed(message.job, WorkersChanged.__name__, UNDER_WAY))
            return
        if packed is None and plan.key not in self._plans:
            events.put(JobFailed(message.job, WorkersChanged.__name__, "the cluster has forgotten the plan"))
            return
        over = self._take_dead()
        message = replace(message, released=over.serials, retired=over.jobs)
        if plan.key in self._plans:
            self._plans.move_to_end(plan.key)
        else:
            assert packed is not None, "it is sent"
            message = replace(message, plan=packed)
            self._plans[plan.key] = None
            if len(self._plans) > _PLANS:
                self._send(ForgetPlan(self._plans.popitem(last=False)[0]))
        if self.is_watched and plan.key not in self._described:
            from spartan_ng.web.drawing import describe_plan  # most clients are not watched

            self._described.add(plan.key)
            message = replace(message, described=describe_plan(plan))
        self._jobs[message.job] = events
        self._send(message)

    def _flush(self) -> None:
        over = self._take_dead()
        if over.serials or over.jobs:
            self._send(over)
        if self._retired is not None and self._retired[0]():
            self._retired[1]()

    def _take_dead(self) -> Release:
        # So many as there are now: finalizers go on adding.
        serials = tuple(self._dead.popleft() for _ in range(len(self._dead)))
        jobs = tuple(self._over.popleft() for _ in range(len(self._over)))
        return Release(serials, jobs)

    def _welcomed(self, message: Welcome) -> None:
        """There is a master again, or the first one."""
        if self._lost_at is None:
            return
        if message.keeps:
            serials, last = self.holding()
            send(self._master, Holds(tuple(serials), last, next(self._numbers)))
        else:
            self.drops += 1
            self.peers.use(Members(0, ()))
            self.let_go()

    def _use(self, message: Members) -> None:
        self.peers.use(message)
        with self._changed:
            self.members = message
            self._is_up = True
            self._changed.notify_all()
        names = frozenset(m.name for m in message.leaving)
        new, self._leaving = names - self._leaving, names
        if new:
            # It waits for tiles, which come by this thread.
            threading.Thread(target=self._hand_over, args=(message, tuple(new)), daemon=True).start()
        if self._lost_at is not None:
            self._lost_at = None
            for question, _ in self._questions():
                self._send(question)
        if not self._answered.done():
            self._answered.set_result(None)

    def _questions(self) -> Iterator[tuple[Any, Future[Any]]]:
        return chain.from_iterable(self._asked.values())

    def _hand_over(self, members: Members, leaving: tuple[str, ...]) -> None:
        """On a thread of its own: take what is ours, and say so."""
        try:
            self.hand_over(members)
        except SpartanError as error:
            _log.warning("what workers that leave have cannot be taken from them: %s", error)
        self._loop.call(lambda: self._send(Moved(leaving)))

    def _receive(self, frames: Sequence[Buffer]) -> None:
        message = TO_CLIENT(frames)
        match message:
            case Progress() | Printed():
                events = self._jobs.get(message.job)
                if events is not None:
                    events.put(message)
            case Happened():
                record.tell(message.worker, on_our_clock(message, self._clock).events)
            case JobDone() | JobFailed():
                if isinstance(message, JobDone):
                    self._over.append(message.job)
                events = self._jobs.pop(message.job, None)
                if events is not None:
                    events.put(message)
            case Members():
                self._use(message)
            case Status() | PageAt():
                self._asked[type(message)].popleft()[1].set_result(message)
            case Refused():
                self._fail(self._handshake.refused(message))
            case Stop():
                self._fail(MasterUnreachable(f"the master at {self.address} has been stopped; {AGAIN}"))
            case Watched():
                self.is_watched = True
            case Welcome():
                self._welcomed(message)
            case Probe():
                pass

    def _interrupted(self) -> None:
        for job, events in self._jobs.items():
            events.put(JobFailed(job, WorkersChanged.__name__, UNDER_WAY))
        self._jobs.clear()
        self._plans.clear()
        self._described.clear()
        self.is_watched, self._tuned_s = False, float("-inf")

    def _ended(self, error: ConnectionFailed) -> None:
        for events in self._jobs.values():
            events.put(error)
        self._jobs.clear()
        for _, future in self._questions():
            future.set_exception(error)
        self.peers.close(error)
