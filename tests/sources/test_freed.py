"""What reading leaves to allocators goes back, and nothing is imported that is not needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.sources import reading
from tests.sources.recorder import Recorder

VALUE = numpy.arange(64_000.0).reshape(-1, 8)


@pytest.mark.parametrize("beside", [0, 100])
@pytest.mark.parametrize("budget", [VALUE.nbytes, 4 * VALUE.nbytes, 100 * VALUE.nbytes])
def test_free_memory_goes_back_while_it_is_a_part_of_the_budget(budget: int, beside: int) -> None:
    """Where something is unpacked at all: what comes as it is leaves nothing."""
    source = Recorder(VALUE)
    source.beside_bytes = beside
    with mock.patch.object(reading, "give_back") as given, config.override(memory_bytes=budget):
        reading._ROOM.begin_anew()
        for k in range(0, len(VALUE), 100):
            reading.read_in_turn(source, ((k, k + 100), (0, 8)))
    most = budget // 16
    assert given.call_count <= VALUE.nbytes // most
    assert (given.call_count + 1) * (most + 6400) >= VALUE.nbytes or not beside
    assert given.call_count == 0 or beside


_SUMS = """
import sys
import spartan_ng as np
for file in sys.argv[1:]:
    print(np.load(file).sum().item())
print("pandas" in sys.modules)
"""


@pytest.mark.slow
def test_tables_of_numbers_are_read_without_pandas(tmp_path: Path) -> None:
    """Which pyarrow imports to make NumPy's arrays: half a second, and 40 MB."""
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, feather, parquet

    columns = {"a": numpy.arange(100, dtype="f4"), "b": numpy.arange(100, dtype="i2")}
    table = arrow.table(columns)
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=30)
    feather.write_feather(table, tmp_path / "x.feather", chunksize=30)
    csv.write_csv(table, tmp_path / "x.csv")
    files = [str(tmp_path / f"x.{kind}") for kind in ("parquet", "feather", "csv")]
    words = [sys.executable, "-c", _SUMS, *files]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert [*map(float, said[:-1])] == [9900.0] * 3
    assert said[-1] == "False"


@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "?", "M8[ms]"])
@pytest.mark.parametrize("lacks", [False, True])
def test_columns_of_several_pieces_are_put_together(dtype: str, lacks: bool, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    values = numpy.arange(100).astype("i1" if dtype != "M8[ms]" else "i8").astype(dtype)
    mask = (numpy.arange(100) % 7 == 3) & lacks
    parquet.write_table(
        arrow.table({"a": arrow.array(values, mask=mask)}), tmp_path / "x.parquet", row_group_size=30
    )
    if lacks and dtype in ("i1", "u8", "?"):
        with pytest.raises(np.errors.SourceError, match="lacks"):
            numpy.asarray(np.from_parquet(tmp_path / "x.parquet", "a"))
        return
    expected = values.copy()
    if lacks:
        expected[mask] = "NaT" if dtype == "M8[ms]" else numpy.nan
    with config.override(memory_bytes=1 << 12):
        found = numpy.asarray(np.from_parquet(tmp_path / "x.parquet", "a"))
    numpy.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
