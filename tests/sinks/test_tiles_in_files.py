"""A tile that goes to a file as it is, and that memory has no room for, lies there: it is written once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from unittest import mock

import h5py
import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import planner, scratch
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.optimizer.fusion import labels
from spartan_ng.sinks import raw
from spartan_ng.system import files, mapping
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

LINE = numpy.random.default_rng(0).integers(0, 99, 300_000) / 8
LINE[::1000] = numpy.nan
BUDGET = LINE.nbytes // 6


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    with (
        config.override(small_bytes=0, memory_bytes=BUDGET),
        mock.patch.object(mapping, "_DESCRIBED", 0),
        running_on(EmbeddedBackend(2)),
    ):
        yield


class Written:
    """Bytes that the system is asked to write, of which `copied` by sinks."""

    def __init__(self) -> None:
        self.bytes = self.copied = 0

    def __enter__(self) -> Self:
        self._patches = [
            mock.patch.object(module, "write_at", self._counted(module is raw)) for module in (scratch, raw)
        ]
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *error: object) -> None:
        for patch in self._patches:
            patch.stop()

    def _counted(self, copies: bool) -> Any:
        def counted(descriptor: int, data: memoryview, offset: int) -> None:
            self.bytes += len(data)
            self.copied += len(data) * copies
            files.write_at(descriptor, data, offset)

        return counted


def mapped(folder: Path, value: Any) -> Any:
    numpy.save(folder / "in.npy", value)
    return np.load(folder / "in.npy", mmap_mode="r")


@pytest.mark.parametrize("dtype", ["f8", ">f8", "f4", "i8", "M8[s]"])
def test_a_sort_writes_its_runs_and_its_result(tmp_path: Path, dtype: str) -> None:
    line = numpy.nan_to_num(LINE, nan=7).astype(dtype) if dtype in ("i8", "M8[s]") else LINE.astype(dtype)
    x = mapped(tmp_path, line)
    with config.override(memory_bytes=line.nbytes // 6), Written() as written:
        np.save(tmp_path / "out.npy", np.sort(x))
    found = numpy.load(tmp_path / "out.npy")
    assert found.dtype == line.dtype
    numpy.testing.assert_array_equal(found, numpy.sort(line))
    assert (written.bytes, written.copied) == (2 * line.nbytes, 0)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 3])
def test_each_worker_writes_its_ranks(tmp_path: Path, workers: int) -> None:
    x = over(Recorder(LINE))
    backend: Any = SimulatedBackend(workers, Profile(memory_bytes=BUDGET, limited=True))
    backend.is_local = True
    with running_on(backend), mock.patch.object(labels, "_LONG_LINE_BYTES", 0), Written() as written:
        np.save(tmp_path / "out.npy", np.sort(x))
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "out.npy"), numpy.sort(LINE))
    assert (written.bytes, written.copied) == (2 * LINE.nbytes, 0)


def test_a_dataset_of_an_hdf5_file_is_such_a_file(tmp_path: Path) -> None:
    x = mapped(tmp_path, LINE)
    with Written() as written:
        np.to_hdf5(np.sort(x), tmp_path / "out.h5", "line")
    with h5py.File(tmp_path / "out.h5") as file:
        numpy.testing.assert_array_equal(file["line"][:], numpy.sort(LINE))
    assert (written.bytes, written.copied) == (2 * LINE.nbytes, 0)


def test_the_disk_needs_room_for_runs_alone(tmp_path: Path) -> None:
    """The file has its room by then."""
    x = mapped(tmp_path, LINE)
    with mock.patch.object(planner, "free_disk_bytes", return_value=LINE.nbytes):
        np.save(tmp_path / "out.npy", np.sort(x))
        with pytest.raises(MemoryBudgetError, match="disk has"):
            np.save(tmp_path / "out.npy", np.sort(x) * 2)


@pytest.mark.parametrize("what", ["of its order", "turned", "of a part", "of sums"])
def test_what_does_not_go_as_it_is_is_copied(tmp_path: Path, what: str) -> None:
    """And right."""
    make = {
        "of its order": lambda np, x: np.argsort(x, kind="stable"),
        "turned": lambda np, x: np.sort(x)[::-1],
        "of a part": lambda np, x: np.sort(x)[5:-100_000],
        "of sums": lambda np, x: np.sort(x) * 2 + 1,
    }[what]
    np.save(tmp_path / "out.npy", make(np, mapped(tmp_path, LINE)))
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "out.npy"), make(numpy, LINE))


def test_what_the_program_keeps_is_its_own(tmp_path: Path) -> None:
    """Who writes to the file later changes no array."""
    line = np.sort(mapped(tmp_path, LINE))
    total = np.nansum(line)
    np.save(tmp_path / "out.npy", line)
    numpy.load(tmp_path / "out.npy", mmap_mode="r+")[:] = 0
    numpy.testing.assert_array_equal(line, numpy.sort(LINE))
    assert float(total) == numpy.nansum(LINE)


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    numpy.save(tmp_path / "out.npy", numpy.arange(3))
    x = mapped(tmp_path, LINE)
    with (
        mock.patch.object(scratch, "write_at", side_effect=OSError(5, "no")),
        pytest.raises(Exception, match="no"),
    ):
        np.save(tmp_path / "out.npy", np.sort(x))
    assert numpy.load(tmp_path / "out.npy").tolist() == [0, 1, 2]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.npy", "out.npy"]
