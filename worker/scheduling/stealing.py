"""Tasks that idle workers take over: the owner's side, without I/O.

A pass over blocks is an `Offer` while it runs: its tasks (runs of blocks, in their order) are taken by the
owner's own threads, or lent to a worker that waits and asks. A task goes with its blocks' part of the
operands and comes back as what the owner would have made of them, so that the result is the same to the bit:
states still combine in the order of their tasks. The owner lends a task only where it expects to need longer
for it than the network does. One that stays away for too long it does itself; and where none is left to
begin, one that the owner has been at for three times as long as the others took is lent, too. Of two results
the second is ignored.

Spartan (ATC '15), section 3.4, "Sparse arrays": idle workers steal unstarted tasks. MapReduce (OSDI '04),
section 3.6: backup executions of those that are left at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Protocol

from msgspec import Struct

from spartan_ng.costs.tuned import LENDING_S, NETWORK_BYTES_S, PATIENCE, SLOW, WORTH

TASK_STEPS: dict[tuple[str, str], str] = {
    ("waiting", "taken"): "running",
    ("waiting", "lent"): "lent",
    ("waiting", "came back"): "done",
    ("waiting", "failed"): "waiting",
    ("running", "finished"): "done",
    ("running", "came back"): "done",
    ("running", "failed"): "running",
    ("lent", "came back"): "done",
    ("lent", "failed"): "waiting",
    ("lent", "taken"): "running",
    ("done", "finished"): "done",
    ("done", "came back"): "done",
    ("done", "failed"): "done",
}
"""`(state, event) → state` of a task. A task that is lent and taken back, or lent again, may come back all
the same."""


def way_s(nbytes: int) -> float:
    """Seconds that a task with so many bytes is on its way, there and back."""
    return LENDING_S + nbytes / NETWORK_BYTES_S


class Ledger:
    """The states of tasks. `now` is in seconds."""

    def __init__(self, ntasks: int) -> None:
        self._states = ["waiting"] * ntasks
        self._next = 0
        self._open = ntasks
        self._started: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._lent: dict[int, float] = {}
        """When tasks that are away went."""
        self._spent_s, self._finished = 0.0, 0
        self.stolen = 0
        """Tasks that others have done."""

    @property
    def done(self) -> bool:
        """Whether every task has a result."""
        return self._open == 0

    @property
    def knows_usual(self) -> bool:
        """Whether a task has ended, so that others can be told to be slow."""
        return self._finished > 0

    def take(self, now: float) -> int | None:
        """The next task for a thread of the owner: the first that waits, or one that is overdue."""
        while self._next < len(self._states) and self._states[self._next] != "waiting":
            self._next += 1
        if self._next < len(self._states):
            found = self._next
        else:
            overdue = [i for i, due in self._due.items() if due <= now]
            if not overdue:
                return None
            found = overdue[0]
            del self._due[found]
        self._step(found, "taken")
        self._started[found] = now
        return found

    def is_wanted(self, task: int) -> bool:
        """Whether a task has no result yet."""
        return self._states[task] != "done"

    def lend(self, now: float, nbytes: int) -> int | None:
        """The last task that waits, where others do, too, and it is worth `nbytes` of traffic. The last one
        only where the owner is at one that takes long; and then that, too, or one whose borrower does."""
        way, usual = way_s(nbytes), self._usual_s(now)
        late = self._slow(now, max(SLOW * usual, WORTH * way) + way)
        if late is None:  # the owner's threads, who would take it back, may stand still
            late = next((i for i, due in self._due.items() if due <= now), None)
        # A thread that is still at what others have done may stand still, too.
        keeps = late is None and all(map(self.is_wanted, self._started))
        if keeps and usual < WORTH * way:
            return None
        waiting = [i for i in range(self._next, len(self._states)) if self._states[i] == "waiting"]
        if len(waiting) < (2 if keeps else 1):
            found = late
        else:
            # From the end: the owner's threads come from the beginning.
            found = waiting[-1]
            self._step(found, "lent")
        if found is None:
            return None
        if self._states[found] == "lent":
            self._due[found] = now + max(PATIENCE * usual + way, now - self._lent.get(found, now))
        self._lent[found] = now
        return found

    def finish(self, task: int, now: float) -> None:
        """A thread of the owner has done a task, which may have been said before."""
        started = self._started.pop(task, None)
        if started is not None:
            self._took(task, now - started)
            self._step(task, "finished")

    def come_back(self, task: int, now: float) -> bool:
        """A borrower has done a task; whether its result is wanted still."""
        self._due.pop(task, None)
        self._took(task, now - self._lent.pop(task, now))
        wanted = self.is_wanted(task)
        self.stolen += wanted
        self._step(task, "came back")
        return wanted

    def fail(self, task: int) -> None:
        """A borrower could not do a task."""
        self._due.pop(task, None)
        self._lent.pop(task, None)
        self._step(task, "failed")
        if self._states[task] == "waiting":
            self._next = min(self._next, task)

    def _slow(self, now: float, slow_s: float) -> int | None:
        """A task that the owner, and the last who borrowed it, have been at for so long; the first that was
        begun. Who is the next one to borrow it is asked for after twice the time."""
        # As long as none has ended nobody knows what is usual.
        for task, start in self._started.items() if self._finished else ():
            since = now - slow_s
            if task in self._lent:
                since = min(since, (start + now) / 2)
            if self.is_wanted(task) and self._lent.get(task, start) < since and start < since:
                return task
        return None

    def _took(self, task: int, seconds: float) -> None:
        """Somebody has done a task in so many seconds."""
        if self.is_wanted(task):  # the first; how slow the other was is not usual
            self._spent_s += seconds
            self._finished += 1

    def _usual_s(self, now: float) -> float:
        """What a task takes: the mean so far, or what the first one has taken already."""
        if self._finished:
            return self._spent_s / self._finished
        return max((now - start for start in self._started.values()), default=0.0)

    def _step(self, task: int, event: str) -> None:
        before = self._states[task]
        after = self._states[task] = TASK_STEPS[before, event]
        self._open -= after == "done" != before


class Offer:
    """A pass whose tasks may be lent. Thread-safe.

    Parameters
    ----------
    stage : its number in the plan
    ntasks : how many tasks it has
    nbytes : bytes of operands and result that one of them moves when it is lent
    pack : `pack(task)` gives what a borrower needs
    accept : `accept(task, result)` puts a borrower's result where the owner's would be
    is_free : whether the owner goes on as soon as all have results, whatever its own threads are at
    """

    def __init__(
        self,
        stage: int,
        ntasks: int,
        nbytes: int,
        pack: Callable[[int], Any],
        accept: Callable[[int, Any], None],
        is_free: bool = False,
    ) -> None:
        self.stage = stage
        self.is_free = is_free
        self.nbytes = nbytes
        self.ledger = Ledger(ntasks)
        self._pack = pack
        self._accept = accept
        self._changed = threading.Condition()

    def keep(self, task: int, result: Any) -> None:
        """What one of the owner's threads has made of a task, if nobody else was faster."""
        with self._changed:
            if self.ledger.is_wanted(task):
                self._accept(task, result)
            self.ledger.finish(task, time.monotonic())
            self._changed.notify_all()

    def wait(self, stopped: Callable[[], bool]) -> None:
        """Wait until all tasks have results."""
        with self._changed:
            while not self.ledger.done and not stopped():
                # Who stops a job tells nobody here: so it is asked for.
                self._changed.wait(0.02)

    def mine(self, stopped: Callable[[], bool]) -> Iterator[int]:
        """Tasks for one of the owner's threads, until all have results; each counts as done at the next."""
        while True:
            with self._changed:
                task = self.ledger.take(time.monotonic())
                while task is None and not self.ledger.done and not stopped():
                    self._changed.wait(0.02)
                    task = self.ledger.take(time.monotonic())
            if task is None or stopped():
                return
            yield task
            with self._changed:
                self.ledger.finish(task, time.monotonic())
                self._changed.notify_all()

    def lend(self) -> tuple[int, Any] | None:
        """A task and what is needed for it, if one is to be had."""
        with self._changed:
            task = self.ledger.lend(time.monotonic(), self.nbytes)
        # Packing copies, which the owner's threads need not wait for.
        return None if task is None else (task, self._pack(task))

    def come_back(self, task: int, result: Any) -> None:
        """A borrower's result; None where it has failed, and the owner is to find out why."""
        with self._changed:
            if result is None:
                self.ledger.fail(task)
            elif self.ledger.come_back(task, time.monotonic()):
                self._accept(task, result)
            self._changed.notify_all()


