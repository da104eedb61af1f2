"""One record of what happens in this process, for those who look: traces, the page, metrics.

An event is a span of time of one thread, on the machine's monotonic clock, which all its processes share.
Spans of a thread nest. Nobody looks, as a rule; then `record.is_on` is False, and nothing is made or kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

KINDS = {
    "evaluate": "a program's call that needs values; with nothing inside, it was NumPy's at once",
    "plan": "a plan is made, or found",
    "upload": "an array goes from the program to the workers",
    "run": "a job, as the program waits for it",
    "gather": "an array, or a part of it, comes from the workers",
    "recover": "what lost workers held is computed again",
    "part": "a worker's part of a job",
    "prepare": "the part's plan and small inputs are read",
    "stage": "the part's task of a stage",
    "wait": "a task waits for another worker",
    "blocks": "one thread's blocks of a task",
    "results": "small results are packed",
    "transfer": "a region comes from another worker; these overlap",
    "compile": "a kernel is compiled, in a process of its own",
    "spill": "tiles go to disk",
    "lost": "a worker is gone; a moment",
    "sample": "users' functions were seen to run, each in the one before it",
}
"""What can happen."""
SAMPLE = "sample"
"""Has for its name a stack, and for its length how long this is taken to have run; no span of a thread."""
TASKS = frozenset({"stage", "wait", "compile", "spill", SAMPLE})
"""What the page shows, and metrics count."""
OVERLAPPING = frozenset({"transfer"})
"""What nests with nothing."""


class Event(NamedTuple):
    """A span, or a moment whose end is its beginning."""

    kind: str
    """One of `KINDS`."""
    name: str
    begin_ns: int
    end_ns: int
    lane: int
    """The thread, as the system numbers it."""
    job: str = ""
    stage: int = -1
    """The number of the plan's stage."""
    nbytes: int = 0
    """Bytes that came from others."""
    error: str = ""
    """The kind of exception that ended it."""


_NOTHING = nullcontext()

Look = Callable[[str, Sequence[Event]], None]
"""Called with the worker's name ("" for this process) and what happened there; thread-safe, and quick."""


class Record:
    """What happens, for whoever looks. Thread-safe."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether anybody looks."""
        self.is_full = False
        """Whether somebody looks at more than `TASKS`: nothing else is made otherwise."""
        self._looks: dict[Look, bool] = {}
        """And whether they look at tasks only; another one with each change."""
        self._lock = threading.Lock()

    def note(
        self,
        kind: str,
        name: str,
        begin_ns: int,
        end_ns: int,
        job: str = "",
        stage: int = -1,
        nbytes: int = 0,
        error: BaseException | None = None,
    ) -> None:
        """Say what this thread has done; to be called where `wants` it."""
        lane, why = threading.get_native_id(), "" if error is None else type(error).__name__
        self.tell("", [Event(kind, name, begin_ns, end_ns, lane, job, stage, nbytes, why)])

    def tell(self, worker: str, events: Sequence[Event]) -> None:
        """Say what has happened on a worker; who looks at tasks only may be told of more."""
        for look in self._looks:
            look(worker, events)

    def mark(self, kind: str, name: str) -> None:
        """Say that something has happened just now."""
        if self.wants(kind):
            at_ns = now_ns()
            self.note(kind, name, at_ns, at_ns)

    def span(self, kind: str, name: str = "", job: str = "") -> AbstractContextManager[object]:
        """Note what the `with` block does, however it ends; costs next to nothing where nobody looks."""
        return self._span(kind, name, job) if self.is_on and self.wants(kind) else _NOTHING

    @contextmanager
    def _span(self, kind: str, name: str, job: str) -> Iterator[None]:
        begin_ns = now_ns()
        try:
            yield
        except BaseException as error:
            self.note(kind, name, begin_ns, now_ns(), job, error=error)
            raise
        self.note(kind, name, begin_ns, now_ns(), job)

    def wants(self, kind: str) -> bool:
        """Whether anybody looks at what is of this kind."""
        return self.is_full or (self.is_on and kind in TASKS)

    def begin(self, look: Look, tasks_only: bool = False) -> None:
        """Let somebody look from now on; whoever looks already, looks at this instead."""
        with self._lock:
            self._use({**self._looks, look: tasks_only})

    def end(self, look: Look) -> None:
        """Who looked does so no more."""
        with self._lock:
            self._use({other: only for other, only in self._looks.items() if other != look})

    def _use(self, looks: dict[Look, bool]) -> None:
        self._looks = looks
        self.is_on, self.is_full = bool(looks), not all(looks.values())


now_ns = time.monotonic_ns
"""The machine's monotonic clock, in nanoseconds."""


record = Record()
"""This process's."""
