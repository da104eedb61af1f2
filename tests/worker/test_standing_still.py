"""Functions that stand still on workers, at any call and in any schedule: all goes on without them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError, WorkerLost
from spartan_ng.kernels import blocks
from spartan_ng.ops.functions import users_of
from spartan_ng.worker import executor
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.scheduling import backups, program, stealing
from spartan_ng.worker.scheduling.lending import borrow
from spartan_ng.worker.stages import fused
from tests.test_programs import running_on
from tests.waiting import until

ROWS, COLUMNS = 96, 8
VALUES = numpy.arange(float(ROWS * COLUMNS)).reshape(ROWS, COLUMNS)


class Stand:
    """Where the first calls of a function that see a number stand still until the end."""

    def __init__(self, number: float, calls: int = 1) -> None:
        self.end = threading.Event()
        self.here: list[int] = []
        """The threads that stand here."""
        self._number, self._left = number, list(range(calls))

    def __call__(self, block: Any) -> Any:
        """The cube roots of a block."""
        if numpy.any(block == self._number):
            try:
                self._left.pop()
            except IndexError:
                pass
            else:
                self.here.append(threading.get_ident())
                self.end.wait()
        return numpy.cbrt(block)


def once(condition: Callable[[], object], act: Callable[[], object]) -> None:
    """Do something as soon as `condition()` is true, whatever the caller does meanwhile."""

    def work() -> None:
        until(condition)
        act()

    threading.Thread(target=work, daemon=True).start()


Stands = Callable[..., Stand]


@pytest.fixture
def stands(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stands]:
    """Makes functions that stand still, until the end; the smallest of tasks are lent."""
    monkeypatch.setattr(backups, "BACKUP_S", 0.02)
    monkeypatch.setattr(executor, "BACKUP_S", 0.02)
    monkeypatch.setattr(stealing, "LENDING_S", 0.0)
    found: list[Stand] = []

    def make(number: float, calls: int = 1) -> Stand:
        found.append(Stand(number, calls))
        return found[-1]

    yield make
    for one in found:
        one.end.set()


def mapped(np: Any, f: Any, x: Any) -> Any:
    """The function of a matrix."""
    return f(x) if np is numpy else np.map(f, x, dtype=float)


KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "stored": lambda np, f, x: mapped(np, f, x) + 1,
    "folded": lambda np, f, x: mapped(np, f, x).sum(axis=0),
    "folded along lines": lambda np, f, x: mapped(np, f, x).sum(axis=1),
    "read by all": lambda np, f, x: mapped(np, f, x) @ mapped(np, f, x).T,
    "sorted": lambda np, f, x: np.sort(mapped(np, f, x)[:, 0]),
    "scanned": lambda np, f, x: np.cumsum(mapped(np, f, x), axis=0),
    "of what is moved": lambda np, f, x: mapped(np, f, (x * 2)[::-1] / 2),
}


def found_with(kind: str, stand: Stand) -> None:
    """Run a program whose function stands still, and compare what comes of it."""
    wanted = KINDS[kind](numpy, numpy.cbrt, VALUES)
    with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
        x = (np.asarray(VALUES) * 1).persist()
        found = numpy.asarray(KINDS[kind](np, stand, x))
    assert not stand.end.is_set()
    numpy.testing.assert_allclose(found, wanted)


@pytest.mark.slow
@pytest.mark.some(12)
@pytest.mark.parametrize("lends", [False, True])
@pytest.mark.parametrize("block_bytes", [1 << 8, 1 << 10, 1 << 20])
@pytest.mark.parametrize("calls", [1, 2])
@pytest.mark.parametrize("row", [0, 31, 32, 47, 64, 95])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_waits_for_calls_that_do_not_come_back(
    kind: str,
    row: int,
    calls: int,
    block_bytes: int,
    lends: bool,
    stands: Stands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(program, "LENT_FLOPS", 1 if lends else 1 << 60)
    monkeypatch.setattr(blocks, "CACHE_BYTES", block_bytes)
    monkeypatch.setattr(fused, "SMALL_FLOPS", 0)
    found_with(kind, stands(VALUES[row, 3], calls))


class Asked:
    """Looks at who asks whom for work: sees to it that something happens between two questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, before: Callable[[Executor, int], None]) -> None:
        self.answered: set[tuple[int, int]] = set()
        """Ranks that have been answered, and by which."""
        self.left: set[int] = set()
        """Ranks that ask nobody any more, though the job is not over."""
        helps = Executor.help

        def asks(ex: Executor, run: Any, rank: int, is_busy: Callable[[], bool]) -> bool | None:
            before(ex, rank)
            worked = borrow(ex, run, rank, is_busy)
            self.answered.add((ex.rank, rank))
            return worked

        def help_(ex: Executor, job: str, stopped: threading.Event) -> None:
            helps(ex, job, stopped)
            if not stopped.is_set():
                self.left.add(ex.rank)

        monkeypatch.setattr(executor, "borrow", asks)
        monkeypatch.setattr(Executor, "help", help_)

    def have_left(self, but: int) -> bool:
        """Whether all ranks but one have left it alone."""
        return self.left >= {0, 1, 2} - {but}


