"""What is packed in chunks is unpacked as often as it has to be, whatever boxes are asked for, and never
answers otherwise than the library that wrote it."""

from __future__ import annotations

import gc
import pickle
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import h5py
import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.sources import columns, kept, read_box
from spartan_ng.sources.columns import ParquetColumns
from spartan_ng.sources.hdf5 import Hdf5Dataset
from spartan_ng.sources.indexed import Indexed
from spartan_ng.sources.source import Source
from spartan_ng.sources.zarr_array import ZarrArray
from tests.sampling import examples

VALUE = numpy.random.default_rng(0).random((1000, 12))
NAMES = [f"c{k}" for k in range(12)]


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    fresh = kept.Kept()
    with (
        mock.patch.object(kept, "KEPT", fresh),
        mock.patch("spartan_ng.sources.columns.KEPT", fresh),
        config.override(small_bytes=0),
    ):
        yield


def _parquet(folder: str, rows: int, value: Any = VALUE) -> Source:
    table = pyarrow.table({n: value[:, k] for k, n in enumerate(NAMES)})
    pyarrow.parquet.write_table(table, f"{folder}/x.parquet", row_group_size=rows)
    return ParquetColumns(f"{folder}/x.parquet")


def _zarr(folder: str, rows: int, value: Any = VALUE) -> Source:
    zarr.create_array(f"{folder}/x.zarr", data=value, chunks=(rows, 5))
    return ZarrArray(f"{folder}/x.zarr")


def _shards(folder: str, rows: int, value: Any = VALUE) -> Source:
    zarr.create_array(f"{folder}/s.zarr", data=value, chunks=(rows, 5), shards=(rows * 3, 15))
    return ZarrArray(f"{folder}/s.zarr")


def _hdf5(folder: str, rows: int, value: Any = VALUE) -> Source:
    with h5py.File(f"{folder}/x.h5", "w") as file:
        file.create_dataset("x", data=value, chunks=(rows, 5), compression="lzf")
    return Hdf5Dataset(f"{folder}/x.h5", "x")


class _Object:
    """Of somebody's, that says how it is asked best."""

    def __init__(self, value: Any, chunks: tuple[int, ...] | None) -> None:
        self.value, self.shape, self.dtype, self.chunks = value, value.shape, value.dtype, chunks
        self.asked: list[Any] = []

    def __getitem__(self, key: Any) -> Any:
        self.asked.append(key)
        return self.value[key].copy()


def _object(folder: str, rows: int, value: Any = VALUE) -> Source:
    return Indexed(_Object(value, (rows, 5)))


KINDS: dict[str, Callable[..., Source]] = {
    "object": _object,
    "Parquet": _parquet,
    "zarr": _zarr,
    "shards": _shards,
    "HDF5": _hdf5,
}


@pytest.mark.slow
@examples(60)
@given(
    kind=st.sampled_from(list(KINDS)),
    rows=st.sampled_from([25, 100, 333, 1000]),
    most=st.sampled_from([0, 500, 20_000, 1 << 20]),
    together=st.sampled_from([1, 3000, 1 << 20]),
    free=st.sampled_from([0, 1 << 40]),
    draw=st.randoms(use_true_random=False),
)
def test_any_boxes_in_any_order_from_several_threads(
    kind: str, rows: int, most: int, together: int, free: int, draw: random.Random
) -> None:
    """Whether all is kept, or little, or nothing; and what is put on disk is the same."""
    if kind == "Parquet":  # whoever comes in between has pieces of a row group read from its first row on
        together = max(together, 3000)
    limits = mock.patch.multiple(kept, MOST_BYTES=most, PIECE_BYTES=together, free_disk_bytes=lambda: free)
    with tempfile.TemporaryDirectory() as folder, limits:
        source = KINDS[kind](folder, rows)
        boxes = []
        for _ in range(6):
            corners = [sorted(draw.sample(range(n + 1), 2)) for n in VALUE.shape]
            boxes.append(draw.choice([corners, [[0, 1000], corners[1]], [corners[0], [0, 12]]]))
        asked = [tuple(map(tuple, box)) for box in boxes * 2]
        with ThreadPoolExecutor(3) as threads:
            for box, found in zip(asked, threads.map(lambda b: read_box(source, b), asked), strict=True):
                numpy.testing.assert_array_equal(found, VALUE[tuple(slice(*r) for r in box)])


def _counted(patch: pytest.MonkeyPatch) -> Counter[Any]:
    """How often each row group, or box of chunks, has been unpacked."""
    found: Counter[Any] = Counter()
    batch = ParquetColumns._batch

    def unpack(self: Any, number: int, names: list[str]) -> Any:
        found[number] += 1
        return batch(self, number, names)

    chunks = kept.Chunks._chunks

    def read(self: Any, run: Any, whole: Any) -> Any:
        def counted(box: Any) -> Any:
            found.update(
                b for b in run if all(a <= lo and hi <= z for (lo, hi), (a, z) in zip(b, box, strict=True))
            )
            return whole(box)

        return chunks(self, run, counted)

    patch.setattr(ParquetColumns, "_batch", unpack)
    patch.setattr(kept.Chunks, "_chunks", read)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_boxes_that_follow_each_other_unpack_each_chunk_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, count = KINDS[kind](str(tmp_path), 100), _counted(monkeypatch)
    for lo in range(0, 1000, 30):
        read_box(source, ((lo, min(lo + 30, 1000)), (0, 12)))
    assert set(count.values()) == {1}
    assert len(count) == (10 if kind == "Parquet" else 30)


