"""Texts that are as long as each is: of HDF5 files of pandas, xarray and netCDF, and of zarr stores."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.errors import SourceError
from spartan_ng.sources import source
from tests.sampling import examples

SHAPES: list[tuple[int, ...]] = [(), (0,), (7,), (5, 3), (0, 4), (2, 3, 4)]


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("shape", SHAPES)
def test_texts_are_those_of_the_library(
    shape: tuple[int, ...], encoding: str, chunked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they are long, in chunks and in one piece, which is looked at in parts; what nobody has
    written is empty."""
    monkeypatch.setattr(source, "_PART_BYTES", 200)
    n = int(numpy.prod(shape))
    words = ["", "a", "word" * 9, "x y\n", "caf\u00e9 \U0001f600" if encoding == "utf-8" else "cafe"]
    value = numpy.array([words[k % 5] + "z" * (k // 5) for k in range(n)], object).reshape(shape)
    options: Any = {"chunks": tuple(min(n, 2) for n in shape), "compression": "lzf"} if chunked else {}
    if chunked and not value.size:
        options = {"chunks": (2,) * len(shape), "maxshape": (None,) * len(shape)} if shape else {}
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("s", data=value, dtype=h5py.string_dtype(encoding), **(options if shape else {}))
        file.create_dataset("never", shape, h5py.string_dtype())
    found = np.from_hdf5(tmp_path / "x.h5", "s")
    wanted = value.astype(str) if value.size else value.astype("U1")
    assert found.dtype == wanted.dtype
    numpy.testing.assert_array_equal(numpy.asarray(found), wanted)
    numpy.testing.assert_array_equal(numpy.asarray(found == "a"), wanted == "a")
    if shape and shape[0] > 2:
        numpy.testing.assert_array_equal(numpy.asarray(found[1:3]), wanted[1:3])
        numpy.testing.assert_array_equal(numpy.asarray(np.unique(found)), numpy.unique(wanted))
    never = numpy.asarray(np.from_hdf5(tmp_path / "x.h5", "never"))
    numpy.testing.assert_array_equal(never, numpy.full(shape, "", "U1"))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
@examples(30)
def test_any_texts(texts: list[str]) -> None:
    """Those of several files are one behind the other, as wide as the widest."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("a", texts), ("b", ["some"])):
            with h5py.File(f"{folder}/{name}.h5", "w") as file:
                file.create_dataset("s", data=numpy.array(part, object), dtype=h5py.string_dtype())
        numpy.testing.assert_array_equal(
            numpy.asarray(np.from_hdf5(f"{folder}/*.h5")), numpy.array([*texts, "some"])
        )


def test_other_objects_are_an_error_that_names_the_way(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        rows = file.create_dataset("s", (2,), h5py.vlen_dtype(numpy.dtype(float)))
        rows[0] = [1.0, 2.0]
    with pytest.raises(TypeError, match=r"x\.h5:s.*h5py"):
        np.from_hdf5(tmp_path / "x.h5", "s")


def test_bytes_that_are_no_texts_are_an_error(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("s", data=numpy.array([b"\xff\xfe"], object), dtype=h5py.string_dtype())
    with pytest.raises(SourceError, match=r"x\.h5.*decode"):
        np.from_hdf5(tmp_path / "x.h5", "s")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_of_zarr_of_any_length_are_an_error_that_names_the_way(
    zarr_format: int, tmp_path: Path
) -> None:
    texts = ["a", "bcd", ""]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # format 3 does not define them
        made = zarr.create_array(tmp_path / "x.zarr", shape=(3,), dtype=str, zarr_format=zarr_format)
        made[:] = numpy.array(texts, object)
        with pytest.raises(TypeError, match=r"x\.zarr: .* have zarr read them, .*tolist"):
            np.load(tmp_path / "x.zarr")
        assert np.array(made[...].tolist()).tolist() == texts
