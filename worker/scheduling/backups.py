"""A worker's share of a stage that another worker runs, too: the owner's side, without I/O.

A share is a function of the regions that it reads, whatever the stage does. It runs on a thread of its own,
and its worker goes on as soon as its tiles are there, made here or elsewhere. A worker that has nothing to do
says how long its own share of the stage took; one that takes three times as long may be run again there. Of
two results the first counts: tiles that come second are dropped.

MapReduce (OSDI '04), section 3.6: backup executions of tasks that are left at the end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spartan_ng.costs.choices import BACKUP_S
from spartan_ng.costs.tuned import PATIENCE, SLOW, WORTH
from spartan_ng.worker.memory.regions import PiecedOperand
from spartan_ng.worker.scheduling.stealing import way_s


class Backup:
    """A share of a stage while it runs. Thread-safe.

    Parameters
    ----------
    nbytes : bytes of what it reads and makes
    put : puts a tile that another worker has made, by its slot
    operands : what it reads, where data do not say it
    """

    def __init__(
        self,
        nbytes: int,
        put: Callable[[int, Any], None],
        operands: Callable[[], Iterable[PiecedOperand]] = tuple,
    ) -> None:
        self._way_s = way_s(nbytes)
        self._put = put
        self._operands = operands
        self._read: dict[int, Any] = {}
        """What came from others, who may not have it any more, by the operand's identity."""
        self._begun_s = time.monotonic()
        self._waited_s = 0.0
        self._waits_since_s: float | None = None
        self._due_s = 0.0
        """When somebody else may try: the one who has it has had it for too long."""
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self.is_overtaken = False
        """Whether another worker was first."""

    @property
    def busy_s(self) -> float:
        """For how long it has worked, and not waited for others."""
        now = time.monotonic()
        # Read once: the share's own thread may go on meanwhile.
        waits_since_s = self._waits_since_s
        waited_s = self._waited_s + (0.0 if waits_since_s is None else now - waits_since_s)
        return now - self._begun_s - waited_s

    def waits(self) -> None:
        """It waits for another worker from now on."""
        self._waits_since_s = time.monotonic()

    def goes_on(self) -> None:
        """It waits no longer."""
        if self._waits_since_s is not None:
            self._waited_s += time.monotonic() - self._waits_since_s
            self._waits_since_s = None

    def note(self, operand: PiecedOperand, value: Any) -> None:
        """It has read an operand from others."""
        self._read[id(operand)] = value

    def forget(self) -> None:
        """It needs no more what it has read until now."""
        self._read.clear()

    def operand(self, place: int) -> Any:
        """What it has read, by its place among the operands; None where it is not there."""
        return self._read.get(next((id(o) for k, o in enumerate(self._operands()) if k == place), 0))

    def lend(self, usual_s: float) -> bool:
        """Whether a worker should run it as well that needed `usual_s` for its own share."""
        with self._lock:
            now, way_s = time.monotonic(), self._way_s
            slow_s = max(SLOW * usual_s, WORTH * way_s, BACKUP_S) + way_s
            # Who waits for another worker's tile is not slow himself, and a second one would wait for the
            # same.
            if self._ended.is_set() or self._waits_since_s is not None or now < self._due_s:
                return False
            if self.busy_s < slow_s:
                return False
            self._due_s = now + max(self.busy_s, PATIENCE * (usual_s + way_s))
            return True

    def come_back(self, made: Mapping[int, Any] | None) -> None:
        """Another worker has made these tiles; None where it cannot: the next one may try when it is due."""
        with self._lock:
            if made is not None and not self._ended.is_set():
                for slot, tile in made.items():
                    self._put(slot, tile)
                self.is_overtaken = True
                self._ended.set()

    def give_up(self) -> None:
        """Who was to run it has other things to do."""
        with self._lock:
            self._due_s = 0.0

    def put(self, store: Callable[[], None]) -> None:
        """Store a tile that was made here, unless another worker was first."""
        with self._lock:
            if not self.is_overtaken:
                store()

    def end(self) -> None:
        """It has ended here."""
        with self._lock:
            self._ended.set()

    def wait(self) -> None:
        """Wait until it has ended, here or elsewhere."""
        self._ended.wait()


class Until(threading.Event):
    """An event that counts as set as soon as something else is so, too."""

    def __init__(self, *others: Callable[[], bool]) -> None:
        super().__init__()
        self._others = others

    def is_set(self) -> bool:
        """Whether it was set, or one of the others is so."""
        return super().is_set() or any(other() for other in self._others)
