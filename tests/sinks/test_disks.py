"""A disk that has no room for what is to be written says so before anything is, and none is filled first."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.errors import OutOfResources
from spartan_ng.sinks import disks, parquet
from spartan_ng.system import files, library
from tests.sinks.test_sinks import VALUE, everything_is_large
from tests.sources.recorder import Recorder

__all__ = ["everything_is_large"]

Write = Callable[[str, Any], None]
KNOWN: dict[str, Write] = {
    "x.npy": np.save,
    "x.h5": np.save,
    "chunks.h5": lambda path, a: np.to_hdf5(a, path, chunks=(50, 20)),
    "x.npz": lambda path, a: np.savez(path, a),
    "x.raw": lambda path, a: a.tofile(path),
}
"""What takes as much as its elements."""
PACKED: dict[str, Write] = {
    "x.zarr": np.save,
    "packed.h5": lambda path, a: np.to_hdf5(a, path, chunks=(50, 20), compression="lzf", rdcc_nbytes=100_000),
    "x.parquet": np.save,
    "tables": lambda path, a: np.to_parquet(a, f"{path}/"),
    "packed.npz": lambda path, a: np.savez_compressed(path, a),
    "x.txt.gz": np.savetxt,
}


def _has(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("is_here", [False, True])
@pytest.mark.parametrize("name", KNOWN)
def test_what_has_no_room_is_refused_before_it_is_computed(
    name: str, is_here: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says how much it is, and how much is free; what was there stays."""
    path, source = f"{tmp_path}/{name}", Recorder(VALUE)
    KNOWN[name](path, np.ones((60, 25)))
    before = _has(tmp_path)
    monkeypatch.setattr(disks, "free_bytes", lambda place: VALUE.nbytes - 1)
    with pytest.raises(
        OutOfResources, match=rf"{path} of {VALUE.nbytes:,} bytes: .*960,319 .*another"
    ) as found:
        KNOWN[name](path, np.array(VALUE) if is_here else over(source) + 1)
    assert found.value.errno == errno.ENOSPC
    assert not source.asked
    assert _has(tmp_path) == before


@pytest.mark.parametrize("name", KNOWN)
def test_what_has_just_room_is_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{tmp_path}/{name}"
    monkeypatch.setattr(disks, "free_bytes", lambda place: VALUE.nbytes)
    KNOWN[name](path, over(Recorder(VALUE)) + 1)
    if name == "x.raw":
        found = numpy.fromfile(path).reshape(VALUE.shape)
    else:
        found = np.load(path)["arr_0"] if name == "x.npz" else np.load(path)
    numpy.testing.assert_array_equal(numpy.asarray(found), VALUE + 1)


def test_what_is_copied_of_a_file_takes_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.to_hdf5(np.array(VALUE), tmp_path / "x.h5", "first")
    monkeypatch.setattr(disks, "free_bytes", lambda place: VALUE.nbytes + 1000)
    with pytest.raises(OutOfResources, match="bytes free"):
        np.to_hdf5(np.array(VALUE), tmp_path / "x.h5", "second")
    np.to_hdf5(np.array(VALUE), tmp_path / "y.h5", "second")


@pytest.mark.slow
@pytest.mark.parametrize("name", PACKED)
def test_what_is_packed_leaves_something_to_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows how large it will be: it is given up, and removed, before the disk is full."""
    path, least, value = f"{tmp_path}/{name}", list[int](), numpy.tile(VALUE, (10, 1))
    value *= numpy.arange(1.0, len(value) + 1)[:, None]
    monkeypatch.setattr(parquet, "FILE_BYTES", 500_000)
    monkeypatch.setattr(disks, "_WATCHED_BYTES", 100_000)
    PACKED[name](path, np.array(value[:60]))
    before = _has(tmp_path)

    def free(place: Any) -> int:
        taken = 0
        for p in tmp_path.rglob("*"):
            with suppress(FileNotFoundError):  # other threads put theirs in place meanwhile
                taken += p.stat().st_size if p.is_file() else 0
        least.append(value.nbytes // 2 - taken)
        return least[-1]

    monkeypatch.setattr(disks, "free_bytes", free)
    with pytest.raises(OutOfResources, match=rf"{path} was given up, .* bytes free.*another"):
        PACKED[name](path, over(Recorder(value)) * 1.5)
    assert len(least) > 2
    assert min(least) > -value.nbytes // 8  # a block for each thread
    assert _has(tmp_path) == before
    PACKED[name](path, np.zeros(value.shape) + 1)  # of which little is left when it is packed


def test_texts_that_have_no_room_are_refused_before_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of their rows say how long all are."""

    def free(place: Any) -> int:
        return 24 * VALUE.size - sum(p.stat().st_size for p in tmp_path.rglob("*"))

    monkeypatch.setattr(disks, "free_bytes", free)
    with pytest.raises(OutOfResources, match=r"x\.txt of about .* bytes free"):
        np.savetxt(tmp_path / "x.txt", np.array(VALUE))
    monkeypatch.setattr(disks, "_WATCHED_BYTES", 100_000)
    short = VALUE.copy()
    short[:: len(short) // 32] = 0
    with pytest.raises(OutOfResources, match=r"x\.txt was given up"):
        np.savetxt(tmp_path / "x.txt", np.array(short), fmt=["%r"] * short.shape[1])
    assert not _has(tmp_path)
    monkeypatch.undo()
    for name, a, keywords in (
        ("x.txt", VALUE, {"fmt": "%.3f"}),
        ("y.txt", VALUE[0], {"encoding": "utf-8", "header": "ä"}),
        ("z.txt.bz2", VALUE, {"delimiter": ","}),
    ):
        np.savetxt(tmp_path / name, np.array(a), **keywords)
        numpy.savetxt(tmp_path / f"theirs-{name}", a, **keywords)
        assert (tmp_path / name).read_bytes() == (tmp_path / f"theirs-{name}").read_bytes()


def test_room_is_set_aside_where_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's call takes what there is before it says that this is not enough."""
    asked: list[Any] = []

    def fallocate(*args: Any) -> int:
        asked.append(args)
        return 0

    monkeypatch.setattr(library, "fallocate", fallocate)
    monkeypatch.setattr(files, "free_bytes", lambda place: 1000)
    with open(tmp_path / "x", "w+b") as file:
        with pytest.raises(OSError, match="1,000 bytes free") as found:
            files.set_aside(file.fileno(), 0, 1001)
        assert found.value.errno == errno.ENOSPC
        assert not asked
        files.set_aside(file.fileno(), 0, 1000)
        assert len(asked) == 1


def test_disks_that_say_nothing_are_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some file systems have no size."""
    assert files.free_bytes(str(tmp_path)) == os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    nothing = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda place: nothing)
    assert files.free_bytes(str(tmp_path)) is None
    np.save(tmp_path / "x.npy", np.array(VALUE))
    np.save(tmp_path / "x.zarr", np.array(VALUE))
