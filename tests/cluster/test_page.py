"""The page of a cluster: what programs, workers and losses look like to who has the link."""

import os
import signal
import subprocess
import sys
import threading

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session as sessions
from spartan_ng.backends.cluster import ClusterBackend
from spartan_ng.errors import ConnectionFailed
from spartan_ng.wire.keys import keygen
from tests.pages import keys, rows
from tests.waiting import Gate, until


@pytest.fixture
def watched(cluster):
    """A cluster with a page, and a program that runs on it."""
    before, client = sessions.current(), cluster.connect()
    sessions._session = sessions.Session(client)
    with np.config.override(small_bytes=0, kernels="interpret"):
        url = client.page()
        until(lambda: client._link.is_watched)
        yield cluster, url
    sessions._session = before
    client.close()


@pytest.mark.slow
def test_jobs_arrays_and_workers_are_there(watched):
    _, url = watched
    x = np.array(numpy.random.default_rng(0).random((60_000, 8))).persist()
    assert np.sort((x * x).sum(axis=1))[0].item() >= 0
    done = [job for job in rows(url, "jobs") if job["state"] == "done"]
    assert done
    assert {job["line"].partition(":")[0] for job in done} == {"test_page.py"}
    plan = rows(url, "plans")[-1]
    assert any("multiply" in stage["name"] for stage in plan["stages"])
    every = [3] * len(plan["stages"])
    until(lambda: [count for count, *_ in rows(url, "jobs")[-1]["stages"].values()] == every)
    assert [60_000, 8] in [array["shape"] for array in rows(url, "arrays")]
    workers = rows(url, "workers")
    assert sorted(worker["rank"] for worker in workers) == [0, 1, 2]
    until(lambda: sum(worker["received"] for worker in rows(url, "workers")) > 0)
    until(lambda: sum(worker["used"] for worker in rows(url, "workers")) >= 60_000 * 8 * 8)
    del x
    until(lambda: [60_000, 8] not in [array["shape"] for array in rows(url, "arrays")])


@pytest.mark.slow
def test_losses_errors_and_prints_are_there(watched):
    cluster, url = watched
    x = np.arange(30_000.0).persist()

    def breaks(tile):
        if tile.size > 1:
            print("so far")
            raise ValueError("on purpose")
        return tile

    with pytest.raises(np.errors.UserFunctionError, match="on purpose"):
        np.map(breaks, x).sum().item()
    failed = rows(url, "jobs")[-1]
    assert failed["state"] == "failed"
    assert "on purpose" in failed["error"]
    until(lambda: any("so far" in line["text"] for line in rows(url, "logs")))
    os.kill(cluster.workers[1].pid, signal.SIGKILL)
    until(lambda: len(rows(url, "workers")) == 2)
    (loss,) = rows(url, "losses")
    assert f"pid {cluster.workers[1].pid}" in loss["text"]
    assert x.sum().item() == 30_000 * 29_999 / 2
    until(lambda: len(rows(url, "losses")) == 2)
    again = rows(url, "losses")[-1]["text"]
    assert again.startswith("test_page.py:")
    assert "10,000 elements, for 10,000 that were lost, are computed again" in again
    with np.config.override(tiling="row"):
        y = (x * 2).persist()
    np.checkpoint(y)
    os.kill(cluster.workers[2].pid, signal.SIGKILL)
    until(lambda: len(rows(url, "losses")) == 3)
    assert y.sum().item() == 30_000 * 29_999
    until(lambda: len(rows(url, "losses")) == 4)
    assert "what was lost is there again, by second copies" in rows(url, "losses")[-1]["text"]


@pytest.mark.slow
def test_users_functions_are_seen_where_they_run(watched, tmp_path):
    _, url = watched
    shown: list[str] = []

    def look():
        until(lambda: any("waits" in stack for stack in keys(url, "functions")))
        shown.extend(stack for stack in keys(url, "functions") if "waits" in stack)
        gate.open()

    with Gate(tmp_path / "gate") as gate:

        def inner():
            gate.enter()

        def waits(tile):
            if tile.size > 1:
                inner()
            return tile

        looker = threading.Thread(target=look)
        looker.start()
        assert np.map(waits, np.arange(30_000.0)).sum().item() == 30_000 * 29_999 / 2
        looker.join()
    first, second, *_ = shown[0].split(";")
    assert [name.partition(" ")[0].rpartition(".")[2] for name in (first, second)] == ["waits", "inner"]
    assert "(test_page.py:" in first


@pytest.mark.slow
def test_a_page_is_opened_once(watched):
    _, url = watched
    assert np.page().url == url


COMMAND = [sys.executable, "-m", "spartan_ng.cli", "master"]


@pytest.mark.slow
def test_the_command_prints_the_link_and_clients_with_keys_get_it(tmp_path):
    keygen(tmp_path)
    options = ["--address", "tcp://127.0.0.1:*", "--keys", str(tmp_path), "--page", "0"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, text=True, env={**environment, "PYTHONUNBUFFERED": "1"}
    ) as master:
        assert master.stdout is not None
        address = master.stdout.readline().split()[-1]
        url = master.stdout.readline().split()[-1]
        client = ClusterBackend.connect(address, tmp_path, workers=0)
        try:
            assert client.page() == url
            assert rows(url, "workers") == []
        finally:
            client.close()
            master.terminate()


@pytest.mark.slow
def test_a_master_with_keys_opens_no_page_because_a_client_asks(tmp_path):
    keygen(tmp_path)
    options = ["--address", "tcp://127.0.0.1:*", "--keys", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.PIPE, text=True, env={**environment, "PYTHONUNBUFFERED": "1"}
    ) as master:
        assert master.stdout is not None
        client = ClusterBackend.connect(master.stdout.readline().split()[-1], tmp_path, workers=0)
        try:
            with pytest.raises(ConnectionFailed, match="without --page"):
                client.page()
        finally:
            client.close()
            master.terminate()
