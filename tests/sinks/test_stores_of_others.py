"""Zarr stores that are one file, folders of tables at URLs, and file systems with options."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr
from fsspec.implementations.memory import MemoryFileSystem

import spartan_ng as np

VALUE = numpy.random.default_rng(0).random((700, 6))


class Guarded(MemoryFileSystem):  # type: ignore[misc]
    """Files for who knows the word."""

    protocol = "guarded"
    store: dict[str, Any] = {}
    pseudo_dirs = [""]

    def __init__(self, word: str = "", **options: Any) -> None:
        if word != "open":
            raise PermissionError("who are you?")
        super().__init__(**options)


class Objects(MemoryFileSystem):  # type: ignore[misc]
    """What has no folders, only names with strokes in them, as S3."""

    protocol = "objects"
    store: dict[str, Any] = {}
    pseudo_dirs = [""]
    late: Callable[[str], None] | None = None
    """Is told what is copied."""

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        if path1 not in self.store:
            raise FileNotFoundError(path1)
        if Objects.late is not None:
            Objects.late(path1)
        super().cp_file(path1, path2, **options)


WRITES: dict[str, Callable[[str, Any], None]] = {
    "x.npy": lambda url, a: np.save(url, a),
    "x.zarr": lambda url, a: np.to_zarr(a, url, chunks=(200, 4)),
    "x.zarr.zip": lambda url, a: np.save(url, a),
    "x.h5": lambda url, a: np.save(url, a),
    "x.parquet": lambda url, a: np.save(url, a),
    "g.zarr/deep/x": lambda url, a: np.to_zarr(a, url),
    "tables/": lambda url, a: np.to_parquet(a, url),
}


@pytest.fixture
def objects() -> Iterator[str]:
    fsspec.register_implementation("objects", Objects, clobber=True)
    Objects.store.clear()
    yield "objects://a"
    Objects.late = None


@pytest.mark.parametrize("name", WRITES)
def test_stores_without_folders_take_what_replaces_something(name: str, objects: str) -> None:
    """Moving a folder asked them for one."""
    url = f"{objects}/{name}"
    if name.startswith("g.zarr"):
        zarr.open_group(f"{objects}/g.zarr", mode="w")
    for k in range(3):
        WRITES[name](url, np.array(VALUE) + k)
        read = np.from_zarr if name.startswith("g.zarr") else np.load
        numpy.testing.assert_array_equal(read(url), VALUE + k)
    assert not [n for n in Objects.store if "/." in n]


@pytest.mark.parametrize("name", ["x.zarr", "tables/"])
def test_what_breaks_off_while_it_moves_is_still_there(name: str, objects: str) -> None:
    url = f"{objects}/{name}"
    WRITES[name](url, np.array(VALUE))

    def fails(path: str) -> None:
        raise ConnectionError("gone")

    Objects.late = fails
    with pytest.raises(ConnectionError) as told:
        WRITES[name](url, np.array(VALUE) + 1)
    (note,) = told.value.__notes__
    (made,) = re.findall(r"lies whole at (\S+);", note)
    read = np.from_zarr if name == "x.zarr" else np.load
    numpy.testing.assert_array_equal(read(made + "/" * (name == "tables/")), VALUE + 1)


@pytest.fixture
def options() -> dict[str, Any]:
    fsspec.register_implementation("guarded", Guarded, clobber=True)
    return {"word": "open"}


def _broken(box: Any) -> Any:
    raise ArithmeticError("no elements")


@pytest.mark.parametrize("suffix", [".npy", ".h5", ".parquet", ".zarr", ".zarr.zip"])
def test_options_of_file_systems_are_handed_on(suffix: str, options: Any) -> None:
    url = f"guarded://{suffix[1:].replace('.', '')}/x{suffix}"
    with pytest.raises((OSError, np.errors.SourceError), match="who are you"):
        np.save(url, VALUE)
    for k in range(2):
        np.save(url, np.array(VALUE) + k, storage_options=options)
        found = np.load(url, storage_options=options)
        numpy.testing.assert_array_equal(found, VALUE + k)
    with pytest.raises((OSError, np.errors.SourceError), match="who are you"):
        np.load(url).sum().compute()
    assert found.sum() == pytest.approx((VALUE + 1).sum())


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "a.arrow": lambda t, file: pyarrow.feather.write_feather(t, file, compression="uncompressed"),
    "a.csv": pyarrow.csv.write_csv,
    "p=3/a.parquet": pyarrow.parquet.write_table,
    "a.npy": lambda t, file: numpy.save(file, numpy.stack(t.columns, 1)),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("way", ["", "folder", "glob", "list"])
def test_options_of_file_systems_reach_all_files(name: str, way: str, options: Any) -> None:
    folder, table = (
        f"guarded://reached/{way}{name.rpartition('.')[2]}",
        pyarrow.table({"a": VALUE[:, 0], "b": VALUE[:, 1]}),
    )
    url = f"{folder}/{name}"
    with fsspec.open(url, "wb", **options) as file:
        FORMS[name](table, file)
    glob = f"{folder}/**/*{os.path.splitext(name)[1]}"
    path: Any = {"": url, "folder": folder, "glob": glob, "list": [url]}[way]
    found = np.load(path, storage_options=options)
    wanted = VALUE[:, :2]
    if way == "folder" and "=" in name:
        wanted = numpy.column_stack([wanted, numpy.full(len(wanted), 3)])
    numpy.testing.assert_array_equal(found, wanted)


def test_a_store_that_is_an_archive(tmp_path: Path) -> None:
    """Zarr reads what is written, and what zarr writes is read, arrays and groups; other members stay."""
    path = tmp_path / "x.zip"
    np.to_zarr(np.array(VALUE) * 2, path, chunks=(100, 6))
    theirs = zarr.open_array(zarr.storage.ZipStore(path, mode="r"), mode="r")
    assert theirs.chunks == (100, 6)
    numpy.testing.assert_array_equal(theirs[...], VALUE * 2)
    np.to_zarr(np.from_zarr(path) + 1, path, zarr_format=2)
    numpy.testing.assert_array_equal(np.from_zarr(path), VALUE * 2 + 1)
    with pytest.raises(FileExistsError):
        np.to_zarr(VALUE, path, "deep/x")
    group = tmp_path / "g.zip"
    with zarr.storage.ZipStore(group, mode="w") as store:
        zarr.create_array(store, name="a/b", data=VALUE)
    for k in range(2):
        np.to_zarr(VALUE + k, group, "a/c")
        for name, wanted in (("a/b", VALUE), ("a/c", VALUE + k)):
            numpy.testing.assert_array_equal(np.from_zarr(group, name), wanted)
    with pytest.raises(FileExistsError, match="is a group of a"):
        np.to_zarr(VALUE, group)
    with pytest.raises(np.errors.SourceError, match=r"a group with the arrays a/b, a/c"):
        np.from_zarr(group)
    assert sorted(os.listdir(tmp_path)) == ["g.zip", "x.zip"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_archive_is_what_is_in_it_whatever_it_is_called(zarr_format: Any, tmp_path: Path) -> None:
    """A store, or NumPy's arrays; of a group, and of nothing of either, errors say so."""
    path, url = tmp_path / "x.zip", f"memory://archives/{zarr_format}.zip"
    for place in (path, url):
        np.to_zarr(np.array(VALUE), place, zarr_format=zarr_format)
        numpy.testing.assert_array_equal(np.load(place), VALUE)
    with zarr.storage.ZipStore(tmp_path / "g.zip", mode="w") as store:
        zarr.create_array(store, name="a", data=VALUE, zarr_format=zarr_format)
    with pytest.raises(np.errors.SourceError, match="a group with the arrays a"):
        np.load(tmp_path / "g.zip")
    with open(tmp_path / "n.zip", "wb") as file:
        numpy.savez(file, a=VALUE)
    numpy.testing.assert_array_equal(np.load(tmp_path / "n.zip")["a"], VALUE)
    (tmp_path / "y.zip").write_text("something else")
    for name, error in (("y.zip", Exception), ("none.zip", FileNotFoundError)):
        with pytest.raises(error) as theirs:
            numpy.load(tmp_path / name)
        with pytest.raises(type(theirs.value)):
            np.load(tmp_path / name)


