"""What a worker has no more of, its system says: an error with worker and bytes, and the next job works."""

import errno
import os
import resource
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import zmq

from spartan_ng.arrays import ArrayRef, Tiling, box_of
from spartan_ng.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    OutOfResources,
    SpartanError,
    UserFunctionError,
)
from spartan_ng.graph import build
from spartan_ng.session import Session
from tests.cluster.conftest import start
from tests.cluster.programs import doubled, evaluate, user
from tests.waiting import until

MB = 1 << 20


@pytest.fixture(scope="module")
def one():
    yield from start(1)


@pytest.fixture
def client(one):
    client = one.connect()
    yield client
    client.close()


def upload(client, x):
    ref = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(ref, Tiling.grid(1, 1))
    ref.value = None
    return ref


def works(client):
    x = np.arange(100_000.0).reshape(1000, 100)
    np.testing.assert_array_equal(evaluate(Session(client), doubled(build.constant(x))), 2 * x)


def limited(pid, what, soft):
    """Set a process's soft limit; what it was."""
    before = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (soft, before[1]))
    return before


def test_too_many_open_files(one, client):
    works(client)
    pid = one.workers[0].pid
    before = limited(pid, resource.RLIMIT_NOFILE, len(os.listdir(f"/proc/{pid}/fd")) + 5)
    kept: list[ArrayRef] = []
    try:
        with pytest.raises(OutOfResources, match=rf"worker .*pid {pid} .*shared memory of [\d,]+ bytes"):
            kept.extend(upload(client, np.ones((128, 1024))) for _ in range(100))
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    kept.clear()
    works(client)


@pytest.fixture
def little_memory(one, client):
    """The worker's system gives it 64 MB more, and then nothing."""
    works(client)
    pid = one.workers[0].pid
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    before = limited(pid, resource.RLIMIT_AS, pages * resource.getpagesize() + 64 * MB)
    yield rf"worker 0 \(pid {pid} .*"
    resource.prlimit(pid, resource.RLIMIT_AS, before)
    works(client)


def test_no_memory_for_what_a_function_makes(client, little_memory):
    node = user(lambda tile: np.ones(MB << 7)[: len(tile)], build.constant(np.ones((60, 4))))
    with pytest.raises(UserFunctionError, match=little_memory + r"1\.00 GiB"):
        evaluate(Session(client), node)


def test_no_memory_for_a_result(client, little_memory):
    x = build.constant(np.ones((12_000, 1)))
    square = build.map_("add", x, build.transpose(x, (1, 0)))
    with pytest.raises((MemoryError, OutOfResources), match=little_memory + r"[\d,]{9,} bytes"):
        Session(client).evaluate([square])


def test_a_tile_beyond_the_budget_goes_to_disk():
    for cluster in start(1, memory=4 * MB):
        client = cluster.connect()
        x = np.arange(1024.0 * 1024).reshape(1024, 1024)
        ref = upload(client, x)
        np.testing.assert_array_equal(client.gather(ref, box_of(x.shape)), x)
        works(client)
        client.close()


def test_who_has_no_descriptors_to_connect_to_a_worker_says_so(one, client, monkeypatch):
    """The connection to the master goes on, and so does the program once there are some."""
    x = np.arange(100_000.0).reshape(1000, 100)
    with monkeypatch.context() as patch:
        patch.setattr(client._link._loop, "_socket", no_descriptors)
        with pytest.raises(OutOfResources, match=r"cannot connect to .*pid \d+.*: Too many open files"):
            upload(client, x)
    works(client)


def no_descriptors(kind, address):
    raise zmq.ZMQError(errno.EMFILE)


def test_a_folder_that_others_may_enter_is_an_error_until_they_may_not(one, client):
    folder = Path(client._link.address.removeprefix("ipc://")).parent
    folder.chmod(0o777)
    try:
        with pytest.raises(AuthenticationFailed, match="are not safe"):
            upload(client, np.arange(100_000.0).reshape(1000, 100))
    finally:
        folder.chmod(0o700)
    works(client)


def test_what_goes_wrong_with_a_connection_is_said(one):
    client = one.connect()
    client._link._loop.call(lambda: os.environ["NOT SET"])
    until(lambda: not client._link._thread.is_alive())
    with pytest.raises(ConnectionFailed, match="is given up: KeyError: 'NOT SET'"):
        works(client)
    client.close()


@pytest.fixture
def another():
    yield from start(1)


@pytest.mark.slow
def test_a_worker_whose_descriptors_a_function_keeps_is_replaced(another):
    """Whoever comes next would have nothing to connect or to hold tiles with."""
    client = another.connect()
    (before,) = client.status().members.members
    with suppress(SpartanError):  # what it makes has no place
        evaluate(Session(client), user(hoard, build.constant(np.ones((1000, 100)))))
    until(lambda: [m.label for m in client.status().members.members] not in ([], [before.label]))
    works(client)
    client.close()


def hoard(tile):
    """Leave this process no descriptor."""
    kept = vars(sys).setdefault("kept", [])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    with suppress(OSError):
        while True:
            kept.append(os.eventfd(0))
    return tile
