"""What is written is read back right, whoever writes it; it is there whole, or what it was before; and little
of it is in memory at a time."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import fsspec
import h5py
import numpy
import pyarrow.parquet
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import memory, session
from spartan_ng.api.core import forcing
from spartan_ng.api.files import saving
from spartan_ng.api.files.sources import over
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import UserFunctionError
from spartan_ng.sinks import NpyFile, ParquetFolder, parquet, raw, zarr_store
from tests.sampling import examples
from tests.sources.recorder import Recorder
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((3001, 40))


@pytest.fixture(autouse=True)
def everything_is_large() -> Iterator[None]:
    with (
        config.override(small_bytes=0),
        mock.patch.object(saving, "_SHARE", 1 << 40),
        mock.patch.object(saving, "PART_BYTES", 100_000),
        mock.patch.object(memory, "BAND_BYTES", 50_000),
        mock.patch.object(zarr_store, "CHUNK_BYTES", 40_000),
    ):
        yield


@pytest.fixture(params=[0, 1, 3])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    backend: Any = SimulatedBackend(request.param) if request.param else EmbeddedBackend(2)
    backend.is_local = True
    with running_on(backend):
        yield request.param


def _read_npy(path: Path) -> Any:
    return numpy.load(path)


def _read_zarr(path: Path) -> Any:
    return zarr.open_array(path)[...]


def _read_hdf5(path: Path) -> Any:
    with h5py.File(path) as file:
        return file["data"][...]


def _read_parquet(path: Path) -> Any:
    table = pyarrow.parquet.read_table(path)
    return numpy.stack([c.to_numpy() for c in table.columns], 1)


def _read_folder(path: Path) -> Any:
    parts = [pyarrow.parquet.read_table(p) for p in sorted(path.iterdir())]
    return numpy.concatenate([numpy.stack([c.to_numpy() for c in p.columns], 1) for p in parts])


FORMATS = {".npy": _read_npy, ".zarr": _read_zarr, ".h5": _read_hdf5, ".parquet": _read_parquet}
PROGRAMS = {
    "elements": lambda xp, x: x * 2 + 1,
    "turned": lambda xp, x: x[::-1, ::-2] + 1,
    "columns": lambda xp, x: (x - x.mean(axis=0)) / x.std(axis=0),
    "a scan": lambda xp, x: xp.cumsum(x, axis=0),
    "a product": lambda xp, x: x @ x[:40],
    "bytes": lambda xp, x: (x > 0.5).astype("u1"),
}


@pytest.mark.some(18)
@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_read_back(suffix: str, name: str, tmp_path: Path, workers: int) -> None:
    path = tmp_path / f"x{suffix}"
    expected = PROGRAMS[name](numpy, VALUE)
    for outside in (False, True):
        x = over(Recorder(VALUE, (100, 40))) if outside else np.array(VALUE)
        np.save(path, PROGRAMS[name](np, x))
        found = FORMATS[suffix](path)
        assert found.dtype == expected.dtype
        numpy.testing.assert_allclose(found, expected, rtol=1e-9)
        assert os.listdir(tmp_path) == [path.name]


def test_a_source_goes_to_a_file_box_by_box(tmp_path: Path, workers: int) -> None:
    for suffix in (".npy", ".zarr", ".h5"):
        source = Recorder(VALUE)
        name, evaluate = ("compute_nodes", forcing.compute_nodes) if workers else ("once", forcing.once)
        with mock.patch.object(saving, name, wraps=evaluate) as asked:
            np.save(tmp_path / f"x{suffix}", over(source) * 2)
        assert asked.call_count == 1  # no part of it came to the driver
        assert (source.times == 1).all()
        assert source.largest_bytes <= 50_000


@pytest.mark.some(8)
@pytest.mark.parametrize("suffix", [*FORMATS, "/", ".npz", "an open file"])
@pytest.mark.parametrize("name", ["kept", "a sort", "a scan", "elements"])
def test_results_of_workers_do_not_go_through_the_driver(suffix: str, name: str, tmp_path: Path) -> None:
    """Small beside the machine's memory as they are: workers write, or a part at a time comes here."""
    programs = {**PROGRAMS, "kept": lambda xp, x: x * 2, "a sort": lambda xp, x: xp.sort(x.reshape(-1))}
    expected = programs[name](numpy, VALUE)
    came: list[int] = []
    backend: Any = SimulatedBackend(3)
    backend.is_local = True

    def gather(ref: Any, box: Any) -> Any:
        found = SimulatedBackend.gather(backend, ref, box)
        came.append(found.nbytes)
        return found

    path = tmp_path / (f"x{suffix}" if suffix.startswith(".") else "x")
    with running_on(backend), mock.patch.object(backend, "gather", gather):
        with mock.patch.object(saving, "_SHARE", 4):
            a = programs[name](np, np.array(VALUE))
            a = a.persist() if name == "kept" else a
            a = a if a.ndim == 2 else a.reshape(-1, 40)
            if suffix == ".npz":
                np.savez(path, a, small=numpy.arange(3))
            elif suffix == "an open file":
                with open(path, "wb") as file:
                    np.save(file, a)
            elif suffix == "/":
                np.to_parquet(a, f"{path}/")
            else:
                np.save(path, a)
        largest = max(came, default=0)
    assert largest <= (16 if suffix in (".npy", ".zarr", ".h5", "/") else 100_000)
    if suffix == ".npz":
        with numpy.load(path) as archive:
            assert archive.files == ["arr_0", "small"]
            found = archive["arr_0"]
    else:
        found = {"/": _read_folder, "an open file": _read_npy, **FORMATS}[suffix](path)
    numpy.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-9)


