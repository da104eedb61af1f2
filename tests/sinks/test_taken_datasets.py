"""A dataset takes the place of what it would have made itself: h5py finds all else in its file as it was."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from tests.sampling import examples
from tests.sinks.test_taken import VALUE, everything_is_large, workers

__all__ = ["everything_is_large", "workers"]
HDF5_OPTIONS: list[dict[str, Any]] = [{}, {"chunks": (7, 3), "compression": "gzip"}]


def _tree(file: Any) -> dict[str, Any]:
    """What an HDF5 file has, by name."""
    found: dict[str, Any] = {"/": ("group", dict(file.attrs))}

    def add(name: str, item: Any) -> None:
        kind = item[...].tolist() if isinstance(item, h5py.Dataset) else "group"
        found[name] = kind, dict(item.attrs)

    file.visititems(add)
    return found


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
    """What h5py makes of the file when it deletes the old dataset, and creates the new one with what was
    noted there."""
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
            notes = dict(file[plain].attrs) if plain in file else {}
            if plain in file:
                del file[plain]
            file[plain] = value
            file[plain].attrs.update(notes)
        np.to_hdf5(np.array(value), path, name, **options)
        with h5py.File(path) as file, h5py.File(oracle) as expected:
            assert _tree(file) == _tree(expected)
            assert file.userblock_size == userblock
        numpy.testing.assert_array_equal(numpy.asarray(np.from_hdf5(path, name)), value)
        assert sorted(os.listdir(folder)) == ["oracle.h5", "x.h5"]


NOTES: dict[str, Any] = {
    "units": "m / s",
    "bytes": numpy.bytes_(b"abc"),
    "none": h5py.Empty("f8"),
    "flag": True,
    "texts": ["x", "yy"],
    "valid_range": numpy.array([-1.5, 2.5], ">f4"),
    "pair": numpy.array((1, 2.5), dtype=[("n", "i2"), ("x", "f8")]),
}


@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("options", HDF5_OPTIONS)
@pytest.mark.parametrize("shape", [(300, 20), (40, 5), (2, 3, 4), (7, 0), ()])
def test_a_dataset_keeps_what_was_noted_at_the_one_before(
    shape: Any, options: Any, others: bool, tmp_path: Path
) -> None:
    """Attributes of all types, of which the library says afterwards what it did."""
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["a"] = VALUE
        file["a"].attrs.update(NOTES)
        if others:
            file["b"] = VALUE
            file["a"].attrs["where"] = file["b"].ref

    def said() -> Any:
        with h5py.File(path) as file:
            every = {k: file["a"].attrs.get_id(k) for k in file["a"].attrs}
            kinds = {k: (i.shape, i.dtype, i.get_space().get_simple_extent_type()) for k, i in every.items()}
            return kinds, {k: repr(v) for k, v in file["a"].attrs.items() if k != "where"}

    before = said()
    np.to_hdf5(numpy.ones(shape, "f4"), path, "a", **(options if len(shape) == 2 and shape[1] > 2 else {}))
    assert said() == before
    with h5py.File(path) as file:
        assert file["a"].shape == shape
        assert not others or file[file["a"].attrs["where"]] == file["b"]


def _measured(file: Any) -> None:
    """A dataset with two scales, one of which another has, too."""
    file["x"], file["y"] = numpy.arange(300.0), numpy.arange(20.0)
    file["a"], file["b"] = VALUE, VALUE[:, 0]
    file["x"].make_scale("longitude")
    file["y"].make_scale("latitude")
    for k, scale in enumerate(["x", "y"]):
        file["a"].dims[k].attach_scale(file[scale])
    file["b"].dims[0].attach_scale(file["x"])
    file["a"].dims[0].label = "across"


def _scales(file: Any) -> Any:
    return {
        name: ([[s.name for s in dim.values()] for dim in item.dims], [dim.label for dim in item.dims])
        for name, item in file.items()
    }


@pytest.mark.parametrize("options", [{}, {"chunks": True}])
def test_datasets_keep_their_scales_and_are_scales_still(options: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        _measured(file)
        before = _scales(file)
    for name, value in (("a", VALUE + 1), ("x", numpy.arange(300.0) * 2), ("b", VALUE[:, 1])):
        np.to_hdf5(value, path, name, **options)
        with h5py.File(path) as file:
            assert _scales(file) == before
            assert file["x"].is_scale
            assert file["x"].attrs["NAME"] == b"longitude"
            assert len(file["x"].attrs["REFERENCE_LIST"]) == 2
            numpy.testing.assert_array_equal(file["a"].dims[0][0][...], file["x"][...])
    np.to_hdf5(VALUE[:, 0], path, "a", **options)  # of other dimensions
    with h5py.File(path) as file:
        assert _scales(file) == {**before, "a": ([[]], [""])}
        assert len(file["x"].attrs["REFERENCE_LIST"]) == 1
        assert "REFERENCE_LIST" not in file["y"].attrs


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


@pytest.mark.parametrize("options", HDF5_OPTIONS)
@pytest.mark.parametrize("link", ["another file's", "a lost file's", "lost"])
def test_links_make_room_and_what_they_lead_to_stays(link: str, options: Any, tmp_path: Path) -> None:
    """They were followed from a copy of the file, where they lead nowhere."""
    links = {
        "another file's": h5py.ExternalLink("b.h5", "/x"),
        "a lost file's": h5py.ExternalLink("none.h5", "/x"),
        "lost": h5py.SoftLink("/none"),
    }
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = VALUE
        file["x"].attrs["units"] = "m"
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["own"], file["x"] = VALUE, links[link]
    before = (tmp_path / "b.h5").read_bytes()
    np.to_hdf5(np.array(VALUE) + 1, tmp_path / "a.h5", "x", **options)
    assert (tmp_path / "b.h5").read_bytes() == before
    with h5py.File(tmp_path / "a.h5") as file:
        assert isinstance(file.get("x", getlink=True), h5py.HardLink)
        assert not file["x"].attrs
        numpy.testing.assert_array_equal(file["x"][...], VALUE + 1)
        numpy.testing.assert_array_equal(file["own"][...], VALUE)
