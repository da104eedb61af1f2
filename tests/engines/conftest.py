"""What engines leave behind is theirs: sockets that they forget to close are no faults of ours."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


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
