"""Clusters of real processes on loopback, always stopped, and a check that nothing is left of them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.master.server import MasterServer
from spartan_ng.session import Session
from spartan_ng.wire.access import Access, private_folder
from spartan_ng.wire.keys import Keys, keygen
from spartan_ng.worker.server import WorkerServer
from tests.waiting import Gate, until


def litter() -> set[str]:
    """Shared-memory segments and temporary files with a name."""
    return {f"/dev/shm/{n}" for n in os.listdir("/dev/shm") if "spartan" in n} | {
        str(p) for p in Path(tempfile.gettempdir()).glob("*spartan-ng*")
    }


def await_no_litter(before: set[str]) -> None:
    """Until there is no more than before; another process of the tests may have a cluster meanwhile."""
    until(lambda: litter() <= before)


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def once(condition: Callable[[], object], act: Callable[[], object]) -> None:
    """Do something as soon as `condition()` is true, whatever the caller does meanwhile."""

    def work() -> None:
        until(condition)
        act()

    threading.Thread(target=work, daemon=True).start()


def pids(cluster: LocalCluster) -> list[int]:
    """The cluster's processes."""
    return [p.pid for p in (cluster.master, *cluster.workers) if p is not None]


def start(n: int, **options) -> Iterator[LocalCluster]:
    before = litter()
    cluster = LocalCluster(n, **options)
    cluster.start()
    all_pids = pids(cluster)
    try:
        yield cluster
    finally:
        all_pids += pids(cluster)
        cluster.stop()
    until(lambda: not any(alive(p) for p in all_pids))
    await_no_litter(before)


def serve(server: MasterServer | WorkerServer) -> threading.Thread:
    """Run a server on a thread."""
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    return thread


@contextmanager
def running(*servers: Any) -> Iterator[Any]:
    """Servers on threads of this process, until they are stopped; gives the first."""
    threads = [serve(s) for s in servers]
    try:
        yield servers[0]
    finally:
        for s in reversed(servers):
            s.stop()
        for t in threads:
            t.join()


@pytest.fixture(scope="session", autouse=True)
def temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder of our own, so that other programs' files are no litter of ours."""
    tmp_path_factory.getbasetemp()  # pytest's own are where they were
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """Where functions wait on workers; open at the end."""
    with Gate(tmp_path / "gate") as one:
        yield one


@pytest.fixture(scope="session")
def shared(temporary_files: None) -> Iterator[LocalCluster]:
    """A cluster of three workers for all tests that leave it usable."""
    yield from start(3)


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """A cluster of three workers for tests that harm it; what dies is not started again."""
    yield from start(3, restart=False)


@pytest.fixture
def backend(shared: LocalCluster) -> Iterator[ClusterBackend]:
    """A client of the shared cluster."""
    client = shared.connect()
    yield client
    client.close()


@pytest.fixture
def session(backend: ClusterBackend) -> Session:
    """A session on the shared cluster."""
    return Session(backend)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cluster's keys."""
    directory = tmp_path_factory.mktemp("keys") / "ours"
    keygen(directory)
    return directory


@pytest.fixture
def master() -> Iterator[MasterServer]:
    """A master at a socket of this user's own."""
    with running(MasterServer(f"ipc://{private_folder()}/master")) as server:
        yield server


@pytest.fixture
def insecure() -> Iterator[MasterServer]:
    """A master that lets in everybody."""
    with running(MasterServer("tcp://127.0.0.1:*", Access(insecure=True))) as server:
        yield server


@pytest.fixture
def keyed(keys: Path) -> Iterator[MasterServer]:
    """A master and two workers that demand keys."""
    server = MasterServer("tcp://127.0.0.1:*", Access(Keys.load(keys, "server")))
    access = Access(Keys.load(keys, "worker"))
    with running(server, *[WorkerServer(server.address, access=access) for _ in range(2)]):
        yield server


def refusal(kind: type[Exception], address: str, timeout_s: float | None = None, **options: Any) -> str:
    """The message of the error that connecting raises."""
    with pytest.raises(kind) as caught:
        ClusterBackend.connect(address, timeout_s=timeout_s, **options)
    assert isinstance(caught.value, ConnectionError)
    return str(caught.value)
