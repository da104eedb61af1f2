"""Several files as one array: columns by their names, dtypes as `numpy.concatenate` promotes them, however
the files are named."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy
import pyarrow
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

import spartan_ng as np
from spartan_ng.errors import ShapeError, SourceError, UserFunctionError

TABLES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "parquet": (pyarrow.parquet.write_table, np.from_parquet),
    "arrow": (lambda t, p: pyarrow.feather.write_feather(t, p, compression="uncompressed"), np.from_arrow),
    "csv": (pyarrow.csv.write_csv, np.from_csv),
}
TABLE = numpy.arange(8.0).reshape(4, 2)
DTYPES = ["i1", "i8", "u2", "f4", "f8", "i8", "?"]


def _named(way: str, folder: Path, suffix: str) -> Any:
    """The files of a folder, said in one of the ways."""
    if way == "list":
        return sorted(folder.iterdir())
    return folder if way == "folder" else str(folder / f"*.{suffix}")


def _loaded(found: Any, expected: numpy.ndarray[Any, Any]) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    numpy.testing.assert_array_equal(numpy.asarray(found), expected)
    numpy.testing.assert_array_equal(numpy.asarray(found[2:5][::-1]), expected[2:5][::-1])


@pytest.mark.parametrize("way", ["list", "glob", "folder"])
@pytest.mark.parametrize("suffix", TABLES)
@pytest.mark.parametrize("seed", range(4))
def test_columns_of_several_files_are_found_by_name(suffix, way, seed, tmp_path: Path) -> None:
    """In any order, of any dtypes, without rows, too."""
    draw, rng = random.Random(f"{suffix} {way} {seed}"), numpy.random.default_rng(seed)
    write, read = TABLES[suffix]
    names, parts = list("abcd"), []
    dtypes: list[str] = []
    first = draw.sample(names, 4)
    for k in range(3):
        rows = draw.choice([0, 4, 9]) if k else 5
        of = {n: draw.choice(DTYPES) for n in names}
        if suffix == "csv":  # it has integers and floats; without rows nothing
            of = {n: "f8" if d[0] == "f" else "i8" for n, d in of.items()}
        values = {n: (rng.random(rows) * 90).astype(d) for n, d in of.items()}
        order = draw.sample(names, 4) if k else first
        write(pyarrow.table({n: values[n] for n in order}), str(tmp_path / f"{k}.{suffix}"))
        if rows or suffix != "csv":
            dtypes += of.values()
            parts.append(numpy.stack([values[n].astype("f8") for n in first], 1))
    dtype = numpy.result_type(*dtypes)
    expected = numpy.concatenate(parts).astype(dtype)
    path = _named(way, tmp_path, suffix)
    _loaded(read(path), expected)
    if way != "list":
        _loaded(np.load(path), expected)
    picked = draw.sample(range(4), 2)
    _loaded(read(path, [first[k] for k in picked], dtype="f8"), expected[:, picked].astype("f8"))


@pytest.mark.parametrize("suffix", TABLES)
def test_files_with_other_columns_are_refused_but_where_columns_are_named(suffix, tmp_path: Path) -> None:
    write, read = TABLES[suffix]
    tables: list[dict[str, list[float]]] = [
        {"a": [1.5, 2], "b": [3.5, 4]},
        {"b": [5.5], "a": [6.5], "c": [7.5]},
        {"b": [8.5]},
    ]
    for k, table in enumerate(tables):
        write(pyarrow.table(table), str(tmp_path / f"{k}.{suffix}"))
    with pytest.raises(SourceError, match=r"has the columns b, a, c, .* has a, b: ask for those"):
        np.load(tmp_path)
    _loaded(read(tmp_path, "b"), numpy.array([3.5, 4, 5.5, 8.5]))
    with pytest.raises(KeyError, match="no column 'a'"):
        read(tmp_path, ["a", "b"])


@pytest.mark.parametrize("shape", [(5,), (5, 2), (0, 2)])
@pytest.mark.parametrize("one", ["i1", "u8", ">f8", "<f8", "?", "c8", "S3", "U2", ">M8[s]", "m8[ms]"])
@pytest.mark.parametrize("other", ["i4", ">f8", "U4", "M8[D]"])
@pytest.mark.some(30)
def test_dtypes_are_promoted_as_by_concatenate(one, other, shape, tmp_path: Path) -> None:
    parts = [numpy.arange(6).reshape(-1, *shape[1:]).astype("i8").astype(other)]
    parts.insert(0, numpy.ones(shape, "i8").astype(one))
    for k, part in enumerate(parts):
        numpy.save(tmp_path / f"{k}.npy", part)
    try:
        expected = numpy.concatenate(parts)
    except TypeError:
        with pytest.raises(TypeError, match="no dtype fits both"):
            np.load(tmp_path)
    else:
        _loaded(np.load(tmp_path), expected)


def test_files_without_axes_do_not_follow_each_other(tmp_path: Path) -> None:
    for k in range(2):
        numpy.save(tmp_path / f"{k}.npy", numpy.float64(k))
    with pytest.raises(ShapeError, match="has no axis, along which"):
        np.load(tmp_path)


def test_missing_elements_of_several_files(tmp_path: Path) -> None:
    """Integers that lack some are floats beside floats; a column that lacks all fits floats and dates."""
    days = numpy.array(["2024-01-01", "2024-02-03"], "M8[ms]")
    for k, column in enumerate(
        [days, pyarrow.array([None, None]), pyarrow.array([None, days[1]], "timestamp[ms]")]
    ):
        pyarrow.parquet.write_table(pyarrow.table({"t": column}), tmp_path / f"{k}.parquet")
    nat = numpy.datetime64("NaT")
    _loaded(np.from_parquet(tmp_path, "t"), numpy.array([*days, nat, nat, nat, days[1]], "M8[ms]"))
    for k, column in enumerate([[1, None], [2.5, 3.5], [None, None]]):
        pyarrow.parquet.write_table(pyarrow.table({"t": column}), tmp_path / f"{k}.parquet")
    nan = numpy.nan
    _loaded(np.from_parquet(tmp_path, "t"), numpy.array([1, nan, 2.5, 3.5, nan, nan]))


def test_whole_numbers_of_csv_files_are_floats_where_floats_are_wanted(tmp_path: Path, monkeypatch) -> None:
    """Also those of which no run of lines that was looked at has a fraction."""
    monkeypatch.setattr("spartan_ng.sources.csv_columns.CSV_BYTES", 10)
    (tmp_path / "x.csv").write_text("\n\na,b\n" + "1,2\n" * 20 + "1.5,\n")
    found = np.from_csv(tmp_path / "x.csv", dtype=float)
    _loaded(found, numpy.array([[1, 2.0]] * 20 + [[1.5, numpy.nan]]))


def test_names_that_stand_twice(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,a.1,a,b\n1,2,3,4\n")
    numpy.testing.assert_array_equal(np.load(tmp_path / "x.csv"), [[1, 2, 3, 4]])
    numpy.testing.assert_array_equal(np.from_csv(tmp_path / "x.csv", ["a", "a.1", "a.2"]), [[1, 2, 3]])
    twice = pyarrow.table([[1], [2], [3]], names=["a", "a", "b"])
    pyarrow.parquet.write_table(twice, tmp_path / "x.parquet")
    with pytest.raises(SourceError, match="several columns of the name 'a'"):
        np.load(tmp_path / "x.parquet")
    numpy.testing.assert_array_equal(np.from_parquet(tmp_path / "x.parquet", "b"), [3])


def test_dates_with_time_zones_are_in_utc_and_lack_as_nat(tmp_path: Path) -> None:
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Berlin"):
            column = pyarrow.array([1, None, 10**9], pyarrow.timestamp(unit, zone))
            pyarrow.parquet.write_table(pyarrow.table({"t": column}), tmp_path / "t.parquet")
            written = "ms" if unit == "s" else unit  # Parquet has no seconds
            expected = numpy.array([1, "NaT", 10**9], f"M8[{unit}]").astype(f"M8[{written}]")
            _loaded(np.from_parquet(tmp_path / "t.parquet", "t"), expected)


@pytest.mark.parametrize("folder", ["memory://several/{name}", "{tmp}"])
@pytest.mark.parametrize("suffix", ["npy", "csv"])
def test_hidden_files_of_a_folder_are_left_out(folder, suffix, tmp_path: Path) -> None:
    """Those that other systems leave beside each file, and writes that were killed."""
    where = folder.format(name=suffix, tmp=tmp_path)
    for k, name in enumerate(["a", ".a", "b", "._b"]):
        with fsspec.open(f"{where}/{name}.{suffix}", "wb") as file:
            value = numpy.full((2, 2), k)
            if name.startswith("."):
                file.write(b"\0\5\26\7")
            elif suffix == "npy":
                numpy.save(file, value)
            else:
                numpy.savetxt(file, value, "%d", ",", header="a,b", comments="")
    for path in (where, f"{where}/*.{suffix}"):
        numpy.testing.assert_array_equal(numpy.asarray(np.load(path)), [[0, 0]] * 2 + [[2, 2]] * 2)


def _stored(path: str, value: Any) -> None:
    suffix = path.rpartition(".")[2]
    if suffix == "zarr":
        zarr.create_array(path, data=value, chunks=(2, 2), overwrite=True)
    elif suffix == "npy":
        numpy.save(path, value)
    elif suffix == "h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=value, chunks=(1, 2))
    else:
        TABLES[suffix][0](pyarrow.table({"a": value[:, 0], "b": value[:, 1]}), path)


@pytest.mark.parametrize("suffix", ["zarr", "npy", "h5", *TABLES])
@pytest.mark.parametrize("way", ["list", "tuple", "glob", "folder"])
def test_load_takes_all_formats_however_the_files_are_named(suffix: str, way: str, tmp_path: Path) -> None:
    parts = [numpy.arange(2.0 * n).reshape(n, 2) / 4 + n for n in (3, 1, 4)]
    paths = [str(tmp_path / f"{k}.{suffix}") for k in range(3)]
    for path, part in zip(paths, parts, strict=True):
        _stored(path, part)
    named = {"list": paths, "tuple": tuple(paths), "glob": str(tmp_path / f"*.{suffix}"), "folder": tmp_path}
    _loaded(np.load(named[way]), numpy.concatenate(parts))
    if suffix == "zarr":
        _loaded(np.from_zarr(named[way]), numpy.concatenate(parts))


def test_folders_of_several_formats_and_archives_are_refused(tmp_path: Path) -> None:
    _stored(str(tmp_path / "0.zarr"), TABLE)
    _stored(str(tmp_path / "0.npy"), TABLE)
    numpy.savez(tmp_path / "0.npz", TABLE)
    with pytest.raises(ValueError, match=r"\.npy, \.zarr: say which"):
        np.load(tmp_path)
    with pytest.raises(ValueError, match="archives"):
        np.load(tmp_path / "*.npz")
    _loaded(np.load(tmp_path / "*.zarr"), TABLE)


def test_zarr_stores_of_any_name_and_groups(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    group = zarr.open_group(url, mode="w")
    for name in ("a", "deep/b"):
        group.create_array(name, data=TABLE)
    _loaded(np.load(f"{url}/deep/b"), TABLE)
    for call in (np.load, np.from_zarr):
        with pytest.raises(SourceError, match="is a group with the arrays"):
            call(url)
    with pytest.raises((SourceError, FileNotFoundError)):
        np.from_zarr(tmp_path / "none.zarr")


def test_hdf5_files_may_be_written_to_once_they_have_been_read(tmp_path: Path) -> None:
    _stored(str(tmp_path / "x.h5"), TABLE)
    total = float(np.from_hdf5(tmp_path / "x.h5").sum())
    x = np.from_hdf5(tmp_path / "x.h5")
    numpy.testing.assert_array_equal(numpy.asarray(x[1:] * 2), TABLE[1:] * 2)
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["total"], file["nothing"] = total, h5py.Empty("f8")
    with pytest.raises(SourceError, match="no shape"):
        np.from_hdf5(tmp_path / "x.h5", "nothing")
    assert float(np.from_hdf5(tmp_path / "x.h5", "total")) == TABLE.sum()


@pytest.mark.parametrize("dtype", ["?", "i4", "f4", "f8"])
def test_complex_numbers_of_a_function_are_not_cut(dtype: str) -> None:
    for kind in ("c8", "c16"):

        def read(box: Any, kind: str = kind) -> Any:
            return numpy.ones(box[0][1] - box[0][0], kind)

        with pytest.raises(UserFunctionError, match=r"complex.* elements for an array of"):
            np.compute(np.from_function(read, (5,), dtype))


VALUES: dict[str, list[str]] = {
    "whole numbers": ["3", "-1", "02", "10"],
    "numbers": ["0.5", "-2", "1e3"],
    "dates": ["2020-01-31", "1999-12-01"],
}


def _parted(
    suffix: str, root: str, draw: random.Random, kinds: list[str]
) -> list[tuple[str, list[str], Any]]:
    """A table in folders of folders, each with a level of them, as files with what their folders say."""
    found = []

    def fill(where: str, said: list[str]) -> None:
        if len(said) < len(kinds):
            for value in draw.sample(VALUES[kinds[len(said)]], 2):
                fill(f"{where}/k{len(said)}={value}", [*said, value])
            return
        for name in draw.sample(["0", "1", "x y"], 2):
            rows = numpy.array([[draw.random(), draw.random()] for _ in range(draw.choice([1, 5]))])
            path = f"{where}/{name}.{suffix}"
            with fsspec.open(path, "wb") as file:
                TABLES[suffix][0](pyarrow.table({"a": rows[:, 0], "b": rows[:, 1]}), file)
            found.append((path, said, rows))

    fill(root, [])
    return sorted(found)


@pytest.mark.parametrize("root", ["memory://parted/{name}", "{tmp}"])
@pytest.mark.parametrize("suffix", TABLES)
@pytest.mark.parametrize("seed", range(4))
def test_folders_of_partitioned_tables_say_columns(suffix: str, root: str, seed: int, tmp_path: Path) -> None:
    """Behind those of the files; what they say has the type that all of it fits."""
    draw = random.Random(f"{suffix} {root} {seed}")
    root = root.format(name=f"{suffix}{seed}", tmp=tmp_path)
    kinds = [draw.choice(["whole numbers", "numbers"]) for _ in range(draw.choice([1, 2]))]
    files = _parted(suffix, root, draw, kinds)
    parts = [numpy.column_stack([v, *(numpy.full(len(v), float(s)) for s in said)]) for _, said, v in files]
    expected = numpy.concatenate(parts)
    read = TABLES[suffix][1]
    for found in (read(root), np.load(root)):
        _loaded(found, expected)
        numpy.testing.assert_allclose(found.sum(axis=0), expected.sum(axis=0))
    _loaded(read(root, ["k0", "b"]), expected[:, [2, 1]])
    whole = "i8" if kinds[0] == "whole numbers" else "f8"
    _loaded(read(root, "k0"), expected[:, 2].astype(whole))
    _loaded(read(root, ["k0", "k0"]), expected[:, [2, 2]].astype(whole))
    _loaded(read(f"{root}/**/*.{suffix}"), expected[:, :2])  # who names files gets what they have


def test_partitioned_tables_as_pyarrow_reads_them(tmp_path: Path) -> None:
    days = numpy.array(["2020-02-29", "1999-01-01", "2020-02-29"], "M8[s]")
    pyarrow.dataset.write_dataset(
        pyarrow.table(
            {"y": [7, -7, 8], "x": [1.5, 2.5, 3.5], "day": days.astype("M8[D]"), "c": ["a/b", "c", None]}
        ),
        tmp_path,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(
            pyarrow.schema([("day", pyarrow.date32()), ("c", pyarrow.string())]), flavor="hive"
        ),
    )
    theirs = pyarrow.dataset.dataset(tmp_path, partitioning="hive").to_table()
    _loaded(np.from_parquet(tmp_path, ["y", "x"]), numpy.column_stack([theirs["y"], theirs["x"]]))
    _loaded(np.from_parquet(tmp_path, "day"), numpy.array(theirs["day"].to_pylist(), "M8[s]"))
    with pytest.raises(TypeError, match=r"column 'c' has elements of type string.*\['y', 'x'\]"):
        np.load(tmp_path)


def test_folders_that_do_not_say_a_value(tmp_path: Path) -> None:
    for name in ("p=1", "p=__HIVE_DEFAULT_PARTITION__", "p=2/q=3", ".p=9", "other", "x=1.parquet"):
        (tmp_path / name).mkdir(parents=True)
        _stored(str(tmp_path / name / "0.parquet"), TABLE[:1])
    _stored(str(tmp_path / "0.parquet"), TABLE[:1])
    nan = numpy.nan
    said = numpy.array([[nan, nan, nan], [1, nan, nan], [2, 3, nan], [nan, nan, nan], [nan, nan, 1]])
    with pytest.raises(TypeError, match="column 'x' has elements of type string"):
        np.load(tmp_path)
    _loaded(np.from_parquet(tmp_path, ["a", "p", "q"]), numpy.column_stack([TABLE[[0] * 5, 0], said[:, :2]]))
    with pytest.raises(
        SourceError, match=r"folders do not say 'p', which int64 .*; ask for dtype=float, or .*fill=0"
    ):
        numpy.asarray(np.from_parquet(tmp_path, ["p"], dtype=int))


def test_what_folders_say_takes_the_place_of_what_files_say(tmp_path: Path) -> None:
    for k in range(2):
        (tmp_path / f"a={k}").mkdir()
        _stored(str(tmp_path / f"a={k}" / "0.parquet"), TABLE)
    _loaded(
        np.load(tmp_path), numpy.concatenate([numpy.column_stack([[k] * 4, TABLE[:, 1]]) for k in range(2)])
    )