@examples(100)
@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    dtype=st.sampled_from(["u1", "f4", "f8", "c16", "?", ">i4", "M8[s]"]),
    least=st.sampled_from([0, 8, 100, 1 << 14]),
    large=st.sampled_from([0, 200, 1 << 23]),
    draw=st.randoms(use_true_random=False),
)
def test_blocks_of_any_place_and_layout_lie_where_they_belong(
    shape: list[int], dtype: str, least: int, large: int, draw: random.Random
) -> None:
    """Written in any order, again, in another order of axes, or as a part of something larger."""
    value = (numpy.arange(numpy.prod(shape)) * 7 % 251).astype(dtype).reshape(shape)
    cuts = [sorted({0, n, *(draw.randint(0, n) for _ in range(2))}) for n in shape]
    boxes = list(itertools.product(*(itertools.pairwise(c) for c in cuts)))
    draw.shuffle(boxes)
    limits = mock.patch.multiple(raw, _LEAST_RUN=least, _LARGE=large)
    with tempfile.TemporaryDirectory() as folder, limits:
        sink = NpyFile(f"{folder}/x.npy", value.shape, value.dtype)
        for box in [*boxes, *boxes[:2]]:
            block = value[tuple(slice(*b) for b in box)]
            order = draw.sample(range(block.ndim), block.ndim)
            turned = numpy.ascontiguousarray(block.transpose(order)).transpose(numpy.argsort(order))
            sink.write(draw.choice([block, block.copy(), turned]), box)
        pickle.loads(pickle.dumps(sink)).finish()
        found = numpy.load(f"{folder}/x.npy")
    assert found.dtype == value.dtype
    numpy.testing.assert_array_equal(found, value)


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "f2", "f4", "c8", "c16", "g", ">f8", "S3"])
def test_dtypes_of_hdf5_files(dtype: str, tmp_path: Path) -> None:
    """Those that workers write, and those that the library does."""
    value = (numpy.arange(60) % 7).astype(dtype).reshape(20, 3)
    np.to_hdf5(np.array(value), tmp_path / "x.h5", "in/side")
    np.to_hdf5(np.array(value), tmp_path / "y.h5", "in/side", chunks=(7, 3), compression="gzip")
    for name in ("x.h5", "y.h5"):
        with h5py.File(tmp_path / name) as file:
            assert file["in/side"].dtype == value.dtype
            numpy.testing.assert_array_equal(file["in/side"][...], value)


@pytest.mark.slow
def test_chunks_across_workers_parts_are_whole(tmp_path: Path) -> None:
    backend: Any = SimulatedBackend(3)
    backend.is_local = True
    with running_on(backend):
        for _ in range(5):
            chunks = random.choice([(700, 40), (1001, 7), (3001, 40), (13, 40)])
            np.to_zarr(np.array(VALUE) + 1, tmp_path / "x.zarr", chunks=chunks, compressors=None)
            array = zarr.open_array(tmp_path / "x.zarr")
            assert array.chunks == chunks
            numpy.testing.assert_array_equal(array[...], VALUE + 1)


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".h5"])
def test_all_shapes(shape: tuple[int, ...], suffix: str, tmp_path: Path) -> None:
    value = numpy.arange(numpy.prod(shape, dtype=int)).reshape(shape) * 1.5
    np.save(tmp_path / f"x{suffix}", np.array(value) + 0)
    numpy.testing.assert_array_equal(FORMATS[suffix](tmp_path / f"x{suffix}"), value)


