"""The projected peak: known before a plan runs, above what it takes, and an error where nothing can help."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy import sparse

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import memory, planner, session
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError, OutOfResources
from spartan_ng.kernels.compiled import trial
from spartan_ng.plan.peak import projected_peak
from spartan_ng.system import machine
from spartan_ng.worker.memory import pool, store
from spartan_ng.worker.stages import fused
from tests.programs import KINDS, Program, programs
from tests.sampling import examples
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((20_000, 50))


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


PROGRAMS = {
    "fold": lambda x: x.sum(axis=0),
    "stored": lambda x: x * 2 + 1,
    "two stages": lambda x: np.sort(x * 2, axis=0) + 1,
    "product": lambda x: x.T @ x,
    "scan": lambda x: np.cumsum(x, axis=0),
    "rows": lambda x: x[x[:, 0] > 0.5],
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_worker_takes_more_than_projected(name: str, workers: int) -> None:
    profile = Profile(memory_bytes=50_000_000, limited=True)
    with running_on(SimulatedBackend(workers, profile)):
        for x in (np.array(VALUE), over(Recorder(VALUE, (500, 50)))):
            y = PROGRAMS[name](x)
            projected = np.explain(y).projected_bytes
            backend = session.current().backend
            assert isinstance(backend, SimulatedBackend)
            np.persist(y)
            assert 0 < backend.peak_bytes <= projected * 1.15 + 2 * VALUE.nbytes // workers


_COUNTED = 512
"""Bytes from which on tiles count here; smaller ones, of which a worker has few at a time, never do."""


@contextmanager
def _counting_arrays(least_bytes: int) -> Iterator[None]:
    """Have workers' pools count arrays of so many bytes or more, and not what threads work on beside them,
    which `explain` says apart."""
    with ExitStack() as stack:
        for module in (pool, store):
            stack.enter_context(patch.object(module, "SHARED_BYTES", least_bytes))
        stack.enter_context(patch.object(fused, "room_for_lines", lambda ex, task: nullcontext()))
        yield


@pytest.mark.slow
@examples(300)
@given(
    program=programs(most=12, kinds=sorted({*KINDS} - {"mask"})),
    workers=st.sampled_from([1, 2, 3]),
    room=st.integers(0, 100_000),
    outside=st.booleans(),
)
def test_programs_under_any_budget_keep_to_what_is_projected(
    program: Program, workers: int, room: int, outside: bool
) -> None:
    """Tiles, what comes from other workers, and what is read at a time, by the count of the workers' pools;
    and the answers are NumPy's, wherever what has no room goes.

    Masks are counted by plans of their own, while a program is written down.
    """
    budget = room + 2 * sum(a.nbytes for a in program.inputs)
    backend = SimulatedBackend(workers, Profile(memory_bytes=budget, limited=True))

    def convert(a: Any) -> Any:
        return over(Recorder(a)) if outside and a.size else np.array(a)

    with running_on(backend), _counting_arrays(_COUNTED), numpy.errstate(all="ignore"):
        results = program.run(np, convert)
        try:
            projected = np.explain(*results).projected_bytes
        except MemoryBudgetError:
            reject()  # a product of which no part fits: told before anything runs
        found = np.compute(*results)
        if (ran := session.current().last_run) is not None:  # with steps that other arrays wait for
            projected = max(projected, projected_peak(ran[0], backend.profile).memory_bytes)
        assert backend.peak_bytes <= projected * 1.15 + 2 * _COUNTED
        expected = program.run(numpy, numpy.array)
    for a, b in zip(expected, found, strict=True):
        numpy.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True)


WHOLE = {
    "reshape": lambda x: x.reshape(3, -1),
    "shifted": lambda x: x[1:] * x[:-1],
    "turned": lambda x: x.transpose(2, 1, 0) * 2,
    "scan": lambda x: np.cumsum(x[::-1], axis=1),
    "concatenate": lambda x: np.concatenate([x, x[:3]]),
    "copy": lambda x: x.transpose(1, 2, 0),
    "sum": lambda x: x.T.sum(axis=(0, 2)),
    "all": lambda x: x.sum(),
    "lookup": lambda x: (-x)[[0]] + x,
}


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("name", WHOLE)
def test_what_is_put_together_counts_with_the_own_part_of_it(name: str, workers: int) -> None:
    """Of an operand that lies in several tiles a task has a copy, beside what has come of it."""
    value = numpy.random.default_rng(0).random((7, 3, 33))
    backend = SimulatedBackend(workers, Profile(memory_bytes=3 * value.nbytes, limited=True))
    with running_on(backend), _counting_arrays(64):
        negated = -over(Recorder(value))
        result = (WHOLE[name](negated), negated)
        projected = np.explain(*result).projected_bytes
        np.persist(*result)
        assert backend.peak_bytes <= projected * 1.15 + 2 * 64


def _assigned(x: Any) -> Any:
    """Parts of an array in others' places, of which each lies with another worker."""
    y = np.array(x)
    y[2:6], y[:, ::2] = x[8:12], x[:, 24:]
    return y


