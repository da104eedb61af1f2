"""HTTP servers that are busy for a moment, drop connections, or give less than they should."""

from __future__ import annotations

import functools
import gc
import http.server
import io
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
import numpy
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError
from spartan_ng.sources import servers, sessions

DATA = numpy.random.default_rng(0).random((600, 5))
READS: dict[str, Callable[[str], Any]] = {
    "npy": lambda url: np.load(f"{url}/x.npy"),
    "npz": lambda url: np.load(f"{url}/x.npz")["a"],
    "Parquet": lambda url: np.load(f"{url}/x.parquet"),
    "CSV": lambda url: np.load(f"{url}/x.csv"),
    "HDF5": lambda url: np.load(f"{url}/x.h5"),
    "HDF5 in chunks": lambda url: np.load(f"{url}/packed.h5"),
    "zarr": lambda url: np.load(f"{url}/x.zarr"),
}


class Troubled(http.server.SimpleHTTPRequestHandler):
    """A server of parts that has trouble with some of the requests: with those whose numbers are in `bad`."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args: Any, bad: Callable[[int], bool], trouble: str, **keywords: Any) -> None:
        self.bad, self.trouble = bad, trouble
        super().__init__(*args, **keywords)

    def log_message(self, *args: Any) -> None:
        pass

    def handle(self) -> None:
        with suppress(OSError):
            super().handle()

    def do_HEAD(self) -> None:
        self.answer(has_body=False)

    def do_GET(self) -> None:
        self.answer(has_body=True)

    def answer(self, has_body: bool) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.say(404, {}, b"")
            return
        data, is_bad = path.read_bytes(), self.bad(next(self.server.numbers))  # type: ignore[attr-defined]
        if is_bad and self.trouble.isdigit():
            self.say(int(self.trouble), {"Retry-After": "7"}, b"")
            return
        if is_bad and self.trouble == "refused":
            self.hang_up()
            return
        asked = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        lo = int(asked[1]) if asked else 0
        hi = min(int(asked[2] or len(data)), len(data) - 1) + 1 if asked else len(data)
        headers = (
            {"Content-Range": f"bytes {lo}-{hi - 1}/{len(data)}"} if asked else {"Accept-Ranges": "bytes"}
        )
        part = data[lo:hi] if has_body else b""
        if is_bad and self.trouble == "short" and asked:
            part = part[: len(part) // 2]
        self.say(206 if asked else 200, headers, part, len(part) if has_body else hi - lo, is_bad)

    def say(
        self, status: int, headers: dict[str, str], part: bytes, nbytes: int = 0, is_bad: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(nbytes)}.items():
            self.send_header(name, value)
        self.end_headers()
        is_dropped = is_bad and self.trouble == "dropped"
        self.wfile.write(part[: len(part) // 2] if is_dropped else part)
        if is_dropped and part:
            self.hang_up()

    def hang_up(self) -> None:
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served")
    for name in ("x.npy", "x.parquet", "x.h5", "x.zarr"):
        np.save(found / name, DATA)
    numpy.savez(found / "x.npz", a=DATA)
    numpy.savetxt(found / "x.csv", DATA, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.17g")
    np.to_hdf5(DATA, found / "packed.h5", chunks=(100, 5), compression="gzip")
    return found


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited for servers: nobody does."""
    found: list[float] = []

    async def wait(pause_s: float) -> None:
        found.append(pause_s)

    monkeypatch.setattr(sessions, "_in_trouble", {})  # ports come again
    monkeypatch.setattr(sessions, "wait", wait)
    monkeypatch.setattr(sessions, "wait_here", found.append)
    return found


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., str]]:
    """The URL of a new server with some trouble."""
    running = []

    def begun(trouble: str, bad: Callable[[int], bool]) -> str:
        handler = functools.partial(Troubled, directory=str(folder), bad=bad, trouble=trouble)
        serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        serving.numbers = iter(range(1 << 30))  # type: ignore[attr-defined]
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        running.append(serving)
        return f"http://127.0.0.1:{serving.server_address[1]}"

    yield begun
    for serving in running:
        serving.shutdown()
        serving.server_close()


@pytest.mark.parametrize("trouble", ["429", "500", "502", "503", "504", "dropped", "refused"])
@pytest.mark.parametrize("call", READS)
def test_servers_are_asked_again(
    call: str, trouble: str, serve: Callable[..., str], pauses: list[float]
) -> None:
    """Whichever request it is that fails, and each third one."""
    for third in range(3):
        url = serve(trouble, lambda number, third=third: number % 3 == third)
        assert numpy.array_equal(READS[call](url).compute(), DATA)
    assert pauses or trouble == "refused"  # what was not answered at all aiohttp asks once more itself
    if trouble.isdigit():
        assert max(pauses) == 7  # as it says


@pytest.mark.parametrize("trouble", ["503", "dropped", "refused", "short", "403"])
@pytest.mark.parametrize("call", READS)
def test_servers_that_stay_in_trouble_are_named(
    call: str, trouble: str, serve: Callable[..., str], pauses: list[float]
) -> None:
    """From the first request on, or from a later one: as an error of one kind, and not for ever."""
    for first in (0, 2, 4, 6):
        url = serve(trouble, lambda number, first=first: number >= first)
        told = None
        try:
            READS[call](url).compute()  # what took fewer requests is read
        except (SourceError, FileNotFoundError) as error:
            told = error
        assert first or told is not None or trouble == "short"
        if told is not None:
            assert url in str(told)
            assert isinstance(told, SourceError) or trouble == "403"
    assert sum(pauses) <= 40


def test_nobody_collects_what_waits_for_the_lock_of_hdf5(
    serve: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its objects go with that lock: a loop that collected some waited for who was waiting for the loop."""
    asked: list[bool] = []
    read = servers.ServedFile.read

    def noted(file: Any, size: int | None = -1) -> bytes:
        asked.append(gc.isenabled())
        return read(file, size)

    monkeypatch.setattr(servers.ServedFile, "read", noted)
    x = READS["HDF5 in chunks"](serve("500", lambda number: False))
    assert numpy.array_equal(x.compute(), DATA)
    assert asked
    assert not any(asked)
    assert gc.isenabled()


def test_pauses_grow_and_end(serve: Callable[..., str], pauses: list[float]) -> None:
    url = serve("refused", lambda number: number >= 0)
    with pytest.raises(SourceError, match="cannot be read"):
        np.load(f"{url}/x.npy")
    assert pauses == sorted({*pauses})


WRITES: dict[str, Callable[[str], Any]] = {
    "npy": lambda url: np.save(f"{url}/y.npy", DATA),
    "npz": lambda url: np.savez(f"{url}/y.npz", a=DATA),
    "zarr": lambda url: np.save(f"{url}/y.zarr", DATA),
    "archive of zarr": lambda url: np.save(f"{url}/y.zarr.zip", DATA),
    "HDF5": lambda url: np.save(f"{url}/y.h5", DATA),
    "Parquet": lambda url: np.save(f"{url}/y.parquet", DATA),
    "folder": lambda url: np.to_parquet(DATA, f"{url}/y/"),
}


@pytest.mark.parametrize("call", WRITES)
def test_servers_that_take_no_files_are_named(call: str, serve: Callable[..., str]) -> None:
    url = serve("", lambda number: False)
    with pytest.raises(io.UnsupportedOperation, match=r"takes no files.*Write to a file here") as told:
        WRITES[call](url)
    assert url in str(told.value)
    del told
    fsspec.filesystem("http").clear_instance_cache()
    gc.collect()  # aiohttp warns of sessions that nobody has closed
