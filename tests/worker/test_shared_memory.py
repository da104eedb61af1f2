"""Shared memory that a peer names is there, is shared memory, and stays so: or it is not mapped."""

import fcntl
import os

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.wire.transfers import SharedArray
from spartan_ng.worker.memory.pool import SharedSegment
from spartan_ng.worker.network.sharing import open_shared

SIZE = 1 << 16


@pytest.fixture
def where():
    segment = SharedSegment.create(SIZE)
    yield SharedArray(os.getpid(), segment.descriptor, 1, SIZE, 128, np.dtype("f8"), (10, 20), (20 * 8, 8))
    segment.close()


def test_what_is_there_is_opened(where):
    os.close(open_shared(where, os.O_RDONLY))
    os.close(open_shared(where, os.O_RDWR))


@pytest.mark.parametrize(
    "fields",
    [
        {"offset": -8},
        {"offset": SIZE - 10 * 20 * 8 + 8},
        {"offset": 1 << 62},
        {"shape": (10, SIZE)},
        {"shape": (-1, 20)},
        {"strides": (1 << 40, 8)},
        {"strides": (-160, 8)},
        {"strides": (8,)},
        {"size_bytes": 2 * SIZE},
        {"size_bytes": SIZE - 4096},
        {"dtype": np.dtype("V1000000")},
    ],
)
def test_arrays_that_are_not_there_are_refused(where, fields):
    with pytest.raises(ValueError):  # noqa: PT011 - each says something else
        open_shared(replace(where, **fields), os.O_RDONLY)


def test_files_are_no_shared_memory(where, tmp_path):
    (tmp_path / "file").write_bytes(bytes(SIZE))
    with open(tmp_path / "file", "rb") as file, pytest.raises(ValueError, match="shared memory"):
        open_shared(replace(where, descriptor=file.fileno()), os.O_RDONLY)


def test_memory_that_may_shrink_is_refused_and_ours_may_not(where):
    descriptor = os.memfd_create("other", os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, SIZE)
        with pytest.raises(ValueError, match="for good"):
            open_shared(replace(where, descriptor=descriptor), os.O_RDONLY)
    finally:
        os.close(descriptor)
    assert fcntl.fcntl(where.descriptor, fcntl.F_GET_SEALS) & fcntl.F_SEAL_SHRINK
    with pytest.raises(PermissionError):
        os.ftruncate(where.descriptor, 4096)
