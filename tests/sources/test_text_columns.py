"""Columns of texts and of bytes are arrays as wide as the longest; what is written comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError

rng = numpy.random.default_rng(0)
WORDS = numpy.array(["", "a", "bcé", "xyz" * 5, "q\0r", "日本", "last"])
ARRAYS: dict[str, Any] = {
    "texts": WORDS[rng.integers(0, 7, 500)],
    "two columns": WORDS[rng.integers(0, 7, (500, 2))],
    "another order": WORDS[rng.integers(0, 7, 50)].astype(">U15"),
    "bytes": numpy.array([b"", b"a\0b", b"\xff\x00\x01", b"last"])[rng.integers(0, 4, 500)],
    "empty ones": numpy.array(["", ""]),
    "none": numpy.array([], "U4"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("place", ["x.parquet", "folder/"])
def test_texts_come_back(name: str, place: str, tmp_path: Path) -> None:
    value = ARRAYS[name]
    rows = value.reshape(len(value), value.ndim)
    np.to_parquet(np.asarray(value), f"{tmp_path}/{place}")
    found = np.from_parquet(f"{tmp_path}/{place}")
    assert found.dtype.kind == value.dtype.kind
    numpy.testing.assert_array_equal(numpy.asarray(found), rows)
    assert found.dtype == (value.dtype.newbyteorder("=") if value.size and value.any() else "U1")
    first = np.from_parquet(f"{tmp_path}/{place}", "0")
    numpy.testing.assert_array_equal(numpy.asarray(first), rows[:, 0])


TABLE = pyarrow.table(
    {
        "text": ["x", "yyy", "z"],
        "large": pyarrow.array(["long", "", "l"], pyarrow.large_string()),
        "coded": pyarrow.array(["p", "qq", "p"]).dictionary_encode(),
        "bytes": pyarrow.array([b"12", b"3", b""]),
        "fixed": pyarrow.array([b"12", b"34", b"56"], pyarrow.binary(2)),
        "lacking": ["a", None, "b"],
        "number": [1, 2, 3],
        "list": [[1], [2], [3]],
    }
)
WRITERS: dict[str, Callable[[Any, Path], Any]] = {
    ".parquet": pyarrow.parquet.write_table,
    ".arrow": pyarrow.feather.write_feather,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_columns_of_all_types_of_texts(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    WRITERS[suffix](TABLE, path)
    read = np.from_parquet if suffix == ".parquet" else np.from_arrow
    for names in ("text", "large", "coded", ["coded", "text"], "bytes", "fixed", ["bytes", "fixed"]):
        found = numpy.asarray(read(path, names))
        columns = [TABLE.column(n).to_pylist() for n in ([names] if isinstance(names, str) else names)]
        wanted = numpy.array(columns[0] if isinstance(names, str) else list(zip(*columns, strict=True)))
        numpy.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype, names
    assert read(path, "text", dtype="U2").tolist() == ["x", "yy", "z"]
    with pytest.raises(
        SourceError, match=r"'lacking' lacks 1 elements, which <U1 cannot say; .*\(fill=''\)$"
    ):
        read(path, "lacking")
    assert read(path, "lacking", fill="").tolist() == ["a", "", "b"]
    with pytest.raises(TypeError, match=r"column 'text' has elements of type string, and .*\['number'\]$"):
        read(path, ["number", "text"])
    with pytest.raises(
        TypeError, match="column 'text' has elements of type string, and others have none such"
    ):
        read(path, ["text", "bytes"])
    with pytest.raises(TypeError, match="'list' has elements of type list"):
        read(path)


def test_texts_of_several_files(tmp_path: Path) -> None:
    for k, words in enumerate((["a", "b"], ["longer", "c"])):
        pyarrow.parquet.write_table(pyarrow.table({"w": words}), tmp_path / f"{k}.parquet")
    assert np.load(tmp_path, allow_pickle=False)[:, 0].tolist() == ["a", "b", "longer", "c"]
    pyarrow.parquet.write_table(pyarrow.table({"w": [1]}), tmp_path / "2.parquet")
    with pytest.raises(TypeError, match="no dtype fits both"):
        np.load(tmp_path)


def test_folders_may_say_texts(tmp_path: Path) -> None:
    for word, n in (("red", 1), ("bluish", 2)):
        (tmp_path / f"color={word}").mkdir()
        table = pyarrow.table({"w": ["x"] * n, "n": list(range(n))})
        pyarrow.parquet.write_table(table, tmp_path / f"color={word}/0.parquet")
    assert np.from_parquet(tmp_path, "color").tolist() == ["bluish", "bluish", "red"]
    assert np.from_parquet(tmp_path, ["w", "color"])[2].tolist() == ["x", "red"]
    assert np.from_parquet(tmp_path, "n").tolist() == [0, 1, 0]


def test_texts_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spartan_ng.sources.csv_columns.CSV_BYTES", 64)
    words = ["w" * (k % 9) + "x" for k in range(200)]
    (tmp_path / "x.csv").write_text("n,w,v\n" + "".join(f"{k},{w},{w}{w}\n" for k, w in enumerate(words)))
    found = np.from_csv(tmp_path / "x.csv", ["w", "v"])
    assert found.dtype == "U18"
    numpy.testing.assert_array_equal(numpy.asarray(found)[:, 0], words)


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\n", "\na,b\n"])
def test_a_csv_file_with_names_alone_has_no_rows(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(text)
    for columns, shape in ((None, (0, 2)), ("b", (0,)), (["b"], (0, 1))):
        x = np.from_csv(tmp_path / "x.csv", columns)
        assert (x.shape, x.dtype) == (shape, numpy.float64)
        assert numpy.asarray(x * 2).shape == shape