JOINED = {
    "twice": lambda x: np.concatenate([x, x]),
    "beside": lambda x: np.concatenate([x, x], axis=1),
    "several": lambda x: np.concatenate([x, x, x]),
    "tiled": lambda x: np.tile(x, (2, 2)),
    "stacked": lambda x: np.stack([x, x]),
    "reversed": lambda x: np.concatenate([x, x[::-1]]),
    "other": lambda x: np.concatenate([x, np.zeros(x.shape) + 1]),
    "made": lambda x: np.concatenate([-x, np.abs(x)]),
    "assigned": _assigned,
}
"""Of two stages one after the other at most: tiles of the first of more may stay for a slower worker."""


@pytest.mark.parametrize("budget", [3, 20])
@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("name", JOINED)
def test_what_joins_read_of_one_array_counts_as_often_as_it_is_there(
    name: str, workers: int, budget: int
) -> None:
    """Of sources, of what the same program makes, and of what is there: parts that a task sees may be more
    than its share, and those that it sees twice come once of sources, and twice of others."""
    value = numpy.random.default_rng(0).random((16, 48))
    for make in (lambda: over(Recorder(value)), lambda: -over(Recorder(value)), lambda: np.array(value)):
        backend = SimulatedBackend(workers, Profile(memory_bytes=budget * value.nbytes, limited=True))
        with running_on(backend), _counting_arrays(64):
            result = JOINED[name](make())
            projected = np.explain(result).projected_bytes
            np.persist(result)
            assert backend.peak_bytes <= projected + 2 * 64


@pytest.mark.parametrize("name", ["twice", "stacked", "several"])
def test_a_part_of_a_source_that_a_task_sees_twice_is_read_once(name: str) -> None:
    value = numpy.random.default_rng(0).random((16, 48))
    source = Recorder(value)
    with running_on(EmbeddedBackend(2)):
        np.persist(JOINED[name](over(source)))
    assert sum(numpy.prod([hi - lo for lo, hi in box]) for box in source.asked) == value.size


@pytest.mark.slow
@examples(200)
@given(
    program=programs(most=6, kinds=sorted({*KINDS} - {"mask"})),
    share=st.floats(0.05, 1.0),
    workers=st.sampled_from([0, 0, 1, 3]),
)
def test_arrays_in_memory_may_be_larger_than_the_budget(program: Program, share: float, workers: int) -> None:
    """The program has them in its hands, whatever the budget says; workers put them on disk."""
    budget = max(int(share * sum(a.nbytes for a in program.inputs)), 1)
    small = [patch.object(m, "SHARED_BYTES", _COUNTED) for m in (pool, store)]
    profile = Profile(memory_bytes=budget, limited=True)
    backend: Any = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, budget)
    with running_on(backend), small[0], small[1], numpy.errstate(all="ignore"):
        results = program.run(np, np.array)
        try:
            np.explain(*results)
        except MemoryBudgetError:
            reject()  # a product of which no part fits: told before anything runs
        found = np.compute(*results)
        expected = program.run(numpy, numpy.array)
    for a, b in zip(expected, found, strict=True):
        numpy.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_what_lies_outside_counts_what_is_read_at_a_time(tmp_path: Path) -> None:
    numpy.save(tmp_path / "x.npy", VALUE)
    assert np.explain(np.load(tmp_path / "x.npy").sum(axis=0)).projected_bytes < 1000
    with running_on(EmbeddedBackend(2, 4_000_000)):
        read = np.explain(over(Recorder(VALUE)).sum(axis=0)).projected_bytes
        assert 100_000 < read < 2_000_000
    with running_on(EmbeddedBackend(2)):
        assert "projected peak 16 MB" in str(np.explain(np.array(VALUE) + 1))