def test_elements_that_other_libraries_know_otherwise(tmp_path: Path) -> None:
    """Zarr has scalars without widths and orders of bytes, Arrow has one order of bytes."""
    for dtype in ("U4", "S3", ">i4", ">f8", "<c8", ">M8[s]", "?"):
        for shape in ((), (3,)):
            value = numpy.ones(shape, "i8").astype(dtype)
            zarr.create_array(tmp_path / "x.zarr", data=value, zarr_format=2, overwrite=True)
            numpy.testing.assert_array_equal(np.from_zarr(tmp_path / "x.zarr"), value, strict=bool(shape))
            np.to_zarr(value, tmp_path / "x.zarr", zarr_format=2)
            numpy.testing.assert_array_equal(np.load(tmp_path / "x.zarr"), value, strict=bool(shape))
    for dtype in (">i2", ">u4", ">f8", ">M8[s]"):
        value = numpy.arange(6).reshape(3, 2).astype("i8").astype(dtype)
        for path in ("x.parquet", "tables/"):
            np.to_parquet(value, f"{tmp_path}/{path}")
            numpy.testing.assert_array_equal(np.from_parquet(tmp_path / path), value)
    with pytest.raises(np.errors.ShapeError, match=r"rows of shape \(4, 0\) without columns"):
        np.to_parquet(numpy.zeros((4, 0)), tmp_path / "x.parquet")


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_folder_of_parquet_files_is_written_by_workers(name: str, tmp_path: Path, workers: int) -> None:
    """Wide arrays, too, whose rows are cut where arrays lie so, and blocks that are written again."""
    expected = PROGRAMS[name](numpy, VALUE)
    folder = tmp_path / "x"
    for outside in (False, True):
        x = over(Recorder(VALUE, (100, 40))) if outside else np.array(VALUE)
        with mock.patch.object(parquet, "FILE_BYTES", 40_000):
            np.to_parquet(PROGRAMS[name](np, x), f"{folder}/")
        numpy.testing.assert_allclose(_read_folder(folder), expected, rtol=1e-9)
        numpy.testing.assert_allclose(numpy.asarray(np.from_parquet(folder)), expected, rtol=1e-9)
        assert len(os.listdir(folder)) > 2
        assert os.listdir(tmp_path) == ["x"]


@examples(100)
@given(rows=st.integers(1, 30), width=st.integers(1, 5), draw=st.randoms(use_true_random=False))
def test_files_of_any_blocks_make_each_row_once(rows: int, width: int, draw: random.Random) -> None:
    """Cut at some rows and columns, and again at others, of which some are missing."""
    value = numpy.arange(rows * width, dtype=float).reshape(rows, width)

    def boxes() -> list[Any]:
        cuts = [sorted({0, n, *(draw.randint(0, n) for _ in range(2))}) for n in value.shape]
        return list(itertools.product(*(itertools.pairwise(c) for c in cuts)))

    with tempfile.TemporaryDirectory() as folder:
        names = [str(k) for k in range(width)]
        sink = ParquetFolder(f"{folder}/x", value.shape, value.dtype, names, {})
        other = boxes()
        written = [*draw.sample(other, len(other) // 2), *boxes()]
        draw.shuffle(written)
        for box in written:
            sink.write(value[tuple(slice(*b) for b in box)], box)
        sink.finish()
        numpy.testing.assert_array_equal(_read_folder(Path(folder) / "x"), value)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(FileExistsError, match="else than Parquet files: letter"):
        np.to_parquet(VALUE, f"{tmp_path}/")
    assert os.listdir(tmp_path) == ["letter.txt"]
    np.to_parquet(VALUE[:0], f"{tmp_path}/empty/")
    assert np.from_parquet(tmp_path / "empty").shape == (0, 40)


def test_columns_have_names(tmp_path: Path) -> None:
    np.to_parquet(np.array(VALUE[:, :2]) * 2, tmp_path / "x.parquet", ["a", "b"])
    found = np.from_parquet(tmp_path / "x.parquet", "b")
    numpy.testing.assert_array_equal(numpy.asarray(found), VALUE[:, 1] * 2)
    with pytest.raises(ValueError, match="1 names do not fit"):
        np.to_parquet(VALUE, tmp_path / "y.parquet", ["a"])
    with pytest.raises(ValueError, match="has no columns"):
        np.to_parquet(numpy.ones((2, 2, 2)), tmp_path / "y.parquet")
    with pytest.raises(ValueError, match="do not fit the shape"):
        np.to_zarr(VALUE, tmp_path / "y.zarr", chunks=(3,))
    with pytest.raises(TypeError, match="objects"):
        np.to_zarr(numpy.array([None]), tmp_path / "y.zarr")
    assert os.listdir(tmp_path) == ["x.parquet"]


def test_a_store_at_a_url() -> None:
    np.to_zarr(np.array(VALUE) * 2, "memory://sinks/x.zarr", chunks=(500, 40))
    numpy.testing.assert_array_equal(numpy.asarray(np.from_zarr("memory://sinks/x.zarr")), VALUE * 2)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".npy", ".h5", ".parquet", ".zarr", ".zarr.zip"])
