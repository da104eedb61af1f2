"""Every kind of source keeps the contract: NumPy's elements for any box, from several threads, after
travelling."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import fsspec
import h5py
import imageio.v3 as images
import numpy
import pyarrow
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import zarr

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.sources import Source, read_box

rng = numpy.random.default_rng(0)
TABLE = rng.random((700, 6))
CUBE = rng.integers(0, 255, (9, 40, 30), dtype=numpy.uint8)
NAMES = list("abcdef")


def _table() -> Any:
    return pyarrow.table({n: TABLE[:, k] for k, n in enumerate(NAMES)})


def _npy(folder: Path) -> Any:
    numpy.save(folder / "x.npy", TABLE)
    return np.load(folder / "x.npy")


def _fortran(folder: Path) -> Any:
    numpy.save(folder / "x.npy", numpy.asfortranarray(TABLE))
    return np.load(folder / "x.npy")


def _npz(folder: Path) -> Any:
    numpy.savez(folder / "x.npz", one=CUBE, two=TABLE)
    return np.load(folder / "x.npz")["two"]


def _raw(folder: Path) -> Any:
    (folder / "x.bin").write_bytes(b"header" + TABLE.tobytes())
    return np.from_raw(folder / "x.bin", TABLE.shape, offset=6)


def _zarr(version: int) -> Callable[[Path], Any]:
    def made(folder: Path) -> Any:
        zarr.create_array(str(folder / "x.zarr"), data=TABLE, zarr_format=version, chunks=(64, 4))
        return np.load(folder / "x.zarr")

    return made


def _zarr_group(folder: Path) -> Any:
    group = zarr.open_group(folder / "g.zarr", mode="w")
    group.create_array("deep/x", data=TABLE, chunks=(50, 6), shards=(100, 6))
    return np.from_zarr(folder / "g.zarr", "deep/x")


def _hdf5(**options: Any) -> Callable[[Path], Any]:
    def made(folder: Path) -> Any:
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("in/x", data=TABLE, **options)
        return np.load(folder / "x.h5")

    return made


def _parquet(folder: Path) -> Any:
    pyarrow.parquet.write_table(_table(), folder / "x.parquet", row_group_size=128)
    return np.load(folder / "x.parquet")


def _arrow(folder: Path) -> Any:
    pyarrow.feather.write_feather(
        _table(), str(folder / "x.arrow"), chunksize=100, compression="uncompressed"
    )
    return np.load(folder / "x.arrow")


def _csv(folder: Path) -> Any:
    pyarrow.csv.write_csv(_table(), folder / "x.csv")
    return np.load(folder / "x.csv")


def _images(folder: Path) -> Any:
    for k, image in enumerate(CUBE):
        images.imwrite(folder / f"{k:02}.png", image)
    return np.load(folder)


def _folder(folder: Path) -> Any:
    for k in range(7):
        numpy.save(folder / f"{k}.npy", TABLE[100 * k : 100 * (k + 1)])
    return np.load(folder)


def _glob(folder: Path) -> Any:
    for k in range(7):
        part = pyarrow.table({n: TABLE[100 * k : 100 * k + 100, j] for j, n in enumerate(NAMES)})
        pyarrow.parquet.write_table(part, folder / f"{k}.parquet")
    (folder / "other.txt").write_text("no table")
    return np.load(folder / "*.parquet")


def _memory(folder: Path) -> Any:
    with fsspec.open("memory://kinds/x.npy", "wb") as file:
        numpy.save(file, TABLE)
    return np.load("memory://kinds/x.npy")


def _memory_zarr(folder: Path) -> Any:
    zarr.create_array("memory://kinds/x.zarr", data=TABLE, chunks=(100, 6), overwrite=True)
    return np.load("memory://kinds/x.zarr")


KINDS: dict[str, Callable[[Path], Any]] = {
    "npy": _npy,
    "npy in Fortran's order": _fortran,
    "npz": _npz,
    "raw": _raw,
    "zarr 2": _zarr(2),
    "zarr 3": _zarr(3),
    "zarr of a group, in shards": _zarr_group,
    "HDF5 in one piece": _hdf5(),
    "HDF5 in chunks": _hdf5(chunks=(100, 6), compression="gzip"),
    "Parquet": _parquet,
    "Arrow": _arrow,
    "CSV": _csv,
    "images": _images,
    "a folder": _folder,
    "a glob": _glob,
    "a URL": _memory,
    "zarr at a URL": _memory_zarr,
}


@pytest.fixture(autouse=True)
def everything_is_large() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


def _source(x: Any) -> Source:
    found = x._cell.source or x._node().data.source
    assert isinstance(found, Source)
    return found


def _box(draw: random.Random, shape: tuple[int, ...]) -> Any:
    box = []
    for n in shape:
        lo, hi = sorted(draw.sample(range(n + 1), 2))
        box.append((lo, hi))
    return tuple(box)


@pytest.mark.parametrize("kind", KINDS)
def test_the_contract(kind: str, tmp_path: Path) -> None:
    x = KINDS[kind](tmp_path)
    value = CUBE if kind == "images" else TABLE
    source = _source(x)
    assert x.shape == source.shape == value.shape
    assert x.dtype == source.dtype == value.dtype
    assert len(source.chunks) == len(source.shape)
    assert min(source.chunks) >= 1
    assert source.is_current()
    draw = random.Random(kind)
    sent = cloudpickle.dumps(source)
    assert len(sent) < 5000
    for one in (source, pickle.loads(sent)):
        boxes = [_box(draw, value.shape) for _ in range(30)]
        with ThreadPoolExecutor(4) as threads:
            for box, found in zip(boxes, threads.map(lambda b, s=one: read_box(s, b), boxes), strict=True):
                numpy.testing.assert_array_equal(found, value[tuple(slice(*r) for r in box)])
    mapped = source.mapped()
    if mapped is not None:
        numpy.testing.assert_array_equal(mapped, value)
        assert not mapped.flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_numpys(kind: str, tmp_path: Path) -> None:
    x = KINDS[kind](tmp_path)
    value = CUBE if kind == "images" else TABLE
    numpy.testing.assert_allclose(x.mean(axis=0), value.mean(axis=0))
    numpy.testing.assert_array_equal(numpy.asarray(x[3:8, 2] * 2), value[3:8, 2] * 2)
    numpy.testing.assert_array_equal(numpy.asarray(x), value)


def test_what_lies_in_one_piece_is_mapped(tmp_path: Path) -> None:
    for kind in ("npy", "npz", "raw", "HDF5 in one piece"):
        (tmp_path / kind).mkdir()
        assert _source(KINDS[kind](tmp_path / kind)).mapped() is not None, kind


def test_raw_files_of_a_list_are_one_behind_the_other(tmp_path: Path) -> None:
    paths = [tmp_path / "b.bin", tmp_path / "a.bin"]
    for path, rows in zip(paths, (TABLE[:100], TABLE[100:200]), strict=True):
        path.write_bytes(b"head" + rows.tobytes())
    found = np.from_raw(paths, (100, 6), offset=4)
    numpy.testing.assert_array_equal(numpy.asarray(found), TABLE[:200])


def _three(folder: str, suffix: str) -> list[str]:
    """Files of 20 rows each, here or at a URL."""
    paths = [f"{folder}/{n}{suffix}" for n in "bac"]
    for path, rows in zip(sorted(paths), (TABLE[:20], TABLE[20:40], TABLE[40:60]), strict=True):
        with fsspec.open(path, "wb") as file:
            if suffix == ".npy":
                numpy.save(file, rows)
            else:
                table = pyarrow.table({n: rows[:, k] for k, n in enumerate(NAMES)})
                pyarrow.parquet.write_table(table, file)
    return paths


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
@pytest.mark.parametrize("remote", [False, True])
def test_lists_globs_and_folders_stand_for_their_files(suffix: str, remote: bool, tmp_path: Path) -> None:
    folder = f"memory:/{tmp_path}" if remote else str(tmp_path)
    paths = _three(folder, suffix)
    b, a, c = (TABLE[20:40], TABLE[:20], TABLE[40:60])
    for listed in (paths, tuple(paths if remote else map(Path, paths))):
        numpy.testing.assert_array_equal(numpy.asarray(np.load(listed)), numpy.concatenate([b, a, c]))
    for name in (f"{folder}/*{suffix}", folder, f"{folder}/"):
        numpy.testing.assert_array_equal(numpy.asarray(np.load(name)), TABLE[:60])
    if suffix == ".parquet":
        for one in (paths[1], paths[1:2]):
            numpy.testing.assert_array_equal(numpy.asarray(np.from_parquet(one, "c")), TABLE[:20, 2])
        numpy.testing.assert_array_equal(numpy.asarray(np.from_parquet(folder, "c")), TABLE[:60, 2])


def test_lists_of_several_formats_are_no_array(tmp_path: Path) -> None:
    for given in (
        _three(str(tmp_path), ".npy") + _three(str(tmp_path), ".parquet"),
        [],
        ["x.zarr", "y.npy"],
        ["x.npz", "y.npz"],
    ):
        with pytest.raises(ValueError, match="make no array"):
            np.load(given)


def test_columns_by_name(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "i": numpy.arange(50, dtype="i4"),
            "x": pyarrow.array([None, *range(49)], "float64"),
            "s": ["t"] * 50,
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=7)
    x = np.from_parquet(tmp_path / "t.parquet", "x")
    assert x.shape == (50,)
    assert numpy.isnan(numpy.asarray(x)[0])
    assert float(np.nansum(x)) == sum(range(49))
    both = np.from_parquet(tmp_path / "t.parquet", ["x", "i"], dtype="f4")
    assert (both.shape, both.dtype) == ((50, 2), numpy.float32)
    numpy.testing.assert_array_equal(numpy.asarray(both[:, 1]), numpy.arange(50))
    with pytest.raises(KeyError, match="no column 'y'"):
        np.from_parquet(tmp_path / "t.parquet", "y")
    with pytest.raises(TypeError, match="column 's'"):
        np.from_parquet(tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="lacks 1 elements"):
        np.compute(np.from_parquet(tmp_path / "t.parquet", "x", dtype=int).sum())


def test_csv_files_are_read_in_runs_of_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spartan_ng.sources.csv_columns.CSV_BYTES", 100)
    for end in ("\n", ""):
        lines = [f"{k},{k * 0.5},t{k}" for k in range(300)]
        (tmp_path / "t.csv").write_text("i,x,s\n" + "\n".join(lines) + end)
        x = np.from_csv(tmp_path / "t.csv", ["i", "x"])
        assert _source(x).chunks[0] < 20
        numpy.testing.assert_array_equal(
            numpy.asarray(x), numpy.stack([numpy.arange(300), numpy.arange(300) * 0.5], 1)
        )


@pytest.mark.parametrize("columns", ["a", "b", ["a"]])
@pytest.mark.parametrize(
    "text", ['"x\ny",2\n"z",4\n', '"x\n",2\n' * 1000, "x,1\n" * 50 + '"y\n\ny",2\nz,3\n']
)
def test_line_breaks_in_quotes_are_refused(tmp_path: Path, text: str, columns: Any) -> None:
    (tmp_path / "t.csv").write_text("a,b\n" + text)
    with pytest.raises(SourceError, match="line break"):
        np.from_csv(tmp_path / "t.csv", columns).compute()


@pytest.mark.parametrize("text", ["1.5", "1e3", "word", "2020-01-01"])
def test_elements_that_the_first_lines_have_not_told_of_name_the_way_out(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers at first, and then others: as doubles they are read, as pandas reads them; words are
    not."""
    monkeypatch.setattr("spartan_ng.sources.csv_columns.CSV_BYTES", 100)
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 100 + f"3,{text}\n")
    is_number = text[1] in ".e"
    way = "ask for dtype=float" if is_number else "take it out, or name other columns"
    with pytest.raises(SourceError, match=rf"x\.csv: column 'b' has '{text}', where .*int64: {way}"):
        np.load(tmp_path / "x.csv").sum().compute()
    if is_number:
        found = np.from_csv(tmp_path / "x.csv", dtype=float)
        assert float(found[-1, 1]) == float(text)
    assert int(np.from_csv(tmp_path / "x.csv", "a").max()) == 3


