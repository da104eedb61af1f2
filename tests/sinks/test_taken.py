"""A write takes the place of what it would have made itself: the libraries that own the formats find all else
as it was."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy
import pytest
import zarr

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((300, 20))


@pytest.fixture(autouse=True)
def everything_is_large() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


@pytest.fixture(params=[0, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    if not request.param:
        yield 0
        return
    backend: Any = SimulatedBackend(request.param)
    backend.is_local = True
    with running_on(backend):
        yield request.param


# --- zarr ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["a folder", "a URL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path) if request.param == "a folder" else f"memory://taken/{uuid.uuid4().hex}"


def _members(url: str, **how: Any) -> dict[str, Any]:
    """What a zarr group has, by name."""
    group = zarr.open_group(url, mode="r", **how)
    found: dict[str, Any] = {"/": dict(group.attrs)}
    for name, member in group.members(max_depth=None):
        value = member[...].tolist() if isinstance(member, zarr.Array) else "group"
        found[name] = value, dict(member.attrs)
    return found


def _consolidate(url: str) -> None:
    store: Any = zarr.storage.FsspecStore.from_url(url, read_only=False) if "://" in url else url
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.consolidate_metadata(store)


@pytest.mark.some(6)
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_consolidated", [False, True])
@pytest.mark.parametrize("name", ["a", "new", "g/a", "g/new", "more/deep/new", "/g//a/"])
@pytest.mark.parametrize("is_path", [False, True])
def test_a_member_is_added_or_replaced_and_all_others_stay(
    version: Any, is_consolidated: bool, name: str, is_path: bool, place: str
) -> None:
    """What zarr makes of the group when it overwrites the member."""
    url, oracle = f"{place}/x.zarr", f"{place}/oracle.zarr"
    for where in (url, oracle):
        group = zarr.open_group(where, mode="w", zarr_format=version, attributes={"unit": "m"})
        for k, other in enumerate(["a", "b", "g/a", "g/b"]):
            group.create_array(other, data=numpy.arange(k + 5) * 1.5, chunks=(2,))
        if is_consolidated:
            _consolidate(where)
    zarr.open_group(oracle).create_array(name.strip("/").replace("//", "/"), data=VALUE, overwrite=True)
    if is_consolidated:
        _consolidate(oracle)
    x = np.array(VALUE) * 1
    if is_path:
        np.to_zarr(x, f"{url}/{name.strip('/').replace('//', '/')}")
    else:
        np.to_zarr(x, url, name)
    assert _members(url) == _members(oracle)
    assert _members(url, use_consolidated=is_consolidated) == _members(oracle)
    numpy.testing.assert_array_equal(numpy.asarray(np.from_zarr(url, name)), VALUE)
    np.to_zarr(np.from_zarr(url, name) + 1, url, name)
    numpy.testing.assert_array_equal(numpy.asarray(np.from_zarr(url, name)), VALUE + 1)
    if "://" not in place:
        assert sorted(os.listdir(place)) == ["oracle.zarr", "x.zarr"]


@pytest.mark.some(8)
@pytest.mark.parametrize("before", [2, 3])
@pytest.mark.parametrize("after", [2, 3])
@pytest.mark.parametrize("shape", [(300, 20), (5,), (), (0, 3)])
@pytest.mark.parametrize("names", [None, ["x", "y"]])
def test_an_array_keeps_what_was_noted_at_the_one_before(
    before: Any, after: Any, shape: Any, names: Any, place: str
) -> None:
    """Attributes, and the names of as many dimensions, as xarray has them in each format."""
    url, notes = f"{place}/x.zarr", {"units": "m", "valid_range": [0, 1.5], "of": {"deep": None}}
    named = {"dimension_names": names} if before == 3 else {}
    old = zarr.create_array(url, data=VALUE, zarr_format=before, **named)
    old.attrs.update({**notes, "_ARRAY_DIMENSIONS": names} if before == 2 and names else notes)
    np.to_zarr(numpy.ones(shape), url, zarr_format=after)
    found = zarr.open_array(url)
    is_named = names is not None and len(shape) == 2
    assert found.shape == shape
    assert dict(found.attrs) == ({**notes, "_ARRAY_DIMENSIONS": names} if is_named and after == 2 else notes)
    if after == 3:
        assert found.metadata.dimension_names == (tuple(names) if is_named else None)


def test_a_group_is_made_where_an_array_is_named_in_it(place: str, workers: int) -> None:
    for k, name in enumerate(["a", "b/c"]):
        np.to_zarr(np.array(VALUE) + k, f"{place}/x.zarr", name, zarr_format=2)
    assert sorted(_members(f"{place}/x.zarr")) == ["/", "a", "b", "b/c"]
    with pytest.raises(ValueError, match="is a group of format 2"):
        np.to_zarr(VALUE, f"{place}/x.zarr", "a", zarr_format=3)


def _put(place: str, name: str, text: str = "dear") -> None:
    files, path = fsspec.url_to_fs(f"{place}/{name}")
    files.makedirs(path.rpartition("/")[0], exist_ok=True)
    files.pipe_file(path, text.encode())


@pytest.mark.parametrize("version", [2, 3])
def test_what_an_array_cannot_replace_is_left_alone(version: Any, place: str) -> None:
    group = zarr.open_group(f"{place}/group.zarr", mode="w", zarr_format=version)
    group.create_array("a", data=VALUE)
    zarr.create_array(f"{place}/array.zarr", data=VALUE, zarr_format=version)
    zarr.create_array(f"{place}/noted.zarr", data=VALUE, zarr_format=version)
    _put(place, "noted.zarr/notes.txt")
    _put(place, "folder.zarr/data/table.csv")
    _put(place, "broken.zarr/zarr.json", "{")
    _put(place, "file.zarr")
    files, path = fsspec.url_to_fs(place)
    before = {p: files.cat_file(p) for p in files.find(path)}

    def never(box: Any) -> Any:
        raise AssertionError("asked before the place was")

    x = np.from_function(never, (9, 9))
    for name, said in {
        "group.zarr": r"group\.zarr is a group of a, which is left alone; name one of its members",
        "array.zarr/x": r"array\.zarr is an array, which has no members",
        "array.zarr/c/9": r"array\.zarr is an array, which has no members",
        "noted.zarr": r"something else than a zarr array: notes\.txt",
        "folder.zarr": r"folder\.zarr is no zarr array, and has: data",
        "broken.zarr": r"is no zarr array, and has: zarr\.json",
    }.items():
        with pytest.raises(FileExistsError, match=said):
            np.to_zarr(x, f"{place}/{name}")
    with pytest.raises(FileExistsError, match=r"folder\.zarr is no zarr group, and has data"):
        np.to_zarr(x, f"{place}/folder.zarr", "x")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        np.to_zarr(x, f"{place}/file.zarr")
    assert {p: files.cat_file(p) for p in files.find(path)} == before


def test_arrays_of_any_layout_are_replaced(tmp_path: Path) -> None:
    """However zarr names their chunks; empty folders, too."""
    url = str(tmp_path / "x.zarr")
    (tmp_path / "x.zarr").mkdir()
    np.save(url, np.array(VALUE))
    for version, keys in [
        (3, {"name": "default", "separator": "/"}),
        (3, {"name": "default", "separator": "."}),
        (3, {"name": "v2", "separator": "/"}),
        (3, {"name": "v2", "separator": "."}),
        (2, {"name": "v2", "separator": "/"}),
        (2, {"name": "v2", "separator": "."}),
    ]:
        for shape in ((300, 20), ()):
            made: dict[str, Any] = {"zarr_format": version, "chunk_key_encoding": keys, "overwrite": True}
            zarr.create_array(url, data=VALUE if shape else VALUE[0, 0], attributes={"unit": "m"}, **made)
            np.save(url, np.array(VALUE) * 2)
            numpy.testing.assert_array_equal(zarr.open_array(url)[...], VALUE * 2)
            assert os.listdir(tmp_path) == ["x.zarr"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_write_to_a_group_that_fails_leaves_it(version: Any, place: str) -> None:
    """It may be read meanwhile, and has no other members."""
    url, seen = f"{place}/x.zarr", list[Any]()
    zarr.open_group(url, mode="w", zarr_format=version).create_array("a", data=VALUE)
    _consolidate(url)
    before = _members(url)

    def read(box: Any) -> Any:
        if not seen and "://" not in place:
            seen.append(_members(url, use_consolidated=False))
        if box[0][1] == len(VALUE):
            raise ArithmeticError("no elements")
        return numpy.zeros([hi - lo for lo, hi in box])

    for name in ("a", "new", "deep/new"):
        with pytest.raises(np.errors.UserFunctionError):
            np.to_zarr(np.from_function(read, VALUE.shape, chunks=(100, 20)) + 1, url, name)
    assert _members(url) == before
    assert all(found == before for found in seen)
    files, path = fsspec.url_to_fs(place)
    assert [p.rpartition("/")[2] for p in files.ls(path, detail=False)] == ["x.zarr"]


def test_names_of_local_files_may_be_urls(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/x.zarr"
    np.to_zarr(np.array(VALUE) * 2, url)
    for found in (np.from_zarr(url), np.load(url), np.load(tmp_path / "x.zarr")):
        numpy.testing.assert_array_equal(numpy.asarray(found), VALUE * 2)
    with pytest.raises(FileNotFoundError):
        np.to_zarr(VALUE, f"file://{tmp_path}/missing/x.zarr")
    for name in ("x.npy", "x.h5", "x.parquet", "tables/"):
        write: Any = np.to_parquet if name.endswith("/") else lambda a, path: np.save(path, a)
        write(np.array(VALUE) * 2, f"file://{tmp_path}/{name}")
        for found in (np.load(f"file://{tmp_path}/{name}"), np.load(tmp_path / name)):
            numpy.testing.assert_array_equal(numpy.asarray(found), VALUE * 2)
    VALUE.tofile(tmp_path / "x.bin")
    numpy.testing.assert_array_equal(np.from_raw(f"file://{tmp_path}/x.bin", VALUE.shape), VALUE)
    assert sorted(os.listdir(tmp_path)) == ["tables", "x.bin", "x.h5", "x.npy", "x.parquet", "x.zarr"]


# --- files and folders of tables -------------------------------------------------------------------------


@pytest.mark.parametrize("inside", ["x.parquet/deep.txt", "a=1/x.parquet", "_metadata", ".hidden"])
def test_a_folder_of_more_than_tables_is_left_alone(inside: str, tmp_path: Path) -> None:
    _put(str(tmp_path), f"x/{inside}")
    _put(str(tmp_path), "x/0.parquet")
    with pytest.raises(
        FileExistsError, match=rf"else than Parquet files: {inside.partition('/')[0]}, which is"
    ):
        np.to_parquet(VALUE, f"{tmp_path}/x/")
    assert (tmp_path / "x" / inside).read_text() == "dear"


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.h5", "x.parquet", "x.bin"])
def test_a_folder_where_a_file_would_be_is_left_alone(name: str, tmp_path: Path) -> None:
    _put(str(tmp_path), f"{name}/letter.txt")
    write: Any = {"x.npz": np.savez, "x.bin": lambda p, a: a.tofile(p)}.get(name, np.save)
    with pytest.raises(IsADirectoryError):
        write(tmp_path / name, np.array(VALUE) * 2)
    assert (tmp_path / name / "letter.txt").read_text() == "dear"
