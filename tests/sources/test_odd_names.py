"""Files of any name that a system takes are written and read by every format, alone and in a folder."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

NAMES = ["[1]", "[a-z]", "*", "?", "a::b", "a b", "a:b", "#1", "%41", "ü", "{x}", "-", "a,b", "'q'", "x=1"]
ENDS = [".npy", ".npz", ".zarr", ".zarr.zip", ".h5", ".hdf5", ".parquet", ".bin"]


@pytest.mark.some(12)
@pytest.mark.parametrize("folder", ["", *NAMES])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", NAMES)
def test_names(name: str, end: str, folder: str, tmp_path: Path) -> None:
    a = numpy.arange(12.0).reshape(4, 3)
    inside = tmp_path / folder
    inside.mkdir(exist_ok=True)
    path = str(inside / name) + end
    with config.override(small_bytes=0):
        for other in (a + 1, a):  # once where nothing is, once in another's place
            if end == ".npz":
                np.savez(path, a=np.array(other) + 0)
            elif end == ".bin":
                (np.array(other) + 0).tofile(path)
            else:
                np.save(path, np.array(other) + 0)
        (inside / ("1" + end)).touch()  # which patterns would mean
        found = np.from_raw(path, (4, 3)) if end == ".bin" else np.load(path)
        numpy.testing.assert_array_equal(numpy.asarray(found["a"] if end == ".npz" else found), a)
        if end == ".zarr":
            numpy.testing.assert_array_equal(numpy.asarray(np.from_zarr(path)), a)
            np.to_zarr(np.array(a) + 2, str(inside / "g"), f"in/{name.strip('*?')}x")
            numpy.testing.assert_array_equal(
                numpy.asarray(np.from_zarr(str(inside / "g"), f"in/{name.strip('*?')}x")), a + 2
            )
