"""What engines leave behind is theirs: sockets that they forget to close are no faults of ours."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.config import config


@contextmanager
def forgiving() -> Iterator[None]:
    """Sockets that are forgotten in the block, or were before, are closed at its end without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@pytest.fixture(scope="module")
def client():
    """A client of a real dask cluster of three workers."""
    distributed = pytest.importorskip("distributed")
    with forgiving():
        cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0")
        found = distributed.Client(cluster, set_as_default=False)
    yield found
    with forgiving():
        found.close()
        cluster.close()


@pytest.fixture(autouse=True)
def forgets():
    """Each test's own."""
    with forgiving():
        yield


@pytest.fixture
def on_dask(client):
    """The client of a dask cluster that programs run on."""
    client.wait_for_workers(3)
    before = session.current().backend
    np.connect(client)
    with config.override(small_bytes=0):
        yield client
    session.current().backend.retire()
    session.use(before)