def test_what_threads_work_on_is_said_beside_arrays(tmp_path: Path) -> None:
    """Blocks, of little memory an eighth for all of them; no less than the lines of a transform; and no more
    than there is."""
    numpy.save(tmp_path / "x.npy", VALUE)
    with running_on(EmbeddedBackend(2, 800_000)):
        x = np.load(tmp_path / "x.npy")
        found = np.explain(x.sum(axis=0))
        assert found.working_bytes == found.to_dict()["working_bytes"] == 800_000 // 8
        assert "projected peak 400 B; threads work on up to 100 kB" in str(found)
        assert np.explain(np.abs(np.fft.fft(x, axis=0)).sum(axis=1)).working_bytes >= 2 * 2 * 16 * len(VALUE)
        assert np.explain(x[:2].sum(axis=0)).working_bytes < 5000


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 3])
def test_sparse_arrays_count_what_they_store(workers: int) -> None:
    """Chains of products with a matrix that, with all its zeros, no machine has room for."""
    n, budget = 300_000, 50_000_000
    nonzeros = (numpy.arange(1.0, 5.0), ([0, 7, 7, n - 1], [7, 0, 8, n - 1]))
    theirs = sparse.csr_array(nonzeros, (n, n))
    profile = Profile(memory_bytes=budget, limited=True)
    backend: Any = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, budget)
    backend.is_local = True
    with running_on(backend):
        ours, r, expected = np.asarray(theirs), np.full(n, 1.0), numpy.full(n, 1.0)
        for _ in range(3):
            r, expected = 0.85 * (ours @ r) + 0.15, 0.85 * (theirs @ expected) + 0.15
        found = np.explain(r)
        assert found.projected_bytes < budget
        for stage in found.stages:  # blocks of some columns would be slices of all rows
            assert "matmul" not in stage.operators[1:]
        numpy.testing.assert_allclose(r, expected)
        both = ours + ours
        assert both.format == "csr"
        assert np.explain(both).projected_bytes < budget


def test_sparse_results_lie_on_disk_where_it_is_said() -> None:
    theirs = sparse.random_array((1_000_000, 1), density=0.01, rng=1, format="csr")
    with running_on(EmbeddedBackend(2, 8 << 20)):
        ours = np.asarray(theirs)
        assert np.explain(ours * 2, np.abs(ours)).disk_bytes > 4_000_000
        for found, factor in zip(np.compute(ours * 2, np.abs(ours)), (2, 1), strict=True):
            assert (found != factor * theirs).nnz == 0


@pytest.mark.parametrize("workers", [0, 3])
def test_what_cannot_fit_is_told_before_anything_runs(workers: int) -> None:
    profile = Profile(memory_bytes=1_000_000, limited=True)
    source = Recorder(VALUE)
    backend: Any = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, 1_000_000)
    backend.is_local = True
    room = patch.object(planner, "free_disk_bytes", return_value=2_000_000)
    with running_on(backend), room:
        for program in (lambda x: x * 2, lambda x: np.sort(x, axis=0)):
            with pytest.raises(MemoryBudgetError, match=r"1,000,000 bytes.* disk has 2,000,000"):
                np.compute(program(over(source)))
    assert source.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 3])
def test_what_memory_has_no_room_for_goes_to_disk(workers: int) -> None:
    profile = Profile(memory_bytes=1_000_000, limited=True)
    backend = SimulatedBackend(workers, profile) if workers else EmbeddedBackend(2, 1_000_000)
    with running_on(backend):
        x = over(Recorder(VALUE))
        numpy.testing.assert_array_equal(x * 2, VALUE * 2)
        numpy.testing.assert_array_equal(np.sort(x, axis=0), numpy.sort(VALUE, axis=0))
        found = np.explain(x * 2)
        assert found.projected_bytes == 1_000_000
        assert 0.8 < (found.projected_bytes + found.disk_bytes) * max(workers, 1) / VALUE.nbytes < 1.5
        assert re.search(r"projected peak 1 MB.*, and \S+ MB on disk", str(found))


def test_the_budget_is_two_thirds_of_what_the_process_has() -> None:
    with config.override(memory_bytes=None):
        assert memory.budget_bytes() == memory.available_bytes() * 2 // 3
    with config.override(memory_bytes=12345):
        assert memory.budget_bytes() == 12345


