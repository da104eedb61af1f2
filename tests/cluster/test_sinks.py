"""Real workers write a file at once; who is killed meanwhile leaves the old one, or a right new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session as sessions
from spartan_ng.api.files import saving, sinks
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.sinks import Hdf5File, NpyFile, ZarrStore
from tests.cluster.conftest import alive, await_no_litter, litter, once, start
from tests.waiting import Gate, until

VALUE = numpy.random.default_rng(0).random((3001, 40))
OLD = VALUE[:50] - 1
WORKERS = 4

_GATE = "SPARTAN_NG_TEST_GATE"
"""Where the gate of the sinks below lies, for who makes them."""


class _Held:
    """What a sink does besides: each block waits at a gate when half of it is written."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.gate = Gate(Path(os.environ[_GATE]))

    def write(self, block: Any, box: Any) -> None:
        (lo, hi), *rest = box
        half = (hi - lo) // 2
        if half:
            super().write(block[:half], ((lo, lo + half), *rest))  # type: ignore[misc]
        self.gate.enter()
        super().write(block, box)  # type: ignore[misc]


class HeldNpy(_Held, NpyFile): ...


class HeldZarr(_Held, ZarrStore): ...


class HeldHdf5(_Held, Hdf5File): ...


SUFFIXES = [".npy", ".zarr", ".h5"]


def hold(patch: pytest.MonkeyPatch, gate: Path) -> None:
    """Have what is written from now on wait at a gate."""
    patch.setenv(_GATE, str(gate))
    patch.setattr(saving, "NpyFile", HeldNpy)
    patch.setattr(saving, "_SHARE", 1 << 40)
    patch.setattr(sinks, "ZarrStore", HeldZarr)
    patch.setattr(sinks, "Hdf5File", HeldHdf5)


def read(box: Any) -> Any:
    """Elements of a source."""
    return VALUE[tuple(slice(*b) for b in box)]


def found(path: Path) -> Any:
    """What other libraries read from a file."""
    if path.suffix == ".npy":
        return numpy.load(path)
    if path.suffix == ".zarr":
        zarr = pytest.importorskip("zarr")
        return zarr.open_array(path)[...]
    with pytest.importorskip("h5py").File(path) as file:
        return file["data"][...]


def write(path: Path) -> None:
    """Twice the elements to a file; a chunk of zarr's lies in parts of two workers."""
    x = np.from_function(read, VALUE.shape) * 2
    if path.suffix == ".zarr":
        np.to_zarr(x, path, chunks=(170, 40))
    else:
        np.save(path, x)


@pytest.fixture
def four() -> Iterator[LocalCluster]:
    """Four workers, none of which is started again."""
    for cluster in start(WORKERS, restart=False):
        client = cluster.connect()
        before = sessions.current().backend
        sessions.use(client)
        with config.override(small_bytes=0):
            yield cluster
        sessions.use(before)
        client.close()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_four_workers_write_at_once(
    four: LocalCluster, suffix: str, gate: Gate, tmp_path, monkeypatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / f"x{suffix}"
    np.save(path, OLD)
    hold(monkeypatch, tmp_path / "gate")
    between: list[Any] = []

    def look() -> None:
        between.append(found(path))
        gate.open()

    once(lambda: len(set(gate.arrived)) == WORKERS, look)  # all of them have half a block in the file
    write(path)
    assert set(gate.arrived) == {p.pid for p in four.workers}
    numpy.testing.assert_array_equal(between[0], OLD)
    numpy.testing.assert_array_equal(found(path), VALUE * 2)
    assert os.listdir(folder) == [path.name]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_a_killed_worker_had_half_written_is_written_again(
    four: LocalCluster, suffix: str, gate: Gate, tmp_path, monkeypatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / f"x{suffix}"
    np.save(path, OLD)
    hold(monkeypatch, tmp_path / "gate")

    def kill() -> None:
        os.kill(four.workers[1].pid, signal.SIGKILL)
        gate.open()

    once(lambda: len(set(gate.arrived)) == WORKERS, kill)
    write(path)
    numpy.testing.assert_array_equal(found(path), VALUE * 2)
    assert os.listdir(folder) == [path.name]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_workers_that_are_all_killed_leave_the_old_file(
    four: LocalCluster, suffix: str, gate: Gate, tmp_path, monkeypatch
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / f"x{suffix}"
    np.save(path, OLD)
    hold(monkeypatch, tmp_path / "gate")

    def kill() -> None:
        for process in four.workers:
            os.kill(process.pid, signal.SIGKILL)

    once(lambda: len(set(gate.arrived)) == WORKERS, kill)
    with config.override(timeout_s=0.1), pytest.raises(np.errors.WorkerLost):
        write(path)
    numpy.testing.assert_array_equal(found(path), OLD)
    assert os.listdir(folder) == [path.name]


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_write_is_not_blamed_for_workers_that_die(four: LocalCluster, suffix: str, tmp_path: Path) -> None:
    """Two that died one after the other were laid at the sink's door, as if it were a function of the
    user's that ends the processes that run it."""
    plain, runs = sessions.Session.run, []

    def dies(*args: Any) -> Any:
        runs.append(args)
        if len(runs) < 3:
            raise np.errors.WorkerDied("a worker died")
        return plain(*args)

    path = tmp_path / f"x{suffix}"
    with mock.patch.object(sessions.Session, "run", dies):
        write(path)
    assert len(runs) == 3
    numpy.testing.assert_array_equal(found(path), VALUE * 2)


_PROGRAM = """
import sys
from pathlib import Path
import pytest
import spartan_ng as np
from tests.cluster import test_sinks
from tests.cluster.conftest import pids

np.config.small_bytes = 0
with pytest.MonkeyPatch.context() as patch, np.cluster(test_sinks.WORKERS) as cluster:
    test_sinks.hold(patch, Path(sys.argv[2]))
    print(*pids(cluster._processes), flush=True)
    test_sinks.write(Path(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_killed_program_leaves_the_old_file(suffix: str, gate: Gate, tmp_path) -> None:
    """Its workers end with it, in the middle of their blocks; the next program writes the file."""
    before = litter()
    path = tmp_path / f"x{suffix}"
    np.save(path, OLD)
    command = [sys.executable, "-c", _PROGRAM, str(path), str(tmp_path / "gate")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        master, *workers = map(int, process.stdout.readline().split())
        until(lambda: set(gate.arrived) == {*workers} or process.poll() is not None)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert len(workers) == WORKERS
    gate.open()
    until(lambda: not any(alive(p) for p in (master, *workers)))
    await_no_litter(before)
    numpy.testing.assert_array_equal(found(path), OLD)
    np.save(path, VALUE)
    numpy.testing.assert_array_equal(found(path), VALUE)