def test_files_at_a_url(suffix: str, workers: int) -> None:
    """As others read them; they may be made of what they take the place of, and stay what they are where they
    cannot be made."""
    url = f"memory://sinks/{workers}{suffix[1:].replace('.', '')}/x{suffix}"
    np.save(url, np.array(VALUE) * 2)
    for k in range(2):
        numpy.testing.assert_array_equal(numpy.asarray(np.load(url)), VALUE * 2 + k)
        np.save(url, np.load(url) + 1)

    def broken(box: Any) -> Any:
        raise ArithmeticError("no elements")

    with pytest.raises(np.errors.UserFunctionError):
        np.save(url, np.from_function(broken, VALUE.shape) + 1)
    numpy.testing.assert_array_equal(numpy.asarray(np.load(url)), VALUE * 2 + 2)
    files, path = fsspec.url_to_fs(url)
    assert [p.rpartition("/")[2] for p in files.ls(path.rpartition("/")[0], detail=False)] == [f"x{suffix}"]


def test_archives_and_datasets_at_a_url() -> None:
    np.savez("memory://sinks/archive", a=np.array(VALUE) + 1, b=VALUE)
    with fsspec.open("memory://sinks/archive.npz") as file, numpy.load(file) as archive:
        numpy.testing.assert_array_equal(archive["a"], VALUE + 1)
    for k, name in enumerate("abab"):
        np.to_hdf5(np.array(VALUE) + k, "memory://sinks/x.h5", name)
    with fsspec.open("memory://sinks/x.h5") as file, h5py.File(file) as found:
        numpy.testing.assert_array_equal(found["a"][...], VALUE + 2)
        numpy.testing.assert_array_equal(found["b"][...], VALUE + 3)
    np.save("memory://sinks/deep/x.npy", VALUE)
    with pytest.raises(IsADirectoryError):
        np.to_parquet(VALUE, "memory://sinks/deep")
    with pytest.raises(FileExistsError, match=r"something else than Parquet files: x\.npy"):
        np.to_parquet(VALUE, "memory://sinks/deep/")


def test_a_file_may_be_written_from_itself(tmp_path: Path) -> None:
    for suffix in (".npy", ".zarr"):
        path = tmp_path / f"x{suffix}"
        np.save(path, np.array(VALUE))
        np.save(path, np.load(path) * 2)
        numpy.testing.assert_array_equal(FORMATS[suffix](path), VALUE * 2)
    assert session.current() is not None


@pytest.mark.parametrize("where", ["memory://sinks/stores", "{folder}"])
@pytest.mark.parametrize("shape", [(700, 6), (5,), (), (0, 3)])
@pytest.mark.parametrize("version", [2, 3])
def test_a_store_is_what_it_was_before_until_it_is_whole(where, shape, version, tmp_path: Path) -> None:
    """At a URL, too, and where it is made of what it takes the place of, or its elements cannot be made."""
    folder = where.format(folder=tmp_path)
    url, value = f"{folder}/x.zarr", numpy.random.default_rng(0).random(shape)

    def inside() -> list[str]:
        files, path = fsspec.url_to_fs(folder)
        return sorted(p.rpartition("/")[2] for p in files.ls(path, detail=False))

    def wrong(box: Any) -> Any:
        raise ValueError("no elements")

    np.to_zarr(value, url, zarr_format=version)
    for k in range(2):
        numpy.testing.assert_array_equal(numpy.asarray(np.load(url)), value + k)
        np.to_zarr(np.load(url) + 1, url, zarr_format=version)
    a = np.from_function(wrong, shape) if value.size else value
    packed = "auto" if value.size else "no such"
    for name in ("x", "new"):
        with pytest.raises((UserFunctionError, TypeError)):
            np.to_zarr(a, f"{folder}/{name}.zarr", zarr_format=version, compressors=packed)
        assert inside() == ["x.zarr"]
    numpy.testing.assert_array_equal(numpy.asarray(np.load(url)), value + 2)


@pytest.mark.parametrize("name", ["x.parquet", "x/"])
def test_columns_of_one_name_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="two columns are called 'b'"):
        np.to_parquet(np.ones((3, 3)), f"{tmp_path}/{name}", columns=["a", "b", "b"])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [7, 1310, 20_000])
@pytest.mark.parametrize("name", ["elements", "a scan"])
def test_what_lies_in_one_piece_of_a_file_is_written_by_the_system(
    name: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short: through the map a page of the file is read, and filled with zeros, before it has any."""

    def mapped(self: raw.RawFile) -> None:
        raise AssertionError("written through a map")

    monkeypatch.setattr(raw.RawFile, "_map", mapped)
    x = numpy.random.default_rng(0).random((rows, 100))
    numpy.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", PROGRAMS[name](np, np.load(tmp_path / "x.npy")))
    expected = PROGRAMS[name](numpy, x)
    numpy.testing.assert_allclose(numpy.load(tmp_path / "y.npy"), expected, rtol=1e-9, atol=1e-9)
