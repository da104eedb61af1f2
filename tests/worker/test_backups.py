"""Shares of stages that are run a second time elsewhere: event by event, and for every kind of stage."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy
import pytest
import scipy.sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.costs.choices import BACKUP_S
from spartan_ng.costs.tuned import LENDING_S, NETWORK_BYTES_S, PATIENCE, SLOW
from spartan_ng.graph import build
from spartan_ng.ops.functions import UserFunction
from spartan_ng.plan import lines
from spartan_ng.plan.stages import (
    Accumulate,
    Combine,
    Fused,
    Join,
    MergeParts,
    ScanTile,
    ScanTotals,
    SortParts,
)
from spartan_ng.sinks import Sink
from spartan_ng.worker import executor
from spartan_ng.worker.executor import Executor
from spartan_ng.worker.scheduling import backups, program
from spartan_ng.worker.scheduling.backups import Backup
from spartan_ng.worker.scheduling.shares import task_of
from spartan_ng.worker.scheduling.stealing import Offers
from tests.sources.recorder import Recorder
from tests.test_programs import running_on


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time of backups, which the test says."""
    found = SimpleNamespace(now=0.0)
    monkeypatch.setattr(backups, "time", SimpleNamespace(monotonic=lambda: found.now))
    return found


def test_a_share_is_run_again_once_it_takes_three_times_as_long_as_another(clock: SimpleNamespace) -> None:
    backup = Backup(0, lambda slot, tile: None)
    clock.now = 2.9
    assert not backup.lend(1.0)
    clock.now = 3.1
    assert backup.lend(1.0)
    assert not backup.lend(1.0)  # one is enough
    clock.now += PATIENCE + 2 * LENDING_S * PATIENCE
    assert backup.lend(1.0)  # but that one may be slow, too


def test_neither_what_takes_a_moment_nor_what_takes_longer_to_send_is_run_again(
    clock: SimpleNamespace,
) -> None:
    clock.now = BACKUP_S / 2
    assert not Backup(0, lambda slot, tile: None).lend(1e-6)
    large = Backup(10 * NETWORK_BYTES_S, lambda slot, tile: None)
    clock.now += 10 * SLOW * 0.5
    assert not large.lend(0.5)
    clock.now += 40.0
    assert large.lend(0.5)


def test_waiting_for_others_is_not_being_slow(clock: SimpleNamespace) -> None:
    backup = Backup(0, lambda slot, tile: None)
    backup.waits()
    clock.now = 100.0
    assert not backup.lend(1.0)
    backup.goes_on()
    assert backup.busy_s == 0.0
    clock.now = 102.0
    assert not backup.lend(1.0)
    clock.now = 103.1
    assert backup.lend(1.0)


def test_the_first_result_counts_and_the_others_are_dropped(clock: SimpleNamespace) -> None:
    stored: list[Any] = []
    backup = Backup(0, lambda slot, tile: stored.append(tile))
    backup.put(lambda: stored.append("own"))
    backup.come_back({1: "other's"})
    backup.come_back({1: "a third one's"})
    backup.put(lambda: stored.append("own, but late"))
    backup.wait()
    assert backup.is_overtaken
    assert stored == ["own", "other's"]
    ended = Backup(0, lambda slot, tile: stored.append(tile))
    ended.end()
    ended.come_back({1: "late"})
    assert not ended.is_overtaken
    assert len(stored) == 2


def test_who_has_no_time_is_followed_by_the_next_and_who_cannot_after_a_while(clock: SimpleNamespace) -> None:
    offers = Offers()
    offers.begin("c/1")
    backup = Backup(0, lambda slot, tile: None)
    offers.share("c/1", 7, backup)
    clock.now = 10.0
    assert offers.lend("c/1") == (7,)  # who asks has nothing to compare with
    number, stage, task, _ = offers.lend("c/1", 7, 1.0) or ()
    assert stage == 7
    assert offers.lend("c/1", 7, 1.0) == (7,)
    offers.come_back("c/1", number, task, False)
    assert offers.lend("c/1", 7, 1.0) == (number, 7, task, None)
    offers.come_back("c/1", number, task, None)
    assert offers.lend("c/1", 7, 1.0) == (7,)
    clock.now = 20.1
    assert offers.lend("c/1", 7, 1.0) == (number, 7, task, None)
    offers.come_back("c/1", number, task, None)
    clock.now = 40.0  # each waits twice as long
    assert offers.lend("c/1", 7, 1.0) == (7,)