def test_datasets_by_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["a"], file["b"] = TABLE, CUBE
    with h5py.File(tmp_path / "x.h5") as file:
        x = np.from_hdf5(file["a"])
    numpy.testing.assert_array_equal(numpy.asarray(x), TABLE)
    with pytest.raises(ValueError, match="a, b; name one"):
        np.load(tmp_path / "x.h5")
    with pytest.raises(KeyError, match="no dataset 'c'"):
        np.from_hdf5(tmp_path / "x.h5", "c")


@pytest.mark.parametrize("stored", [{}, {"chunks": True}, {"compression": "gzip"}, {"dtype": ">f4"}])
def test_datasets_in_whatever_file_links_lead_to(tmp_path: Path, stored: dict[str, Any]) -> None:
    """The place of a dataset of another file was read in this one."""
    (tmp_path / "deep").mkdir()
    with h5py.File(tmp_path / "deep/c.h5", "w") as file:
        file["first"] = TABLE + 1
        file.create_dataset("g/x", data=TABLE, **stored)
    with h5py.File(tmp_path / "deep/b.h5", "w") as file:
        file["x"] = h5py.ExternalLink("c.h5", "/g/x")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["own"] = numpy.full((2000, 5), 7.0)
        file["soft"] = h5py.SoftLink("/far")
        file["far"], file["group"] = h5py.ExternalLink("deep/b.h5", "x"), h5py.ExternalLink("deep/c.h5", "g")
    with h5py.File(tmp_path / "a.h5") as file:
        for name in ("own", "far", "soft", "group/x"):
            x = np.from_hdf5(tmp_path / "a.h5", name)
            assert x.dtype == file[name].dtype
            numpy.testing.assert_array_equal(x, file[name][...])
    far = np.from_hdf5(tmp_path / "a.h5", "far").sum()
    with h5py.File(tmp_path / "deep/c.h5", "r+") as file:
        file["g/x"][:1] = 0
    with pytest.raises(SourceError, match=r"(c\.h5|a\.h5:far) has changed"):
        far.compute()


