"""A user's function that nobody has seen runs on the first rank alone for a moment.

A function that ends its process, as a crash in somebody's C code does, mostly does so in its first call. All
ranks call it at about the same time, and the cluster would be empty. So the others wait until it has
come back on the first rank, or has run for a moment there; and if that rank's worker is lost, they are not.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spartan_ng.arrays import Key
    from spartan_ng.worker.blocks import Run
    from spartan_ng.worker.executor import Executor

MOMENT_S = 0.25
"""A function that has run for so long on the first rank is let loose on all."""
_FIRST = 0


class Vanguard:
    """The functions, by name and the user's line, that have run on this worker."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    @contextmanager
    def passing(self, ex: Executor, run: Run) -> Iterator[None]:
        """Around a stage that calls users' functions."""
        names = run.program.users[run.index]
        # No array's: those of a job are numbered from 0 on.
        key = (run.job, -1 - run.index)
        is_new = not names <= self._seen
        timer: threading.Timer | None = None
        if ex.rank != _FIRST:
            if is_new:
                ex.wait(run, ex.transfer.fetch(key, _FIRST, ((0, 0, 1),)), ex.rank)
        elif is_new:
            timer = threading.Timer(MOMENT_S, self._pass, (ex, key))
            timer.start()
        else:
            self._pass(ex, key)
        try:
            yield
        finally:
            # Also where it has raised: it has come back, and that is all that was asked.
            self._seen |= names
            if timer is not None:
                timer.cancel()
                self._pass(ex, key)

    @staticmethod
    def _pass(ex: Executor, key: Key) -> None:
        """Let the others go on."""
        ex.store.put(key, np.empty(0, np.uint8))
