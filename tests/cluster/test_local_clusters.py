"""Clusters that a program or a notebook starts, changes and ends: arrays live on."""

import os
import threading
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng import session
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from spartan_ng.errors import OptionError
from tests.cluster.conftest import once
from tests.cluster.programs import held
from tests.waiting import until

X = numpy.random.default_rng(0).random((60, 7))


def test_arrays_outlive_their_cluster():
    """Those that only workers have, views of them, lazy ones, masked ones, and what came from here."""
    with config.override(small_bytes=0):
        with np.cluster(2) as cluster:
            assert cluster.workers == 2
            x = np.array(X)
            y = (x * 2).persist()
            part = y[3:9, ::2]
            later = y + x.sum()
            some = y[y[:, 0] > 1]
        assert isinstance(session.current().backend, EmbeddedBackend)
        assert cluster.workers == 0
        numpy.testing.assert_array_equal(y, X * 2)
        numpy.testing.assert_array_equal(part, (X * 2)[3:9, ::2])
        numpy.testing.assert_allclose(later, X * 2 + X.sum())
        numpy.testing.assert_array_equal(some, (X * 2)[X[:, 0] * 2 > 1])
    cluster.close()
    assert repr(cluster) == "<Cluster: closed>"


@pytest.mark.parametrize("ends", [lambda cluster: cluster.close(), lambda cluster: cluster.scale(1)])
def test_what_a_killed_worker_took_is_there_when_arrays_come_home(ends):
    large = numpy.random.default_rng(1).random((3000, 70))
    cluster = np.cluster(3, threads=1)
    try:
        with config.override(small_bytes=0, tiling="row"):
            y = (np.array(large) * 2).persist()
            z = np.sort(y, axis=0).persist()
            worker = cluster._processes.workers[-1]
            worker.kill()
            worker.wait()
            ends(cluster)
    finally:
        cluster.close()
    numpy.testing.assert_array_equal(y, large * 2)
    numpy.testing.assert_array_equal(z, numpy.sort(large * 2, axis=0))


@pytest.mark.slow
def test_a_cluster_grows_and_shrinks_under_its_arrays():
    cluster = np.cluster(1, threads=1)
    try:
        with config.override(small_bytes=0):
            y = (np.array(X) * 2).persist()
            for n in (3, 2, 1, 2):
                cluster.scale(n)
                assert cluster.workers == n
                z = (y + n).persist()
                numpy.testing.assert_array_equal(z, X * 2 + n)
                assert session.current().backend.workers == n
    finally:
        cluster.close()
    numpy.testing.assert_array_equal(y, X * 2)
    with pytest.raises(OptionError, match="closed"):
        cluster.scale(2)


@pytest.mark.slow
def test_a_cluster_has_as_many_workers_as_there_is_work_for(gate):
    with np.cluster(1, threads=1) as cluster, config.override(small_bytes=0, tiling="row"):
        with pytest.raises(OptionError, match="from 3 to 2 workers"):
            cluster.adapt(3, 2)
        x = np.array(X)
        cluster.adapt(1, 2, busy_s=0.0, idle_s=1e9)
        once(lambda: cluster.workers == 2, gate.open)
        numpy.testing.assert_array_equal(np.map(held(gate), x, dtype=float), X)
        y = (x * 2).persist()
        cluster.adapt(1, 2, busy_s=1e9, idle_s=0.0)
        until(lambda: cluster.workers == 1)
        numpy.testing.assert_array_equal(y + 1, X * 2 + 1)


def test_copies_are_not_brought_home():
    cluster = np.cluster(3, threads=1)
    try:
        with config.override(small_bytes=0, tiling="row"):
            y = (np.array(numpy.tile(X, (50, 1))) * 2).persist()
            np.checkpoint(y)
            replicas = session.current()._replicas
            assert replicas is not None
            (copy,) = replicas.copies.values()
            cluster.scale(2)
            numpy.testing.assert_array_equal(y + 1, numpy.tile(X, (50, 1)) * 2 + 1)
            assert copy.value is None
    finally:
        cluster.close()
    assert copy.value is None


