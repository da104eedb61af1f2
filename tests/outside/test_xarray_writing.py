"""xarray writes arrays of ours to files in the passes that make them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import spartan_ng as np
from spartan_ng.errors import SourceError

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

from spartan_ng.xarrays import ChunkManager, to_netcdf, to_zarr  # noqa: E402 - behind the questions

DAYS = numpy.arange("2001-01-01", "2002-01-01", dtype="datetime64[D]").astype("datetime64[ns]")
T = numpy.random.default_rng(0).normal(10, 5, (len(DAYS), 12, 20)).astype("f4")
T[::5, 3] = numpy.nan
PLAIN = xarray.Dataset({"t": (("time", "y", "x"), T)}, coords={"time": DAYS}, attrs={"of": "weather"})


@pytest.fixture(params=["here", "two workers"])
def weather(request, tmp_path):
    """`PLAIN` in a store, opened with our arrays; nothing is done at once."""
    PLAIN.to_zarr(tmp_path / "weather", consolidated=False, encoding={"t": {"chunks": (50, 12, 20)}})
    opened = opened_as_ours(tmp_path / "weather")
    with np.config.override(small_bytes=0):
        if request.param == "here":
            yield opened
        else:
            with np.cluster(2, threads=1):
                yield opened


def opened_as_ours(path):
    return xarray.open_zarr(path, consolidated=False, chunked_array_type=ChunkManager())


def results(weather):
    """Means, differences to them, sums, counts, and what is no array of ours."""
    months = weather.t.groupby("time.month")
    return xarray.Dataset(
        {
            "means": months.mean(),
            "anomalies": (months - months.mean()).drop_vars("month"),
            "weekly": weather.t.resample(time="7D").max().rename(time="week"),
            "running": weather.t.rolling(time=5, min_periods=2).mean(),
            "counts": weather.t.notnull().sum("time"),
            "first": weather.t.isel(time=0, x=0, y=0),
            "seen": ("x", DAYS[:20]),
        }
    )


def written(data, path, **keywords):
    to_zarr(data, path, consolidated=False, **keywords)
    return xarray.open_zarr(path, consolidated=False, chunks=None)


@pytest.mark.slow
def test_what_is_written_is_what_numpy_makes(weather, tmp_path):
    made = results(weather).assign(seen=("x", np.array(DAYS[:20])))
    found = written(made, tmp_path / "made").load()
    xarray.testing.assert_allclose(found, results(PLAIN), rtol=1e-5, atol=1e-5)
    assert not list((tmp_path / "made").rglob(".lock*"))
    assert found.anomalies.encoding["chunks"] == T.shape, "8 MB"


@pytest.mark.slow
def test_numbers_are_stored_as_their_encoding_says(weather, tmp_path):
    packed = {
        "dtype": "int16",
        "scale_factor": 0.01,
        "add_offset": 1.5,
        "_FillValue": -9999,
        "chunks": (30, 7, 20),
    }
    doubled = (weather * 2).assign(same=weather.t)
    found = written(doubled, tmp_path / "made", encoding={"t": packed})
    assert found.t.encoding["dtype"] == numpy.int16
    assert found.t.encoding["chunks"] == (30, 7, 20)
    assert found.same.encoding["chunks"] == (50, 12, 20), "as it was read"
    numpy.testing.assert_allclose(found.t.values, T * 2, atol=0.0051)
    numpy.testing.assert_array_equal(found.same.values, T)


@pytest.mark.slow
def test_parts_are_put_where_they_belong(weather, tmp_path):
    twice = weather * 2
    written(twice.isel(time=slice(0, 130)), tmp_path / "made")
    written(twice.isel(time=slice(130, 365)), tmp_path / "made", append_dim="time")
    numpy.testing.assert_array_equal(written(twice[[]], tmp_path / "made", mode="a").t.values, T * 2)
    part = (weather.t * 3).isel(time=slice(33, 71), x=slice(2, 9)).drop_vars("time")
    region = {"time": slice(33, 71), "x": slice(2, 9), "y": slice(0, 12)}
    found = written(part, tmp_path / "made", region=region)
    wanted = T * 2
    wanted[33:71, :, 2:9] = T[33:71, :, 2:9] * 3
    numpy.testing.assert_array_equal(found.t.values, wanted)


@pytest.mark.slow
def test_files_of_netcdf_are_written_some_rows_at_a_time(weather, tmp_path):
    to_netcdf(results(weather), tmp_path / "made.nc", engine="scipy")
    with xarray.open_dataset(tmp_path / "made.nc", engine="scipy") as found:
        xarray.testing.assert_allclose(found.load(), results(PLAIN), rtol=1e-5, atol=1e-5)


def test_later_is_for_dask(weather, tmp_path):
    with pytest.raises(NotImplementedError, match="compute=False"):
        to_zarr(weather * 2, tmp_path / "made", consolidated=False, compute=False)


@pytest.mark.filterwarnings("ignore")  # what zarr leaves behind when it is interrupted
@pytest.mark.parametrize("form", ["xarray's", "ours"])
def test_what_would_wait_for_ever_in_zarrs_loop_is_refused(form, tmp_path):
    PLAIN.to_zarr(tmp_path / "weather", consolidated=False)
    ours = np.from_zarr(tmp_path / "weather", "t")
    lazy = {
        "xarray's": (opened_as_ours(tmp_path / "weather").t * 2).data,
        "ours": ours * 2,
    }[form]
    target = zarr.create_array(tmp_path / "target", shape=lazy.shape, dtype="f4", chunks=lazy.shape)
    with np.config.override(small_bytes=0), pytest.raises(SourceError, match="event loop"):
        target[...] = lazy
    target[...] = np.ones(lazy.shape, "f4") + 1  # nothing is read for these
    assert float(target[...].min()) == 2


CLIMATE = """
import sys, numpy, xarray
import spartan_ng as np
from benchmarks.larger import Watch
from spartan_ng.xarrays import ChunkManager, to_zarr

