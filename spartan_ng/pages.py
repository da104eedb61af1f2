"""The page of wherever programs run: of the cluster, or of this process."""

from __future__ import annotations

import html
import logging
import os
import threading
from collections.abc import Sequence

from spartan_ng import session
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.callers import user_place
from spartan_ng.ending import at_end
from spartan_ng.errors import ConnectionFailed
from spartan_ng.events import Event, record
from spartan_ng.plan.plan import Plan
from spartan_ng.system import machine
from spartan_ng.web.board import Board, LoggedLines
from spartan_ng.web.drawing import describe_plan, described
from spartan_ng.web.server import PageServer

_HERE = "here"
_LOOK_S = 1.0


class Page:
    """A page that is served; prints as its link, and notebooks show it as one."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __repr__(self) -> str:
        return f"<Page: {self.url}>"

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        return f'<a href="{url}" target="_blank" rel="noreferrer">{url}</a>'


def page_of_session() -> Page:
    """The page of where programs run now; see `spartan_ng.public.page`."""
    backend = session.current().backend
    if isinstance(backend, ClusterBackend):
        return Page(backend.page())
    if isinstance(backend, EmbeddedBackend):
        return Page(_here(backend))
    raise ConnectionFailed(f"{type(backend).__name__} has a page of its own")


class _Onlooker:
    """What this process runs, on a board."""

    def __init__(self, threads: int) -> None:
        self.board = Board(f"process {os.getpid()}")
        self.board.worker_came(_HERE, 0, f"pid {os.getpid()}", threads, 0)
        self._plans: set[str] = set()
        self._over = threading.Event()
        record.begin(self._look, tasks_only=True)
        self._lines = LoggedLines(self.board)
        logging.getLogger("spartan_ng").addHandler(self._lines)
        threading.Thread(target=self._measure, name="page vitals", daemon=True).start()

    def begins(self, job: str, plan: Plan) -> None:
        """A job begins."""
        is_known = plan.key in self._plans
        if not is_known:
            self._plans.add(plan.key)
            self.board.described(plan.key, described(describe_plan(plan)))
        self.board.submitted(job, "this program", user_place(), plan.key, 1, is_known)
        self.board.doing(_HERE, "computes")

    def ended(self, job: str, error: BaseException | None) -> None:
        """It has ended."""
        if error is None:
            self.board.ended(job, "done")
        else:
            self.board.ended(job, "failed", f"{type(error).__name__}: {error}")
        self.board.doing(_HERE, "")

    def _look(self, worker: str, events: Sequence[Event]) -> None:
        self.board.happened(_HERE, events)

    def _measure(self) -> None:
        while not self._over.wait(_LOOK_S):
            self.board.vitals(_HERE, used=machine.resident_bytes())

    def close(self) -> None:
        """Look no more."""
        self._over.set()
        record.end(self._look)
        logging.getLogger("spartan_ng").removeHandler(self._lines)


_lock = threading.Lock()
_served: tuple[_Onlooker, PageServer] | None = None
"""The page of this process, where it has one."""


def _here(backend: EmbeddedBackend) -> str:
    global _served
    with _lock:
        if _served is None:
            onlooker = _Onlooker(backend.threads)
            try:
                server = PageServer(onlooker.board)
            except BaseException:
                onlooker.close()
                raise
            _served = onlooker, server
            at_end(close)
            EmbeddedBackend.audience = onlooker
        return _served[1].url


def close() -> None:
    """Serve no page of this process any more, and look no more at what it runs."""
    global _served
    with _lock:
        if _served is not None:
            onlooker, server = _served
            _served = EmbeddedBackend.audience = None
            onlooker.close()
            server.close()