@pytest.fixture
def backed(monkeypatch: pytest.MonkeyPatch) -> None:
    """All shares may be run again."""
    monkeypatch.setattr(program, "BACKED_S", 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("kind", ["stored", "folded", "sorted"])
def test_who_begins_when_the_others_have_asked_is_helped(
    kind: str, rank: int, stands: Stands, backed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that imports or compiles something may begin a job when the others have ended it."""
    asked = Asked(monkeypatch, lambda ex, rank: None)
    runs, stand = Executor.run, stands(VALUES[32 * rank, 0])
    late = [rank]

    def run(ex: Executor, job: str, plan: Any, *args: Any) -> Any:
        if late == [ex.rank] and any(users_of(stage) for stage in plan.stages):
            late.clear()
            until(lambda: asked.answered >= {(r, rank) for r in {0, 1, 2} - {rank}})
        return runs(ex, job, plan, *args)

    monkeypatch.setattr(Executor, "run", run)
    once(lambda: asked.have_left(rank) or stand.end.is_set(), stand.end.set)
    found_with(kind, stand)


@pytest.mark.parametrize("kind", ["stored", "folded", "sorted"])
def test_jobs_that_follow_each_other_keep_nobody_from_helping(
    kind: str, stands: Stands, backed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand = stands(VALUES[70, 3])

    def begins(ex: Executor, rank: int) -> None:
        """Another job begins on who asks, each time."""
        ex._begun += 1

    class Busy(threading.Event):
        """What says that a job is over; another job begins whenever that is waited for."""

        def __init__(self, ex: Executor, stopped: threading.Event) -> None:
            super().__init__()
            self._ex, self._stopped = ex, stopped
            self.is_set = stopped.is_set  # type: ignore[method-assign]

        def wait(self, timeout: float | None = None) -> bool:
            begins(self._ex, 0)
            return self._stopped.wait(timeout)

    helps = Executor.help
    monkeypatch.setattr(Executor, "help", lambda ex, job, stopped: helps(ex, job, Busy(ex, stopped)))
    asked = Asked(monkeypatch, begins)
    once(lambda: asked.have_left(2) or stand.end.is_set(), stand.end.set)
    found_with(kind, stand)


@pytest.mark.parametrize("error", [WorkerLost, MemoryBudgetError, OSError])
def test_who_cannot_stand_in_is_followed_by_another(
    error: type[Exception], stands: Stands, backed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not there now, or finds no room here, may be there and find it elsewhere, or later."""
    stand, cannot = stands(VALUES[70, 3]), [error("for now")]
    stands_in = Executor.standing_in

    def standing_in(ex: Executor, *args: Any) -> Executor:
        found = stands_in(ex, *args)
        if cannot:
            monkeypatch.setattr(found, "handle", raises(cannot.pop()))
        return found

    monkeypatch.setattr(Executor, "standing_in", standing_in)
    found_with("stored", stand)
    assert not cannot


def raises(error: Exception) -> Callable[..., None]:
    """What raises it."""

    def function(*args: Any) -> None:
        raise error

    return function
