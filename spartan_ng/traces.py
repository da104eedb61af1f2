"""What happened, as a file that people look at: Chrome's trace format, which Perfetto opens, too.

Google, Trace Event Format (2016): complete events ("X"), nestable asynchronous ones ("b", "e"), moments ("i")
and the names of processes and threads ("M"). Times are in microseconds from the first event.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from spartan_ng.config import TRACE_VARIABLE
from spartan_ng.ending import at_end
from spartan_ng.events import KINDS, OVERLAPPING, SAMPLE, Event, now_ns, record
from spartan_ng.sinks.places import file_place, replacing

MOST_EVENTS = 2_000_000
"""Events that a trace keeps: the first ones; about 300 bytes of memory each."""
_PROGRAM = 1
_TRANSFERS = 0
"""The lane of what overlaps."""


class tracing:
    """Write what the programs inside the `with` block do to `path`, when it ends.

    Planning, uploads and waiting for results in the program; on every worker its tasks, the blocks of each
    thread, waits and transfers; compiling. All on the program's clock, to about a tenth of a round trip where
    workers are on other machines. Open the file at https://ui.perfetto.dev or in chrome://tracing.

    Parameters
    ----------
    path : the file; one that is there is replaced when the block ends

    Raises
    ------
    OSError : no file can be written there; before the block begins

    Only one thread's `with` block may use an object; blocks of several may overlap, and see the same.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = file_place(path)
        self._lock = threading.Lock()
        self._events: list[tuple[str, Event]] = []
        self._left_out = 0
        self._begun_ns = 0

    def begin(self) -> Self:
        """Look from now on."""
        self._begun_ns = now_ns()
        record.begin(self._look)
        return self

    def end(self) -> None:
        """Write the file."""
        record.end(self._look)
        with self._lock:
            found = trace(self._events, self._left_out)
        with replacing(self._path, "") as file:
            file.write(json.dumps(found).encode())

    def _look(self, worker: str, events: Sequence[Event]) -> None:
        spans = [
            event if event.begin_ns >= self._begun_ns else event._replace(begin_ns=self._begun_ns)
            for event in events
            if event.kind != SAMPLE and event.end_ns >= self._begun_ns  # what ended before it is another's
        ]
        with self._lock:
            room = MOST_EVENTS - len(self._events)
            self._events += [(worker, event) for event in spans[:room]]
            self._left_out += max(0, len(spans) - room)

    def __enter__(self) -> Self:
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        except OSError as refused:
            if error is None:
                raise
            error.add_note(f"The trace was not written: {refused}")  # the program's own error goes on


def trace_as_asked() -> None:
    """Trace this process until it ends, where the environment says so; its children are not asked."""
    path = os.environ.pop(TRACE_VARIABLE, None)
    if path:
        at_end(tracing(path).begin().end)


def trace(events: Sequence[tuple[str, Event]], left_out: int = 0) -> dict[str, Any]:
    """Events of workers ("" is the program) as a trace."""
    begin_ns = min((event.begin_ns for _, event in events), default=0)
    first: dict[str, str] = {}
    for worker, _ in events:
        first.setdefault(_label(worker), worker)
    events = [(first[_label(worker)], event) for worker, event in events]  # ranks move when a worker goes
    workers = sorted({worker for worker, _ in events if worker}, key=_rank)
    processes = {"": _PROGRAM, **{worker: _PROGRAM + 1 + i for i, worker in enumerate(workers)}}
    rows: list[dict[str, Any]] = [*_names(processes, events)]
    for number, (worker, event) in enumerate(events):
        rows += _rows(event, processes[worker], begin_ns, number)
    found = {"traceEvents": rows, "displayTimeUnit": "ms", "otherData": {"producer": "spartan_ng"}}
    if left_out:
        found["otherData"] = {"producer": "spartan_ng", "events left out": left_out}
    return found


def _label(worker: str) -> str:
    """What a worker is called whatever its rank is, of `worker 2 (label)`."""
    return worker.partition(" (")[2] or worker


def _rank(worker: str) -> tuple[int, str]:
    number = re.match(r"worker (\d+)", worker)
    return (int(number[1]) if number else -1, worker)


def _names(processes: dict[str, int], events: Sequence[tuple[str, Event]]) -> Iterator[dict[str, Any]]:
    """What processes and threads are called, and their order."""
    for worker, process in processes.items():
        yield _meta("process_name", process, 0, {"name": worker or "program"})
        yield _meta("process_sort_index", process, 0, {"sort_index": process})
    lanes = dict.fromkeys((worker, e.lane, e.kind) for worker, e in events if e.kind not in OVERLAPPING)
    kinds: dict[tuple[str, int], set[str]] = {}
    for worker, lane, kind in lanes:
        kinds.setdefault((worker, lane), set()).add(kind)
    for (worker, lane), seen in kinds.items():
        yield _meta("thread_name", processes[worker], lane, {"name": _lane_name(seen)})


def _lane_name(kinds: set[str]) -> str:
    for kind, name in (("evaluate", "program"), ("part", "job"), ("stage", "job"), ("compile", "compiler")):
        if kind in kinds:
            return name
    return "blocks" if "blocks" in kinds else "thread"


def _meta(name: str, process: int, lane: int, values: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "ph": "M", "pid": process, "tid": lane, "args": values}


def _rows(event: Event, process: int, begin_ns: int, number: int) -> Iterator[dict[str, Any]]:
    values = {"what": KINDS[event.kind]}
    if event.job:
        values["job"] = event.job
    if event.nbytes:
        values["bytes"] = str(event.nbytes)
    if event.error:
        values["error"] = event.error
    row = {
        "name": f"{event.kind} {event.name}".rstrip() + (" (failed)" if event.error else ""),
        "cat": event.kind,
        "ts": (event.begin_ns - begin_ns) / 1000,
        "pid": process,
        "tid": event.lane,
        "args": values,
    }
    if event.kind in OVERLAPPING:
        at = {**row, "tid": _TRANSFERS, "id": number}
        yield {**at, "ph": "b"}
        yield {**at, "ph": "e", "ts": (event.end_ns - begin_ns) / 1000, "args": {}}
    elif event.end_ns == event.begin_ns:
        yield {**row, "ph": "i", "s": "p"}
    else:
        yield {**row, "ph": "X", "dur": (event.end_ns - event.begin_ns) / 1000}
