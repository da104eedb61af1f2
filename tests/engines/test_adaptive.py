"""Plans on a dask cluster that has as many workers as it finds it needs."""

from __future__ import annotations

import threading
from unittest import mock

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.engines import backend as engine_backend
from spartan_ng.config import config
from tests.engines.conftest import forgiving
from tests.waiting import Gate, until

distributed = pytest.importorskip("distributed")
MOST = 3


@pytest.fixture
def adaptive():
    """A cluster of one worker that may have three, soon after it finds that it needs them."""
    before = session.current().backend
    with (
        forgiving(),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        np.connect(client)
        cluster.adapt(minimum=1, maximum=MOST, interval="20ms", target_duration="1ms", wait_count=2)
        with config.override(small_bytes=0, tiling="row"):
            yield cluster
        session.current().backend.retire()
        session.use(before)


@pytest.mark.slow
def test_a_job_makes_its_cluster_grow_and_arrays_outlive_its_shrinking(adaptive, tmp_path):
    value = numpy.arange(6000.0).reshape(60, 100)
    with Gate(tmp_path / "gate") as gate:
        entered = gate.enter

        def meets(block):
            """Wait for the blocks of other workers."""
            entered()
            return block + 1

        def open_when_all_are_there():
            until(lambda: len(set(gate.arrived)) == MOST)
            gate.open()

        opening = threading.Thread(target=open_when_all_are_there)
        opening.start()
        held = np.map(meets, np.array(value), dtype=float).persist()
        opening.join()
    assert len(set(gate.arrived)) == MOST, "each of the workers was given a part"
    until(lambda: len(adaptive.scheduler_info["workers"]) == 1)
    numpy.testing.assert_array_equal(held, value + 1)
    numpy.testing.assert_array_equal(np.cumsum(held * 2, axis=0), numpy.cumsum((value + 1) * 2, axis=0))


@pytest.mark.slow
def test_a_cluster_that_stops_adapting_is_cut_as_it_is(adaptive):
    assert session.current().backend.workers == MOST
    adaptive.adapt().stop()
    adaptive.scale(2)
    until(lambda: session.current().backend.workers == 2)


@pytest.mark.slow
def test_workers_that_join_are_used_while_arrays_are_held(adaptive):
    adaptive.adapt().stop()
    adaptive.scale(1)
    until(lambda: session.current().backend.workers == 1)
    value = numpy.arange(6000.0).reshape(60, 100)
    with mock.patch.object(engine_backend, "_LOOK_S", -1.0):
        held = (np.array(value) * 2).persist()
        assert _parts_of_the_last_plan() == 1
        adaptive.scale(MOST)
        until(lambda: session.current().backend.workers == MOST)
        made = (held + 1).persist()
        assert _parts_of_the_last_plan() == MOST
        numpy.testing.assert_array_equal(numpy.cumsum(value * 2 + 1, axis=0), np.cumsum(made, axis=0))
        adaptive.scale(1)
        numpy.testing.assert_array_equal(held - made, numpy.full_like(value, -1))


@pytest.mark.slow
def test_a_scheduler_is_not_waited_for_inside_a_call_of_its_clients(adaptive):
    """Its loop waits for that call to end."""
    with (
        distributed.Client(adaptive, set_as_default=False) as client,
        mock.patch.object(engine_backend, "_LOOK_S", -1.0),
    ):
        np.connect(client)
        for held in (None, (np.arange(10.0) * 2).persist()):  # no array there, and some
            assert client.submit(lambda x, y: x + y, Asking(), held is None).result() in (MOST, MOST + 1)


def _parts_of_the_last_plan():
    run = session.current().last_run
    assert run is not None
    return run[0].workers


class Asking:
    """Finds, as it is pickled, into how many parts plans cut."""

    def __reduce__(self):
        return int, (session.current().backend.workers,)