VALUES = numpy.random.default_rng(0).random((300, 24))
PLACES = numpy.random.default_rng(1).integers(0, 300, 900)
SPARSE = scipy.sparse.random_array((300, 300), density=0.05, rng=numpy.random.default_rng(2), format="csr")


def summed_rows(extents: Any, tiles: Any) -> Any:
    """A user's join: the tile's sums, at its columns."""
    return (0,), tiles[0].sum(axis=0)


def kept(x: Any) -> Any:
    """What is large of a matrix."""
    return x.reshape(-1)[x.reshape(-1) > 0.5]


def moved(np: Any, x: Any) -> Any:
    """Rows from here and there."""
    return np.concatenate([x, x[::-1]])[5:450:2]


Operands = Any
"""A matrix `x`, places `at` of its rows, and a sparse matrix `s`."""
KINDS: dict[str, tuple[set[type], Callable[[Any, Operands], Any]]] = {
    "stored": ({Fused}, lambda np, o: np.sqrt(o.x) + 1),
    "folded": ({Fused}, lambda np, o: (o.x * 2).sum(axis=0)),
    "of several results": ({Fused}, lambda np, o: np.sqrt(o.x) + o.x.sum(axis=0)),
    "combined": ({Combine}, lambda np, o: o.x.var(axis=0) * 2),
    "product": ({Fused}, lambda np, o: o.x.T @ o.x),
    "product of sums": ({Fused}, lambda np, o: (o.x + 1) @ (o.x.T * 2)),
    "sparse product": ({Fused}, lambda np, o: o.s @ o.x),
    "sparse": ({Fused}, lambda np, o: (o.s * 3) @ o.x),
    "sort": ({SortParts, MergeParts}, lambda np, o: np.sort(o.x.reshape(-1))),
    "argsort": ({SortParts, MergeParts}, lambda np, o: np.argsort(o.x.reshape(-1))),
    "sort in runs": ({SortParts, MergeParts}, lambda np, o: np.sort(o.x.reshape(-1) * 2)),
    "take": ({Fused}, lambda np, o: np.take(o.x, o.at, axis=0)),
    "compress": ({Join}, lambda np, o: kept(o.x)),
    "scan": ({ScanTotals, ScanTile}, lambda np, o: np.cumsum(o.x, axis=0)),
    "moved": (set(), lambda np, o: moved(np, o.x)),
    "function": (
        {Fused},
        lambda np, o: np.cbrt(o.x) if np is numpy else np.map(numpy.cbrt, o.x, dtype=float),
    ),
    "join": (
        {Join, Accumulate},
        lambda np, o: (
            o.x.sum(axis=0) if np is numpy else np.join_update(summed_rows, np.add, [o.x], [0], (24,))
        ),
    ),
}


def has_peers(run: Any) -> bool:
    """Whether several ranks have a share of the stage that runs."""
    boxes = [task_of(run.plan, run.plan.stages[run.index], rank).box for rank in range(run.plan.workers)]
    return sum(box is not None for box in boxes) > 1


