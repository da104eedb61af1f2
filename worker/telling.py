"""What has happened here, told to the master while somebody wants to know.

What a traced job's client waits for is told before the job's end is. What a page shows is told now and then,
so that jobs wait for none of it. All but `take` is on the loop's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from spartan_ng.events import TASKS, Event, record
from spartan_ng.wire.messages import Happened

_MOST_EVENTS = 100_000
"""Events that wait to be told; of more, the first are left out."""
_WANTED = ("", "tasks", "all")


class Telling:
    """Hands what happens to `tell`, message by message."""

    def __init__(self, tell: Callable[[Happened], None]) -> None:
        self._tell = tell
        self._jobs: dict[str, str] = {}
        """Jobs of which somebody wants to know "tasks" or "all"."""
        self._over: list[str] = []
        """Those of them that have ended since the last time."""
        self._wanted = ""
        """The most that is wanted of any job."""
        self._events: deque[Event] = deque(maxlen=_MOST_EVENTS)

    def begin(self, job: str, what: str) -> None:
        """A job begins of which somebody wants to know "tasks" or "all"; nobody does for ""."""
        if what:
            self._jobs[job] = what
            self._choose()

    def end(self, job: str) -> None:
        """A job has ended, if it was one of those."""
        what = self._jobs.get(job)
        if what is not None:
            self._over.append(job)
            if what == "all":
                self.tell()

    def take(self, worker: str, events: Sequence[Event]) -> None:
        """On whatever thread something happens."""
        self._events.extend(events if self._wanted == "all" else (e for e in events if e.kind in TASKS))

    def tell(self) -> None:
        """Tell what has happened; what belongs to no job is told with one that is traced, too."""
        traced = next((job for job, what in self._jobs.items() if what == "all"), "")
        found: dict[str, list[Event]] = {}
        while self._events:
            event = self._events.popleft()
            job = event.job or traced
            if self._jobs.get(job) == "all":
                found.setdefault(job, []).append(event)
            elif event.kind in TASKS:
                found.setdefault("", []).append(event)
        for job, events in found.items():
            self._tell(Happened(job, tuple(events)))
        if self._over:
            for job in self._over:
                self._jobs.pop(job, None)
            self._over = []
            self._choose()

    def _choose(self) -> None:
        """Look at what jobs there are."""
        wanted = max(self._jobs.values(), key=_WANTED.index, default="")
        if wanted != self._wanted:
            self._wanted = wanted
            if wanted:
                record.begin(self.take, tasks_only=wanted == "tasks")
            else:
                record.end(self.take)
