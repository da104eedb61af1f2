"""Real workers read sources themselves: the program sends them where the elements are."""

from __future__ import annotations

import os
from math import prod

import h5py
import numpy
import pytest
import zarr

import spartan_ng as np
from spartan_ng import memory
from spartan_ng import session as sessions
from spartan_ng.api.files import saving
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import MemoryBudgetError, UserFunctionError
from spartan_ng.worker.network.transfer import Peers
from tests.cluster.conftest import start

VALUE = numpy.random.default_rng(0).random((3000, 30))


@pytest.fixture(autouse=True)
def on_workers(session):
    before = sessions.current().backend
    sessions.use(session.backend)
    with config.override(small_bytes=0):
        yield
    sessions.use(before)


def test_functions_run_on_the_workers(tmp_path):
    folder, driver = str(tmp_path), os.getpid()

    def read(box):
        with open(f"{folder}/{os.getpid()}", "a") as file:
            file.write(f"{box}\n")
        assert os.getpid() != driver
        return VALUE[tuple(slice(*b) for b in box)]

    x = np.from_function(read, VALUE.shape)
    numpy.testing.assert_allclose((x * 2).sum(axis=0), VALUE.sum(axis=0) * 2)
    numpy.testing.assert_allclose(x.max(axis=1), VALUE.max(axis=1))
    assert len(list(tmp_path.iterdir())) == 3


def test_what_a_function_raises_comes_back_with_the_users_line():
    def read(box):
        raise ArithmeticError("cannot be read")

    with pytest.raises(UserFunctionError, match="cannot be read") as found:
        np.compute(np.from_function(read, VALUE.shape).sum())
    assert "test_sources.py:" in str(found.value)


def test_what_is_read_at_a_time_follows_from_a_workers_memory():
    """Also where a source is read as a whole, by whom the program has given less than the machine has."""
    most = memory.band_bytes(4 << 20)

    def read(box):
        assert prod(hi - lo for lo, hi in box) * VALUE.itemsize <= most
        return VALUE[tuple(slice(*b) for b in box)]

    for cluster in start(2, memory=4 << 20):
        client = cluster.connect()
        sessions.use(client)
        found = np.cumsum(np.from_function(read, VALUE.shape), axis=0)
        numpy.testing.assert_allclose(found, numpy.cumsum(VALUE, axis=0))
        client.close()


def test_mapped_files_are_mapped_by_the_workers(tmp_path, monkeypatch):
    numpy.save(tmp_path / "x.npy", VALUE)
    x = np.load(tmp_path / "x.npy")
    sent = []
    put = Peers.put

    def noted(*args):
        sent.append(args)
        return put(*args)

    monkeypatch.setattr(Peers, "put", noted)
    numpy.testing.assert_allclose((x + 1).sum(axis=0), (VALUE + 1).sum(axis=0))
    assert not sent


def test_a_file_that_was_replaced_keeps_the_elements_that_were_loaded(tmp_path):
    numpy.save(tmp_path / "x.npy", VALUE)
    x = np.load(tmp_path / "x.npy")
    numpy.save(tmp_path / "y.npy", VALUE * 3)
    os.replace(tmp_path / "y.npy", tmp_path / "x.npy")
    numpy.testing.assert_allclose((x + 1).sum(axis=0), (VALUE + 1).sum(axis=0))


def test_workers_that_come_later_read_too(shared):
    x = np.from_function(lambda box: numpy.ones([hi - lo for lo, hi in box]), VALUE.shape)
    assert float(x.sum()) == VALUE.size
    other = sessions.Session(shared.connect())
    before = sessions.current().backend
    sessions.use(other.backend)
    assert float((x + 1).sum()) == 2 * VALUE.size
    other.backend.close()
    sessions.use(before)
    assert float((x + 2).sum()) == 3 * VALUE.size


@pytest.mark.parametrize("suffix", [".npy", ".zarr"])
def test_workers_write_their_own_blocks(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(saving, "_SHARE", 1 << 40)
    x = np.from_function(lambda box: VALUE[tuple(slice(*b) for b in box)], VALUE.shape) * 2
    np.save(tmp_path / f"x{suffix}", x)
    found = np.load(tmp_path / f"x{suffix}")
    numpy.testing.assert_array_equal(numpy.asarray(found), VALUE * 2)
    assert os.listdir(tmp_path) == [f"x{suffix}"]


@pytest.mark.parametrize("rows", [1000, 60_000])
@pytest.mark.parametrize("kind", ["hdf5", "zarr"])
def test_chunks_have_to_fit_the_worker_with_the_least_memory(kind, rows, tmp_path):
    """What one of them has no room for is said before any reads, and what it has is read by all."""
    value = numpy.random.default_rng(1).integers(0, 100, (60_000, 20)).astype("f8")
    if kind == "hdf5":
        with h5py.File(tmp_path / "x.h5", "w") as file:
            file.create_dataset("x", data=value, chunks=(rows, 20), compression="gzip", compression_opts=1)
    else:
        zarr.create_array(tmp_path / "x.zarr", data=value, chunks=(rows, 20))
    programs = (lambda x: x.sum(axis=0), lambda x: x[12_345:12_400] * 2, lambda x: x[:, 3] + 1)
    cluster = LocalCluster(1, memory=40_000_000)
    with cluster as backend:
        cluster.add_worker(memory=6_000_000)
        assert backend.wait_for_workers(2, 30.0)
        sessions.use(backend)
        x = np.load(next(tmp_path.iterdir()))
        for program in programs:
            if rows == 1000:
                numpy.testing.assert_array_equal(program(x), program(value))
                continue
            with pytest.raises(MemoryBudgetError, match="9,600,000 bytes, with a budget of"):
                np.compute(program(x))
