"""Shared memory, or a file without a name, that a peer names is there and stays so, or it is not mapped."""

import fcntl
import os
from unittest.mock import patch

import numpy as np
import pytest
from msgspec.structs import replace

from spartan_ng.config import config
from spartan_ng.scratch import on_disk
from spartan_ng.system import mapping
from spartan_ng.wire.transfers import SharedArray
from spartan_ng.worker.memory.pool import SharedSegment
from spartan_ng.worker.network.sharing import Mappings, describe_in_file, open_shared

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


@pytest.fixture
def on_a_disk(tmp_path):
    with config.override(disk_folder=str(tmp_path)), patch.object(mapping, "_DESCRIBED", 0):
        array = on_disk((100, 30), np.dtype("f8"))
    array[:] = np.arange(3000.0).reshape(100, 30)
    return array


def test_files_without_a_name_are_looked_at(on_a_disk):
    where = describe_in_file(on_a_disk[2:90:3, 1:])
    assert where is not None
    ended = []
    mappings = Mappings()
    seen = mappings.view(where, lambda: ended.append(1))
    np.testing.assert_array_equal(seen, on_a_disk[2:90:3, 1:])
    assert not seen.flags.writeable
    again = mappings.view(where, lambda: ended.append(2))
    assert len(mappings._files) == 1
    del seen
    assert ended == [1]
    del again
    assert ended == [1, 2]
    assert not mappings._files  # and with it the file's place on the disk


@pytest.mark.parametrize(
    "fields",
    [{"size_bytes": 1 << 20}, {"segment": 1}, {"offset": 24_000}, {"of_file": False}, {"offset": -8}],
)
def test_files_that_are_not_there_are_refused(on_a_disk, fields):
    where = describe_in_file(on_a_disk)
    assert where is not None
    os.close(open_shared(where, os.O_RDONLY))
    with pytest.raises(ValueError):  # noqa: PT011 - each says something else
        open_shared(replace(where, **fields), os.O_RDONLY)


def test_files_with_a_name_are_not_shown(tmp_path):
    (tmp_path / "file").write_bytes(bytes(SIZE))
    with open(tmp_path / "file", "r+b") as file, patch.object(mapping, "_DESCRIBED", 0):
        named = mapping.Mapping(file.fileno(), SIZE, of_file=True).array(SIZE)
        assert describe_in_file(named) is None
        number = os.fstat(file.fileno()).st_ino
        where = SharedArray(
            os.getpid(), file.fileno(), number, SIZE, 0, np.dtype("u1"), (SIZE,), (1,), of_file=True
        )
        with pytest.raises(ValueError, match="without a name"):
            open_shared(where, os.O_RDONLY)
    assert describe_in_file(np.zeros(3)) is None
