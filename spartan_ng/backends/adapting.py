"""How many workers a cluster of this machine's should have, by how long jobs run and how long none does."""

from __future__ import annotations

import threading
import time

from msgspec import Struct

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster

_LOOK_S = 0.25


class Bounds(Struct, frozen=True):
    """Between how many workers there are some, and when there are more and fewer.

    Parameters
    ----------
    least, most : numbers of workers
    busy_s : jobs that have run for so long, one after the other, get twice as many
    idle_s : where none has run for so long, the least are enough
    """

    least: int
    most: int
    busy_s: float
    idle_s: float

    def wanted(self, workers: int, is_busy: bool, for_s: float) -> int:
        """How many there should be, where jobs have run, or none has, for so many seconds."""
        within = min(max(workers, self.least), self.most)
        if is_busy and for_s >= self.busy_s:
            return min(2 * within, self.most)
        return self.least if not is_busy and for_s >= self.idle_s else within


class Adapting:
    """Looks at what `backend` does, and has the processes of its cluster follow, until it is stopped."""

    def __init__(self, bounds: Bounds, processes: LocalCluster, backend: ClusterBackend) -> None:
        self._bounds = bounds
        self._processes = processes
        self._backend = backend
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spartan-ng-adapting", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave as many workers as there are."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        was_busy, since_s = self._backend.is_busy, time.monotonic()
        while not self._ended.wait(_LOOK_S):
            is_busy, now_s = self._backend.is_busy, time.monotonic()
            if is_busy is not was_busy:
                was_busy, since_s = is_busy, now_s
            wanted = self._bounds.wanted(self._processes.n, is_busy, now_s - since_s)
            if wanted != self._processes.n:
                self._processes.scale(wanted)
                since_s = now_s
