"""What is said of HTTP servers of files that do not answer, and when."""

from __future__ import annotations

import functools
import http.server
import math
import os
import pickle
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from spartan_ng.sources import read_box, servers
from spartan_ng.sources.remote import RemoteFile

LOADS: dict[str, Callable[[str], Any]] = {
    "npy": lambda url: np.load(f"{url}/x.npy"),
    "npz": lambda url: np.load(f"{url}/x.npz"),
    "Parquet": lambda url: np.load(f"{url}/x.parquet"),
    "CSV": lambda url: np.from_csv(f"{url}/x.csv"),
    "HDF5": lambda url: np.from_hdf5(f"{url}/x.h5", "x"),
    "zarr": lambda url: np.from_zarr(f"{url}/x.zarr"),
    "raw": lambda url: np.from_raw(f"{url}/x.raw", (3, 4)),
    "images": lambda url: np.from_images([f"{url}/x.png"]),
    "list": lambda url: np.load([f"{url}/x.npy", f"{url}/y.npy"]),
    "folder": lambda url: np.load(f"{url}/x/"),
    "glob": lambda url: np.load(f"{url}/*.npy"),
}


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("call", LOADS)
def test_servers_that_do_not_answer_are_named(call: str, once: bool) -> None:
    """One that listens, and says nothing, though it may have long ago; one that is not there."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        key = (os.getpid(), f"127.0.0.1:{port}")
        servers._answered.pop(key, None)  # ports come again
        if once:
            servers._answered[key] = -math.inf
        with config.override(timeout_s=0.2), pytest.raises(SourceError) as told:
            LOADS[call](f"http://127.0.0.1:{port}")
        assert f"the server at 127.0.0.1:{port} has not answered within 0.2 s (np.config.timeout_s)" in str(
            told.value
        )
    with pytest.raises(SourceError, match=f"the server at 127.0.0.1:{port} cannot be reached"):
        LOADS[call](f"http://127.0.0.1:{port}")


GONE = {k: call for k, call in LOADS.items() if k not in ("images", "list", "folder", "glob", "zarr", "raw")}


@pytest.mark.parametrize("call", [*GONE, "opened before"])
def test_servers_that_are_gone_are_named_though_they_have_answered_lately(call: str, tmp_path: Path) -> None:
    """A file system says no more than that the file is missing."""
    numpy.save(tmp_path / "x.npy", numpy.arange(9.0))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_address[1]}"
        before = np.load(f"{url}/x.npy").sum()
        with pytest.raises(FileNotFoundError):
            np.load(f"{url}/y.npy")
        serving.shutdown()
    with pytest.raises(SourceError, match=r"cannot be rea(ched|d)"):
        before.compute() if call == "opened before" else LOADS[call](url)


def test_servers_may_be_given_their_own_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.npy"
        timeout = aiohttp.ClientTimeout(sock_read=0.1)
        with pytest.raises(SourceError, match=r"within 0\.1 s"):
            np.load(url, storage_options={"client_kwargs": {"timeout": timeout}})


@pytest.mark.slow
def test_servers_that_fall_silent_are_given_up(tmp_path: Path) -> None:
    """What is read later has the time that there was as the file was opened, wherever it is read."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            if not quiet.is_set():
                super().do_GET()
            else:
                over.wait()

    quiet, over = threading.Event(), threading.Event()
    numpy.save(tmp_path / "x.npy", numpy.arange(9.0))
    handler = functools.partial(Silent, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_address[1]}/x.npy"
        with config.override(timeout_s=0.5):
            source = RemoteFile(url, (3,), numpy.dtype(float))
        source = pickle.loads(pickle.dumps(source))
        quiet.set()
        with pytest.raises(SourceError, match="cannot be read"):
            read_box(source, ((0, 3),))
        over.set()
        serving.shutdown()
