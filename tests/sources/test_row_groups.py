"""Parquet's row groups that are larger than the memory: what pyarrow has of them while they are unpacked."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import spartan_ng as np
from spartan_ng.sources.columns import ParquetColumns

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, COLUMNS = 300_000, 6


def test_a_row_group_is_not_in_memory_as_a_whole_before_it_is_unpacked(tmp_path: Path) -> None:
    value = numpy.random.default_rng(0).random((ROWS, COLUMNS))
    file = tmp_path / "x.parquet"
    table = pyarrow.table({f"c{k}": value[:, k] for k in range(COLUMNS)})
    parquet.write_table(table, file, row_group_size=ROWS, use_dictionary=False, data_page_size=1 << 14)
    del table
    pool = pyarrow.default_memory_pool()
    before = pool.bytes_allocated()
    with np.config.override(memory_bytes=4_000_000):
        source = ParquetColumns(file)
        for lo in (0, 1000, ROWS // 2, ROWS - 1000, 500):
            found = source.read(((lo, lo + 1000), (0, COLUMNS)))
            numpy.testing.assert_array_equal(found, value[lo : lo + 1000])
            assert pool.bytes_allocated() - before < value.nbytes // 2
        numpy.testing.assert_allclose(np.asarray(np.load(str(file)).sum(axis=0)), value.sum(axis=0))
