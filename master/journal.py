"""A line of the log for each job, when it ends."""

from __future__ import annotations

import logging
from typing import Any

from msgspec import Struct

from spartan_ng.logs import FACTS
from spartan_ng.wire.messages import JobDone, JobFailed, Submit

_log = logging.getLogger("spartan_ng.master.jobs")


class _Begun(Struct, frozen=True):
    client: str
    workers: int
    since_ns: int


class Journal:
    """Hears what clients ask for, and what they are told."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Begun] = {}

    def heard(self, client: str, message: Any, now_ns: int) -> None:
        """Somebody said something, and it was right."""
        if isinstance(message, Submit) and _log.isEnabledFor(logging.INFO):
            self._jobs[message.job] = _Begun(client, message.ranks, now_ns)

    def said(self, message: Any, now_ns: int) -> None:
        """The master said something."""
        if not isinstance(message, JobDone | JobFailed):
            return
        begun = self._jobs.pop(message.job, None)
        if begun is None:
            return
        facts = {
            "job": message.job,
            "client": begun.client,
            "workers": begun.workers,
            "seconds": (now_ns - begun.since_ns) / 1e9,
        }
        if isinstance(message, JobDone):
            moved = sum(moved for _, moved, *_ in message.stats)
            facts |= {"state": "done", "stages": len(message.stats), "moved_bytes": moved}
            stages = "1 stage" if len(message.stats) == 1 else f"{len(message.stats)} stages"
            text = f"done in {facts['seconds']:.3f} s, {stages}, {moved:,} bytes moved"
        else:
            state = "interrupted" if message.is_loss else "failed"
            facts |= {"state": state, "kind": message.kind, "why": message.message}
            why = message.message.partition("\n")[0]
            text = f"{state} after {facts['seconds']:.3f} s, {message.kind}: {why}"
            text += "; its program goes on" if message.is_loss else ""
        on = "1 worker" if begun.workers == 1 else f"{begun.workers} workers"
        _log.info("job %s of %s on %s: %s", message.job, begun.client, on, text, extra={FACTS: facts})

    def lost(self, client: str) -> None:
        """A client is gone; nobody is told how its jobs end."""
        for job in [j for j in self._jobs if j.startswith(client + "/")]:
            begun = self._jobs.pop(job)
            _log.info("job %s of %s: its client is gone", job, begun.client, extra={FACTS: {"job": job}})
