"""A file that is opened twice is one array: an expression reads each part of it once, as long as nothing has
been written to it between the two."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import imageio.v3
import numpy
import pytest
import zarr

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.errors import SourceError
from spartan_ng.sources import hdf5, images, zarr_array
from spartan_ng.sources.columns import Columns
from spartan_ng.sources.source import Source
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((4000, 6))


def _images(path: Path) -> None:
    path.mkdir()
    for k in range(5):
        imageio.v3.imwrite(path / f"{k}.png", (VALUE[k * 40 : k * 40 + 40] * 255).astype("u1"))


def last_written(path: Path, then: float) -> None:
    """Have a file, or all in a folder, say so."""
    for one in (path, *path.rglob("*")):
        os.utime(one, (then, then))


def past(path: Path) -> None:
    """Have them be written a minute ago."""
    last_written(path, time.time() - 60)


KINDS: dict[str, tuple[Any, Callable[[Path], Any]]] = {
    "x.zarr": (zarr_array.ZarrArray, lambda p: zarr.create_array(p, data=VALUE, chunks=(500, 6))),
    "x.zip": (zarr_array.ZarrArray, lambda p: np.to_zarr(np.array(VALUE), p)),
    "x.h5": (hdf5.Hdf5Dataset, lambda p: np.to_hdf5(np.array(VALUE), p, chunks=(500, 6))),
    "x.parquet": (Columns, lambda p: np.to_parquet(np.array(VALUE), p)),
    "x.csv": (Columns, lambda p: numpy.savetxt(p, VALUE, delimiter=",", header="a,b,c,d,e,f", comments="")),
    "tables": (Columns, lambda p: np.to_parquet(np.array(VALUE), f"{p}/")),
    "images": (images.ImageStack, _images),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_is_opened_twice_is_read_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, write = KINDS[name]
    write(path := tmp_path / name)
    past(path)
    times: Counter[Any] = Counter()
    plain = kind.read

    def read(source: Source, box: Any) -> Any:
        times[str(source), box] += 1
        return plain(source, box)

    monkeypatch.setattr(kind, "read", read)
    with np.config.override(small_bytes=0), running_on(EmbeddedBackend(2)):
        wanted = numpy.asarray(np.load(path))
        times.clear()
        total = np.where(np.load(path) > 0.5, np.load(path), 0).sum()
        numpy.testing.assert_allclose(float(total), numpy.where(wanted > 0.5, wanted, 0).sum())
        assert times
        assert {*times.values()} == {1}
        assert np.load(path)._node() is not np.load(path)[:3]._node()


def test_another_part_or_place_is_another_array(tmp_path: Path) -> None:
    """Other columns, dtypes, names of datasets and options, and files of other states."""
    np.to_parquet(np.array(VALUE), tmp_path / "x.parquet", [*"abcdef"])
    for name, value in (("one", VALUE), ("two", VALUE + 1)):
        np.to_hdf5(np.array(value), tmp_path / "x.h5", name, chunks=(500, 6))
    with np.config.override(small_bytes=0):
        a, b = (np.from_parquet(tmp_path / "x.parquet", c) for c in "ab")
        numpy.testing.assert_array_equal(a - b, VALUE[:, 0] - VALUE[:, 1])
        single = np.from_parquet(tmp_path / "x.parquet", "a", dtype="f4")
        numpy.testing.assert_array_equal(single - a, VALUE[:, 0].astype("f4") - VALUE[:, 0])
        one, two = (np.from_hdf5(tmp_path / "x.h5", name) for name in ("one", "two"))
        numpy.testing.assert_array_equal(two - one, VALUE + 1 - VALUE)
        np.to_parquet(np.array(VALUE) * 2, tmp_path / "x.parquet", [*"abcdef"])
        numpy.testing.assert_array_equal(np.from_parquet(tmp_path / "x.parquet", "a"), VALUE[:, 0] * 2)
        with pytest.raises(SourceError, match="has changed"):
            numpy.asarray(a)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_chunk_that_was_written_meanwhile_tells_them_apart(zarr_format: Any, tmp_path: Path) -> None:
    """The description stays; what was opened first has changed, what is opened now has not."""
    store = zarr.create_array(tmp_path / "x.zarr", data=VALUE, chunks=(500, 6), zarr_format=zarr_format)
    past(tmp_path / "x.zarr")
    with np.config.override(small_bytes=0):
        first = np.load(tmp_path / "x.zarr")
        store[600:700] = 5
        now = np.load(tmp_path / "x.zarr")
        wanted = VALUE.copy()
        wanted[600:700] = 5
        numpy.testing.assert_array_equal(now, wanted)
        with pytest.raises(SourceError, match="has changed"):
            numpy.asarray(first)
        numpy.testing.assert_array_equal(
            numpy.asarray(first[:400] + now[600:1000]), VALUE[:400] + wanted[600:1000]
        )


def test_a_write_to_one_leaves_the_other(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x.zarr", data=VALUE, chunks=(500, 6))
    past(tmp_path / "x.zarr")
    with np.config.override(small_bytes=0):
        x, y = (np.load(tmp_path / "x.zarr") for _ in range(2))
        x[:10] = 7
        numpy.testing.assert_array_equal(y, VALUE)
        assert (numpy.asarray(x[:10]) == 7).all()
        x, y = (np.load(tmp_path / "x.zarr").persist() for _ in range(2))
        x += 1
        numpy.testing.assert_array_equal(y, VALUE)


@pytest.mark.parametrize("name", ["x.npy", "x.zarr", "x.h5", "x.parquet"])
def test_what_lies_at_a_url_is_opened_anew(name: str) -> None:
    """Its server may say the same of what was written twice within a second: so stores of S3 did."""
    url = f"memory://anew/{name}"
    np.save(url, np.array(VALUE))
    with np.config.override(small_bytes=0):
        assert np.load(url)._node() is not np.load(url)._node()


def _h5(path: Path, value: Any) -> None:
    with h5py.File(path, "a") as file:
        file.require_dataset("data", value.shape, value.dtype, chunks=(500, 6))[...] = value


def _zarr(path: Path, value: Any) -> None:
    store = zarr.open_array(path, mode="a", shape=value.shape, dtype=value.dtype, chunks=(500, 6))
    store[...] = value


def _csv(path: Path, value: Any) -> None:
    path.touch()
    with open(path, "r+") as file:
        file.writelines(["a,b,c,d,e,f\n", *(",".join(f"{x:.6f}" for x in row) + "\n" for row in value)])


AGAIN: dict[str, Callable[[Path, Any], None]] = {"x.h5": _h5, "x.zarr": _zarr, "x.csv": _csv}
"""Writes where the file is, and as many bytes each time."""


@pytest.mark.parametrize("age", [0.0, 0.5])
@pytest.mark.parametrize("name", AGAIN)
def test_what_was_written_twice_in_a_tick_of_the_clock_is_opened_anew(
    name: str, age: float, tmp_path: Path
) -> None:
    """On most file systems a tick takes milliseconds, on some two seconds."""
    path, then = tmp_path / name, time.time() - age
    kept: list[Any] = []
    with np.config.override(small_bytes=0):
        for value in (VALUE, VALUE + 1):
            AGAIN[name](path, value)
            last_written(path, then)
            kept.append(np.load(path))
            numpy.testing.assert_allclose(numpy.asarray(kept[-1] * 1), value, atol=1e-5)


def test_a_store_of_more_files_than_are_looked_at_is_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zarr_array, "_LOOKED_AT", 3)
    store = zarr.create_array(tmp_path / "x.zarr", data=VALUE, chunks=(100, 6))
    past(tmp_path / "x.zarr")
    with np.config.override(small_bytes=0):
        first = np.load(tmp_path / "x.zarr")
        wanted = VALUE.copy()
        for row in range(0, len(VALUE), 100):
            wanted[row] = store[row] = row
            numpy.testing.assert_array_equal(
                np.load(tmp_path / "x.zarr")[row : row + 100], wanted[row : row + 100]
            )
        with pytest.raises(SourceError, match="has changed"):
            numpy.asarray(first)
