"""Plans as tasks of any engine: right answers, no more bytes than our own cluster, named errors."""

from __future__ import annotations

import gc
import os
import platform
import subprocess
import sys
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.backends.engines.protocol import Forgotten
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError
from spartan_ng.worker import tasks
from tests.engines.inline import InlineEngine
from tests.programs import programs
from tests.test_programs import check, running_on

rng = numpy.random.default_rng(0)
X = rng.random((120, 30))
I = rng.integers(0, 120, 90)  # noqa: E741
S = sparse.random_array((90, 70), density=0.05, format="csr", random_state=rng)

PROGRAMS = {
    "sums": lambda xp, x, i, s: (x * 2 + 1).sum(0),
    "product": lambda xp, x, i, s: x.T @ x,
    "scan": lambda xp, x, i, s: xp.cumsum(x, axis=0) * 2,
    "scan of all": lambda xp, x, i, s: xp.cumsum(x),
    "sort": lambda xp, x, i, s: xp.sort(x.reshape(-1)),
    "sort of few values": lambda xp, x, i, s: xp.sort((x * 3 // 1).reshape(-1)),
    "argsort": lambda xp, x, i, s: xp.argsort((x * 50 // 1).reshape(-1), kind="stable"),
    "rows by mask": lambda xp, x, i, s: x[x[:, 0] > 0.5],
    "elements by mask": lambda xp, x, i, s: x[x > 0.9],
    "lookup": lambda xp, x, i, s: x[i] + 1,
    "lookup of columns": lambda xp, x, i, s: x[:, i % 30],
    "assignment": lambda xp, x, i, s: _assigned(xp, x),
    "turned": lambda xp, x, i, s: (x.T[::-1] + 1).reshape(-1),
    "unique": lambda xp, x, i, s: xp.unique(x * 10 // 1),
    "median": lambda xp, x, i, s: xp.median(x, axis=0),
    "joined": lambda xp, x, i, s: xp.concatenate([x, x * 2])[::3],
    "sparse product": lambda xp, x, i, s: s @ x[:70],
    "sparse sums": lambda xp, x, i, s: (s * 2.0).sum(axis=0),
    "counted": lambda xp, x, i, s: xp.bincount(i, minlength=130),
    "divided by sums": lambda xp, x, i, s: x / (x.T @ x).sum(0) + x.max(0),
    "factors": lambda xp, x, i, s: x * (x.sum(1)[:, None] @ (x.sum(0) @ x.T)[None, :] @ x),
    "factorized": lambda xp, x, i, s: xp.linalg.norm(xp.linalg.qr(x)[1]),
}


def _assigned(xp, x):
    y = xp.array(x)
    y[3:90:2, 1:7] = 5.0
    return y


def arguments(xp):
    return (X, I, S) if xp is numpy else (np.array(X), np.array(I), np.asarray(S))


def check_one(name):
    """A program's answer is NumPy's."""
    found = numpy.asarray(PROGRAMS[name](np, *arguments(np)))
    numpy.testing.assert_allclose(found, PROGRAMS[name](numpy, *arguments(numpy)), rtol=1e-12)


@pytest.mark.some(10)
@pytest.mark.parametrize("slots", [1, 2, 3, 5])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kind_of_stage_is_a_task(name, shared, several, slots):
    with running_on(EngineBackend(InlineEngine(slots, several, shared))), config.override(small_bytes=0):
        check_one(name)


@pytest.mark.some(16)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_in_the_middle_of_a_message_is_moved_to_where_words_begin(name, several, monkeypatch):
    """NumPy copies such an operand in each product: an upload's every step would."""
    seen: list[Any] = []
    run = tasks._run_part

    def watched(plan, part, own, rounds, data):
        for one in data:
            seen.extend(getattr(one, "tiles", {0: one}).values())
        return run(plan, part, own, rounds, data)

    monkeypatch.setattr(tasks, "_run_part", watched)
    engine = InlineEngine(3, several, beside=True)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        check_one(name)
    arrays = [a for one in seen for a in (one if isinstance(one, list) else [one])]
    arrays = [a for one in arrays for a in ((one.data, one.indices) if sparse.issparse(one) else [one])]
    arrays = [a for a in arrays if isinstance(a, numpy.ndarray)]
    assert arrays
    assert all(a.flags.aligned for a in arrays)


@pytest.mark.slow
@settings(max_examples=25)
@given(programs(), st.sampled_from([1, 2, 3, 4, 7]), st.booleans(), st.booleans())
def test_programs_give_numpys_answers(program, slots, several, shared):
    with running_on(EngineBackend(InlineEngine(slots, several, shared))):
        check(program)


@pytest.mark.slow
@pytest.mark.parametrize("tiling", ["row", "column", "block", "duplicate"])
def test_answers_are_right_in_every_tiling(tiling):
    with running_on(EngineBackend(InlineEngine(4))), config.override(small_bytes=0, tiling=tiling):
        for name in PROGRAMS:
            check_one(name)


@pytest.mark.parametrize("name", ["sums", "product", "scan", "turned", "joined"])
def test_as_many_bytes_move_as_between_our_own_workers(name):
    moved = []
    for backend in (SimulatedBackend(4), EngineBackend(InlineEngine(4))):
        with running_on(backend), config.override(small_bytes=0):
            numpy.asarray(PROGRAMS[name](np, *arguments(np)))
            moved.append(session.current().moved_bytes)
    assert moved[0] == moved[1]


def kmeans_step(x, c):
    labels = np.argmin((x * x).sum(1)[:, None] - 2 * x @ c.T + (c * c).sum(1), axis=1)
    hot = (labels[:, None] == numpy.arange(len(c))) * 1.0
    return labels, numpy.asarray((hot.T @ x) / np.maximum(hot.sum(0), 1)[:, None])


@pytest.mark.parametrize(("several", "most"), [(False, 4 * 2 + 1), (True, 4 + 1)])
def test_what_is_little_takes_few_tasks(several, most):
    """A step of k-means: a task a rank, what is little of each where that is no object already, and a task
    for all stages behind them."""
    engine = InlineEngine(4, several)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x, c = np.array(numpy.tile(X, (100, 1))).persist(), X[:8]
        stages = []
        for _ in range(3):
            begun = len(engine.names)
            _labels, c = kmeans_step(x, c)
            names = engine.names[begun:]
            stages.append({name: names.count(name) for name in names})
    assert "upload" not in stages[-1], "the centers travel with the tasks"
    assert "read" not in stages[-1]
    assert "gather" not in stages[-1]
    assert sum(stages[-1].values()) <= most, stages[-1]


class Losing(InlineEngine):
    """Can lose all that it has, as dask does where a client had to connect anew, and not know it."""

    def __init__(self, slots):
        super().__init__(slots)
        self.made = []

    def submit(self, *args, **options):
        self.made.append(super().submit(*args, **options))
        return self.made[-1]

    def lose(self):
        for one in self.made:
            one.error = Forgotten("lost dependencies")


def test_what_is_lost_without_a_word_is_brought_again():
    """The program's own arrays, and plans; what only the engine had is computed again."""
    engine, a = Losing(3), rng.random(30_000)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = np.array(a)
        for _ in range(3):
            numpy.testing.assert_allclose((x * 2).sum(), (a * 2).sum())
            y = (x * 3).persist()
            numpy.testing.assert_array_equal(y, a * 3)
            engine.lose()
            numpy.testing.assert_array_equal(y + 1, a * 3 + 1)


@pytest.mark.slow
def test_what_takes_long_is_not_done_by_every_rank():
    engine = InlineEngine(4)
    h = rng.random((300, 300))
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling="row"):
        w, g = np.array(rng.random((3000, 300))).persist(), np.array(h).persist()
        (w @ (g @ g.T) + w).persist()
        stages = [name for name in engine.names if "contract" in name]
    assert sum(name.count("contract") for name in stages) <= 4 + 4


@pytest.mark.parametrize("several", [False, True])
def test_what_a_rank_goes_on_with_alone_is_no_object(several):
    """The ones and zeros of k-means are made by one stage, and read by the next of the same rank."""
    engine = InlineEngine(4, several)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = np.array(numpy.tile(X, (100, 1))).persist()
        kmeans_step(x, X[:20])
        before = engine.made_bytes
        labels, c = kmeans_step(x, X[:20])
        labels = numpy.asarray(labels)
    again, wanted = kmeans_step(numpy.tile(X, (100, 1)), X[:20])
    numpy.testing.assert_array_equal(labels, again)
    numpy.testing.assert_allclose(c, wanted)
    assert engine.made_bytes - before < len(x) * 20 * 8, "no more than the labels, and what is little"


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", ["sort", "lookup", "turned"])
def test_where_all_tasks_read_one_memory_no_task_cuts_a_tile(name, shared):
    engine = InlineEngine(4, several=True, shared=shared)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling="row"):
        x, i = numpy.tile(X, (300, 1)), numpy.tile(I, 300)
        found = numpy.asarray(PROGRAMS[name](np, np.array(x), np.array(i), S))
        numpy.testing.assert_array_equal(found, PROGRAMS[name](numpy, x, i, S))
    assert ("read" in engine.names) == (not shared)


def test_what_follows_a_merge_of_sorted_parts_is_in_its_task():
    """The parts are sorted, and merged by tasks that go on: their last result is no object in between."""
    engine = InlineEngine(4)
    x = rng.random(40_000)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0, tiling="row"):
        numpy.testing.assert_array_equal(np.sort(np.array(x)) * 2 + 1, numpy.sort(x) * 2 + 1)
    assert any(name.startswith("sort merge; ") for name in engine.names)


@pytest.mark.parametrize(
    ("rows", "columns", "kept"),
    [((0, 900, 1), (0, 40, 1), True), ((0, 90, 1), (0, 40, 1), False), ((0, 900, 1), (0, 30, 1), False)],
)
def test_a_region_keeps_a_tile_that_is_not_much_larger(rows, columns, kept):
    tile = rng.random((1000, 40))
    part = tasks.read(tasks.Made({0: tile}), 0, (rows, columns))
    numpy.testing.assert_array_equal(part, tile[slice(*rows), slice(*columns)])
    assert numpy.shares_memory(part, tile) == kept
    assert tile.flags.writeable
    assert part.flags.writeable != kept, "who reads it may not write into the tile"


def test_a_process_of_tasks_makes_tiles_where_others_were():
    with running_on(EngineBackend(InlineEngine(2))), config.override(small_bytes=0):
        x = (np.arange(2_000_000.0) + 1).persist()
        kept = tasks._recycler.free_bytes
        assert kept >= 8_000_000, "a tile of it, which the engine has copied"
        np.compute((x * 2 + 1)[-3:], (x * 3)[-1])
        assert tasks._recycler.free_bytes <= max(kept, tasks._recycler.peak_bytes)


def test_a_plan_of_one_worker_is_one_task():
    engine = InlineEngine(1)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        check_one("scan")
    assert len([name for name in engine.names if name not in ("plan", "upload", "pick", "gather")]) == 1


def test_what_is_little_brings_the_states_of_its_chunks():
    made = tasks.Made({1: X, 2: X[:1]}, {2: [[X[:1]]], 3: []})
    assert tasks.pick_tiles(made, (2,)).chunks == {2: made.chunks[2]}


@pytest.mark.parametrize("several", [False, True])
def test_what_is_kept_beside_little_results_is_read_again(several):
    """A pass makes an array and its sums; both are used, and the array outlives the step."""
    with running_on(EngineBackend(InlineEngine(3, several))), config.override(small_bytes=0):
        x = np.array(numpy.tile(X, (100, 1))).persist()
        y = x * 2
        total = numpy.asarray(y.sum(axis=0))
        numpy.testing.assert_allclose(total, 200 * X.sum(axis=0))
        numpy.testing.assert_array_equal(y[::7], numpy.tile(X * 2, (100, 1))[::7])


def test_a_program_that_comes_again_is_neither_planned_nor_sent_again():
    engine = InlineEngine(3)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = np.array(X).persist()
        for _ in range(3):
            (x * 2).sum().compute()
    assert engine.names.count("plan") <= 2


def test_a_bar_is_full_when_the_results_are_there_and_not_before():
    class Slow(InlineEngine):
        def follow(self, handles, report):
            assert handles
            report(0.25)

    backend: Any = EngineBackend(Slow(2))
    told = []
    with running_on(backend), config.override(small_bytes=0):
        run = backend.run
        backend.run = lambda plan, inputs, _: run(plan, inputs, lambda *done: told.append(done))
        numpy.testing.assert_allclose((np.array(X).T @ np.array(X)).sum(axis=0), (X.T @ X).sum(axis=0))
    stages = told[0][1]
    assert told == [(0.25 * stages, stages), (stages, stages)]


def test_tasks_have_the_names_of_stages():
    engine = InlineEngine(2)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        (np.array(X).T @ np.array(X)).compute()
        last = session.current().last_run
    assert last is not None
    assert {stage.name for stage in last[0].stages} <= set("; ".join(engine.names).split("; "))


@pytest.mark.slow
def test_an_array_that_nobody_needs_is_let_go():
    backend = EngineBackend(InlineEngine(2))
    with running_on(backend), config.override(small_bytes=0):
        x = (np.array(X) + 1).persist()
        assert backend._held
        del x
        gc.collect()
        assert not backend._held


def test_an_interrupt_leaves_what_was_there():
    class Interrupted(InlineEngine):
        def wait(self, handles):
            raise KeyboardInterrupt

        def cancel(self, handles):
            for handle in handles:
                handle.error = RuntimeError("cancelled")

    engine = InlineEngine(2)
    with running_on(EngineBackend(engine)), config.override(small_bytes=0):
        x = (np.array(numpy.tile(X, (100, 1))) * 2).persist()
        engine.__class__ = Interrupted
        with pytest.raises(KeyboardInterrupt):
            np.map(lambda block: block * 3, x, dtype=float).persist()
        numpy.testing.assert_array_equal(x, numpy.tile(X, (100, 1)) * 2)


def test_what_a_function_raises_comes_back_with_the_users_line():
    def fails(block):
        raise ValueError("mine")

    with (
        running_on(EngineBackend(InlineEngine(2))),
        config.override(small_bytes=0),
        pytest.raises(
            UserFunctionError,
            match=r"fails raised ValueError: mine\n(?s:.*)File \".*test_plans.py\", line \d+, in fails",
        ),
    ):
        np.map(fails, np.array(X), dtype=float).compute()


def test_an_engine_that_is_left_serves_its_arrays_to_the_end():
    engine = InlineEngine(2)
    before = session.current().backend
    session.use(EngineBackend(engine))
    try:
        with config.override(small_bytes=0):
            x = (np.array(X) + 1).persist()
        session.current().backend.retire()
        session.use(before)
        assert not engine.closed
        numpy.testing.assert_array_equal(x, X + 1)
        del x
        gc.collect()
        assert engine.closed
    finally:
        session.use(before)


FAULTS = """
import numpy, resource

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(300):
        numpy.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
import spartan_ng as np
from spartan_ng.backends.engines.backend import EngineBackend
from spartan_ng.config import config
from spartan_ng.worker import tasks
from tests.engines.inline import InlineEngine
from tests.test_programs import running_on

with running_on(EngineBackend(InlineEngine(2))), config.override(small_bytes=0):
    assert float((np.array(numpy.ones((60, 4))) * 2).sum()) == 480.0
print(before > 300 * 200, faults() < 300 * 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator's own affair")
def test_a_process_of_tasks_keeps_the_memory_of_blocks():
    """dask starts its workers with this setting; a block of a megabyte has 256 pages, each a fault."""
    environment = {
        **os.environ,
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "PYTHONPATH": os.pathsep.join(sys.path),
        "NUMPY_MADVISE_HUGEPAGE": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True True\n", done.stderr
