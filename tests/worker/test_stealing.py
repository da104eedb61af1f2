"""Tasks that idle workers take over: the ledger event by event, and answers that do not change by it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import spartan_ng as sp
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.config import config
from spartan_ng.costs.tuned import LENDING_S, NETWORK_BYTES_S, WORTH
from spartan_ng.worker.scheduling import backups, lending, program, stealing
from spartan_ng.worker.scheduling.stealing import Ledger, Offer, Offers
from spartan_ng.worker.stages import fused
from tests.sampling import examples
from tests.test_programs import running_on


def started(ntasks: int, seconds: float = 1.0) -> Ledger:
    """A ledger whose first task took so long."""
    ledger = Ledger(ntasks)
    task = ledger.take(0.0)
    assert task == 0
    ledger.finish(task, seconds)
    return ledger


def test_the_owner_takes_from_the_front_and_borrowers_from_the_back() -> None:
    ledger = started(5)
    assert ledger.take(1.0) == 1
    assert ledger.lend(1.0, 0) == 4
    assert ledger.lend(1.0, 0) == 3
    assert ledger.lend(1.0, 0) is None  # the last one that waits is the owner's
    assert ledger.take(1.0) == 2


def test_a_task_is_lent_only_where_it_takes_longer_than_its_way() -> None:
    assert Ledger(5).lend(0.0, 0) is None  # nobody knows yet what a task takes
    cheap = WORTH * LENDING_S / 2
    assert started(5, cheap).lend(1.0, 0) is None
    assert started(5).lend(1.0, NETWORK_BYTES_S) is None
    assert started(5).lend(1.0, NETWORK_BYTES_S // 10) == 4


def test_a_first_task_that_is_slow_tells_before_it_ends() -> None:
    ledger = Ledger(5)
    ledger.take(0.0)
    assert ledger.lend(0.001, 0) is None
    assert ledger.lend(0.5, 0) == 4


def test_a_result_that_comes_late_is_not_wanted() -> None:
    ledger = started(3)
    ledger.take(1.0)
    lent = Ledger.lend(started(3), 1.0, 0)
    assert lent == 2
    ledger = started(3)
    assert ledger.lend(1.0, 0) == 2
    assert ledger.take(1.0) == 1
    assert ledger.take(2.0) is None  # still with its borrower
    assert ledger.take(100.0) == 2  # overdue
    ledger.finish(1, 101.0)
    ledger.finish(2, 102.0)
    assert ledger.done
    assert not ledger.come_back(2, 102.0)
    assert ledger.stolen == 0


def test_a_borrower_that_fails_leaves_the_task_to_the_owner() -> None:
    ledger = started(3)
    assert ledger.lend(1.0, 0) == 2
    ledger.fail(2)
    assert [ledger.take(2.0), ledger.take(2.0), ledger.take(2.0)] == [1, 2, None]


def test_a_task_that_takes_three_times_as_long_as_the_others_did_is_done_by_others_too() -> None:
    ledger = started(2)
    assert ledger.take(1.0) == 1
    assert ledger.lend(3.9, 0) is None
    assert ledger.lend(4.1, 0) == 1
    assert ledger.lend(4.2, 0) is None  # one is enough
    assert ledger.come_back(1, 5.0)
    assert ledger.done
    ledger.finish(1, 100.0)
    assert ledger.stolen == 1


def test_the_owners_result_counts_where_it_was_first() -> None:
    ledger = started(2)
    ledger.take(1.0)
    assert ledger.lend(5.0, 0) == 1
    ledger.finish(1, 5.5)
    assert not ledger.come_back(1, 6.0)
    assert ledger.stolen == 0


def test_a_second_run_that_fails_leaves_the_task_to_its_owner_or_to_others() -> None:
    ledger = started(2)
    ledger.take(1.0)
    assert ledger.lend(5.0, 0) == 1
    ledger.fail(1)
    assert not ledger.done
    assert ledger.lend(6.0, 0) == 1


def test_what_borrowers_took_is_usual_too() -> None:
    ledger = started(3, 10.0)
    assert ledger.lend(10.0, 0) == 2
    assert ledger.take(10.0) == 1
    ledger.come_back(2, 12.0)
    assert ledger.lend(10.0 + 3.1 * 6.0, 0) == 1


@examples(200)
@given(st.integers(1, 12), st.integers(1, 4), st.lists(st.sampled_from("xsb"), max_size=30))
@example(10, 1, [*"sbbbbbbbbbx"])
def test_tasks_are_done_whoever_stands_still(ntasks: int, threads: int, borrowers: list[str]) -> None:
    """All threads of the owner do, and some of those who borrow, as others fail; what nobody has ended a task
    of, is run again as a whole: see `Offers.lend`."""
    ledger, now, away = Ledger(ntasks), 0.0, list[int]()
    own = [task for _ in range(threads) if (task := ledger.take(now)) is not None]
    for n in range(200):
        now = 2 * now + 1.0
        task = ledger.lend(now, 0)
        if task is None:
            continue
        what = borrowers[n] if n < len(borrowers) else "b"
        if what == "x":
            ledger.fail(task)
        elif what == "b":
            ledger.come_back(task, now)
        else:
            away.append(task)
    assert ledger.done if ledger.knows_usual else ntasks - len(own) < 2
    for task in away:
        ledger.come_back(task, now)  # they are late, and change nothing
    assert ledger.done == ledger.knows_usual or ntasks - len(own) < 2


@examples(200)
@given(st.integers(1, 12), st.lists(st.tuples(st.sampled_from("tlfbxw"), st.integers(0, 11)), max_size=120))
def test_every_task_is_done_in_the_end_and_counts_once(ntasks: int, events: list[tuple[str, int]]) -> None:
    ledger, now = Ledger(ntasks), 0.0
    own, away, accepted = set[int](), set[int](), list[int]()
    for event, which in events:
        now += 5.0 if event == "w" else 0.01
        if event == "t" and (task := ledger.take(now)) is not None:
            own.add(task)
        elif event == "l" and (task := ledger.lend(now, 0)) is not None:
            away.add(task)
        elif event == "f" and own:
            task = sorted(own)[which % len(own)]
            own.remove(task)
            ledger.finish(task, now)
            accepted.append(task)
        elif event in "bx" and away:
            task = sorted(away)[which % len(away)]
            away.remove(task)
            if event == "x":
                ledger.fail(task)
            elif ledger.come_back(task, now):
                accepted.append(task)
    for task in own:
        ledger.finish(task, now)
    while not ledger.done:  # borrowers that are gone keep nobody waiting
        now += 1000.0
        task = ledger.take(now)
        assert task is not None
        ledger.finish(task, now)
        accepted.append(task)
    assert {*accepted, *own} == set(range(ntasks))


def test_an_offer_that_is_over_takes_nothing_back() -> None:
    accepted: list[tuple[int, Any]] = []
    offers = Offers()
    offer = Offer(
        0, 3, 0, lambda task: f"needed for {task}", lambda task, result: accepted.append((task, result))
    )
    assert offers.lend("c/1") == ()  # it may begin here later than elsewhere
    offers.begin("c/1")
    assert offers.lend("c/1") == ()
    offer.ledger.finish(offer.ledger.take(0.0) or 0, 1.0)
    offers.publish("c/1", offer)
    number, stage, task, needed = offers.lend("c/1", -1, 0.0) or ()
    assert (stage, task, needed) == (0, 2, "needed for 2")
    offers.come_back("c/1", number + 1, task, "of another offer")
    free = Offer(0, 3, 0, lambda task: None, lambda task, result: None, is_free=True)
    offers.publish("c/1", free)
    assert offers.lend("c/1") == (0,)
    offers.publish("c/1", None)
    offers.come_back("c/1", number, task, "late")
    offers.end("c/1")
    offers.come_back("c/1", number, task, "later")
    assert accepted == []
    assert offers.lend("c/1") is None


def test_owners_wait_for_what_is_lent_and_stop_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(stealing, "time", SimpleNamespace(monotonic=lambda: clock.now))
    results: dict[int, Any] = {}
    offer = Offer(0, 3, 0, lambda task: None, results.__setitem__)
    looks = []

    def stopped() -> bool:
        """Asked once for each task that is taken, and while nothing is left but what is lent."""
        looks.append(offer.ledger.done)
        if len(looks) == 5:
            offer.come_back(2, "done")
        return False

    tasks = offer.mine(stopped)
    assert next(tasks) == 0
    clock.now = 0.2
    lent = offer.lend()
    assert lent == (2, None)
    assert next(tasks) == 1
    assert list(tasks) == []
    assert offer.ledger.done
    assert results == {2: "done"}
    assert looks == [False] * 5
    other = Offer(0, 2, 0, lambda task: None, results.__setitem__)
    other.ledger.take(0.0)
    other.ledger.take(0.0)
    assert list(other.mine(lambda: True)) == []


N = 1 << 18


class Held:
    """A function that keeps the owner of small values until another rank has brought back a task."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came_back = threading.Event()
        self._here = threading.local()
        result, come_back = lending._result, Offers.come_back

        def borrowed(*args: Any) -> Any:
            self._here.borrows = True
            try:
                return result(*args)
            finally:
                self._here.borrows = False

        def noticed(*args: Any) -> None:
            come_back(*args)
            self.came_back.set()

        monkeypatch.setattr(lending, "_result", borrowed)
        monkeypatch.setattr(Offers, "come_back", noticed)

    def __call__(self, x: Any) -> Any:
        if x.size and x.flat[0] < N / 3 and not getattr(self._here, "borrows", False):
            self.came_back.wait()
        return np.sqrt(x)


