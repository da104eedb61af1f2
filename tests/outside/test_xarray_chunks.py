"""xarray opens files as arrays of ours, and reads nothing before it is worked on."""

from __future__ import annotations

import pickle
import shutil
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as sp
from tests.sampling import examples

xarray = pytest.importorskip("xarray")

from xarray.namedarray import parallelcompat  # noqa: E402 - behind the question whether it is there

from spartan_ng.api.core.handle import Handle  # noqa: E402
from spartan_ng.errors import SourceError  # noqa: E402
from spartan_ng.managed import Managed  # noqa: E402
from spartan_ng.sources.zarr_array import ZarrArray  # noqa: E402
from spartan_ng.xarrays import ChunkManager, UnreadFile  # noqa: E402

T = numpy.random.default_rng(0).random((400, 30, 40)).astype("f4")
NAMES = numpy.array(["a", "bc", "def"], object)


@pytest.fixture
def weather():
    """A data set with a large variable, small ones, and texts."""
    values = {
        "t": (("time", "y", "x"), T),
        "name": (("place",), NAMES),
        "none": (("time", "no"), T[:, :0, 0]),
    }
    return xarray.Dataset(values, coords={"time": numpy.arange(400)})


@pytest.fixture
def opened(weather, tmp_path):
    """The same in a file, opened with our arrays."""
    pytest.importorskip("zarr")
    weather.to_zarr(tmp_path / "w", consolidated=False, encoding={"t": {"chunks": (100, 30, 40)}})
    keywords = {"engine": "zarr", "consolidated": False}
    with xarray.open_dataset(
        tmp_path / "w", chunks={"time": 200}, chunked_array_type=ChunkManager(), **keywords
    ) as found:
        yield found


@pytest.fixture
def asked(monkeypatch):
    """The boxes that are read."""
    boxes, read = [], UnreadFile.__getitem__

    def noted(self, box):
        boxes.append(tuple(s.stop - s.start for s in box))
        return read(self, box)

    monkeypatch.setattr(UnreadFile, "__getitem__", noted)
    return boxes


def test_programs_over_files_give_what_numpy_gives(opened, asked):
    assert isinstance(opened.t.data, sp.ndarray)
    means = (opened.t * 2).mean("time")
    months = opened.t.groupby(opened.time // 100).max()
    part = opened.t.isel(time=slice(3, 7), x=5)
    assert not asked, "nothing is read yet"
    assert not isinstance(means.data, numpy.ndarray)
    numpy.testing.assert_allclose(means.values, (T * 2).mean(0), rtol=1e-5)
    numpy.testing.assert_array_equal(months.values, T.reshape(4, 100, 30, 40).max(1))
    numpy.testing.assert_array_equal(part.values, T[3:7, :, 5])
    assert asked
    assert list(opened.name.values) == list(NAMES)
    assert opened.none.shape == (400, 0)
    assert float(opened.none.sum()) == 0


def test_what_is_opened_is_read_by_whoever_has_the_pickle(opened):
    source = opened.t.data._node().data.source
    there = pickle.loads(pickle.dumps(source))
    numpy.testing.assert_array_equal(there.read(((3, 9), (0, 30), (2, 4))), T[3:9, :, 2:4])


def test_chunks_say_how_files_are_read(opened, asked):
    again = opened.chunk({"time": 50}, chunked_array_type=ChunkManager())
    assert again.t.data is opened.t.data, "chunks change nothing of an array that is there"
    assert again.t.chunks == ((400,), (30,), (40,))
    source = ChunkManager().from_array(opened.t.data._node().data.source.of.data, (50, None, -1))
    assert source._node().data.source.chunks == (50, 30, 40)
    with sp.config.override(small_bytes=0):
        numpy.testing.assert_allclose(float(source.sum()), T.sum(dtype="f8"), rtol=1e-5)
    assert {n % 50 for n, _, _ in asked} == {0}


def test_files_of_netcdf_are_opened_too(weather, tmp_path):
    weather[["t"]].to_netcdf(tmp_path / "w", engine="scipy")
    keywords = {"engine": "scipy", "backend_kwargs": {"mmap": False}}
    chunks = {"time": 100}
    with xarray.open_dataset(
        tmp_path / "w", chunks=chunks, chunked_array_type=ChunkManager(), **keywords
    ) as w:
        assert w.t.data._node().data.source.chunks == (100, 30, 40)
        numpy.testing.assert_array_equal((w.t - 1).max("x").values, (T - 1).max(2))


def test_what_is_in_memory_becomes_ours_as_well(weather):
    found = weather.chunk({"time": 50}, chunked_array_type=ChunkManager())
    assert isinstance(found.t.data, sp.ndarray)
    (value,) = ChunkManager().compute((found.t + 1).data)
    assert type(value) is numpy.ndarray
    numpy.testing.assert_array_equal(value, T + 1)
    lessened = xarray.apply_ufunc(lambda a: a - a.min(), found.t, dask="allowed")
    numpy.testing.assert_array_equal(lessened.values, T - T.min())


def test_xarray_finds_it_by_its_name_beside_dask():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    points = tomllib.loads(text)["project"]["entry-points"]["xarray.chunkmanagers"]
    entries = [EntryPoint(name, value, "xarray.chunkmanagers") for name, value in points.items()]
    known = parallelcompat.load_chunkmanagers(entries)
    assert isinstance(known["spartan_ng"], ChunkManager)
    assert not known["spartan_ng"].is_chunked_array(numpy.ones(3))
    assert known["spartan_ng"].is_chunked_array(sp.ones(3))


LENGTHS = st.one_of(st.none(), st.just(-1), st.integers(1, 9))


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 20), LENGTHS, st.booleans()), min_size=1, max_size=3), st.data())
def test_chunks_are_those_of_dask(axes, data):
    dask = pytest.importorskip("dask.array.core")
    shape = tuple(n for n, _, _ in axes)
    form = data.draw(st.sampled_from(["tuple", "dict", "one", "parts"]))
    each = tuple(chunk for _, chunk, _ in axes)
    chunks = {
        "tuple": each,
        "dict": {i: c for i, (_, c, named) in enumerate(axes) if named and c is not None},
        "one": each[0] if each[0] is not None else -1,
        "parts": tuple(
            (n,) if c in (None, -1) or c >= n else (c, n - c) for n, c in zip(shape, each, strict=True)
        ),
    }[form]
    assert ChunkManager().normalize_chunks(chunks, shape) == dask.normalize_chunks(chunks, shape)