@pytest.mark.parametrize("kind", ["zarr", "shards", "HDF5"])
def test_columns_of_chunks_of_rows_unpack_each_twice_at_most(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, and however little is kept: the second time it is put on disk."""
    monkeypatch.setattr(kept, "MOST_BYTES", 10_000)
    source, count = KINDS[kind](str(tmp_path), 100), _counted(monkeypatch)
    for k in range(12):
        found = read_box(source, ((0, 1000), (k, k + 1)))
        numpy.testing.assert_array_equal(found, VALUE[:, k : k + 1])
    assert max(count.values()) == 2
    assert kept.KEPT._nbytes <= 10_000


def test_a_box_of_a_shard_unpacks_its_chunks_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, count = _shards(str(tmp_path), 100), _counted(monkeypatch)
    read_box(source, ((310, 320), (6, 8)))
    assert dict(count) == {((300, 400), (5, 10)): 1}


@pytest.mark.parametrize("how", ["in turn", "on disk", "no room on disk"])
def test_row_groups_that_are_larger_than_memory_are_read_on_in(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some rows at a time: from the first one again only where somebody goes back; or column by column, each
    once, and once for its first rows, where pyarrow has much of each beside them, and the disk has room."""
    if how == "in turn":
        monkeypatch.setattr(columns, "COLUMN_BYTES", 0)
    else:
        monkeypatch.setattr(columns, "budget_bytes", lambda: 1000)
    if how == "no room on disk":
        monkeypatch.setattr(columns, "free_disk_bytes", lambda: 1000)
    monkeypatch.setattr(kept, "MOST_BYTES", 30_000)
    monkeypatch.setattr(kept, "PIECE_BYTES", 5_000)
    source: Any = _parquet(str(tmp_path), 1000)
    file, *_ = source.opened
    with mock.patch.object(
        type(file), "iter_batches", autospec=True, side_effect=type(file).iter_batches
    ) as begun:
        for lo in range(0, 1000, 30):
            found = read_box(source, ((lo, min(lo + 30, 1000)), (0, 12)))
            numpy.testing.assert_array_equal(found, VALUE[lo : lo + 30])
        assert begun.call_count == (12 + 12 if how == "on disk" else 1)
        numpy.testing.assert_array_equal(read_box(source, ((5, 9), (0, 12))), VALUE[5:9])
        assert begun.call_count == (12 + 12 if how == "on disk" else 2)
    assert kept.KEPT._nbytes <= 30_000


@pytest.mark.parametrize("chunks", [None, (500, 12), (3,), "all", (0, 5)])
def test_objects_are_asked_for_no_more_than_is_wanted_where_it_could_not_be_kept(
    chunks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_BYTES", 4 * VALUE.nbytes // 3)
    of = _Object(VALUE, chunks)
    numpy.testing.assert_array_equal(read_box(Indexed(of), ((3, 5), (1, 2))), VALUE[3:5, 1:2])
    assert of.asked == [(slice(3, 5), slice(1, 2))]
    assert kept.KEPT._nbytes == 0


def test_what_is_kept_goes_with_its_source_and_does_not_travel(tmp_path: Path) -> None:
    source = _zarr(str(tmp_path), 100)
    read_box(source, ((0, 1000), (3, 4)))
    assert kept.KEPT._nbytes > 0
    assert len(pickle.dumps(source)) < 2000
    del source
    gc.collect()
    assert kept.KEPT._nbytes == 0


def test_elements_that_lack_are_errors_of_the_boxes_that_have_them(tmp_path: Path) -> None:
    table = pyarrow.table({"a": [1, 2, None, 4], "b": [5, 6, 7, 8]})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    x = np.from_parquet(tmp_path / "x.parquet", dtype="i8")
    assert numpy.asarray(x[:2] + 0).tolist() == [[1, 5], [2, 6]]
    assert numpy.asarray(x[:, 1] + 0).tolist() == [5, 6, 7, 8]
    with pytest.raises(SourceError, match="'a' lacks 1 elements"):
        numpy.asarray(x[1:3] + 0)


@pytest.mark.parametrize(
    ("kind", "fits"), [*((kind, True) for kind in KINDS), ("zarr", False), ("HDF5", False)]
)
def test_what_may_be_kept_is_unpacked_once_for_all_values_that_are_asked_for(
    kind: str, fits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each value unpacked the whole again: blocks are of whole chunks, which nobody else wanted."""
    monkeypatch.setattr(kept, "MOST_BYTES", 2 * VALUE.nbytes if fits else 1000)
    unpacked, read = 0, kept.Chunks.read

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*asked: Any) -> Any:
            nonlocal unpacked
            unpacked += 1
            return function(*asked)

        return call

    monkeypatch.setattr(kept.Chunks, "read", lambda self, box, whole: read(self, box, counted(whole)))
    monkeypatch.setattr(ParquetColumns, "_batch", counted(ParquetColumns._batch))
    x = over(KINDS[kind](str(tmp_path), 100))
    found, times = [], []
    for one in (x.mean(), x.std(), x.min(axis=0).sum(), (abs(x - 0.5) > 0.25).sum()):
        found.append(float(one))
        times.append(unpacked)
    wanted = [VALUE.mean(), VALUE.std(), VALUE.min(axis=0).sum(), (abs(VALUE - 0.5) > 0.25).sum()]
    numpy.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert times[0] > 0
    assert (times[0] == times[-1]) is fits
