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
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

import zmq
from msgspec.structs import replace

from spartan_ng.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    MasterUnreachable,
    SpartanError,
    WorkersChanged,
)
from spartan_ng.events import now_ns, record
from spartan_ng.plan.plan import Plan
from spartan_ng.system.heap import give_back
from spartan_ng.system.segments import host_identity
from spartan_ng.wire.access import Access
from spartan_ng.wire.clocks import Clock, on_our_clock
from spartan_ng.wire.connection import Handshake
from spartan_ng.wire.hosts import label
from spartan_ng.wire.loop import Loop, Socket, send, send_frames
from spartan_ng.wire.messages import (
    PROTOCOL,
    TO_CLIENT,
    AskPage,
    AskStatus,
    Bye,
    Cancel,
    Drain,
    ForgetPlan,
    Happened,
    Hello,
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
from spartan_ng.wire.port import greeting, name_of, new_identity
from spartan_ng.worker.network.transfer import Peers

_RELEASE_S = 0.1
"""Arrays that died are given back at least this often, and before every job."""

_PLANS = 512
"""Plans that the cluster keeps for us; beyond, the one used longest ago is forgotten."""

_TRIPS = 4
"""Questions for the master's clock; before,"""
_TUNED_S = 10.0
"""an answer holds for so long."""

_AGAIN = "np.connect makes a new one where a master runs; what only the workers had is gone"
_UNDER_WAY = "the master was lost while the job ran"

_log = logging.getLogger(__name__)

JobEvents = queue.SimpleQueue[JobDone | JobFailed | Progress | Printed | ConnectionFailed]


class Link:
    """A client of the master at `address`. Methods are thread-safe but for those with an underscore."""

    def __init__(self, address: str, access: Access, timeout_s: float, role: str = "client") -> None:
        identity = new_identity()
        self.name = name_of(role, identity)
        self.address = address
        self.members = Members(0, ())
        self._timeout_s = timeout_s
        self._jobs: dict[str, JobEvents] = {}
        self._plans: OrderedDict[str, None] = OrderedDict()
        self._dead: deque[int] = deque()
        self._over: deque[str] = deque()
        self._numbers = count(1)
        self._status: deque[Future[Status]] = deque()
        self._clock = Clock(is_ours=False)
        """The master's."""
        self._tuned_s = float("-inf")
        self.is_watched = False
        """Whether somebody wants to know what our jobs are for."""
        self._described: set[str] = set()
        self._pages: deque[Future[PageAt]] = deque()
        self._answered: Future[None] = Future()
        self._changed = threading.Condition()
        self._error: ConnectionFailed | None = None
        self._is_greeted = False
        """Whether the master has heard who we are, on the present connection."""
        self._is_up = False
        """Whether it has let us in, and has told us of its workers."""
        self._lost_at: float | None = None
        """Since when there is no master, where we had one."""
        self._ends = False
        """Whether the next loss of the master is what we have asked for."""
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
        self._handshake = Handshake(address)
        self._loop = Loop()
        self._identity, self._access = identity, access
        try:
            self._master = self._dial()
        except AuthenticationFailed:
            self._loop.close()
            raise
        except zmq.ZMQError as error:
            self._loop.close()
            raise MasterUnreachable(
                f"{address} is not an address that can be connected to: {error}"
            ) from error
        self._hello = Hello(PROTOCOL, role, label())
        self.peers = Peers(self._loop, identity, self._hello, access)
        self.peers.timeout_s = timeout_s
        self._loop.receive(self._master, self._receive, self._broken, copy=True)
        self._loop.every(_RELEASE_S, self._flush)
        self._loop.every(_RELEASE_S, self._look)
        self._thread = threading.Thread(target=self._run, name="spartan-ng-client", daemon=True)

    def open(self) -> None:
        """Connect; raises MasterUnreachable, AuthenticationFailed or VersionMismatch within the timeout."""
        self._thread.start()
        try:
            self._answered.result(self._timeout_s)
        except TimeoutError:
            self.close()
            raise self._handshake.error(self._timeout_s) from None
        except BaseException:
            self.close()
            raise

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

    def wait_for_master(self) -> None:
        """Wait until there is a master; raises as `check` does, where none comes."""
        if not self._is_up:
            with self._changed:
                self._changed.wait_for(lambda: self._is_up or self._error is not None)
        self.check()

    def check(self) -> None:
        """Raise if the connection is lost or closed."""
        if self._error is not None:
            raise self._error

    def submit(self, plan: Plan, message: Submit, drops: int, events: JobEvents) -> None:
        """Start a job over arrays that were there after so many `drops`; what becomes of it arrives in
        `events`."""
        self.check()
        self._loop.call(lambda: self._submit(plan, message, drops, events))

    def new_job(self) -> str:
        """A job name of ours."""
        return f"{self.name}/{next(self._numbers)}"

    def cancel(self, job: str) -> None:
        """Ask for a job to be stopped."""
        self._loop.call(lambda: self._send(Cancel(job)))

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
        self.check()
        future: Future[Status] = Future()

        def ask() -> None:
            self._status.append(future)
            self._send(AskStatus())

        self._loop.call(ask)
        try:
            return future.result(self._timeout_s)
        except TimeoutError:
            raise MasterUnreachable(f"{self.address} gives no status within {self._timeout_s:g} s") from None

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
        self.check()
        future: Future[PageAt] = Future()

        def ask() -> None:
            self._pages.append(future)
            self._send(AskPage())

        self._loop.call(ask)
        try:
            found = future.result(self._timeout_s)
        except TimeoutError:
            raise MasterUnreachable(f"{self.address} gives no page within {self._timeout_s:g} s") from None
        if not found.url:
            raise ConnectionFailed(f"the cluster at {self.address} has no page: {found.why}")
        return found.url

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

    def close(self) -> None:
        """Leave; the cluster drops all that is ours."""
        if self._loop.closed or not self._thread.is_alive():
            self._loop.close()
            return

        def leave() -> None:
            self._send(Bye())
            self._fail(ConnectionFailed("the connection to the cluster is closed"))
            self._loop.stop()

        self._loop.call(leave)
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)

    def forget(self) -> None:
        """Hold nobody any more who holds us, so that what is left of a connection needs no collector."""
        self.holding, self.hand_over, self.let_go = lambda: ((), 0), lambda members: None, lambda: None
        self._retired = None

    # --- on the loop's thread

    def _run(self) -> None:
        try:
            self._loop.run()
        except Exception as error:  # noqa: BLE001 - whoever waits for us hears of it
            why = (
                f"the connection to the master at {self.address} is given up: {type(error).__name__}: {error}"
            )
            self._fail(error if isinstance(error, ConnectionFailed) else ConnectionFailed(why))
        finally:
            self._fail(ConnectionFailed("the connection to the cluster is closed"))
            self._loop.close(linger_s=0.5)
            give_back()

    def _dial(self) -> Socket:
        server = None if self._access.keys is None else self._access.keys.server_public
        return self._loop.dealer(self.address, self._identity, self._access, server, self._connection_event)

    def _send(self, message: Any) -> None:
        """What is said while there is no master, need not be said to the next one."""
        if self._error is None and self._is_up:
            send(self._master, message)

    def _submit(self, plan: Plan, message: Submit, drops: int, events: JobEvents) -> None:
        if self._error is not None:
            events.put(self._error)
            return
        if not self._is_up or drops != self.drops:
            events.put(JobFailed(message.job, WorkersChanged.__name__, _UNDER_WAY))
            return
        over = self._take_dead()
        message = replace(message, released=over.serials, retired=over.jobs)
        if plan.key in self._plans:
            self._plans.move_to_end(plan.key)
        else:
            try:
                message = replace(message, plan=encode_plan(plan))
            except Exception as error:  # noqa: BLE001 - whatever pickling raises is the job's error
                self._send(over)
                events.put(JobFailed(message.job, type(error).__name__, f"the plan cannot be sent: {error}"))
                return
            self._plans[plan.key] = None
            if len(self._plans) > _PLANS:
                self._send(ForgetPlan(self._plans.popitem(last=False)[0]))
        if self.is_watched and plan.key not in self._described:
            from spartan_ng.web.drawing import describe  # most clients are not watched

            self._described.add(plan.key)
            message = replace(message, described=describe(plan))
        self._jobs[message.job] = events
        self._send(message)

    def _flush(self) -> None:
        over = self._take_dead()
        if over.serials or over.jobs:
            self._send(over)
        if self._retired is not None and self._retired[0]():
            self._retired[1]()

    def _take_dead(self) -> Release:
        serials = tuple(self._dead.popleft() for _ in range(len(self._dead)))
        jobs = tuple(self._over.popleft() for _ in range(len(self._over)))
        return Release(serials, jobs)

    def _connection_event(self, event: int) -> None:
        self._handshake.note(event)
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            send_frames(self._master, greeting(replace(self._hello, epoch=self.members.epoch)))
            self._is_greeted = True
        elif event == zmq.EVENT_DISCONNECTED and self._is_greeted:
            self._lose_master()
        elif self._handshake.failed:
            self._fail(self._handshake.error(self._timeout_s))

    def _lose_master(self) -> None:
        """Connect again: what is under way on a broken connection must not reach the next master."""
        if self._error is not None:
            return
        self._is_greeted = self._is_up = False
        if self._ends:
            self._fail(ConnectionFailed(f"the cluster at {self.address} has ended"))
            return
        if self._lost_at is None:
            self._lost_at = self._loop.now()
            _log.warning("the connection to the master at %s is lost; it is made again", self.address)
        for job, events in self._jobs.items():
            events.put(JobFailed(job, WorkersChanged.__name__, _UNDER_WAY))
        self._jobs.clear()
        self._plans.clear()
        self._described.clear()
        self.is_watched, self._tuned_s = False, float("-inf")
        self._loop.call(self._dial_again)

    def _dial_again(self) -> None:
        self._loop.release(self._master)
        self._handshake = Handshake(self.address)
        try:
            self._master = self._dial()
        except ConnectionFailed as error:  # others could be the master there by now
            self._fail(error)
            return
        self._loop.receive(self._master, self._receive, self._broken, copy=True)

    def _look(self) -> None:
        if self._lost_at is not None and self._loop.now() - self._lost_at > self._timeout_s:
            self._fail(MasterUnreachable(f"the connection to the master at {self.address} is lost; {_AGAIN}"))

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
            threading.Thread(target=self._hand_over, args=(message, tuple(new)), daemon=True).start()
        if self._lost_at is not None:
            self._lost_at = None
            for _ in self._status:
                self._send(AskStatus())
            for _ in self._pages:
                self._send(AskPage())
        if not self._answered.done():
            self._answered.set_result(None)

    def _hand_over(self, members: Members, leaving: tuple[str, ...]) -> None:
        """On a thread of its own: take what is ours, and say so."""
        try:
            self.hand_over(members)
        except SpartanError as error:
            _log.warning("what workers that leave have cannot be taken from them: %s", error)
        self._loop.call(lambda: self._send(Moved(leaving)))

    def _broken(self, error: Exception) -> None:
        self._fail(ConnectionFailed(f"the master at {self.address} said what cannot be read: {error}"))

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
            case Status():
                self._status.popleft().set_result(message)
            case Refused():
                self._fail(self._handshake.refused(message))
            case Stop():
                self._fail(MasterUnreachable(f"the master at {self.address} has been stopped; {_AGAIN}"))
            case Watched():
                self.is_watched = True
            case PageAt():
                self._pages.popleft().set_result(message)
            case Welcome():
                self._welcomed(message)
            case Probe():
                pass

    def _fail(self, error: ConnectionFailed) -> None:
        """The connection is of no use any more; everybody who waits hears of it."""
        if self._error is not None:
            return
        with self._changed:
            self._error = error
            self._changed.notify_all()
        if not self._answered.done():
            self._answered.set_exception(error)
        for events in self._jobs.values():
            events.put(error)
        self._jobs.clear()
        for future in self._status:
            future.set_exception(error)
        for asked in self._pages:
            asked.set_exception(error)
        self.peers.close(error)
