"""Elements that lack in columns of every type: what stands for them, or what is said, and when."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError

_TEXTS, _NUMBERS = ["a", None, "bcd", "", "e"], [5, None, 6, 7, 5]
COLUMNS: dict[str, tuple[Any, Any]] = {
    "i8": (pyarrow.array(_NUMBERS, pyarrow.int8()), -1),
    "u64": (pyarrow.array(_NUMBERS, pyarrow.uint64()), 0),
    "f32": (pyarrow.array([1.5, None, 2.0, 3.0, 4.0], pyarrow.float32()), 9.0),
    "bool": (pyarrow.array([True, None, False, True, True]), True),
    "text": (pyarrow.array(_TEXTS), "lacks"),
    "large": (pyarrow.array(_TEXTS, pyarrow.large_string()), ""),
    "view": (pyarrow.array(_TEXTS, pyarrow.string_view()), "?"),
    "bytes": (pyarrow.array([b"a", None, b"b", b"cc", b""]), b"zzz"),
    "view of bytes": (pyarrow.array([b"a", None, b"b", b"cc", b""], pyarrow.binary_view()), b""),
    "coded": (pyarrow.array(_TEXTS).dictionary_encode(), "none"),
    "codes of numbers": (pyarrow.array(_NUMBERS).dictionary_encode(), -5),
    "dates": (
        pyarrow.array([1, None, 2, 3, 4], pyarrow.timestamp("ms")),
        numpy.datetime64("2020-01-01", "ms"),
    ),
    "lists": (pyarrow.array([[1, 2], None, [3, 4], [5, 6], [7, 8]], pyarrow.list_(pyarrow.int32(), 2)), 0),
    "in lists": (
        pyarrow.array([[1, 2], [None, 2], [3, 4], [5, 6], [7, 8]], pyarrow.list_(pyarrow.float64(), 2)),
        0.5,
    ),
    "decimals": (pyarrow.array([Decimal(1), None, Decimal(2), Decimal(3), Decimal(4)]), 2.5),
}
READERS = {".parquet": np.from_parquet, ".arrow": np.from_arrow}


def written(column: Any, suffix: str, folder: Path) -> Path:
    """A file of two batches, with nothing lacking in the last."""
    path = folder / f"x{suffix}"
    table = pyarrow.table({"c": column})
    if suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=3)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=3)
    return path


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("kind", COLUMNS)
def test_a_value_stands_for_what_lacks(kind: str, suffix: str, tmp_path: Path) -> None:
    column, fill = COLUMNS[kind]
    path = written(column, suffix, tmp_path)
    dtype = float if kind == "decimals" else None
    found = READERS[suffix](path, "c", fill=fill, dtype=dtype)
    rows = [fill if v is None else v for v in column.to_pylist()]
    if "lists" in kind:
        rows = [
            [fill if v is None else v for v in row] if isinstance(row, list) else [row] * 2 for row in rows
        ]
    wanted = numpy.array(rows, found.dtype)
    assert found.shape == wanted.shape
    numpy.testing.assert_array_equal(found.compute(), wanted)
    numpy.testing.assert_array_equal(found[1:4].compute(), wanted[1:4])
    if wanted.ndim == 2:
        numpy.testing.assert_array_equal(found[:, 1].compute(), wanted[:, 1])


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("kind", [k for k in COLUMNS if k not in ("f32", "dates", "in lists", "decimals")])
def test_what_lacks_is_said_with_the_way_out(kind: str, suffix: str, tmp_path: Path) -> None:
    """At once, where the file counts it: of lists it counts their elements."""
    path = written(COLUMNS[kind][0], suffix, tmp_path)
    with pytest.raises(
        SourceError, match=r"column 'c' lacks 1 elements, which .* cannot say; .*\(fill="
    ) as told:
        READERS[suffix](path, "c")[: 1 if kind != "lists" else None].compute()
    assert ("dtype=float" in str(told.value)) == (COLUMNS[kind][1] not in _VALUES_OF_TEXTS)


def test_boxes_without_lack_are_read_of_a_dtype_that_is_asked_for(tmp_path: Path) -> None:
    path = written(COLUMNS["i8"][0], ".parquet", tmp_path)
    found = np.from_parquet(path, "c", dtype="i8")
    assert found[2:].tolist() == [6, 7, 5]
    with pytest.raises(SourceError, match="lacks 1 elements"):
        found.compute()


_VALUES_OF_TEXTS = ("lacks", "", "?", b"zzz", b"", "none")


@pytest.mark.parametrize(
    ("kind", "fill"),
    [("i8", 300), ("i8", 0.5), ("i8", numpy.nan), ("bool", 2), ("text", 0), ("bytes", "a"), ("dates", 1.5)],
)
def test_a_value_is_an_element_of_the_array(kind: str, fill: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="is no element of an array of"):
        np.from_parquet(written(COLUMNS[kind][0], ".parquet", tmp_path), "c", fill=fill)


def test_numbers_of_texts_are_filled(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n,3\n4,\n")
    assert np.from_csv(tmp_path / "x.csv", fill=-1).tolist() == [[1, 2], [-1, 3], [4, -1]]
    assert np.from_csv(tmp_path / "x.csv", fill=-1).dtype == int
    assert np.isnan(np.from_csv(tmp_path / "x.csv")).sum() == 2


def test_folders_that_say_nothing_are_filled(tmp_path: Path) -> None:
    for name in ("k=1", "k=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / name).mkdir()
        np.to_parquet(np.arange(3.0), tmp_path / name / "x.parquet", columns=["v"])
    assert np.from_parquet(tmp_path, "k", fill=7).tolist() == [1] * 3 + [7] * 3


def test_files_whose_columns_lack_fit_others(tmp_path: Path) -> None:
    """What is counted is said of the dtype that all files have."""
    pyarrow.parquet.write_table(pyarrow.table({"c": [1, None]}), tmp_path / "0.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"c": [0.5, 2.0]}), tmp_path / "1.parquet")
    found = np.from_parquet(tmp_path, "c").compute()
    numpy.testing.assert_array_equal(found, [1, numpy.nan, 0.5, 2])


@pytest.mark.parametrize("suffix", READERS)
def test_errors_name_what_reads_decimals_and_lists(suffix: str, tmp_path: Path) -> None:
    path = written(COLUMNS["decimals"][0], suffix, tmp_path)
    with pytest.raises(TypeError, match="ask for dtype=float"):
        READERS[suffix](path, "c")
    path = written(COLUMNS["lists"][0], suffix, tmp_path)
    with pytest.raises(TypeError, match=r"columns='c'"):
        READERS[suffix](path)