def test_archives_of_stores_in_a_folder_are_one_behind_the_other(tmp_path: Path) -> None:
    for k in range(3):
        np.save(tmp_path / f"{k}.zarr.zip", VALUE + k)
    expected = numpy.concatenate([VALUE + k for k in range(3)])
    for path in (tmp_path, tmp_path / "*.zip", [tmp_path / f"{k}.zarr.zip" for k in range(3)]):
        numpy.testing.assert_array_equal(np.from_zarr(path), expected)
    numpy.testing.assert_array_equal(np.load(tmp_path), expected)
    numpy.testing.assert_allclose(np.load(tmp_path / "*.zarr.zip").sum(axis=0), expected.sum(axis=0))


def test_an_archive_is_what_it_was_before_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    np.to_zarr(VALUE, path)
    x = np.from_zarr(path)
    with pytest.raises(np.errors.UserFunctionError):
        np.to_zarr(np.from_function(_broken, VALUE.shape) + 1, path)
    assert os.listdir(tmp_path) == ["x.zip"]
    numpy.testing.assert_array_equal(np.from_zarr(path), VALUE)
    np.to_zarr(VALUE + 1, path)
    with pytest.raises(np.errors.SourceError, match="has changed since it was opened"):
        x.sum().compute()
    (tmp_path / "y.zip").write_text("something else")
    with pytest.raises(FileExistsError, match="is no archive"):
        np.to_zarr(VALUE, tmp_path / "y.zip")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("notes.txt", "a word")
    with pytest.raises(FileExistsError, match=r"notes\.txt"):
        np.to_zarr(VALUE, tmp_path / "z.zip")


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_at_a_url_that_has_changed(version: Any) -> None:
    url = f"memory://changed/{version}.zarr"
    zarr.create_array(url, data=VALUE, chunks=(100, 6), zarr_format=version, overwrite=True)
    x = np.from_zarr(url)
    numpy.testing.assert_array_equal(x[:5], VALUE[:5])
    zarr.create_array(url, data=VALUE[:300] + 1, chunks=(50, 6), zarr_format=version, overwrite=True)
    with pytest.raises(np.errors.SourceError, match="has changed since it was opened"):
        (x + 1).sum().compute()
    numpy.testing.assert_array_equal(np.from_zarr(url), VALUE[:300] + 1)


def test_a_folder_of_tables_at_a_url() -> None:
    """It takes the place of tables alone, and is what it was where it cannot be made."""
    url = "memory://tables/of/rows/"
    for k in range(3):
        np.to_parquet(np.array(VALUE) + k, url, columns=list("abcdef"))
        numpy.testing.assert_array_equal(np.load(url), VALUE + k)
    with pytest.raises(np.errors.UserFunctionError):
        np.to_parquet(np.from_function(_broken, VALUE.shape) + 1, url)
    numpy.testing.assert_array_equal(np.from_parquet(url, "b"), VALUE[:, 1] + 2)
    files, path = fsspec.url_to_fs("memory://tables/of")
    assert [p.rpartition("/")[2] for p in files.ls(path, detail=False)] == ["rows"]
    with fsspec.open(f"{url}notes.txt", "wb") as file:
        file.write(b"a word")
    with pytest.raises(FileExistsError, match=r"something else than Parquet files: notes\.txt"):
        np.to_parquet(VALUE, url)