def test_all_methods_hand_the_class_on() -> None:
    """A method of arrays that gives arrays is listed in the class that xarray has."""
    known = set(vars(Managed))
    a = sp.ones((2, 2), "i8")
    for name in dir(sp.ndarray):
        if name.startswith(("_", "to_")) or name in known or not callable(getattr(a, name)):
            continue
        try:
            found = getattr(Managed, name)(ChunkManager().rechunk(a.copy(), {}))
        except (TypeError, ValueError):
            continue
        assert not isinstance(found, Handle) or isinstance(found, Managed), name


def test_what_is_loaded_is_in_memory_and_outlives_its_file(opened, tmp_path):
    kept = (opened.t * 2).load()
    whole = opened[["t"]].compute()
    shutil.rmtree(tmp_path / "w")
    assert type(kept.data) is type(whole.t.data) is numpy.ndarray
    numpy.testing.assert_array_equal(kept, T * 2)
    numpy.testing.assert_array_equal(whole.t, T)


def test_stores_are_read_as_they_lie_and_seen_to_change(weather, tmp_path):
    pytest.importorskip("zarr")
    weather[["t"]].to_zarr(tmp_path / "w", consolidated=False, encoding={"t": {"chunks": (100, 30, 40)}})
    found = xarray.open_zarr(tmp_path / "w", consolidated=False, chunked_array_type=ChunkManager()).t
    assert isinstance(found.data._node().data.source, ZarrArray)
    with sp.config.override(small_bytes=0):
        numpy.testing.assert_array_equal(found + 1, T + 1)
        part = found.isel(time=[5, 301, 7], x=slice(3, 9))
        numpy.testing.assert_array_equal(part, T[[5, 301, 7], :, 3:9])
        shutil.rmtree(tmp_path / "w")
        with pytest.raises(SourceError):
            (found * 2).compute()


def test_what_a_store_has_packed_xarray_unpacks(weather, tmp_path):
    pytest.importorskip("zarr")
    packed = {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -1, "chunks": (100, 30, 40)}
    weather[["t"]].to_zarr(tmp_path / "w", consolidated=False, encoding={"t": packed})
    found = xarray.open_zarr(tmp_path / "w", consolidated=False, chunked_array_type=ChunkManager()).t
    numpy.testing.assert_allclose(found.values, T, atol=0.00051)


def test_functions_work_on_parts_of_arrays(opened, asked):
    seen = []

    def spread(lines, q):
        seen.append(lines.shape)
        return numpy.quantile(lines, q, axis=-1)

    with sp.config.override(small_bytes=0, threads=2):
        made = xarray.apply_ufunc(
            spread, opened.t, 0.25, input_core_dims=[["time"], []], dask="parallelized", output_dtypes=["f8"]
        )
        assert not asked, "nothing is read yet"
        assert made.chunks == ((30,), (40,))
        numpy.testing.assert_allclose(made, numpy.quantile(T, 0.25, axis=0), rtol=1e-6)
        assert {len(shape) for shape in seen} == {3}


def test_a_function_may_be_refused_on_parts(opened):
    with pytest.raises(ValueError, match="chunked array"):
        xarray.apply_ufunc(numpy.sort, opened.t)


@pytest.mark.parametrize("form", ["isel", "idxmin", "points of the result"])
def test_several_index_arrays_at_once(opened, form):
    places = xarray.DataArray([3, 1, 2], dims="p")
    plain = xarray.DataArray(T, dims=("time", "y", "x"), coords={"time": numpy.arange(400)})
    program = {
        "isel": lambda t: t.isel(y=places, x=places[::-1]),
        "idxmin": lambda t: t.idxmin("time"),
        "points of the result": lambda t: (t * 2).mean("time")[places, places],
    }[form]
    with sp.config.override(small_bytes=0):
        found, wanted = program(opened.t), program(plain)
        assert isinstance(found.data, Managed)
        numpy.testing.assert_allclose(found.values, wanted.values, rtol=1e-6)


def test_nothing_is_computed_to_show_what_is_lazy(opened, asked):
    lazy = opened.assign(twice=opened.t * 2)
    with sp.config.override(small_bytes=0):
        for shown in (repr(lazy), repr(lazy.twice), lazy._repr_html_(), lazy.twice._repr_html_()):
            assert "float32" in shown
    assert not asked


def test_pickles_keep_the_class(opened):
    found = pickle.loads(pickle.dumps(opened.t * 2))
    assert isinstance(found.data, Managed)
    numpy.testing.assert_array_equal(found, T * 2)
