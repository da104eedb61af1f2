"""A file that is opened twice is one array: an expression reads each part of it once, as long as nothing has
been written to it between the two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