@pytest.mark.parametrize("chunks", [None, (4,)])
def test_elements_that_are_arrays_have_axes_of_their_own(tmp_path: Path, chunks: Any) -> None:
    """As h5py reads them."""
    value = numpy.arange(66, dtype="f4").reshape(11, 2, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("a", (11,), numpy.dtype(("f4", (2, 3))), chunks=chunks)[...] = value
    x = np.from_hdf5(tmp_path / "x.h5", "a")
    assert (x.shape, x.dtype) == (value.shape, value.dtype)
    numpy.testing.assert_array_equal(x, value)
    numpy.testing.assert_array_equal(x[3:9:2, 1, 1:], value[3:9:2, 1, 1:])


@pytest.mark.parametrize("name", ["t.tsv", "t.csv.gz", "t.TSV.bz2"])
def test_texts_that_are_not_read_are_not_said_to_be_pickles(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("a\tb\n1\t2\n")
    with pytest.raises(ValueError, match="from_csv takes"):
        np.load(tmp_path / name)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_packed_texts_are_no_lines(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"t.csv{suffix}").write_bytes(b"\x1f\x8b\x08\x00")
    for path in (tmp_path / f"t.csv{suffix}", tmp_path / "*"):
        with pytest.raises(ValueError, match=r"from_csv: .*t\.csv.* packed"):
            np.from_csv(path, "a")


def test_files_that_do_not_fit_each_other(tmp_path: Path) -> None:
    numpy.save(tmp_path / "0.npy", TABLE)
    numpy.save(tmp_path / "1.npy", TABLE[:, 1:])
    with pytest.raises(ValueError, match="differ in more than the first axis"):
        np.load(tmp_path)
    for k in range(2):
        images.imwrite(tmp_path / f"{k}.png", CUBE[0, : 20 + k])
    with pytest.raises(SourceError, match="the first image"):
        np.compute(np.from_images(tmp_path / "*.png").sum())


def test_a_file_that_has_changed_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    source = _source(_raw(tmp_path))
    (tmp_path / "x.bin").write_bytes(b"header" + TABLE.tobytes() + b"more")
    assert not source.is_current()
    with pytest.raises(SourceError, match="has changed"):
        source.mapped()
    (tmp_path / "x.bin").unlink()
    with pytest.raises(SourceError, match="cannot be read on"):
        source.mapped()


@pytest.mark.slow
def test_a_map_of_a_file_that_gets_shorter_is_an_error_and_no_signal(tmp_path: Path) -> None:
    """Also between two evaluations; a file that another one has replaced is still what it was."""
    path = tmp_path / "x.npy"
    big = numpy.arange(6_000_000.0)
    numpy.save(path, big)
    x = np.load(path)
    kept = np.load(path)
    assert float((x + 1).sum()) == (big + 1).sum()
    numpy.save(tmp_path / "new.npy", TABLE)
    os.replace(path, tmp_path / "old.npy")
    os.replace(tmp_path / "new.npy", path)
    assert float((kept * 2).sum()) == 2 * big.sum()
    os.replace(tmp_path / "old.npy", path)
    os.truncate(path, 1000)
    for step in (
        x.sum,
        lambda: (x - 3).sum(),
        x.argmax,
        lambda: np.sort(x)[0],
        lambda: np.compute(x[::7] * 2),
    ):
        with pytest.raises(SourceError, match=r"x\.npy has changed since it was opened"):
            float(numpy.max(step()))


READS = {
    "element": lambda x: x[5_000_000],
    "number": lambda x: x.item(5_000_000),
    "rows": lambda x: x[2:5] + 1,
    "picked": lambda x: x[[1, 5_000_000]],
    "numpy": numpy.asarray,
    "first": lambda x: next(iter(x)),
    "view made before": None,
    "list": lambda x: x[:3].tolist(),
    "text": repr,
}


@pytest.mark.some(6)
@pytest.mark.parametrize("length", [6_000_000, 10])
@pytest.mark.parametrize("name", READS)
def test_elements_of_a_file_that_another_has_written_over_are_not_read(tmp_path, name, length) -> None:
    """NumPy has read the file; a map has not, and may not show what stands there now."""
    path = tmp_path / "x.npy"
    numpy.save(path, numpy.arange(6_000_000.0))
    x = np.load(path)
    seen = x[4_000_000:]
    assert x[3] == 3.0
    numpy.save(path, numpy.zeros(length))  # takes longer than a file is trusted
    os.utime(path)
    read = READS[name] or (lambda _: seen[1])
    with pytest.raises(SourceError, match=r"x\.npy has changed since it was opened"):
        numpy.asarray(read(x))


def test_a_map_that_is_only_read_refuses_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    numpy.save(path, TABLE)
    for write in (lambda a: a.__setitem__(0, 1), lambda a: a[1:].fill(2), lambda a: a.__iadd__(1)):
        for xp in (numpy, np):
            a = xp.load(path, mmap_mode="r")
            assert not a.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                write(a)
        b = np.load(path, mmap_mode="r").copy()
        write(b)
    numpy.testing.assert_array_equal(numpy.load(path), TABLE)


def test_files_shorter_than_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(TABLE.tobytes()[:-1])
    with pytest.raises(SourceError, match="1 bytes more"):
        np.from_raw(tmp_path / "x.bin", TABLE.shape)
    with pytest.raises(FileNotFoundError):
        np.load(tmp_path / "*.npy")
