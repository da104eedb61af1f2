"""Clusters of real processes on loopback, always stopped, and a check that nothing is left of them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.backends.local import LocalCluster
from spartan_ng.session import Session


def litter() -> set[str]:
    """Shared-memory segments and temporary files with a name."""
    return {f"/dev/shm/{n}" for n in os.listdir("/dev/shm") if "spartan" in n} | {
        str(p) for p in Path(tempfile.gettempdir()).glob("*spartan-ng*")
    }


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds: float = 90.0) -> bool:
    """Whether `condition()` becomes true in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


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
    assert wait_until(lambda: not any(alive(p) for p in all_pids)), "a process is left"
    assert litter() <= before


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalCluster]:
    """A cluster of three workers for tests that leave it usable."""
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
