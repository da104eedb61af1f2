"""Compressed archives (`.npz`): arrays that a budget has no room for are unpacked to disk, in pieces."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.arrays.copying import is_mapped
from spartan_ng.backends.embedded import EmbeddedBackend
from spartan_ng.config import config
from tests.test_programs import running_on

LINE = numpy.random.default_rng(5).integers(0, 9, 600_000).astype("f8")
KINDS: dict[str, Callable[[], Any]] = {
    "rows": lambda: LINE.reshape(6000, 100),
    "Fortran's order": lambda: LINE.reshape(100, 6000).T,
    "three axes": lambda: LINE.reshape(30, 200, 100).transpose(2, 1, 0),
    "texts": lambda: LINE.astype("U3"),
    "durations": lambda: LINE.astype("m8[s]"),
    "of other bytes": lambda: LINE.astype(">c16"),
    "records": lambda: LINE.view([("a", "f8")]),
    "records of other letters": lambda: LINE.view([("ä", "f8")]),
    "small": lambda: LINE[:100],
    "no elements": lambda: LINE[:0],
    "objects": lambda: numpy.array([1, "x"] * 9, object),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x", "x.npy"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_room_is_unpacked_to_disk(kind: str, name: str, tmp_path: Path) -> None:
    value, budget = KINDS[kind](), 4_000_000
    numpy.savez_compressed(tmp_path / "x.npz", x=value, y=LINE[:9])
    is_large = value.nbytes > budget // 2
    with config.override(memory_bytes=budget, small_bytes=1000), running_on(EmbeddedBackend(2, budget)):
        with np.load(tmp_path / "x.npz", allow_pickle=True) as archive:
            tracemalloc.start()
            found = archive[name]
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert is_mapped(found._cell.value) == is_large
            assert most < max(budget // 2, 2 * value.nbytes * (not is_large))
            with pytest.raises(KeyError, match="none is not a file in the archive"):
                archive["none"]
        with numpy.load(tmp_path / "x.npz", allow_pickle=True) as archive:
            expected = archive[name]
        shown = numpy.asarray(found)
        numpy.testing.assert_array_equal(shown, expected)
        assert (shown.dtype, shown.strides, shown.flags.writeable) == (expected.dtype, expected.strides, True)
        if value.size:
            found[:1] = expected[-1:]
            expected[:1] = expected[-1:]
            numpy.testing.assert_array_equal(numpy.asarray(found), expected)


@pytest.mark.parametrize("lacking", [8, 4_000_000])
def test_an_archive_that_lacks_elements_is_numpys_error(lacking: int, tmp_path: Path) -> None:
    file = io.BytesIO()
    numpy.save(file, LINE)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", file.getvalue()[:-lacking])
        archive.writestr("x.txt", b"words")
    with config.override(memory_bytes=4_000_000, small_bytes=1000):
        messages = []
        for module in (np, numpy):
            with module.load(tmp_path / "x.npz") as opened, pytest.raises(ValueError, match="EOF") as error:
                opened["x"]
            messages.append(str(error.value))
        assert messages[0] == messages[1]
        assert np.load(tmp_path / "x.npz")["x.txt"] == b"words"
