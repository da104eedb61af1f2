"""Files of every kind at a server, and ones that others change there or in memory."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import fsspec
import numpy
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError
from spartan_ng.sources import given_whole
from spartan_ng.sources.remote import RemoteFile
from tests.sources import test_kinds
from tests.sources.test_kinds import CUBE, KINDS, TABLE, everything_is_large

__all__ = ["everything_is_large"]


class Plain(http.server.SimpleHTTPRequestHandler):
    """Python's own server, which gives all of a file, whatever part is asked for."""

    def log_message(self, *args: Any) -> None:
        pass

    def copyfile(self, source: Any, outputfile: Any) -> None:
        with suppress(ConnectionError):  # who wants a part goes away
            super().copyfile(source, outputfile)


class Unsigned(Plain):
    """One that does not say when a file has changed."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Last-Modified":
            super().send_header(keyword, value)


@pytest.fixture(params=["parts", "all", "all, unsigned"])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of the folder's files, which gives the ranges of bytes that are asked for, or all of them."""

    class Parts(Plain):
        def do_GET(self) -> None:
            data = Path(self.translate_path(self.path)).read_bytes()
            asked = self.headers.get("Range")
            if asked:
                first, last = asked.removeprefix("bytes=").split("-")
                lo, hi = int(first), min(int(last or len(data) - 1), len(data) - 1)
                part = data[lo : hi + 1]
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {lo}-{hi}/{len(data)}")
            else:
                part = data
                self.send_response(200)
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Accept-Ranges", "bytes")
            self.end_headers()
            self.wfile.write(part)

    handler = {"parts": Parts, "all": Plain, "all, unsigned": Unsigned}[request.param]
    serving = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(handler, directory=str(tmp_path))
    )
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{serving.server_address[1]}"
    serving.shutdown()
    thread.join()
    serving.server_close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "Parquet", "HDF5 in chunks", "CSV"])
def test_files_at_a_server(kind: str, tmp_path: Path, server: str) -> None:
    KINDS[kind](tmp_path)
    (path,) = tmp_path.iterdir()
    x = np.load(f"{server}/{path.name}")
    numpy.testing.assert_allclose(x.sum(axis=0), TABLE.sum(axis=0))
    numpy.testing.assert_array_equal(numpy.asarray(x[5:9]), TABLE[5:9])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "CSV"])
def test_files_at_a_server_that_change_are_read_anew(kind: str, tmp_path: Path, server: str) -> None:
    KINDS[kind](tmp_path)
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    numpy.testing.assert_array_equal(numpy.asarray(np.load(f"{server}/{path.name}")), TABLE)
    with patch.object(test_kinds, "TABLE", TABLE + 1):
        KINDS[kind](tmp_path)
        os.utime(path, (10**9, 10**9))
        assert path.read_bytes() != before
        fsspec.filesystem("http").clear_instance_cache()
        numpy.testing.assert_allclose(np.load(f"{server}/{path.name}").sum(axis=0), (TABLE + 1).sum(axis=0))


def _fill_elsewhere(folder: Path, kind: str, value: Any) -> bytes:
    (folder / "made").mkdir(exist_ok=True)
    with patch.object(test_kinds, "TABLE", value):
        KINDS[kind](folder / "made")
    (path,) = (folder / "made").iterdir()
    return path.read_bytes()


_REMOTE = ["npy", "npy in Fortran's order", "Parquet", "HDF5 in chunks", "CSV"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", _REMOTE)
@pytest.mark.parametrize("server", ["parts", "all"], indirect=True)
def test_files_that_change_at_a_server_while_they_are_read(kind: str, tmp_path: Path, server: str) -> None:
    """Another file of that name is an error, and no mixture of both."""
    suffix = {"HDF5 in chunks": "h5", "Parquet": "parquet", "CSV": "csv"}.get(kind, "npy")
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(_fill_elsewhere(tmp_path, kind, TABLE))
    os.utime(path, (10**9, 10**9))
    x = np.load(f"{server}/{path.name}")
    numpy.testing.assert_array_equal(numpy.asarray(x[5:9]), TABLE[5:9])
    path.write_bytes(_fill_elsewhere(tmp_path, kind, TABLE + 1))
    for read in (lambda: numpy.asarray(x[300:310] + 0), lambda: float((x * 2).sum())):
        with pytest.raises(SourceError, match="has changed since it was opened"):
            read()
    numpy.testing.assert_allclose(np.load(f"{server}/{path.name}").sum(axis=0), (TABLE + 1).sum(axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["npy", "npy in Fortran's order"])
@pytest.mark.parametrize("server", ["all"], indirect=True)
def test_a_server_may_stop_giving_parts(
    kind: str, tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another one does that is at the same address by now."""
    monkeypatch.setattr(given_whole, "_gives_parts", lambda files, path: True)
    path = tmp_path / "x.npy"
    path.write_bytes(_fill_elsewhere(tmp_path, kind, TABLE))
    os.utime(path, (10**9, 10**9))
    x = RemoteFile(f"{server}/x.npy", TABLE.shape, TABLE.dtype, 128, order="F" if "Fortran" in kind else "C")
    numpy.testing.assert_array_equal(x.read(((5, 9), (0, TABLE.shape[1]))), TABLE[5:9])
    path.write_bytes(_fill_elsewhere(tmp_path, kind, TABLE + 1))
    assert x.has_changed(((5, 9), (0, TABLE.shape[1])))


@pytest.mark.parametrize("kind", _REMOTE)
def test_files_that_change_in_memory_while_they_are_read(kind: str, tmp_path: Path) -> None:
    suffix = {"HDF5 in chunks": "h5", "Parquet": "parquet", "CSV": "csv"}.get(kind, "npy")
    files, url = fsspec.filesystem("memory"), f"memory:/{tmp_path}/x.{suffix}"
    files.pipe_file(f"{tmp_path}/x.{suffix}", _fill_elsewhere(tmp_path, kind, TABLE))
    x = np.load(url)
    numpy.testing.assert_array_equal(numpy.asarray(x[5:9]), TABLE[5:9])
    numpy.testing.assert_array_equal(numpy.asarray(x[:, 1:3]), TABLE[:, 1:3])
    files.pipe_file(f"{tmp_path}/x.{suffix}", _fill_elsewhere(tmp_path, kind, TABLE + 1))
    with pytest.raises(SourceError, match="has changed since it was opened"):
        numpy.asarray(x[300:310] + 0)


@pytest.mark.slow
def test_archives_at_a_server(tmp_path: Path, server: str) -> None:
    numpy.savez(tmp_path / "x.npz", one=CUBE, two=TABLE)
    archive = np.load(f"{server}/x.npz")
    numpy.testing.assert_array_equal(numpy.asarray(archive["one"]), CUBE)
    numpy.testing.assert_allclose(archive["two"].sum(axis=0), TABLE.sum(axis=0))