np.config.memory_bytes, np.config.threads, np.config.small_bytes = 8 << 20, 2, 0

def climate(source, made):
    t = xarray.open_zarr(source, consolidated=False, chunked_array_type=ChunkManager()).t
    months = t.groupby("time.month")
    climatology = months.mean()
    anomalies = (months - climatology).drop_vars("month")
    monthly = t.resample(time="1MS").mean().rename(time="start")
    for name, data in {"climatology": climatology, "anomalies": anomalies, "monthly": monthly}.items():
        to_zarr(data.rename(name), f"{made}/{name}", consolidated=False)

climate(sys.argv[1], sys.argv[2])  # imports, compiled loops
with Watch() as before:
    pass
with Watch() as during:
    climate(sys.argv[3], sys.argv[4])
print(during.peak_bytes - before.peak_bytes)
"""


@pytest.mark.slow
def test_a_climatology_of_more_than_the_memory(tmp_path):
    days = numpy.arange("2001-01-01", "2005-01-01", dtype="datetime64[D]").astype("datetime64[ns]")
    t = numpy.random.default_rng(1).normal(10, 5, (len(days), 90, 160)).astype("f4")
    for name, n in {"little": 60, "all": len(days)}.items():
        data = xarray.Dataset({"t": (("time", "y", "x"), t[:n])}, coords={"time": days[:n]})
        data.to_zarr(tmp_path / name, consolidated=False, encoding={"t": {"chunks": (20, 90, 160)}})
    said = subprocess.run(
        [sys.executable, "-c", CLIMATE, *(str(tmp_path / n) for n in ("little", "a", "all", "b"))],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(said.stdout) < t.nbytes // 2, "the budget is a tenth, chunks and plans are beside it"
    months = data.t.groupby("time.month")
    wanted = {
        "climatology": months.mean(),
        "anomalies": months - months.mean(),
        "monthly": data.t.resample(time="1MS").mean(),
    }
    for name, values in wanted.items():
        found = xarray.open_zarr(tmp_path / "b" / name, consolidated=False, chunks=None)[name]
        numpy.testing.assert_allclose(found.values, values.values, atol=2e-4)
