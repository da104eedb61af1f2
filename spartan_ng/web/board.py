"""What there is to see of a cluster, for those who look: rows in sections, with the version of each change.

Who looks asks for what has changed since a version, so that a thousand workers cost only what they do. No row
is kept for ever: jobs, tasks, losses and log lines make room for later ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from msgspec import Struct

from spartan_ng.events import SAMPLE, Event, now_ns

MOST = {
    "jobs": 200,
    "plans": 200,
    "tasks": 4000,
    "losses": 200,
    "logs": 500,
    "workers": 100_000,
    "arrays": 2000,
    "functions": 2000,
}
"""Rows of a section; of more, those that came first go."""
_GONE = 4000
"""Rows that went and are remembered; who has not looked for longer gets all there is."""

Row = dict[str, Any]


class Totals(Struct):
    """What has happened since the board began, for metrics."""

    submitted: int = 0
    done: int = 0
    failed: int = 0
    interrupted: int = 0
    plans_known: int = 0
    stages: int = 0
    tasks: int = 0
    task_ns: int = 0
    waited_ns: int = 0
    moved_bytes: int = 0
    compiled: int = 0
    compiled_ns: int = 0
    losses: int = 0
    stolen: int = 0


class Board:
    """Workers, jobs, tasks, arrays, users' functions, losses and log lines. Thread-safe."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.totals = Totals()
        self._lock = threading.RLock()
        self._version = 0
        self._sections: dict[str, OrderedDict[Any, Row]] = {name: OrderedDict() for name in MOST}
        self._versions: OrderedDict[tuple[str, Any], int] = OrderedDict()
        """Of all rows, those that changed last at the end."""
        self._gone: OrderedDict[tuple[str, Any], int] = OrderedDict()
        self._forgotten = 0
        """The version before which what went is not known any more."""
        self._numbers = 0

    # --- what is told

    def worker_came(self, name: str, rank: int, label: str, threads: int, memory_bytes: int) -> None:
        """A worker is there, or has another rank."""
        with self._lock:
            row = {"rank": rank, "label": label, "threads": threads, "memory": memory_bytes}
            self._put("workers", name, {**self._sections["workers"].get(name, _IDLE), **row})

    def worker_went(self, name: str, text: str) -> None:
        """A worker is lost."""
        with self._lock:
            self._drop("workers", name)
            self.totals.losses += 1
            self._append("losses", {"at": time.time(), "text": text})

    def recovered(self, text: str) -> None:
        """What was lost is computed again."""
        with self._lock:
            self._append("losses", {"at": time.time(), "text": text})

    def vitals(self, name: str, **values: int) -> None:
        """What a worker holds (`used`, `free`, `spilled`) and has moved (`received`, `sent`), in bytes."""
        self._change("workers", name, values)

    def doing(self, name: str, text: str) -> None:
        """What a worker is at."""
        self._change("workers", name, {"doing": text})

    def submitted(self, job: str, client: str, line: str, plan: str, ranks: int, is_known: bool) -> None:
        """A job begins; `plan` is the key under which it may be `described`."""
        with self._lock:
            self.totals.submitted += 1
            self.totals.plans_known += is_known
            self._put(
                "jobs",
                job,
                {
                    "client": client,
                    "line": line,
                    "plan": plan,
                    "ranks": ranks,
                    "state": "running",
                    "at": time.time(),
                    "begin": now_ns() // 1000,
                    "end": None,
                    "error": "",
                    "stages": {},
                },
            )

    def described(self, plan: str, description: Row) -> None:
        """A plan's stages and arrays, as `Explanation.to_dict` has them."""
        stages = [
            {
                "name": " > ".join(stage["operators"]),
                "kind": stage["kind"],
                "bytes": stage["predicted_bytes"],
                "seconds": stage["predicted_seconds"],
            }
            for stage in description["stages"]
        ]
        with self._lock:
            self._put("plans", plan, {"stages": stages, "description": description})

    def plan(self, plan: str) -> Row | None:
        """A plan's description."""
        with self._lock:
            row = self._sections["plans"].get(plan)
            return None if row is None else row["description"]

    def ended(self, job: str, state: str, error: str = "") -> None:
        """A job is "done", "failed", or "interrupted" by the loss of a worker: its program goes on."""
        with self._lock:
            row = self._sections["jobs"].get(job)
            if row is None or row["end"] is not None:
                return
            setattr(self.totals, state, getattr(self.totals, state) + 1)
            self._put("jobs", job, {**row, "state": state, "error": error, "end": now_ns() // 1000})

    def happened(self, worker: str, events: Iterable[Event]) -> None:
        """What a worker has done, by the board's clock."""
        with self._lock:
            for event in events:
                self._count(event)
                if event.kind == "stage":
                    self._task(worker, event)
                elif event.kind == SAMPLE:
                    self._sample(event)

    def holds(self, key: str, row: Row, is_new: bool) -> None:
        """An array lies on the workers: `shape`, `dtype`, `tiling`, `nbytes`, and the user's `line`."""
        with self._lock:
            if is_new or key not in self._sections["arrays"]:
                self._put("arrays", key, row)

    def released(self, keys: Iterable[str]) -> None:
        """Arrays are there no more."""
        with self._lock:
            for key in keys:
                self._drop("arrays", key)

    def logged(self, where: str, level: str, text: str) -> None:
        """A line of a log."""
        with self._lock:
            self._append("logs", {"at": time.time(), "where": where, "level": level, "text": text})

    # --- what is asked

    def changes(self, since: int = 0) -> Row:
        """What has changed after version `since` (0: all there is), and the version that this leads to.

        `rows` and `gone` have a section's rows and keys; `all` says that nothing from before holds.
        """
        with self._lock:
            every = since < self._forgotten or since > self._version
            since = 0 if every else since
            rows: dict[str, Row] = {}
            recent = takewhile(lambda item: item[1] > since, reversed(self._versions.items()))
            for (name, key), _ in reversed([*recent]):  # what changed first, first
                rows.setdefault(name, {})[key] = _shown(name, self._sections[name][key])
            gone: dict[str, list[Any]] = {}
            if since:
                for (name, key), _ in takewhile(lambda item: item[1] > since, reversed(self._gone.items())):
                    gone.setdefault(name, []).append(key)
            return {
                "title": self.title,
                "version": self._version,
                "now": now_ns() // 1000,
                "all": since == 0,
                "rows": rows,
                "gone": gone,
            }

    def section(self, name: str) -> list[Row]:
        """The rows of a section."""
        with self._lock:
            return [_copied(row) for row in self._sections[name].values()]

    def keys(self, name: str) -> list[Any]:
        """The keys of a section's rows."""
        with self._lock:
            return list(self._sections[name])

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self._version

    # --- rows

    def _count(self, event: Event) -> None:
        totals, took_ns = self.totals, event.end_ns - event.begin_ns
        match event.kind:
            case "stage":
                totals.tasks += not event.error
                totals.task_ns += took_ns
                totals.moved_bytes += event.nbytes
            case "wait":
                totals.waited_ns += took_ns
            case "compile":
                totals.compiled += 1
                totals.compiled_ns += took_ns

    def _task(self, worker: str, event: Event) -> None:
        self._append(
            "tasks",
            {
                "worker": worker,
                "name": event.name,
                "begin": event.begin_ns // 1000,
                "end": event.end_ns // 1000,
                "job": event.job,
                "stage": event.stage,
                "bytes": event.nbytes,
                "error": event.error,
            },
        )
        job = self._sections["jobs"].get(event.job)
        if job is None or event.error:
            return
        done, seconds, moved = job["stages"].get(event.stage, (0, 0.0, 0))
        done += 1
        self.totals.stages += done == job["ranks"]
        slowest = max(seconds, (event.end_ns - event.begin_ns) / 1e9)
        job["stages"][event.stage] = (done, slowest, moved + event.nbytes)
        self._put("jobs", event.job, job)

    def _sample(self, event: Event) -> None:
        """Add to what a stack of users' functions has taken on all workers."""
        row = self._sections["functions"].get(event.name, {"seconds": 0.0})
        seconds = row["seconds"] + (event.end_ns - event.begin_ns) / 1e9
        self._put("functions", event.name, {"seconds": seconds})
        self._sections["functions"].move_to_end(event.name)  # of many, those go that were seen least lately

    def _change(self, section: str, key: Any, values: Row) -> None:
        with self._lock:
            row = self._sections[section].get(key)
            if row is not None and any(row.get(name) != value for name, value in values.items()):
                self._put(section, key, {**row, **values})

    def _append(self, section: str, row: Row) -> None:
        self._numbers += 1
        self._put(section, self._numbers, row)

    def _put(self, section: str, key: Any, row: Row) -> None:
        self._version += 1
        rows = self._sections[section]
        rows[key] = row
        self._versions[section, key] = self._version
        self._versions.move_to_end((section, key))
        self._gone.pop((section, key), None)
        while len(rows) > MOST[section]:
            self._drop(section, next(iter(rows)))

    def _drop(self, section: str, key: Any) -> None:
        if self._sections[section].pop(key, None) is None:
            return
        del self._versions[section, key]
        self._version += 1
        self._gone[section, key] = self._version
        if len(self._gone) > _GONE:
            _, self._forgotten = self._gone.popitem(last=False)


_IDLE: Row = {"used": 0, "free": 0, "spilled": 0, "received": 0, "sent": 0, "doing": ""}


def _shown(section: str, row: Row) -> Row:
    """A row without what is asked for by itself; it stays as it is now."""
    return {"stages": row["stages"]} if section == "plans" else _copied(row)


def _copied(row: Row) -> Row:
    """The row; of a job's, the stages go on."""
    stages = row.get("stages")
    return {**row, "stages": dict(stages)} if isinstance(stages, dict) else dict(row)


class LoggedLines(logging.Handler):
    """Shows on a board what is logged from INFO on."""

    def __init__(self, board: Board) -> None:
        super().__init__(logging.INFO)
        self._board = board

    def emit(self, record: logging.LogRecord) -> None:
        """Show a line."""
        self._board.logged(record.name, record.levelname.lower(), record.getMessage())
