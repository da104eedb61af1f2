"""What is wrong with a file takes a command one line that names it, whatever the format and the app."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import imageio.v3 as images
import numpy
import pyarrow
import pyarrow.feather
import pytest
import zarr
from click.testing import CliRunner, Result
from scipy import io, sparse

import spartan_ng as np
from spartan_ng.apps import samples
from spartan_ng.apps.files import load
from spartan_ng.apps.table import APPS
from spartan_ng.cli import main

X = numpy.random.default_rng(0).random((40, 3))
FEW = sparse.coo_array(X * (X > 0.5))


def _csv(path: str) -> None:
    numpy.savetxt(path, X, delimiter=",", header="a,b,c", comments="")


def _feather(path: str) -> None:
    pyarrow.feather.write_feather(pyarrow.table(dict(zip("abc", X.T, strict=True))), path, "uncompressed")


FORMATS: dict[str, Callable[[str], None]] = {
    ".npy": lambda path: numpy.save(path, X),
    ".npz": lambda path: sparse.save_npz(path, FEW.tocsr()),
    ".mtx": lambda path: io.mmwrite(path, FEW),
    ".csv": _csv,
    ".parquet": lambda path: np.to_parquet(X, path),
    ".feather": _feather,
    ".arrow": _feather,
    ".h5": lambda path: np.to_hdf5(X, path),
    ".png": lambda path: images.imwrite(path, (255 * X).astype("u1"), extension=".png"),
    ".zarr": lambda path: np.to_zarr(X, path),
}
DEFECTS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut off": lambda whole: whole[: len(whole) * 2 // 3],
    "begun": lambda whole: whole[:10],
    "a text": lambda _: b"this is a text,\nand no table: of three, or two\n",
    "binary": lambda _: bytes(range(256)) * 4,
}


def app(*words: str) -> Result:
    """The command, with all that Python shows of what its libraries warn of."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for unseen in (DeprecationWarning, ResourceWarning):
            warnings.simplefilter("ignore", unseen)
        return CliRunner().invoke(main, ["app", *words])


def one_line(done: Result, *names: str) -> str:
    """The only line that a command has printed, an error that names the files."""
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    assert all(name in line for name in names), line
    return line