class Held:
    """Holds one rank's shares before they begin, or before they store anything, until the end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rank: int, at: str) -> None:
        self.end = threading.Event()
        self.kinds: set[type] = set()
        """Of the stages that were held."""
        before = getattr(Executor, at)

        def held(executor: Executor, run: Any, *args: Any) -> None:
            if executor.rank == rank and run.backup and has_peers(run):
                self.kinds.add(type(run.plan.stages[run.index]))
                self.end.wait()
            before(executor, run, *args)

        monkeypatch.setattr(Executor, at, held)


@pytest.fixture(params=["handle", "put"])
def held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Held]]:
    """Holds a rank from now on."""
    monkeypatch.setattr(program, "BACKED_S", 0.0)
    monkeypatch.setattr(backups, "BACKUP_S", 0.02)
    found: list[Held] = []

    def begin(rank: int) -> Held:
        found.append(Held(monkeypatch, rank, request.param))
        return found[0]

    yield begin
    for one in found:
        one.end.set()


@pytest.mark.slow
@pytest.mark.some(8)
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_rank_is_held_at_is_done_by_another(kind: str, rank: int, held: Callable[[int], Held]) -> None:
    stages, program = KINDS[kind]
    wanted = program(numpy, SimpleNamespace(x=VALUES, at=PLACES, s=SPARSE))
    in_runs = (
        mock.patch.object(lines, "run_length", lambda n, *_: n // 3) if "runs" in kind else nullcontext()
    )
    with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0), in_runs:
        x, at, s = ((np.asarray(value) * 1).persist() for value in (VALUES, PLACES, SPARSE))
        hold = held(rank)
        found = numpy.asarray(program(np, SimpleNamespace(x=x, at=at, s=s)))
        assert stages <= hold.kinds
        assert not hold.end.is_set()
        ran = session.current().last_run
        assert ran is not None
        assert sum(stage.stolen for stage in ran[1].stages) > 0
    numpy.testing.assert_allclose(found, wanted)


class Written(Sink):
    """Counts who writes."""

    def __init__(self) -> None:
        self.writers: list[str] = []

    def write(self, block: Any, box: Any) -> None:
        """Be counted."""
        self.writers.append(threading.current_thread().name)

    def finish(self) -> None:
        """Nothing is to be put in place."""

    def give_up(self) -> None:
        """Nothing is left."""


def test_what_writes_outside_is_done_by_its_own_worker_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "BACKED_S", 0.0)
    monkeypatch.setattr(program, "LENT_FLOPS", 0)
    function = UserFunction(Written())
    with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
        x = (np.asarray(VALUES) * 1).persist()
        node = build.map_(function, x._node(), dtype=numpy.dtype(bool), params=("extent",))
        session.current().evaluate([build.fold("logical_and", node, (0, 1))])
        ran = session.current().last_run
        assert ran is not None
        made = program.Program(ran[0], 1)
    assert 0 not in made.backed | made.lends
    assert any(made.users)


@pytest.mark.parametrize("memory_bytes", [1 << 17, 1 << 30])
def test_what_workers_have_no_room_for_is_done_by_its_own_worker_alone(
    memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tiles would go through the memory of both; what each reads of a source and folds would not."""
    monkeypatch.setattr(program, "BACKED_S", 0.0)
    backed: list[str] = []
    overtakable = executor.Executor.overtakable

    def noted(self: Any, run: Any, *args: Any) -> None:
        backed.append(run.plan.stages[run.index].name)
        overtakable(self, run, *args)

    monkeypatch.setattr(executor.Executor, "overtakable", noted)
    value = numpy.arange(300_000.0)
    limited = Profile(memory_bytes=memory_bytes, limited=True)
    with running_on(SimulatedBackend(3, limited)), config.override(tiling="row", small_bytes=0):
        x = np.asarray(value)
        numpy.testing.assert_array_equal(np.sqrt(x), numpy.sqrt(value))
        assert bool(backed) == (memory_bytes > value.nbytes)
        backed.clear()
        numpy.testing.assert_allclose(np.sqrt(over(Recorder(value))).sum(), numpy.sqrt(value).sum())
        assert backed


def test_who_asks_when_all_is_done_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backups, "BACKUP_S", 0.0)
    monkeypatch.setattr(executor, "BACKUP_S", 0.0)
    asked = threading.Event()

    def borrow(ex: Executor, run: Any, rank: int, is_busy: Callable[[], bool]) -> None:
        asked.set()
        run.cancelled.wait()
        ex.check(run)

    def second(tile: Any) -> Any:
        if tile.flat[0] > 0:
            asked.wait()
        return tile

    monkeypatch.setattr(executor, "borrow", borrow)
    x = numpy.repeat([0.0, 1.0], 50)
    with running_on(SimulatedBackend(2)), config.override(tiling="row", small_bytes=0):
        found = numpy.asarray(np.map(second, x, dtype=float))
    numpy.testing.assert_array_equal(found, x)