def test_limits_of_control_groups_of_both_versions(tmp_path: Path) -> None:
    def write(place: str, text: str) -> None:
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)

    write("a/b/memory.max", "max\n")
    write("a/memory.max", "5000\n")
    assert list(machine.limits(tmp_path, "0::/a/b\n")) == [5000]
    write("memory/x/memory.limit_in_bytes", "7000\n")
    write("memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert min(machine.limits(tmp_path, "4:cpu,memory:/x\n3:cpuset:/y\n")) == 7000
    assert list(machine.limits(tmp_path, "0::/elsewhere\n")) == []
    write("memory.max", "3000\n")
    assert list(machine.limits(tmp_path, "0::/elsewhere\n")) == [3000]


_MEASURED = """
import os, sys, threading, numpy
import spartan_ng as np
from spartan_ng import session

def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return sum(int(l.split()[1]) * 1024 for l in lines if l.startswith(("RssAnon", "RssShmem")))

np.config.memory_bytes = 16_000_000
np.config.kernels = "interpret"  # a compiler's memory is no array's, and on a busy machine one starts
session.embed()
rows, file, row = 80_000, sys.argv[1], sys.argv[2]
box = lambda b: numpy.add.outer(numpy.arange(*b[0]) % 97, numpy.arange(*b[1]) * 0.5)
x = np.load(file) if row.startswith("mapped") else np.from_function(box, (rows, 100), chunks=(1000, 100))
work = {
    "fold": lambda x: numpy.asarray((x * 2 + 1).sum(axis=0)),
    "product": lambda x: numpy.asarray(x.T @ x),
    "large product": lambda x: numpy.asarray(x.T @ x),
    "deviations": lambda x: numpy.asarray(x.std(axis=0)),
    "file": lambda x: np.save(file + ".out.npy", x * 2 + 1),
    "store": lambda x: np.to_zarr(x * 2 + 1, file + ".zarr"),
    "scan": lambda x: np.save(file + ".out.npy", np.cumsum(x, axis=0)),
    "turned": lambda x: np.save(file + ".out.npy", x.T + 0),
    "reshaped": lambda x: np.save(file + ".out.npy", x.T.reshape(-1) + 0),
    "stored": lambda x: (x * 2 + 1).persist(),
    "sort": lambda x: np.save(file + ".out.npy", np.sort(x.reshape(-1))),
    "made sort": lambda x: np.save(file + ".out.npy", np.sort(x.reshape(-1) * 2 + 1)),
    "argsort": lambda x: np.argsort(x.reshape(-1)).persist(),
    "median": lambda x: numpy.asarray(np.median(x)),
}[row.removeprefix("mapped ")]
if row == "large product":
    x = np.from_function(box, (20_000, 400), chunks=(50, 400))
small = np.from_function(box, (2000, 100), chunks=(1000, 100))
work(small)  # libraries, threads and plans come first
peak, before, done = 0, anonymous(), threading.Event()

def watch():
    global peak
    while not done.is_set():
        peak = max(peak, anonymous())
        os.sched_yield()

thread = threading.Thread(target=watch)
thread.start()
work(x)
done.set()
thread.join()
print(max(peak - before, 0))
"""

MEASURED = (
    *("fold", "product", "large product", "deviations", "file", "store"),
    *("mapped fold", "mapped product", "mapped file", "mapped scan", "mapped turned", "mapped reshaped"),
    *("sort", "made sort", "median", "stored", "mapped sort", "mapped made sort", "mapped argsort"),
    "mapped median",
)


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("row", MEASURED)
def test_the_process_keeps_to_a_quarter_of_the_array(row: str, tmp_path: Path) -> None:
    """64 MB under a budget of 16 MB: what the process has for itself, by the kernel's word."""
    file = tmp_path / "x.npy"
    numpy.save(file, numpy.add.outer(numpy.arange(80_000) % 97, numpy.arange(100) * 0.5))
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(file), row], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 1.2 * 16_000_000


def test_a_tile_that_memory_has_no_room_for_lies_on_disk_as_a_whole(tmp_path: Path) -> None:
    """And is refused before anything runs where the disk has none for all of it."""
    value = numpy.random.default_rng(0).normal(size=900_000)
    numpy.save(tmp_path / "x.npy", value)
    with np.config.override(memory_bytes=1_600_000):
        y = np.cumsum(np.load(tmp_path / "x.npy"))
        full = patch.object(planner, "free_disk_bytes", return_value=value.nbytes - 1)
        with full, pytest.raises(MemoryBudgetError, match="bytes"):
            y.persist()
        assert value.nbytes <= np.explain(y).disk_bytes <= 1.1 * value.nbytes
        # There is room for the result, and none for a proof of the kernel beside it.
        with patch.object(trial, "on_disk", side_effect=OutOfResources("full")):
            numpy.testing.assert_allclose(y.persist().compute(), numpy.cumsum(value))
