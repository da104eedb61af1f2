"""Evaluations as spans of OpenTelemetry, inside the program's own, where the program has set it up.

A span for each evaluation, in it those of planning, running and the like, and in a run's one for each stage,
from when the first worker began it to when the last one ended. A program that has not imported OpenTelemetry
pays a look into a table, one whose spans nobody records little more: workers are asked for nothing then.

OpenTelemetry Specification 1.x, Tracing API.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from msgspec import Struct, field

from spartan_ng.events import Event, now_ns, record

API = "opentelemetry.trace"
"""The module that is there where a program has imported OpenTelemetry."""
_NOTHING = nullcontext()
_INNER = frozenset({"plan", "upload", "run", "gather", "recover"})


class _Seen(Struct):
    """What happens while a thread evaluates."""

    lane: int
    jobs: set[str] = field(default_factory=set)
    """The thread's own; at the same time others may run theirs."""
    inner: list[Event] = field(default_factory=list)
    stages: list[Event] = field(default_factory=list)

    def look(self, worker: str, events: Sequence[Event]) -> None:
        """Take what may belong here."""
        for event in events:
            if event.kind == "stage":
                self.stages.append(event)
            elif event.kind in _INNER and event.lane == self.lane and not worker:
                self.inner.append(event)


_evaluation: ContextVar[_Seen | None] = ContextVar("evaluation", default=None)


def evaluating(line: Callable[[], str]) -> AbstractContextManager[object]:
    """The evaluation that the user's `line()` asks for is the `with` block."""
    api = sys.modules.get(API)
    return _NOTHING if api is None else _evaluating(api, line())


def ran(job: str) -> None:
    """The evaluation of this thread has run a job."""
    seen = _evaluation.get()
    if seen is not None:
        seen.jobs.add(job)


@contextmanager
def _evaluating(api: Any, line: str) -> Iterator[None]:
    from spartan_ng.version import __version__

    tracer = api.get_tracer("spartan_ng", __version__)
    with tracer.start_as_current_span("evaluate") as span:
        if not span.is_recording():
            yield
            return
        span.set_attribute("code.line", line)
        seen = _Seen(threading.get_native_id())
        token = _evaluation.set(seen)
        record.begin(seen.look)
        try:
            yield
        finally:
            record.end(seen.look)
            _evaluation.reset(token)
            _tell(api, tracer, seen)


def _tell(api: Any, tracer: Any, seen: _Seen) -> None:
    """Make spans of what was seen, each in the innermost one that was open when it began."""
    to_wall_ns = time.time_ns() - now_ns()
    inner = sorted(seen.inner, key=lambda e: (e.begin_ns, -e.end_ns))
    opened: list[tuple[Event, Any]] = []

    def begun(name: str, event: Event, values: dict[str, Any]) -> Any:
        around = [span for outer, span in opened if outer.begin_ns <= event.begin_ns < outer.end_ns]
        context = api.set_span_in_context(around[-1]) if around else None
        begin_ns = event.begin_ns + to_wall_ns
        return tracer.start_span(name, context=context, start_time=begin_ns, attributes=values)

    def ended(span: Any, event: Event) -> None:
        if event.error:
            span.set_status(api.Status(api.StatusCode.ERROR, event.error))
        span.end(event.end_ns + to_wall_ns)

    for event in inner:
        span = begun(event.kind, event, {"what": event.name} if event.name else {})
        opened.append((event, span))  # before the next begins
    for event in _merged([e for e in seen.stages if e.job in seen.jobs]):
        values = {"job": event.job, "stage": event.stage, "workers": event.lane}
        values["received_bytes"] = event.nbytes
        ended(begun(event.name, event, values), event)
    for event, span in reversed(opened):
        ended(span, event)


def _merged(stages: Sequence[Event]) -> Iterator[Event]:
    """Each stage once, over all its workers, whose number stands for the lane."""
    found: dict[tuple[str, int], list[Event]] = {}
    for event in stages:
        found.setdefault((event.job, event.stage), []).append(event)
    for events in found.values():
        yield events[0]._replace(
            begin_ns=min(e.begin_ns for e in events),
            end_ns=max(e.end_ns for e in events),
            nbytes=sum(e.nbytes for e in events),
            error=next((e.error for e in events if e.error), ""),
            lane=len(events),
        )
