"""Datasets at URLs: how much is asked of servers, however they are stored, and whatever is read of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import h5py
import numpy
import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

import spartan_ng as np
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(3).integers(0, 9, (60_000, 20)).astype("f8")
STORED: dict[str, dict[str, Any]] = {
    "in one piece": {"data": VALUE},
    "truths in one piece": {"data": VALUE > 4},
    "one chunk": {"data": VALUE, "chunks": VALUE.shape},
    "chunks of rows": {"data": VALUE, "chunks": (1000, 20)},
    "packed": {"data": VALUE, "chunks": (1000, 20), "compression": "gzip", "compression_opts": 1},
    "packed columns": {"data": VALUE, "chunks": (10_000, 2), "compression": "gzip", "compression_opts": 1},
}
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "sums of columns": lambda x: x.sum(axis=0),
    "sums of rows": lambda x: x.sum(axis=1),
    "a column": lambda x: x[:, 3] * 1,
    "columns": lambda x: x[:, ::-7].sum(axis=1),
    "rows": lambda x: x[::1000] * 1,
}


class Blocks(AbstractBufferedFile):  # type: ignore[misc]
    """A file of which blocks are asked for, as at a server."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        found = self.fs.cat_file(self.path, start=start, end=end)
        assert isinstance(found, bytes)
        return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each request for a part of a file in memory."""
    requests = list[int]()

    def given(files: Any, path: str, start: int | None = None, end: int | None = None) -> bytes:
        found: MemoryFile = files.store[files._strip_protocol(path)]
        part = found.getvalue()[start:end]
        requests.append(len(part))
        return part

    def opened(files: Any, path: str, mode: str = "rb", block_size: Any = "default", **options: Any) -> Any:
        options.pop("autocommit", None)
        return Blocks(files, path, mode, block_size or "default", **options)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", given)
    monkeypatch.setattr(MemoryFileSystem, "_open", opened)
    with config.override(small_bytes=0):
        yield requests


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("stored", STORED)
def test_few_requests_bring_each_byte_once(
    stored: str, program: str, tmp_path: Path, asked: list[int]
) -> None:
    """Of what is not packed the library asks for each run of elements by itself, 60,000 a column."""
    budget = 30_000_000
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", **STORED[stored])
        nbytes = dataset.id.get_storage_size()
    url = f"memory:/{tmp_path}/x.h5"
    fsspec.filesystem("memory").store[f"{tmp_path}/x.h5"] = MemoryFile(
        None, f"{tmp_path}/x.h5", (tmp_path / "x.h5").read_bytes()
    )
    with config.override(memory_bytes=budget), running_on(EmbeddedBackend(2, budget)):
        x = np.load(url)
        said = np.explain(PROGRAMS[program](x))
        assert said.stages[0].reads_apart == ("s besides reading" in str(said)) == (stored != "in one piece")
        assert "unpacking" not in str(said)  # which not all of these do
        del asked[:]
        numpy.testing.assert_array_equal(PROGRAMS[program](x), PROGRAMS[program](STORED[stored]["data"]))
    assert sum(asked) <= 1.6 * nbytes + (6 << 20)
    assert len(asked) <= 12 + nbytes / (1 << 19)
