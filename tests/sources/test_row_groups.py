"""Parquet's row groups that are larger than the memory: what pyarrow has of them while they are unpacked."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.errors import SourceError
from spartan_ng.sources import columns
from spartan_ng.sources.columns import ParquetColumns
from tests.test_programs import running_on

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, COLUMNS = 300_000, 6

MANY = 48
"""Columns, of each of which pyarrow has a dictionary and pages."""


def test_a_row_group_is_not_in_memory_as_a_whole_before_it_is_unpacked(tmp_path: Path) -> None:
    value = numpy.random.default_rng(0).random((ROWS, COLUMNS))
    file = tmp_path / "x.parquet"
    table = pyarrow.table({f"c{k}": value[:, k] for k in range(COLUMNS)})
    parquet.write_table(table, file, row_group_size=ROWS, use_dictionary=False, data_page_size=1 << 14)
    del table
    pool = pyarrow.system_memory_pool()
    before = pool.bytes_allocated()
    with np.config.override(memory_bytes=4_000_000):
        source = ParquetColumns(file)
        for lo in (0, 1000, ROWS // 2, ROWS - 1000, 500):
            found = source.read(((lo, lo + 1000), (0, COLUMNS)))
            numpy.testing.assert_array_equal(found, value[lo : lo + 1000])
            assert pool.bytes_allocated() - before < value.nbytes // 2
        numpy.testing.assert_allclose(np.asarray(np.load(str(file)).sum(axis=0)), value.sum(axis=0))


@pytest.mark.parametrize("dtype", ["f4", "u2", "i8", "c16"])
def test_row_groups_on_disk_are_cast_as_others_are(
    dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = numpy.arange(6000).reshape(1000, 6)
    file = tmp_path / "x.parquet"
    kinds = ["i8", "f8", "u1", "?", "f4", "i2"]
    columns_of = {f"c{k}": value[:, k].astype(kind) for k, kind in enumerate(kinds)}
    parquet.write_table(pyarrow.table(columns_of), file)
    expected = numpy.stack([column.astype(dtype) for column in columns_of.values()], axis=1)
    monkeypatch.setattr(columns, "one_go_bytes", lambda share: 0)
    monkeypatch.setattr(columns, "piece_bytes", lambda: 64)
    with np.config.override(memory_bytes=1_000_000):
        source = ParquetColumns(file, dtype=dtype)
        numpy.testing.assert_array_equal(source.read(((10, 900), (0, 6))), expected[10:900])
        assert len(source.opened[2]) == 1


@pytest.mark.parametrize("kind", ["?", "U4", "S4", "M8[D]", "m8[s]"])
def test_elements_of_any_kind_are_put_on_disk(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = (numpy.arange(2000) % 100).reshape(1000, 2).astype(kind)
    file = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"a": value[:, 0].tolist(), "b": value[:, 1].tolist()}), file)
    monkeypatch.setattr(columns, "one_go_bytes", lambda share: 0)
    monkeypatch.setattr(columns, "piece_bytes", lambda: 64)
    with np.config.override(memory_bytes=1_000_000):
        source = ParquetColumns(file)
        numpy.testing.assert_array_equal(source.read(((10, 900), (0, 2))), value[10:900])
        assert len(source.opened[2]) == 1


def test_what_lacks_in_row_groups_on_disk_is_told_to_who_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.parquet"
    lacking = [*range(900), None, *range(901, 1000)]
    parquet.write_table(pyarrow.table({"a": list(range(1000)), "b": lacking}), file)
    monkeypatch.setattr(columns, "one_go_bytes", lambda share: 0)
    monkeypatch.setattr(columns, "piece_bytes", lambda: 64)
    with np.config.override(memory_bytes=1_000_000):
        source = ParquetColumns(file, dtype="i8")
        assert (source.read(((10, 900), (0, 2)))[:, 1] == range(10, 900)).all()
        with pytest.raises(SourceError, match="column 'b' lacks 1 elements"):
            source.read(((890, 910), (0, 2)))
        assert numpy.isnan(ParquetColumns(file, dtype="f8").read(((890, 910), (0, 2)))[10, 1])


def test_a_few_rows_at_the_beginning_are_unpacked_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are there before all of the row group would be on disk."""
    value = numpy.arange(40_000.0).reshape(10_000, 4)
    file = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({f"c{k}": value[:, k] for k in range(4)}), file)
    monkeypatch.setattr(columns, "one_go_bytes", lambda share: 0)
    with np.config.override(memory_bytes=1_000_000):
        source = ParquetColumns(file)
        for _ in range(2):
            numpy.testing.assert_array_equal(source.read(((2, 7), (0, 4))), value[2:7])
        numpy.testing.assert_array_equal(source.read(((0, 2000), (1, 3))), value[:2000, 1:3])
        assert not source.opened[2]
        for box in ((0, 9000), (3, 5), (9000, 10_000)):
            numpy.testing.assert_array_equal(source.read((box, (0, 4))), value[slice(*box)])
        assert len(source.opened[2]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("work", [lambda x: x.sum(axis=0), lambda x: (x * 2 + 1)[::100]])
def test_columns_are_not_unpacked_beside_each_other(
    work: Callable[[Any], Any], groups: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pyarrow and NumPy have no more than the budget while a file of four times as much is read."""
    value = numpy.random.default_rng(0).random((ROWS // 4, MANY))
    file = tmp_path / "x.parquet"
    table = pyarrow.table({f"c{k}": value[:, k] for k in range(MANY)})
    parquet.write_table(table, file, row_group_size=-(-len(value) // groups))
    del table
    pool, seen = pyarrow.system_memory_pool(), list[int]()
    before, read = pool.bytes_allocated(), ParquetColumns.read

    def watched(source: ParquetColumns, box: Any) -> Any:
        found = read(source, box)
        seen.append(pool.bytes_allocated() - before)
        return found

    monkeypatch.setattr(ParquetColumns, "read", watched)
    limit = value.nbytes // 4
    with np.config.override(memory_bytes=limit), running_on(EmbeddedBackend(2, limit)):
        numpy.asarray(work(np.load(str(file))[:1000]))
        seen.clear()
        tracemalloc.start()
        try:
            found = numpy.asarray(work(np.load(str(file))))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    numpy.testing.assert_allclose(found, work(value))
    assert peak + max(seen) <= limit
