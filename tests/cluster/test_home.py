"""What stays on the driver of a cluster, because its arrays are there: the same answers, and no array is sent
before that pays."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.arrays import ArrayRef
from spartan_ng.config import Config, config
from spartan_ng.costs import Profile
from spartan_ng.graph import build
from spartan_ng.graph.node import topological
from spartan_ng.home import Home
from spartan_ng.session import Session
from tests.cluster.conftest import start
from tests.test_programs import running_on
from tests.waiting import until

A = numpy.random.default_rng(0).random((600, 500))
"""Larger than what is small here."""
LONG = numpy.ones(8_000_000)
"""Worth several threads."""


class Priced:
    """A planner that says what each plan takes."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def plan(self, roots, order, workers):
        return SimpleNamespace(plan=None), []

    def predicted_s(self, plan):
        return self.seconds


class Prices(Home):
    """A home where everything takes what is said."""

    def __init__(self, here_s: float, there_s: float, sending_s: float) -> None:
        profile = SimpleNamespace(move_ns=lambda nbytes: sending_s * 1e9, part_s=float)
        there: Any = Priced(there_s)
        super().__init__(SimpleNamespace(profile=profile, workers=4), there, lambda backend: None)
        self.priced: Any = Priced(here_s)

    def _may_gain(self) -> bool:
        return True

    def asked(self, *leaves: ArrayRef):
        roots, order = program(*leaves)
        return self.bargain(roots, order, lambda: self.priced)


def program(*leaves: ArrayRef):
    nodes = [build.data(ref) for ref in leaves]
    root = build.fold("add", nodes[0], range(nodes[0].ndim))
    for node in nodes[1:]:
        root = build.map_("add", root, build.fold("add", node, range(node.ndim)))
    return [root], topological([root])


def leaf(value=A) -> ArrayRef:
    return ArrayRef(value.shape, value.dtype, value=value)


@pytest.fixture(autouse=True)
def may_stay(nothing_stays_on_the_driver):
    with config.override(disabled_passes=frozenset(), small_bytes=1 << 20):
        yield


@given(
    here_s=st.floats(1e-4, 10),
    there_s=st.floats(1e-4, 10),
    sending_s=st.floats(0, 10),
    runs=st.integers(1, 60),
)
def test_renting_costs_at_most_twice_the_best(here_s, there_s, sending_s, runs):
    """However often a program comes: beyond what workers would take, and beside one program's share."""
    at, ref = Prices(here_s, there_s, sending_s), leaf()
    spent, sent = 0.0, False
    for _ in range(runs):
        struck = None if sent else at.asked(ref)
        if struck is None:
            spent += there_s + (0.0 if sent else sending_s)
            sent = True
        else:
            at.bill(struck)
            spent += here_s
    best = min(runs * here_s, sending_s + runs * there_s)
    assert spent <= 2 * best + 1e-9
    if here_s <= there_s:
        assert not sent


def test_what_an_array_has_cost_counts_for_every_program_over_it():
    at, a, b = Prices(3.0, 1.0, 5.0), leaf(), leaf(A + 1)
    at.bill(at.asked(a))
    at.bill(at.asked(a, b))  # a and b share what it costs
    assert at.asked(a) is not None  # 3 so far, 5 with this one
    at.bill(at.asked(a))
    assert at.asked(a) is None
    assert at.asked(b) is not None


@pytest.mark.parametrize(("here_s", "stays"), [(0.5, True), (3.0, False)])
def test_small_arrays_have_their_price_too(here_s, stays):
    """A job of the workers takes longer than some milliseconds of NumPy's work."""
    assert (Prices(here_s, 1.0, 1.0).asked(leaf(A[:3])) is not None) is stays


def windows_of(xp, a):
    return xp.lib.stride_tricks.sliding_window_view(a, 50, axis=0)


SHOWN = {
    "a mean of short windows": lambda xp, a: xp.lib.stride_tricks.sliding_window_view(a, 4, 0).mean(axis=-1),
    "a mean of windows": lambda xp, a: windows_of(xp, a).mean(axis=-1),
    "windows and a kernel": lambda xp, a: windows_of(xp, a) @ xp.linspace(-1, 1, 50),
    "their extremes, some of them": lambda xp, a: windows_of(xp, a)[::5].max(axis=-1),
    "a product of them": lambda xp, a: (windows_of(xp, a) * xp.linspace(-1, 1, 50)).sum(axis=-1),
    "a deviation": lambda xp, a: windows_of(xp, a).std(axis=-1),
    "their places": lambda xp, a: windows_of(xp, a).argmax(axis=-1),
    "what is stretched": lambda xp, a: xp.broadcast_to(a, (50, *a.shape)).sum(axis=0),
}


def test_lines_of_what_stays_are_walked_over_where_they_are():
    """A step of the graph for each would be thousands, to be planned."""
    with running_on(SimulatedBackend(3)):
        spans = [row.max() - row.min() for row in np.array(A) + 1]
        numpy.testing.assert_allclose(np.array(spans), numpy.ptp(A + 1, axis=1))
        assert session.current().last_run is None
        home: Any = session.current()._home
        plan, _ = home.here().last_run
        assert len(plan.stages) < len(A) / 4


@pytest.mark.parametrize("name", SHOWN)
def test_what_shows_an_array_again_counts_what_it_takes(name):
    """Many times as many elements as there are in memory are no reason to send it."""
    with running_on(SimulatedBackend(3)):
        found = SHOWN[name](np, np.array(A)).persist()
        assert session.current().last_run is None
        numpy.testing.assert_allclose(numpy.asarray(found), SHOWN[name](numpy, A))


