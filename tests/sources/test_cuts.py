"""Where files are cut over workers: in the order of their bytes, since a few of a page cost all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from spartan_ng.costs import Profile
from spartan_ng.sources.mapped import MappedFile, npy_file
from tests.test_programs import running_on

WORKERS = 2
ROWS, COLUMNS = 50_000, 100
PROFILE = Profile(task_ns=0)
"""Stages of this size are worth both workers."""
FOLDS: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(axis=0),
    "std": lambda x: x.std(axis=0),
    "max": lambda x: x.max(axis=0),
    "sums of rows": lambda x: x.sum(axis=1),
    "sum": lambda x: (x * 2).sum(),
}


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", FOLDS)
def test_each_worker_reads_its_own_part_of_a_file(name: str, turned: bool, tmp_path: Path) -> None:
    """Also where the file has the transpose in Fortran's order: the same bytes."""
    value = numpy.random.default_rng(0).random((ROWS, COLUMNS))
    numpy.save(tmp_path / "x.npy", value.T if turned else value)
    file = npy_file(str(tmp_path / "x.npy"))
    assert file.order == ("F" if turned else "C")
    with running_on(SimulatedBackend(WORKERS, PROFILE)):
        for x in (np.load(file.path), over(Unmapped(file))):
            y = FOLDS[name](x.T if turned else x)
            first = np.explain(y).stages[0]
            read_s = PROFILE.outside_ns(value.nbytes // WORKERS) / 1e9
            assert read_s < first.predicted_seconds < 1.8 * read_s
            for grid, _, seconds in first.alternatives:  # parts of rows cost pages, which are the whole file
                assert seconds > (1.8 * read_s if grid != first.grid else 0)
            assert sorted(map(int, first.grid.split("x"))) == [1, WORKERS]
            numpy.testing.assert_allclose(y, FOLDS[name](value))


class Unmapped(MappedFile):
    """A file whose boxes are read one by one, as where a process cannot map it."""

    def __init__(self, file: MappedFile) -> None:
        super().__init__(file.path, file.shape, file.dtype, file.offset, file.order)

    def mapped(self) -> None:  # type: ignore[override]
        return None

    def read(self, box: Any) -> Any:
        """A view of a map."""
        return MappedFile.mapped(self)[tuple(slice(*b) for b in box)]


@pytest.mark.parametrize(
    ("shape", "order", "chunks"),
    [
        ((1000, 100), "C", (81, 100)),
        ((100, 1000), "F", (100, 81)),
        ((7, 10**6), "C", (1, 8192)),
        ((5, 6, 7), "C", (5, 6, 7)),
        ((), "C", ()),
        ((0, 3), "C", (1, 3)),
    ],
)
def test_a_file_is_read_best_by_runs_of_pages(shape: Any, order: Any, chunks: Any, tmp_path: Path) -> None:
    numpy.save(tmp_path / "x.npy", numpy.zeros(shape, order=order))
    assert npy_file(str(tmp_path / "x.npy")).chunks == chunks
