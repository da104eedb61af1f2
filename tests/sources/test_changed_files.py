"""A file that has changed since it was opened is a SourceError, of any format and however it has changed:
never other elements, or zeros for what is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import imageio.v3 as images
import numpy
import pytest
import zarr

import spartan_ng as np
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.sources.source import TRUSTED_NS
from tests.sources.test_kinds import KINDS, TABLE
from tests.test_programs import running_on
from tests.waiting import until

MAPPED = ["npy", "npy in Fortran's order", "npz", "raw", "HDF5 in one piece", "a folder"]
"""Maps outlive their files' names."""
LOCAL = [kind for kind in KINDS if "URL" not in kind and kind not in MAPPED]
"""What is read box by box."""


def _changed(path: Path, how: str) -> None:
    if how == "removed":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif how == "replaced":
        path.rename(path.with_suffix(".old"))
        old = path.with_suffix(".old")
        shutil.copytree(old, path) if old.is_dir() else shutil.copyfile(old, path)
    else:
        for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
            text = bytearray(file.read_bytes())
            file.write_bytes(text)
            os.utime(file)


def _later() -> None:
    """Wait until the clock that files are written by has gone on."""
    with tempfile.NamedTemporaryFile() as file:
        before = os.stat(file.name).st_mtime_ns

        def has_gone_on() -> bool:
            os.utime(file.name)
            return os.stat(file.name).st_mtime_ns > before

        until(has_gone_on)


def _shown_before(kind: str, how: str, is_asked_before: bool, folder: Path) -> tuple[Any, Any]:
    """An array of files, and what is made of a part of it, before the files were changed."""
    x = KINDS[kind](folder)
    if is_asked_before:
        float(numpy.asarray(x).sum())
    y = x[5:8] + 1
    _later()
    for path in sorted(folder.iterdir()):
        _changed(path, how)
    return x, y


@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.parametrize("how", ["removed", "replaced", "written over"])
@pytest.mark.parametrize("is_asked_before", [True, False])
def test_changed_files(kind: str, how: str, is_asked_before: bool, tmp_path: Path) -> None:
    with config.override(small_bytes=0):
        x, y = _shown_before(kind, how, is_asked_before, tmp_path)
        for read in (lambda: numpy.asarray(y), lambda: float(x.sum()), lambda: numpy.asarray(x)):
            with pytest.raises(SourceError):
                read()


@pytest.mark.parametrize("kind", MAPPED)
@pytest.mark.parametrize("how", ["removed", "replaced", "written over"])
@pytest.mark.parametrize("is_asked_before", [True, False])
def test_what_is_mapped_is_kept_until_it_is_written_to(
    kind: str, how: str, is_asked_before: bool, tmp_path: Path
) -> None:
    """One file as several: of a folder the elements were lost when one of its files was saved anew."""
    with config.override(small_bytes=0):
        x, y = _shown_before(kind, how, is_asked_before, tmp_path)
        time.sleep(2 * TRUSTED_NS / 1e9)
        if how != "written over":
            numpy.testing.assert_array_equal(numpy.asarray(y), TABLE[5:8] + 1)
            numpy.testing.assert_array_equal(numpy.asarray(x), TABLE)
            return
        for read in (lambda: numpy.asarray(y), lambda: float(x.sum()), lambda: numpy.asarray(x)):
            with pytest.raises(SourceError, match="has changed since it was opened"):
                read()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("shards", [None, (100, 6)])
@pytest.mark.parametrize("how", ["elements", "again", "by us", "chunk removed"])
@pytest.mark.parametrize("name", ["", "deep/x"])
def test_changed_zarr_stores(version: int, shards: Any, how: str, name: str, tmp_path: Path) -> None:
    """By zarr's own calls, and ours; what lies in other chunks is read on."""
    if version == 2 and shards is not None:
        pytest.skip("format 2 has no shards")
    url, value = str(tmp_path / "x.zarr"), numpy.random.default_rng(0).random((700, 6))

    def create(**options: Any) -> Any:
        made = {"data": value, "chunks": (50, 6), "shards": shards, "zarr_format": version, **options}
        return zarr.create_array(url, name=name or None, **made)

    if name:
        zarr.open_group(url, mode="w", zarr_format=version)
    create()
    x = np.from_zarr(url, name)
    y, z = x[:20] + 0.5, x[200:300] * 2
    numpy.testing.assert_array_equal(numpy.asarray(x[40:60]), value[40:60])
    _later()
    if how == "elements":
        zarr.open_array(url, path=name, mode="r+")[:10] = 7
        numpy.testing.assert_array_equal(numpy.asarray(z), value[200:300] * 2)
    elif how == "again":
        create(data=value * 2, overwrite=True)
    elif how == "by us":
        np.to_zarr(x * 2, url, name)
    else:
        first = {2: "0.0", 3: "c/0/0"}[version]
        os.unlink(Path(url) / name / first)
    for read in (lambda: numpy.asarray(y), lambda: float(x.sum())):
        with pytest.raises(SourceError, match=r"x\.zarr.* has changed since it was opened"):
            read()