class Share(Protocol):
    """A worker's share of a stage, which another one may run as well: see `backups`."""

    def lend(self, usual_s: float) -> bool:
        """Whether a worker should that needed `usual_s` for its own."""
        ...

    def come_back(self, made: Mapping[int, Any] | None) -> None:
        """Another worker has made its tiles; None where it cannot."""
        ...

    def give_up(self) -> None:
        """Who was to run it has other things to do."""
        ...

    def operand(self, place: int) -> Any:
        """What its task has read as one of its operands; None where it is not there."""
        ...


class _Job(Struct):
    """What a job has to lend: parts of a pass, and the share of a stage that runs."""

    parts: tuple[int, Offer] | None = None
    share: tuple[int, int, Share] | None = None
    """Its number, the stage, and it."""


WHOLE = -1
"""The number of the task that is a whole share."""
_ENDED = 1024
"""Jobs that have ended are known as long as so many have not ended since."""


class Offers:
    """What a worker has to lend, by job. Thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._ended: dict[str, None] = {}
        """Those that ended last, in this order: what is in neither is still to begin."""
        self._numbers = count(1)
        self._lock = threading.Lock()

    def begin(self, job: str) -> None:
        """A job with tasks to lend starts here."""
        with self._lock:
            self._jobs[job] = _Job()

    def end(self, job: str) -> None:
        """Nothing is left to do here for a job."""
        with self._lock:
            self._jobs.pop(job, None)
            self._ended[job] = None
            if len(self._ended) > _ENDED:
                del self._ended[next(iter(self._ended))]

    def publish(self, job: str, offer: Offer | None) -> None:
        """What a job lends from now on."""
        with self._lock:
            if job in self._jobs:
                # A number of its own: what comes back late must not be taken for the next offer's.
                self._jobs[job].parts = None if offer is None else (next(self._numbers), offer)

    def share(self, job: str, stage: int, share: Share | None) -> None:
        """The share of a stage that runs from now on."""
        with self._lock:
            if job in self._jobs:
                self._jobs[job].share = None if share is None else (next(self._numbers), stage, share)

    def lend(self, job: str, stage: int = -1, usual_s: float = 0.0) -> tuple[Any, ...] | None:
        """`(number, stage, task, what is needed)` for a worker whose share of `stage` took `usual_s`; the
        stage that runs here, where nothing is to be had now; nothing where none runs, as the job may begin
        here later than elsewhere; None where it has ended."""
        with self._lock:
            if job not in self._jobs:
                return None if job in self._ended else ()
            parts, share = self._jobs[job].parts, self._jobs[job].share
        if parts is not None:
            number, offer = parts
            lent = offer.lend()
            if lent is not None:
                return number, offer.stage, *lent
            # As long as no task has ended, those that stand still are lent with the share alone.
            if share is None or (offer.is_free and offer.ledger.knows_usual):
                return (offer.stage,)
        if share is None:
            return ()
        number, runs, backup = share
        return (number, runs, WHOLE, None) if runs == stage and backup.lend(usual_s) else (runs,)

    def operand(self, job: str, number: int, place: int) -> Any:
        """What a share that was lent has read as one of its operands; None where that is over."""
        with self._lock:
            found = self._jobs.get(job)
        share = None if found is None else found.share
        return share[2].operand(place) if share is not None and share[0] == number else None

    def come_back(self, job: str, number: int, task: int, result: Any) -> None:
        """A result for an offer; one that is over is ignored. Of a whole share it is its tiles, None where it
        cannot be run elsewhere, or False where it was not."""
        with self._lock:
            found = self._jobs.get(job)
        if found is None:
            return
        if found.parts is not None and found.parts[0] == number:
            found.parts[1].come_back(task, result)
        elif found.share is not None and found.share[0] == number:
            share = found.share[2]
            if result is False:
                share.give_up()
            else:
                share.come_back(result)