@pytest.fixture(autouse=True)
def parts_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Passes lend parts: none is compiled, and no whole share run again (`test_backups` has them)."""
    monkeypatch.setattr(backups, "BACKUP_S", float("inf"))
    with config.override(kernels="interpret"):
        yield


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    function = Held(monkeypatch)
    yield function
    function.came_back.set()


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("workers", [2, 3])
def test_idle_ranks_take_tasks_over_and_answers_are_the_same(
    workers: int, reproducible: bool, held: Held
) -> None:
    value = np.arange(N, dtype=np.float64)
    found, stolen = [], []
    for backend in (SimulatedBackend(workers), SimulatedBackend(1)):
        with running_on(backend), config.override(tiling="row", small_bytes=0, reproducible=reproducible):
            x = (sp.asarray(value) * 1).persist()
            folded = np.asarray(sp.map(held, x, dtype=float).sum())
            stolen.append(_stolen() > 0)
            if backend.workers > 1:
                held.came_back.clear()
            stored = np.asarray(sp.map(held, x, dtype=float))
            stolen.append(_stolen() > 0)
        found.append((folded, stored))
    assert stolen == [True, True, False, False]
    np.testing.assert_array_equal(found[0][1], np.sqrt(value))
    np.testing.assert_allclose(found[0][0], np.sqrt(value).sum())
    assert found[0][0] == found[1][0] or not reproducible


def test_the_same_sum_to_the_bit_whether_tasks_were_stolen_or_not(
    monkeypatch: pytest.MonkeyPatch, held: Held
) -> None:
    value = np.arange(N, dtype=np.float64)
    sums = []
    for _ in range(2):
        with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
            x = (sp.asarray(value) * 1).persist()
            sums.append(float(sp.map(held, x, dtype=float).sum()))
            stolen = _stolen()
        assert (stolen > 0) == (len(sums) == 1)
        monkeypatch.setattr(Ledger, "lend", lambda *args: None)
    assert sums[0] == sums[1]


@pytest.mark.parametrize("fold", [False, True])
def test_a_function_that_does_not_come_back_is_called_elsewhere_too(
    monkeypatch: pytest.MonkeyPatch, fold: bool
) -> None:
    monkeypatch.setattr(stealing, "WORTH", 0.0)
    first, end = threading.Lock(), threading.Event()

    def held_once(x: Any) -> Any:
        if x.size and x.flat[0] == 0 and first.acquire(blocking=False):
            end.wait()
        return np.sqrt(x)

    value = np.arange(4 * N, dtype=np.float64)
    try:
        with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
            x = (sp.asarray(value) * 1).persist()
            made = [sp.map(held_once, x, dtype=float)]
            found = np.asarray(made.pop().sum() if fold else made.pop())
            assert _stolen() > 0
        assert first.locked()
        assert not end.is_set()
    finally:
        end.set()
    np.testing.assert_allclose(found, np.sqrt(value).sum() if fold else np.sqrt(value))


def test_a_worker_that_stands_still_in_a_sum_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stealing, "WORTH", 0.0)
    monkeypatch.setattr(program, "LENT_FLOPS", 1)
    first, end, work = threading.Lock(), threading.Event(), lending._work

    def slow_once(*args: Any) -> Callable[[lending.Blocks], Any]:
        done = work(*args)

        def slow(blocks: lending.Blocks) -> Any:
            if blocks[0][0][0] == 0 and first.acquire(blocking=False):
                end.wait()
            return done(blocks)

        return slow

    monkeypatch.setattr(lending, "_work", slow_once)
    value = np.arange(4 * N, dtype=np.float64)
    try:
        with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
            found = np.asarray(sp.sqrt((sp.asarray(value) * 1).persist()).sum())
            assert _stolen() > 0
        assert first.locked()
        assert not end.is_set()
    finally:
        end.set()
    np.testing.assert_allclose(found, np.sqrt(value).sum())


def test_what_a_borrower_cannot_do_fails_at_its_owner(held: Held) -> None:
    def fails_late(x: Any) -> Any:
        """It fails on what is stolen first."""
        held(x)
        if x.size and N // 4 < x.flat[-1] < N // 3:
            raise ValueError("too slow")
        return x

    with running_on(SimulatedBackend(3)), config.override(tiling="row", small_bytes=0):
        x = (sp.arange(N, dtype=np.float64) * 1).persist()
        with pytest.raises(sp.errors.UserFunctionError, match="too slow"):
            sp.map(fails_late, x, dtype=float).sum().compute()


def _stolen() -> int:
    """Tasks of the last run that others than their owners did."""
    ran = session.current().last_run
    assert ran is not None
    return sum(s.stolen for s in ran[1].stages)


@pytest.mark.parametrize("most", [1 << 12, 1 << 16, 1 << 40])
def test_what_is_lent_is_little(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task goes with all rows that its places may name, not with its part of them: both workers' memory
    would hold these on their way."""
    asked: list[lending.Lending | None] = []

    def noted(*args: Any) -> lending.Lending | None:
        asked.append(lending.lending(*args))
        return asked[-1]

    monkeypatch.setattr(fused, "lending", noted)
    monkeypatch.setattr(lending, "copied_bytes", lambda: most)
    monkeypatch.setattr(program, "LENT_FLOPS", 0)
    value, places = np.arange(N, dtype=np.float64), np.random.default_rng(0).permutation(N)
    with running_on(SimulatedBackend(2)), config.override(tiling="row", small_bytes=0):
        x, at = ((sp.asarray(a) * 1).persist() for a in (value, places))
        np.testing.assert_array_equal(np.asarray(x[at] * 2), value[places] * 2)
    assert asked
    assert any(lent is not None for lent in asked) == (most > value.nbytes)
    for lent in asked:
        if lent is not None:
            _, _, parts = lent.pack(0)
            assert sum(part.nbytes for part in parts) <= min(lent.nbytes, most)
