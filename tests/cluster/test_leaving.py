"""Workers that leave: their tiles are taken from them first, and nothing is computed again."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from spartan_ng.arrays import ArrayRef, Tiling
from spartan_ng.cli import main
from spartan_ng.config import config
from spartan_ng.graph import build
from spartan_ng.launchers import asking
from spartan_ng.session import Session
from tests.cluster.conftest import once, start
from tests.cluster.programs import doubled, evaluate, expected, held, total, user, value
from tests.waiting import until

rng = np.random.default_rng(0)


@pytest.fixture
def client(cluster):
    client = cluster.connect()
    with config.override(retries=0):  # nothing is lost, so nothing is computed again
        yield client
    client.close()


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_gives_its_tiles_away_first(cluster, client):
    """The program does nothing meanwhile."""
    session = Session(client)
    x = rng.random((20000, 8))
    (kept,) = session.evaluate([doubled(build.constant(x))])
    copies = ArrayRef(x.shape, x.dtype, value=x)
    client.upload(copies, Tiling.copies(2))
    copies.value = None
    leaving = cluster.workers[0]
    leaving.terminate()
    assert leaving.wait() == 0
    assert copies.value is None  # others have it
    np.testing.assert_array_equal(value(session, kept), 2 * x)
    assert evaluate(session, total(build.data(kept))) == pytest.approx(2 * x.sum())
    assert evaluate(session, total(build.data(copies))) == pytest.approx(x.sum())
    assert client.workers == 2


def test_a_job_under_way_is_finished_first(cluster, client, gate):
    session = Session(client)
    node = build.constant(rng.random((60, 4)))
    leaving = cluster.workers[1]

    def leave():
        leaving.terminate()
        until(lambda: client._link.members.leaving)
        gate.open()

    once(lambda: gate.arrived, leave)
    np.testing.assert_allclose(evaluate(session, total(user(held(gate), node))), expected(node))
    assert leaving.wait() == 0
    assert client.workers == 2
    np.testing.assert_allclose(evaluate(session, total(node)), expected(node))


def _has(client: Any, workers: int) -> bool:
    return bool(client.workers == workers)


@pytest.mark.parametrize("command", ["drain", "scale"])
def test_where_no_master_is_nobody_waits_for_workers(command, monkeypatch, tmp_path):
    """That takes long; a master answers at once."""
    monkeypatch.setattr(asking, "ANSWER_S", 0.1)
    address = f"ipc://{tmp_path}/nobody"
    found = CliRunner().invoke(main, [command, "3", "--master", address])
    assert found.exit_code == 1
    assert f"no master answers at {address} within 0.1 s" in found.output


@pytest.mark.slow
def test_an_admin_says_how_many_workers_there_are():
    for cluster in start(1):
        client = cluster.connect()
        session = Session(client)
        x = rng.random((20000, 8))
        for n in (2, 1):
            done = CliRunner().invoke(main, ["scale", str(n), "--threads", "1", "--master", cluster.address])
            assert done.exit_code == 0, done.output
            until(partial(_has, client, n))  # who asked for them may hear of them first
            (kept,) = session.evaluate([doubled(build.constant(x))])
            np.testing.assert_array_equal(value(session, kept), 2 * x)
        client.close()


@pytest.mark.slow
def test_an_admin_drains_a_worker_and_it_is_not_started_again():
    for cluster in start(2):
        client = cluster.connect()
        session = Session(client)
        x = rng.random((20000, 8))
        (kept,) = session.evaluate([doubled(build.constant(x))])
        process = cluster.workers[0]
        label = next(m.label for m in client._link.members.members if f"pid {process.pid} " in m.label)
        done = CliRunner().invoke(main, ["drain", label, "--master", cluster.address])
        assert done.exit_code == 0, done.output
        assert process.wait() == 0
        with config.override(retries=0):
            np.testing.assert_array_equal(value(session, kept), 2 * x)
        assert client.workers == 1
        unknown = CliRunner().invoke(main, ["drain", "7", "--master", cluster.address])
        assert unknown.exit_code == 1
        assert "no worker is called '7'; there are" in unknown.output
        client.close()
        assert [w.poll() for w in cluster.workers] == [0, None]
