"""Traces of programs on a cluster: one file, with what all workers did, on one clock."""

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session as sessions
from spartan_ng.events import record
from tests.reading_traces import begin, end, of_kind, read, usual_cover
from tests.waiting import killing_one


@pytest.fixture
def connected(backend):
    """Programs run on the shared cluster, all of their operands."""
    before = sessions.current()
    sessions._session = sessions.Session(backend)
    with np.config.override(small_bytes=0, kernels="interpret"):
        yield
    sessions._session = before


@pytest.mark.slow
def test_workers_and_program_are_in_one_trace(connected, tmp_path):
    x = np.array(numpy.random.default_rng(0).random((300_000, 8)))
    with np.tracing(tmp_path / "run.json"):
        for _ in range(9):
            y = np.sort((x * x).sum(axis=1))
            assert y[0].item() >= 0
            x = (x + 0.5).persist()
    rows = read(tmp_path / "run.json")
    processes = {r["args"]["name"].partition(" (")[0] for r in rows if r["name"] == "process_name"}
    assert processes == {"program", "worker 0", "worker 1", "worker 2"}
    for kind in ("upload", "plan", "run", "part", "prepare", "stage", "transfer"):
        assert of_kind(rows, kind), kind
    assert usual_cover(rows, "part") >= 0.95
    for part in of_kind(rows, "part"):  # one clock: a job runs while the program waits for it
        runs = of_kind(rows, "run")
        assert any(begin(run) <= begin(part) and end(part) <= end(run) for run in runs), part
    assert not record.is_on


def test_a_job_that_nobody_observes_tells_nothing(connected, monkeypatch):
    told = []
    monkeypatch.setattr(record, "tell", lambda *what: told.append(what))
    assert np.arange(100_000.0).sum().item() == 4_999_950_000
    assert told == []


@pytest.mark.slow
def test_a_loss_and_what_is_computed_again_are_in_the_trace(cluster, tmp_path):
    before = sessions.current()
    client = cluster.connect()
    sessions._session = sessions.Session(client)
    try:
        with (
            np.config.override(small_bytes=0, kernels="interpret"),
            killing_one(tmp_path / "gate") as adds_one,
            np.tracing(tmp_path / "run.json"),
        ):
            x = np.arange(30_000.0).persist()
            assert np.map(adds_one, x, dtype=float).sum().item() == 30_000 * 29_999 / 2 + 30_000
    finally:
        sessions._session = before
        client.close()
    rows = read(tmp_path / "run.json")
    assert of_kind(rows, "recover")
    assert of_kind(rows, "lost")
    assert len(of_kind(rows, "run")) >= 3
