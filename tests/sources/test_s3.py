"""A store of objects, as S3 is: files of all formats are saved to it and read, here and by workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.backends.local import LocalCluster
from spartan_ng.config import config
from spartan_ng.errors import SourceError
from tests.sources.test_kinds import everything_is_large
from tests.test_programs import running_on

__all__ = ["everything_is_large"]

servers = pytest.importorskip("moto.server", reason="the server is an extra of the tests")
s3fs = pytest.importorskip("s3fs", reason="its client is an extra of the tests")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # the server's own

VALUE = numpy.random.default_rng(0).random((3000, 20))
SUFFIXES = ["npy", "zarr", "parquet", "h5"]


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, Any]]:
    """What opens a server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = servers.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    where = {"endpoint_url": f"http://{host}:{port}", "region_name": "eu-west-1"}
    options = {"key": "a", "secret": "b", "client_kwargs": where}
    s3fs.S3FileSystem(**options).mkdir("bucket")
    yield options
    server.stop()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_saved_is_read(suffix: str, workers: int, options: dict[str, Any]) -> None:
    """And once more over what was there."""
    url = f"s3://bucket/{workers}/x.{suffix}"

    def work() -> None:
        for k in range(2):
            np.save(url, np.asarray(VALUE) * 2 + k, storage_options=options)
            found = np.load(url, storage_options=options)
            numpy.testing.assert_array_equal(numpy.asarray(found[7:90, 3] + 1), VALUE[7:90, 3] * 2 + k + 1)
            numpy.testing.assert_allclose(found.sum(axis=0), (VALUE * 2 + k).sum(axis=0))
        numpy.testing.assert_array_equal(numpy.asarray(found), VALUE * 2 + 1)

    if not workers:
        work()
        return
    with (
        LocalCluster(workers, timeout_s=3600) as backend,
        running_on(backend),
    ):  # a busy machine takes its time
        work()


@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_several_objects_are_one_array(suffix: str, options: dict[str, Any]) -> None:
    for k in range(3):
        np.save(f"s3://bucket/many/{k}.{suffix}", np.asarray(VALUE + k), storage_options=options)
    for name in (f"many/*.{suffix}", f"many/[0-2].{suffix}"):
        found = np.load(f"s3://bucket/{name}", storage_options=options)
        expected = numpy.concatenate([VALUE, VALUE + 1, VALUE + 2])
        numpy.testing.assert_array_equal(numpy.asarray(found), expected)


@pytest.mark.parametrize("suffix", ["npy", "parquet", "h5"])
def test_an_object_that_is_another_by_now_is_an_error(suffix: str, options: dict[str, Any]) -> None:
    url = f"s3://bucket/changed.{suffix}"
    np.save(url, np.asarray(VALUE), storage_options=options)
    found = np.load(url, storage_options=options)
    np.save(url, np.asarray(VALUE) * 3, storage_options=options)
    with pytest.raises(SourceError, match="has changed since it was opened"):
        numpy.asarray(found + 0)


@pytest.mark.parametrize("name", ["bucket/none", "none/none"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_not_there_is_said(suffix: str, name: str, options: dict[str, Any]) -> None:
    with pytest.raises((FileNotFoundError, SourceError)):
        np.load(f"s3://{name}.{suffix}", storage_options=options)


def test_little_memory_is_kept_to(options: dict[str, Any]) -> None:
    with config.override(memory_bytes=VALUE.nbytes // 4):
        np.save("s3://bucket/little.npy", np.asarray(VALUE), storage_options=options)
        found = np.load("s3://bucket/little.npy", storage_options=options)
        numpy.testing.assert_allclose((found * 2).sum(axis=0), VALUE.sum(axis=0) * 2)