@pytest.mark.parametrize("options", [{"small_bytes": 0}, {"disabled_passes": frozenset({"home"})}], ids=str)
def test_it_can_be_switched_off(options):
    with config.override(**options):
        assert Prices(0.0, 1.0, 1.0).asked(leaf()) is None


@pytest.fixture(params=["simulated", "processes"])
def workers(request):
    before = session.current().backend
    if request.param == "simulated":
        backend: Any = SimulatedBackend(3)
        session.use(backend)
        yield session.current()
        session.use(before)
        backend.close()
        return
    for cluster in start(2):
        backend = cluster.connect()
        session.use(backend)
        yield session.current()
        session.use(before)
        backend.close()


def lies_here(array) -> bool:
    return array._leaf().value is not None and array._leaf().backend is None


PROGRAMS = {
    "a product with a vector": lambda xp, a: a @ a[0],
    "maps and a fold": lambda xp, a: (xp.exp(-a) * 2 + a).sum(axis=1),
    "a product": lambda xp, a: a.T @ a + 1,
    "a sort": lambda xp, a: xp.sort(a, axis=1),
    "a scan": lambda xp, a: xp.cumsum(a * 2, axis=0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_over_the_drivers_arrays_stay(workers, name):
    a = np.array(A)
    found = PROGRAMS[name](np, a).persist()
    assert lies_here(found)
    assert lies_here(a)
    numpy.testing.assert_allclose(numpy.asarray(found), PROGRAMS[name](numpy, A))


def test_what_workers_have_stays_with_them(workers):
    with config.override(disabled_passes=frozenset({"home"})):
        there = (np.array(A) * 2).persist()
    for found in (there + 1, there + np.array(A), there.sum(axis=0)):
        assert not lies_here(found.persist())


def test_users_functions_and_what_grows_are_for_the_workers(workers):
    called = np.map(lambda tile: tile + 1, np.array(A)).persist()
    grown = (np.array(A)[:, :, None] * np.arange(6.0)).persist()
    assert not lies_here(called)
    assert not lies_here(grown)


def test_explain_shows_the_plan_that_would_run(workers):
    total = (np.array(A) * 2).sum()
    assert np.explain(total).workers == 1
    with config.override(disabled_passes=frozenset({"home"})):
        assert np.explain(total).workers == workers.backend.workers


def test_the_log_says_why(workers, caplog):
    with config.override(debug=3), caplog.at_level("INFO", logger="spartan_ng.debug"):
        (np.array(A) * 2).sum().persist()
    assert "stayed on the driver" in caplog.text


def test_retiring_lets_the_drivers_threads_go(workers):
    (np.array(LONG) * 2 + 1).persist()
    threads = threading.active_count()
    workers.retire()
    until(lambda: threading.active_count() < threads)


def test_what_stays_keeps_to_a_workers_budget_where_the_driver_has_none() -> None:
    cluster = Session(SimulatedBackend(2, Profile(workers=2, memory_bytes=20_000_000, limited=True)))
    with config.override(memory_bytes=None):
        assert cluster._on_driver().backend.profile.memory_bytes == 20_000_000
    cluster = Session(SimulatedBackend(2, Profile(workers=2, memory_bytes=20_000_000, limited=True)))
    with config.override(memory_bytes=30_000_000):
        assert cluster._on_driver().backend.profile.memory_bytes == 30_000_000
    with config.override(memory_bytes=None):
        assert not Session(SimulatedBackend(2))._on_driver().backend.profile.limited


def test_the_driver_keeps_to_as_much_as_a_worker() -> None:
    """What NumPy works on at once is a part of that; an option that is set stays, and all is as before when
    programs run elsewhere."""
    profile = Profile(workers=2, memory_bytes=16_000_000, limited=True)
    small = Config().small_bytes
    with config.override(small_bytes=small):
        with running_on(SimulatedBackend(2, profile)):
            assert (config.memory_bytes, config.small_bytes) == (16_000_000, 1_000_000)
            with running_on(SimulatedBackend(2, replace(profile, memory_bytes=32_000_000))):
                assert (config.memory_bytes, config.small_bytes) == (32_000_000, 2_000_000)
        assert (config.memory_bytes, config.small_bytes) == (None, small)
    with config.override(memory_bytes=50_000_000, small_bytes=7), running_on(SimulatedBackend(2, profile)):
        assert (config.memory_bytes, config.small_bytes) == (50_000_000, 7)


def test_what_stays_follows_the_options() -> None:
    cluster = Session(SimulatedBackend(2, Profile(workers=2, memory_bytes=20_000_000, limited=True)))
    for threads, memory_bytes in ((1, 30_000_000), (2, 40_000_000), (2, None)):
        with config.override(threads=threads, memory_bytes=memory_bytes):
            here: Any = cluster._on_driver().backend
            assert (here.threads, here.profile.memory_bytes) == (threads, memory_bytes or 20_000_000)


def test_mapped_files_are_the_workers_however_they_are_opened(tmp_path: Path) -> None:
    """Else they would be the driver's own memory, which is sent, or for whose sake a program stays."""
    numpy.save(tmp_path / "x.npy", numpy.arange(100_000.0))
    with running_on(SimulatedBackend(2)):
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        assert not x.flags.writeable
        ref = x._node().data
        assert ref is not None
        assert ref.source is not None
        assert x.sum() == 100_000 * 99_999 / 2
