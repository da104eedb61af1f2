"""A write takes the place of what it would have made itself: the libraries that own the formats find all else
as it was."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng.config import config
from tests.sampling import examples
from tests.test_programs import running_on

VALUE = numpy.random.default_rng(0).random((300, 20))
HDF5_OPTIONS: list[dict[str, Any]] = [{}, {"chunks": (7, 3), "compression": "gzip"}]


@pytest.fixture(autouse=True)
def everything_is_large() -> Iterator[None]:
    with config.override(small_bytes=0):
        yield


@pytest.fixture(params=[0, 2])
def workers(request: pytest.FixtureRequest) -> Iterator[int]:
    if not request.param:
        yield 0
        return
    backend: Any = SimulatedBackend(request.param)
    backend.is_local = True
    with running_on(backend):
        yield request.param


def _tree(file: Any) -> dict[str, Any]:
    """What an HDF5 file has, by name."""
    found: dict[str, Any] = {"/": ("group", dict(file.attrs))}

    def add(name: str, item: Any) -> None:
        kind = item[...].tolist() if isinstance(item, h5py.Dataset) else "group"
        found[name] = kind, dict(item.attrs)

    file.visititems(add)
    return found


# --- HDF5 ------------------------------------------------------------------------------------------------


@examples(60)
@given(
    there=st.lists(st.sampled_from(["a", "b", "g/a", "g/b", "g/h/a", "data"]), max_size=4, unique=True),
    noted=st.sampled_from(["", "/", "a", "g", "g/h", "data"]),
    name=st.sampled_from(["a", "g/a", "g/h/a", "/g//a/", "data", "new", "new/a/b"]),
    options=st.sampled_from([{}, {"chunks": (2,)}]),
    userblock=st.sampled_from([0, 0, 512]),
    draw=st.randoms(use_true_random=False),
)
def test_a_dataset_is_added_or_replaced_and_all_else_stays(
    there: list[str], noted: str, name: str, options: Any, userblock: int, draw: random.Random
) -> None:
    """What h5py makes of the file when it deletes the old dataset, and creates the new one."""
    with tempfile.TemporaryDirectory() as folder:
        path, oracle = f"{folder}/x.h5", f"{folder}/oracle.h5"
        for where in (path, oracle):
            with h5py.File(where, "w", userblock_size=userblock) as file:
                for k, other in enumerate(there):
                    file.create_dataset(other, data=numpy.arange(k + 3) * 1.5)
                if noted and noted in file:
                    file[noted].attrs["unit"] = "m"
        value = numpy.random.default_rng(draw.randint(0, 9)).random(draw.randint(2, 5000))
        with h5py.File(oracle, "r+") as file:
            plain = name.replace("//", "/").strip("/")
            if plain in file:
                del file[plain]
            file[plain] = value
        np.to_hdf5(np.array(value), path, name, **options)
        with h5py.File(path) as file, h5py.File(oracle) as expected:
            assert _tree(file) == _tree(expected)
            assert file.userblock_size == userblock
        numpy.testing.assert_array_equal(numpy.asarray(np.from_hdf5(path, name)), value)
        assert sorted(os.listdir(folder)) == ["oracle.h5", "x.h5"]


@pytest.mark.parametrize("options", HDF5_OPTIONS)
def test_datasets_of_one_file_are_made_of_each_other(options: Any, tmp_path: Path, workers: int) -> None:
    """References and links hold; a file does not grow when a dataset is written again."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a"] = VALUE
        file["same"] = file["a"]
        file["soft"] = h5py.SoftLink("/a")
        file["places"] = numpy.array([file["a"].ref], dtype=h5py.ref_dtype)
    for k in range(1, 4):
        np.to_hdf5(np.from_hdf5(path, "a") * k, path, "b", **options)
        with h5py.File(path) as file:
            numpy.testing.assert_array_equal(file["b"][...], VALUE * k)
            numpy.testing.assert_array_equal(file[file["places"][0]][...], VALUE)
            assert file["same"] == file["a"] == file["soft"]
    assert path.stat().st_size < 4 * VALUE.nbytes
    np.to_hdf5(np.from_hdf5(path, "b") + 1, path, "soft", **options)  # the link, and not what it leads to
    with h5py.File(path) as file:
        numpy.testing.assert_array_equal(file["soft"][...], VALUE * 3 + 1)
        numpy.testing.assert_array_equal(file["a"][...], VALUE)


@pytest.mark.parametrize("options", HDF5_OPTIONS)
def test_what_a_dataset_cannot_replace_is_left_alone(options: Any, tmp_path: Path) -> None:
    path, text = tmp_path / "x.h5", tmp_path / "text.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["g/b"], file["kind"] = VALUE, VALUE, numpy.dtype("f4")
        file["far"] = h5py.ExternalLink("other.h5", "/")
    text.write_text("dear")
    before = path.read_bytes()

    def never(box: Any) -> Any:
        raise AssertionError("asked before the place was")

    x = np.from_function(never, (9, 9))
    for name, said in {
        "g": r"x\.h5 has at 'g' a group of b, which is left alone; give another name",
        "a/b/c": "has at 'a' no group",
        "kind": "a named datatype",
        "far/x": r"a link to other\.h5",
    }.items():
        with pytest.raises(FileExistsError, match=said):
            np.to_hdf5(x, path, name, **options)
    with pytest.raises(FileExistsError, match=r"text\.h5 is no HDF5 file, which is left alone; name another"):
        np.save(text, x)
    for name in ("", "/"):
        with pytest.raises(ValueError, match="no name of a dataset"):
            np.to_hdf5(x, path, name, **options)
    assert (path.read_bytes(), text.read_text()) == (before, "dear")
    with h5py.File(path, "a"), pytest.raises(OSError, match="open for writing"):
        np.to_hdf5(x, path, "new", **options)
    assert sorted(os.listdir(tmp_path)) == ["text.h5", "x.h5"]


@pytest.mark.parametrize("options", HDF5_OPTIONS)
@pytest.mark.parametrize("how", ["error", "another program"])
def test_a_file_with_other_datasets_is_what_it_was(options: Any, how: str, tmp_path: Path) -> None:
    """After an error; and where another has added to it meanwhile, it has what that one wrote."""
    path, before = tmp_path / "x.h5", b""
    with h5py.File(path, "w") as file:
        file["a"], file["b"] = VALUE, VALUE + 1
    before = path.read_bytes()

    def read(box: Any) -> Any:
        nonlocal before
        if how == "error":
            raise ArithmeticError("no elements")
        with h5py.File(path, "a") as file:
            file.require_dataset("other", (3,), "f8")
        before = path.read_bytes()
        return numpy.zeros([hi - lo for lo, hi in box])

    with pytest.raises((np.errors.UserFunctionError, FileExistsError)):
        np.to_hdf5(np.from_function(read, VALUE.shape) + 1, path, "a", **options)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.h5"]


def test_an_empty_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.h5").touch()
    np.save(tmp_path / "x.h5", np.array(VALUE))
    numpy.testing.assert_array_equal(numpy.asarray(np.load(tmp_path / "x.h5")), VALUE)