def test_a_cluster_has_workers():
    with pytest.raises(OptionError, match="at least one worker"):
        np.cluster(0)


def drawn(tile):
    return tile * 0 + [os.getpid(), numpy.random.randint(1 << 60), np.random.randint(1 << 60)]


def test_workers_do_not_draw_the_same():
    """Nor does a process that starts them, whose state they could have."""
    with np.cluster(2), config.override(small_bytes=0):
        rows = {*map(tuple, np.map(drawn, np.array(numpy.zeros((4000, 3)))).tolist())}
    assert len({pid for pid, _, _ in rows}) == 2
    assert len({number for row in rows for number in row[1:]}) == 2 * len(rows)


@pytest.mark.parametrize("lazy", [False, True])
def test_functions_read_arrays_that_are_on_the_workers(lazy):
    """When they are sent: not where what brings them would have to wait for that."""
    a = numpy.arange(60_000.0).reshape(3000, 20)
    with np.cluster(2, threads=1), config.override(small_bytes=0):
        x = np.array(a) * 2
        if not lazy:
            x.persist()

        def times_first(tile):
            return tile * numpy.asarray(x[1, 1])

        for y in (a + 1, a - 1):
            numpy.testing.assert_array_equal(np.map(times_first, np.array(y)), y * 42)


def test_a_function_that_cannot_be_sent_is_the_programs_error():
    lock = threading.Lock()
    with np.cluster(1, threads=1), config.override(small_bytes=0):
        x = np.array(numpy.ones((60, 4)))
        with pytest.raises(TypeError, match=r"cannot be sent to the workers: .*lock"):
            np.map(lambda tile: tile * bool(lock), x, dtype=float).compute()
        assert float(x.sum()) == 240


@pytest.mark.parametrize("when", ["before", "after"])
def test_arrays_may_come_home_while_a_job_reads_them(when, monkeypatch):
    """Another thread scales the cluster down: the job is planned anew with what is here by then."""
    with config.override(small_bytes=0), np.cluster(2, threads=1) as cluster:
        backend: Any = cluster._backend
        y = (np.array(X) * 2).persist()
        small = np.array(X[0, :3])
        wait = backend._await
        homes: list[None] = []

        def interrupted(*given):
            if when == "before" and not homes:
                homes.append(backend.bring_home())
            done = wait(*given)
            if when == "after" and not homes:
                homes.append(backend.bring_home())
            return done

        monkeypatch.setattr(backend, "_await", interrupted)
        numpy.testing.assert_array_equal(
            np.sort(y, axis=0) + small.sum(), numpy.sort(X * 2, axis=0) + X[0, :3].sum()
        )
        assert len(homes) == 1


def test_an_array_may_come_home_while_it_is_read(monkeypatch):
    with config.override(small_bytes=0), np.cluster(2, threads=1) as cluster:
        backend: Any = cluster._backend
        large = numpy.random.default_rng(1).random((3000, 70))
        y = (np.array(large) * 2).persist()
        gather = backend._held._gather
        homes: list[bool] = []

        def interrupted(*given):
            if not homes:
                homes.append(True)
                backend.bring_home()
                raise KeyError("a tile that was given back")
            return gather(*given)

        monkeypatch.setattr(backend._held, "_gather", interrupted)
        numpy.testing.assert_array_equal(y, large * 2)
        assert homes


@pytest.mark.parametrize("n", [1.5, 2.0, "2", None])
def test_a_number_of_workers_is_a_whole_one(n):
    with pytest.raises(OptionError, match="whole number of workers"):
        np.cluster(n)
    with np.cluster(1, threads=1) as cluster:
        with pytest.raises(OptionError, match="whole number of workers"):
            cluster.scale(n)
        assert cluster.workers == 1