def test_each_format_of_the_help_is_asked() -> None:
    from spartan_ng.apps.files import FORMATS as TEXT

    named = {word.strip("(),;") for word in TEXT.split() if word.strip("(").startswith(".")}
    assert named | {".png"} == set(FORMATS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_whole_files_are_read(suffix, tmp_path) -> None:
    path = str(tmp_path / f"points{suffix}")
    FORMATS[suffix](path)
    done = app("kmeans", "--data", path, "--clusters", "2")
    assert done.exit_code == (suffix == ".png")  # a stack of one image has three axes
    if suffix == ".png":
        assert "uint8 1×40×3" in one_line(done, path)


NAMED: dict[str, Callable[[Path], Any]] = {
    "x.csv:c,a": lambda path: _csv(str(path)),
    "x.feather:c,a": lambda path: _feather(str(path)),
    "x.parquet:c,a": lambda path: np.to_parquet(X, path, columns=[*"abc"]),
    "x.h5:deep/one": lambda path: np.to_hdf5(X[:, [2, 0]], path, "deep/one"),
    "x.zarr:deep/one": lambda path: zarr.open_group(path).create_array("deep/one", data=X[:, [2, 0]]),
}


def _centers(folder: Path, *data: str) -> Any:
    """What k-means finds in files, which is told in the order of its rows."""
    words = [w for d in data for w in ("--data", d)]
    done = app("kmeans", *words, "--clusters", "2", "--seed", "0", "--save", str(folder / "m.npz"))
    assert done.exit_code == 0, done.output
    return numpy.load(folder / "m.npz")["cluster_centers"]


@pytest.mark.parametrize("name", NAMED)
def test_columns_and_arrays_have_names(name, tmp_path) -> None:
    numpy.save(tmp_path / "plain.npy", X[:, [2, 0]])
    NAMED[name](tmp_path / name.partition(":")[0])
    expected = _centers(tmp_path, str(tmp_path / "plain.npy"))
    numpy.testing.assert_allclose(_centers(tmp_path, f"{tmp_path}/{name}"), expected)
    line = one_line(app("kmeans", "--data", f"{tmp_path}/{name}x"))
    assert str(tmp_path) in line
    (tmp_path / f"{name.partition('/')[0]}").mkdir()  # a file that is called so
    if "/" not in name:
        numpy.save(tmp_path / f"{name}" / "y.npy", X[:5])
        assert _centers(tmp_path, f"{tmp_path}/{name}").shape == (2, 3)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet", ".feather", ".h5"])
def test_files_of_a_repeated_option_follow_each_other(suffix, tmp_path) -> None:
    numpy.save(tmp_path / "whole.npy", numpy.concatenate([X, X[:0:-1], X]))
    for name, rows in (("b", X), ("a", X[:0:-1])):
        with patch.dict(globals(), X=rows):
            FORMATS[suffix](f"{tmp_path}/{name}{suffix}")
    given = [f"{tmp_path}/{name}{suffix}" for name in "bab"]
    expected = _centers(tmp_path, str(tmp_path / "whole.npy"))
    numpy.testing.assert_allclose(_centers(tmp_path, *given), expected)
    for other in (f"{tmp_path}/none{suffix}", f"{tmp_path}/whole.np", f"{given[0]}:a"):
        one_line(app("kmeans", "--data", given[0], "--data", other))


@pytest.mark.parametrize("suffix", [".mtx", ".npz"])
def test_sparse_files_are_one_at_a_time(suffix, tmp_path) -> None:
    path = str(tmp_path / f"x{suffix}")
    FORMATS[suffix](path)
    assert "several" in one_line(app("kmeans", "--data", path, "--data", path), path)


@pytest.mark.some(20)
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("suffix", FORMATS)
def test_broken_files_take_one_line(suffix, defect, tmp_path) -> None:
    path = tmp_path / f"points{suffix}"
    FORMATS[suffix](str(path))
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(DEFECTS[defect](whole))
        for data in (str(path), os.path.relpath(path)):
            one_line(app("kmeans", "--data", data, "--clusters", "2"), path.name)
        file.write_bytes(whole)


TABLES = {
    "no names": ("1,2.5\n3,4\n", "put a line of names there"),
    "no rows": ("a,b\n", "0 sample"),
    "nothing": ("", "is empty"),
    "texts": ("a,b\n1,x\n2,y\n", "ask for columns=['a']"),
    "texts alone": ("a,b\nz,x\nw,y\n", "none of its columns has numbers"),
    "semicolons": ("a;b\n1;2\n3;4\n", "separated by commas"),
    "dates": ("d,x\n2020-01-01,1\n2020-01-02,2\n", "no dtype in common"),
    "ragged": ("a,b\n1,2\n3\n", "Expected 2 columns"),
    "missing": ("a,b\n1,2\n3,\n5,6\n", "NaN or infinite values in 1 of 3 rows, the first of which is [1]"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_are_no_numbers_take_one_line(name, tmp_path) -> None:
    text, why = TABLES[name]
    (tmp_path / "table.csv").write_text(text)
    assert why in one_line(
        app("kmeans", "--data", str(tmp_path / "table.csv"), "--clusters", "2"), "table.csv"
    )


def test_a_table_without_names_is_read_where_that_is_said(tmp_path) -> None:
    """No row is lost in silence."""
    numpy.savetxt(tmp_path / "x.csv", X, delimiter=",")
    with pytest.raises(np.errors.SourceError, match="header=False"):
        np.load(tmp_path / "x.csv")
    numpy.testing.assert_array_equal(np.from_csv(tmp_path / "x.csv", header=False), X)
    numpy.testing.assert_array_equal(np.from_csv(tmp_path / "x.csv", "f1", header=False), X[:, 1])
    numpy.testing.assert_array_equal(np.from_csv(tmp_path / "x.csv", header=True), X[1:])


ARRAYS: dict[str, Any] = {
    "objects": numpy.array([[1, None]], dtype=object),
    "records": numpy.zeros(3, [("a", "i4"), ("b", "f8")]),
    "texts": numpy.array([["a", "b"]] * 10),
    "complex": X + 1j,
    "a vector": X[:, 0],
    "a cube": X.reshape(4, 10, 3),
    "a number": numpy.float64(3),
    "no rows": X[:0],
    "no columns": X[:, :0],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_no_points_take_one_line(name, tmp_path) -> None:
    numpy.save(tmp_path / "points.npy", ARRAYS[name], allow_pickle=True)
    one_line(app("kmeans", "--data", str(tmp_path / "points.npy"), "--clusters", "2"), "points.npy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The samples."""
    found: Path = tmp_path_factory.mktemp("samples")
    samples.write(found)
    return found


def read_by(name: str) -> list[str]:
    """The dense files of floating-point numbers that an app's example reads."""
    dense = {n for n, v in samples.files().items() if n.endswith(".npy") and v.dtype.kind == "f"}
    return [word for word in APPS[name].example.split() if word in dense]


@pytest.mark.some(30)
@pytest.mark.parametrize("value", [numpy.nan, numpy.inf])
@pytest.mark.parametrize(("name", "file"), [(name, file) for name in APPS for file in read_by(name)])
def test_no_app_takes_what_is_no_number(name, file, value, folder, tmp_path, monkeypatch) -> None:
    """None ends with a result that one bad number has made, and each says where it is."""
    monkeypatch.chdir(folder)
    array = numpy.load(file)
    array[7] = value
    numpy.save(tmp_path / file, array)
    words = [str(tmp_path / file) if word == file else word for word in APPS[name].example.split()]
    line = one_line(app(name, *words), str(tmp_path / file))
    assert "the first of which is [7]" in line


def test_arrays_of_archives_are_named_where_there_are_several(tmp_path: Path) -> None:
    a = numpy.arange(6.0).reshape(3, 2)
    numpy.savez(tmp_path / "one.npz", a=a)
    numpy.savez_compressed(tmp_path / "two.npz", a=a, b=a + 1)
    numpy.testing.assert_array_equal(numpy.asarray(load(str(tmp_path / "one.npz"))), a)
    numpy.testing.assert_array_equal(numpy.asarray(load(f"{tmp_path}/two.npz:b")), a + 1)
    with pytest.raises(ValueError, match=r"two\.npz has the arrays a, b: name one behind a colon$"):
        load(str(tmp_path / "two.npz"))
    with pytest.raises(ValueError, match=r"two\.npz has no array 'c'; it has the arrays a, b$"):
        load(f"{tmp_path}/two.npz:c")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
@pytest.mark.parametrize("folder", ["", "a.csv:b"])
def test_names_have_colons(suffix: str, folder: str, tmp_path: Path) -> None:
    """Of columns, and of the places of files."""
    (tmp_path / folder).mkdir(exist_ok=True)
    path = tmp_path / folder / f"t{suffix}"
    if suffix == ".csv":
        numpy.savetxt(path, X, delimiter=",", header="x:y,x.csv:z,c", comments="")
    else:
        np.to_parquet(X, path, columns=["x:y", "x.csv:z", "c"])
    numpy.testing.assert_array_equal(load(f"{path}:x:y"), X[:, 0])
    numpy.testing.assert_array_equal(load(f"{path}:c,x:y,x.csv:z"), X[:, [2, 0, 1]])


@pytest.mark.parametrize("app", ["logistic-regression", "svm", "naive-bayes"])
def test_classes_of_tables_may_be_texts(app: str, tmp_path: Path) -> None:
    names = numpy.where(X[:, 0] > 0.5, "yes", "no")
    np.to_parquet(np.asarray(names), tmp_path / "t.parquet", columns=["name"])
    numpy.save(tmp_path / "x.npy", X)
    call = ["app", app, "--data", f"{tmp_path}/x.npy", "--target", f"{tmp_path}/t.parquet:name"]
    told = CliRunner().invoke(main, call)
    assert told.exit_code == 0, told.output
    assert "accuracy" in told.output
    told = CliRunner().invoke(main, ["app", "ridge", *call[2:]])
    assert told.exit_code == 1
    assert "it has texts" in told.output