def test_stores_with_chunks_that_were_never_written_have_their_fill_value(tmp_path: Path) -> None:
    url = str(tmp_path / "x.zarr")
    store = zarr.create_array(url, shape=(100,), chunks=(10,), dtype="f8", fill_value=7.5)
    store[20:25] = 1
    _later()
    numpy.testing.assert_array_equal(numpy.asarray(np.from_zarr(url)), store[...])


def test_images_that_have_changed_among_others_that_have_not(tmp_path: Path) -> None:
    for k in range(4):
        images.imwrite(tmp_path / f"{k}.png", numpy.full((9, 9), k, "u1"))
    x = np.load(tmp_path)
    _later()
    images.imwrite(tmp_path / "2.png", numpy.full((9, 9), 9, "u1"))
    assert int((x[:2] + 0).sum()) == 81
    with pytest.raises(SourceError, match="has changed"):
        (x[1:] + 0).compute()


_SHORTENED = """
import os, sys, threading, time
import numpy
import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.local import LocalCluster
from spartan_ng.errors import SourceError
from spartan_ng.sources.source import TRUSTED_NS

file, workers, program = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def shortened(block):
    found = block * 2
    os.truncate(file, 4096)
    time.sleep(3 * TRUSTED_NS / 1e9)
    return found

def ask():
    x = np.load(file)
    y = np.map(shortened, x, dtype=float)
    made = {"elements": y, "sums": y.sum(axis=0), "of all": y.sum() * 2, "sorted": np.sort(y[:, 0])}
    try:
        numpy.asarray(made[program])
    except SourceError as error:
        assert "has changed since it was opened" in str(error), error
        print("said")

np.config.threads, np.config.small_bytes = 1, 0
if workers:
    with LocalCluster(workers, threads=1) as backend:
        session.use(backend)
        ask()
else:
    ask()
"""


@pytest.mark.slow
@pytest.mark.some(1)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("program", ["elements", "sums", "of all", "sorted"])
def test_a_file_that_becomes_shorter_between_blocks(workers: int, program: str, tmp_path: Path) -> None:
    """Whoever read what was no longer there ended the process: it is looked at before each block."""
    numpy.save(tmp_path / "x.npy", numpy.ones((300_000, 40)))
    words = [sys.executable, "-c", _SHORTENED, str(tmp_path / "x.npy"), str(workers), program]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "said\n", (done.returncode, done.stdout, done.stderr[-2000:])


@pytest.mark.slow
@pytest.mark.parametrize("is_asked_before", [True, False])
@pytest.mark.parametrize("how", ["removed", "replaced"])
@pytest.mark.parametrize("names", ["a.npy", "*.npy"])
def test_workers_have_what_the_driver_has_mapped(
    names: str, how: str, is_asked_before: bool, tmp_path: Path
) -> None:
    """Of several files the elements were lost to workers when one of them was saved anew."""
    value = numpy.random.default_rng(0).random((1000, 8))
    numpy.save(tmp_path / "a.npy", value)
    numpy.save(tmp_path / "b.npy", value * 2)
    wanted = value if names == "a.npy" else numpy.concatenate([value, value * 2])
    with config.override(small_bytes=0), LocalCluster(2) as backend, running_on(backend):
        x = np.load(str(tmp_path / names))
        if is_asked_before:
            numpy.testing.assert_array_equal(numpy.asarray(x * 2), wanted * 2)
        _later()
        _changed(tmp_path / "a.npy", how)
        numpy.testing.assert_array_equal(numpy.asarray(x + 1), wanted + 1)
        numpy.testing.assert_allclose(numpy.asarray(x.sum(axis=1)), wanted.sum(axis=1))
        numpy.testing.assert_array_equal(numpy.asarray(x), wanted)
