"""What is unpacked besides what readers are given is part of the memory: projections count it, readers wait
for each other, and what can never fit is said before anything is read."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError
from spartan_ng.memory import READERS, readers_at_once, unpacked_bytes
from spartan_ng.sources.arrow_columns import ArrowColumns
from spartan_ng.sources.joined import Joined
from spartan_ng.sources.picked import Picked
from spartan_ng.sources.reading import read_in_turn
from spartan_ng.sources.source import Source
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).integers(0, 1000, (60_000, 8)).astype("f4")
_WORK = numpy.random.default_rng(1).random(200_000)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "max": lambda x: x.max(),
    "sums": lambda x: x.sum(axis=0, dtype="f8"),
    "a few rows": lambda x: x[12_345:12_350] + 1,
    "a column": lambda x: x[:, 3] * 2,
    "rows by an array": lambda x: x[numpy.array([5, 50_000])],
    "sorted": lambda x: np.sort(x, axis=0) if isinstance(x, np.ndarray) else numpy.sort(x, axis=0),
}


@pytest.fixture(autouse=True)
def lazy() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


def _hdf5(folder: Path, rows: int) -> Any:
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("x", data=VALUE, chunks=(rows, 8), compression="gzip", compression_opts=1)
    return np.from_hdf5(folder / "x.h5", "x")


def _zarr(folder: Path, rows: int) -> Any:
    zarr.create_array(folder / "x.zarr", data=VALUE, chunks=(rows, 8))
    return np.from_zarr(folder / "x.zarr")


def _arrow(folder: Path, rows: int) -> Any:
    table = pyarrow.table({f"c{k}": VALUE[:, k] for k in range(8)})
    pyarrow.feather.write_feather(table, folder / "x.arrow", chunksize=rows, compression="lz4")
    return np.from_arrow(folder / "x.arrow")


def _parquet(folder: Path) -> Any:
    table = pyarrow.table({f"c{k}": VALUE[:, k] for k in range(8)})
    pyarrow.parquet.write_table(table, folder / "x.parquet", row_group_size=len(VALUE))
    return np.from_parquet(folder / "x.parquet")


def _csv(folder: Path) -> Any:
    table = pyarrow.table({f"c{k}": VALUE[:, k] for k in range(8)})
    pyarrow.csv.write_csv(table, folder / "x.csv")
    return np.from_csv(folder / "x.csv", dtype="f4")


TABLES: dict[str, Callable[[Path], Any]] = {"parquet": _parquet, "csv": _csv}
KINDS: dict[str, Callable[[Path, int], Any]] = {"hdf5": _hdf5, "zarr": _zarr, "arrow": _arrow}


@pytest.mark.some(8)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_that_memory_has_no_room_for_is_said_before_anything_is_read(
    kind: str, program: str, tmp_path: Path
) -> None:
    x = KINDS[kind](tmp_path, len(VALUE))
    for budget in (VALUE.nbytes // 2, VALUE.nbytes * 5 // 4, VALUE.nbytes * 8):
        with config.override(memory_bytes=budget), running_on(EmbeddedBackend(2, budget)):
            if budget < VALUE.nbytes:
                with pytest.raises(MemoryBudgetError, match=r"unpack one chunk.*bytes.*smaller chunks"):
                    PROGRAMS[program](x).compute()
                continue
            y = PROGRAMS[program](x)
            said = np.explain(y)
            assert said.projected_bytes + said.working_bytes >= VALUE.nbytes  # of one chunk
            assert "s besides reading\n" in str(said)
            assert "besides" not in str(np.explain(PROGRAMS[program](np.array(VALUE))))
            numpy.testing.assert_array_equal(y, PROGRAMS[program](VALUE))


@pytest.mark.slow
@pytest.mark.some(8)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", ["parquet", "csv", "dear"])
def test_what_goes_on_with_less_is_never_refused(kind: str, program: str, tmp_path: Path) -> None:
    """Whatever the memory of those who plan and of those who read."""
    small, large = VALUE.nbytes // 4, VALUE.nbytes * 8
    for planning, reading in ((small, small), (large, small), (small, large)):
        with config.override(memory_bytes=planning), running_on(EmbeddedBackend(2, reading)):
            x = over(UnpackingRecorder(VALUE, large * 2)) if kind == "dear" else TABLES[kind](tmp_path)
            numpy.testing.assert_array_equal(PROGRAMS[program](x), PROGRAMS[program](VALUE))
            assert np.explain(PROGRAMS[program](x)).projected_bytes <= reading


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("kind", KINDS)
def test_small_chunks_are_read_as_ever(kind: str, program: str, tmp_path: Path) -> None:
    x = KINDS[kind](tmp_path, 3000)
    with config.override(memory_bytes=4_000_000), running_on(EmbeddedBackend(2, 4_000_000)):
        numpy.testing.assert_array_equal(PROGRAMS[program](x), PROGRAMS[program](VALUE))


def test_chunks_that_are_not_packed_need_not_fit(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=VALUE, chunks=VALUE.shape)
    x = np.from_hdf5(tmp_path / "x.h5", "x")
    budget = VALUE.nbytes // 2
    with config.override(memory_bytes=budget), running_on(EmbeddedBackend(2, budget)):
        for program in PROGRAMS.values():
            numpy.testing.assert_array_equal(program(x), program(VALUE))


class UnpackingRecorder(Recorder):
    """One that unpacks something for each box, and knows how many do that at a time."""

    def __init__(self, value: Any, beside: int) -> None:
        super().__init__(value)
        self.beside_bytes = beside
        self.most = self._now = 0
        self._lock = threading.Lock()

    def read(self, box: Any) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        numpy.sort(_WORK)  # others may come meanwhile, and do where they are let
        try:
            with self._lock:
                return super().read(box).copy()
        finally:
            with self._lock:
                self._now -= 1


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("several", ["joined", "picked", "alone"])
@pytest.mark.parametrize("share", [1, 2, 3, 5, 40])
def test_no_more_read_at_a_time_than_have_room(share: int, several: str) -> None:
    budget = 4_000_000
    with config.override(memory_bytes=budget):
        source = UnpackingRecorder(VALUE, budget // share)
        wanted: Any = source
        if several == "joined":
            wanted = Joined([source, source])
        if several == "picked":
            wanted = Picked(source, 0, numpy.arange(0, len(VALUE), 7))
        assert wanted.beside_bytes == source.beside_bytes
        boxes = [((k * 100, k * 100 + 100), (0, 8)) for k in range(24)]
        with ThreadPoolExecutor(8) as pool:
            [*pool.map(lambda box: read_in_turn(wanted, box), boxes)]
        assert source.most <= max(1, unpacked_bytes() // source.beside_bytes)
        assert readers_at_once(source.beside_bytes) == max(1, min(READERS, share // 4))


@pytest.mark.parametrize("share", [2, 9, 40])
@pytest.mark.parametrize("program", PROGRAMS)
def test_projections_have_what_readers_unpack(program: str, share: int) -> None:
    budget = 8_000_000
    with config.override(memory_bytes=budget), running_on(EmbeddedBackend(2, budget)):
        plain, packed = (over(UnpackingRecorder(VALUE, beside)) for beside in (0, budget // share))
        less, more = (np.explain(PROGRAMS[program](x)) for x in (plain, packed))
        grown = more.projected_bytes + more.disk_bytes - less.projected_bytes - less.disk_bytes
        assert budget // share * readers_at_once(budget // share) >= grown > 0
        assert grown >= budget // share or less.disk_bytes


def test_a_chunk_that_has_no_room_is_not_read_at_once_either() -> None:
    source = UnpackingRecorder(VALUE[:100], 5_000_000)
    source.whole_bytes = 5_000_000
    with config.override(memory_bytes=4_000_000, small_bytes=1 << 20):
        with pytest.raises(MemoryBudgetError, match="5,000,000 bytes"):
            numpy.asarray(over(source))
        assert not source.asked


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_what_others_unpack_meanwhile_is_not_counted(
    compression: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Arrow file is looked through while others take memory of pyarrow: a mapped one has none."""
    table = pyarrow.table({f"c{k}": VALUE[:, k] for k in range(8)})
    pyarrow.feather.write_feather(table, tmp_path / "x.arrow", compression=compression)
    own, others = ArrowColumns._reader, list[Any]()

    class Disturbed:
        def __init__(self, reader: Any) -> None:
            self.reader = reader

        def get_batch(self, number: int) -> Any:
            others.append(pyarrow.allocate_buffer(VALUE.nbytes * 9, pyarrow.system_memory_pool()))
            return self.reader.get_batch(number)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.reader, name)

    monkeypatch.setattr(ArrowColumns, "_reader", lambda source, pool: Disturbed(own(source, pool)))
    source = ArrowColumns(tmp_path / "x.arrow")
    assert others
    assert source.whole_bytes <= source.beside_bytes < VALUE.nbytes * 2
    assert (source.whole_bytes > 0) == (compression == "lz4")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_waits_for_no_reader_of_its_parent() -> None:
    """Whose thread it has not."""
    begun, over_now = threading.Event(), threading.Event()

    class Held(Source):
        """Takes all that may be unpacked, and reads as long as it is told to."""

        shape, dtype, beside_bytes = (3,), numpy.dtype(float), unpacked_bytes() + 1

        def read(self, box: Any) -> Any:
            begun.set()
            over_now.wait()
            return numpy.zeros(3)

    source = Held()
    reader = threading.Thread(target=read_in_turn, args=(source, ((0, 3),)))
    reader.start()
    begun.wait()
    child = os.fork()
    if not child:
        signal.alarm(60)  # which ends it where it waits
        over_now.set()
        os._exit(int(read_in_turn(source, ((0, 3),)).sum()))
    over_now.set()
    reader.join()
    assert os.waitpid(child, 0)[1] == 0
