"""Steps of random programs of xarray's: each is drawn for what NumPy's arrays have become."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import numpy
import xarray

from spartan_ng.xarrays import ChunkManager, to_netcdf, to_zarr

Step = Callable[[Any], Any]
Draw = Callable[[numpy.random.Generator, Any], Step | None]
DIMS = ("time", "y", "x")
DAYS = numpy.arange("2001-01-01", "2001-04-11", dtype="datetime64[D]").astype("datetime64[ns]")


def _dim(random: numpy.random.Generator, a: Any) -> str | None:
    found = [d for d in a.dims if a.sizes[d]]
    return str(random.choice(found)) if found else None


def _index(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    n = a.sizes[dim]
    lo, hi = sorted(random.integers(-n, n + 1, 2).tolist())
    places = random.integers(-n, n, int(random.integers(1, 6)))
    keys = [
        slice(lo, hi, int(random.choice([1, 2, -1]))),
        int(random.integers(-n, n)),
        places,
        random.random(n) < 0.5,
        xarray.DataArray(places, dims="points"),
        xarray.DataArray(numpy.resize(places, (2, 3)), dims=("a", "b")),
    ]
    key = keys[random.integers(len(keys))]
    return lambda x: x.isel({dim: key})


def _points(random: numpy.random.Generator, a: Any) -> Step | None:
    dims = [d for d in a.dims if a.sizes[d]]
    if len(dims) < 2:
        return None
    chosen = random.choice(dims, 2, replace=False).tolist()
    together = random.random() < 0.7
    keys = {
        d: xarray.DataArray(random.integers(0, a.sizes[d], 4), dims="points" if together else f"{d}s")
        for d in chosen
    }
    return lambda x: x.isel(keys)


def _nearest(random: numpy.random.Generator, a: Any) -> Step | None:
    at = float(random.uniform(-60, 60))
    return (lambda x: x.sel(y=at, method="nearest")) if "y" in a.dims and "y" in a.indexes else None


REDUCTIONS = ("sum", "mean", "max", "min", "std", "var", "prod", "count", "median", "any", "all")


def _reduce(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    chosen = [dim, *(d for d in a.dims if d != dim and random.random() < 0.3)]
    name = str(random.choice(REDUCTIONS))
    call = _keywords(name, random)
    return lambda x: getattr(x, name)(chosen, **call)


def _keywords(name: str, random: numpy.random.Generator) -> dict[str, Any]:
    skipna = [None, True, False][random.integers(3)]
    found: dict[str, Any] = {} if name in ("count", "any", "all") else {"skipna": skipna}
    if name in ("std", "var") and random.random() < 0.5:
        found["ddof"] = 1
    if name in ("sum", "prod") and skipna is not False and random.random() < 0.3:
        found["min_count"] = int(random.integers(1, 5))
    return found


def _has_days(a: Any) -> bool:
    return "time" in a.indexes and a.sizes.get("time", 0) > 0 and a.indexes["time"].is_monotonic_increasing


def _group(random: numpy.random.Generator, a: Any) -> Step | None:
    by = []
    if _has_days(a):
        by += ["time.month", "time.dayofweek", "time.season"]
    if "zone" in a.coords and a.zone.dims == ("y",):
        by += ["zone"]
    if not by:
        return None
    key = str(random.choice(by))
    if random.random() < 0.4:
        how = str(random.choice(["mean", "max", "sum"]))
        if random.random() < 0.5:
            return lambda x: x.groupby(key) - getattr(x.groupby(key), how)()
        return lambda x: x.groupby(key).map(lambda g: g - getattr(g, how)())
    name = str(random.choice([*REDUCTIONS, "first", "last"]))
    call = _keywords(name, random) if name not in ("first", "last") else {}
    return lambda x: getattr(x.groupby(key), name)(**call)


def _bins(random: numpy.random.Generator, a: Any) -> Step | None:
    if "y" not in a.indexes or a.sizes.get("y", 0) < 2:
        return None
    return lambda x: x.groupby_bins("y", [-90, -20, 10, 90]).mean()


def _resample(random: numpy.random.Generator, a: Any) -> Step | None:
    if not _has_days(a) or not a.indexes["time"].is_unique:
        return None
    every = str(random.choice(["7D", "1MS", "10D", "36h"]))
    name = str(random.choice([*REDUCTIONS, "first", "last"]))
    call = _keywords(name, random) if name not in ("first", "last") else {}
    return lambda x: getattr(x.resample(time=every), name)(**call)


def _roll(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    n = int(random.integers(1, min(a.sizes[dim], 9) + 1))
    least = [None, 1, max(1, n // 2)][random.integers(3)]
    name = str(random.choice(["sum", "mean", "max", "min", "std", "count", "median"]))
    centre = bool(random.random() < 0.5)
    if random.random() < 0.2:
        return lambda x: x.rolling({dim: n}, center=centre).construct("window").isel(window=-1)
    return lambda x: getattr(x.rolling({dim: n}, min_periods=least, center=centre), name)()


def _coarsen(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    n = int(random.integers(1, min(a.sizes[dim], 5) + 1))
    name = str(random.choice(["sum", "mean", "max", "min", "std", "count"]))
    ends = str(random.choice(["trim", "pad"]))
    return lambda x: getattr(x.coarsen({dim: n}, boundary=ends), name)()


def _interp(random: numpy.random.Generator, a: Any) -> Step | None:
    dims = [
        d for d in ("y", "x") if d in a.indexes and a.sizes[d] > 1 and a.indexes[d].is_monotonic_increasing
    ]
    if not dims:
        return None
    chosen = dims[: int(random.integers(1, len(dims) + 1))]
    at = {d: random.uniform(-70, 70, 3) for d in chosen}
    method = str(random.choice(["linear", "nearest"]))
    return lambda x: x.interp(at, method=method)


def _where(random: numpy.random.Generator, a: Any) -> Step | None:
    bound = float(random.normal())
    other = [None, 0, -1.5][random.integers(3)]
    keywords = {} if other is None else {"other": other}
    return lambda x: x.where(x > bound, **keywords)


def _fill(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    forms: list[Step] = [lambda x: x.fillna(0.5), lambda x: x.notnull(), lambda x: x.isnull()]
    if dim is not None:
        forms += [lambda x: x.dropna(dim), lambda x: x.fillna(x.mean(dim))]
    return forms[random.integers(len(forms))]


def _weigh(random: numpy.random.Generator, a: Any) -> Step | None:
    if "y" not in a.indexes or "y" not in a.dims:
        return None
    name = str(random.choice(["mean", "sum", "std", "var", "sum_of_weights"]))
    return lambda x: getattr(x.weighted(numpy.cos(numpy.deg2rad(x.y))), name)("y")


def _scan(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    n = int(random.integers(-3, 4))
    forms: list[Step] = [
        lambda x: x.cumsum(dim),
        lambda x: x.cumprod(dim),
        lambda x: x.diff(dim),
        lambda x: x.shift({dim: n}),
        lambda x: x.roll({dim: n}, roll_coords=True),
        lambda x: x.pad({dim: (1, 2)}),
        lambda x: x.pad({dim: 1}, mode="edge"),
        lambda x: x.cumsum(dim, skipna=False),
    ]
    return forms[random.integers(len(forms))]


def _stack(random: numpy.random.Generator, a: Any) -> Step | None:
    dims = [d for d in a.dims if d in a.indexes]
    if len(dims) < 2:
        return None
    chosen = random.choice(dims, 2, replace=False).tolist()
    forms: list[Step] = [
        lambda x: x.stack(both=chosen).unstack("both"),
        lambda x: x.stack(both=chosen).isel(both=slice(None, None, 2)).unstack("both"),
        lambda x: x.stack(both=chosen).reset_index("both", drop=True),
        lambda x: x.transpose(*chosen, ...),
    ]
    return forms[random.integers(len(forms))]


def _concat(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None
    n = a.sizes[dim] // 2
    forms: list[Step] = [
        lambda x: xarray.concat([x.isel({dim: slice(n, None)}), x.isel({dim: slice(n)})], dim),
        lambda x: xarray.concat([x, x * 2], "more"),
        lambda x: xarray.where(x > 0, x, -x),
        lambda x: x + x.isel({dim: slice(1, None)}),
        lambda x: x.expand_dims(again=2),
        lambda x: xarray.broadcast(x, x.isel({dim: 0}, drop=True))[1],
    ]
    return forms[random.integers(len(forms))]


def _apply(random: numpy.random.Generator, a: Any) -> Step | None:
    dim = _dim(random, a)
    if dim is None:
        return None

    def line(x: Any, function: Any, **keywords: Any) -> Any:
        return xarray.apply_ufunc(function, x, input_core_dims=[[dim]], dask="parallelized", **keywords)

    vectorized = {"vectorize": True, "output_dtypes": [float]}
    forms: list[Step] = [
        lambda x: xarray.apply_ufunc(numpy.sign, x, dask="allowed"),
        lambda x: xarray.apply_ufunc(lambda v: v * 2 + 1, x, dask="parallelized"),
        lambda x: xarray.apply_ufunc(lambda v, w: v - w, x, x.max(dim), dask="parallelized"),
        lambda x: line(x, lambda v: v.sum(-1)),
        lambda x: line(x, lambda v: v[::-1].sum() * 1.0, **vectorized),
        lambda x: line(x, lambda v: numpy.sort(v, -1), output_core_dims=[[dim]]),
        lambda x: line(x, lambda v: (v.min(-1), v.max(-1)), output_core_dims=[[], []])[1],
        lambda x: xarray.map_blocks(lambda v: v + 1, x),
    ]
    return forms[random.integers(len(forms))]


def _fit(random: numpy.random.Generator, a: Any) -> Step | None:
    dims = [d for d in a.dims if a.sizes[d] > 3 and d in a.indexes and a.indexes[d].is_unique]
    if not dims:
        return None
    dim = str(random.choice(dims))
    forms: list[Step] = [
        lambda x: x.quantile([0.25, 0.5], dim),
        lambda x: x.differentiate(dim),
        lambda x: x.integrate(dim),
        lambda x: x.idxmax(dim),
        lambda x: x.idxmin(dim),
        lambda x: x.fillna(1).argmax(dim),
        lambda x: x.sortby(dim, ascending=False),
        lambda x: x.reindex({dim: x[dim][1:]}),
        lambda x: x.cumulative_integrate(dim),
    ]
    if not isinstance(a, xarray.Dataset):
        forms += [
            lambda x: x.fillna(0.5).polyfit(dim, 1).polyfit_coefficients,
            lambda x: xarray.cov(x, x * 2, dim),
            lambda x: xarray.corr(x, x.shift({dim: 1}), dim),
            lambda x: xarray.dot(x, x, dim=dim),
        ]
    return forms[random.integers(len(forms))]


def _arithmetic(random: numpy.random.Generator, a: Any) -> Step | None:
    forms: list[Step] = [
        lambda x: x * 2,
        lambda x: x // 3,
        lambda x: x % 2.5,
        lambda x: 1 / (abs(x) + 1),
        lambda x: -(x + 0),
        lambda x: x.round(1),
        lambda x: x.clip(-1, 3),
        lambda x: x.astype("f4"),
        lambda x: numpy.sqrt(abs(x)),
        lambda x: x > 1,
        lambda x: x.isin([1, 2, 3]),
        lambda x: x.load() * 1,
        lambda x: x.persist() * 1,
        lambda x: x.copy(deep=True),
        lambda x: numpy.exp(-abs(x)),
    ]
    return forms[random.integers(len(forms))]


def _choose(random: numpy.random.Generator, a: Any) -> Step | None:
    if not isinstance(a, xarray.Dataset):
        return lambda x: x.to_dataset(name="made").assign(twice=lambda d: d.made * 2)
    name = str(random.choice(list(a.data_vars)))
    forms: list[Step] = [
        lambda x: x[name],
        lambda x: x[name],
        lambda x: x.to_array("kind"),
        lambda x: xarray.merge([x[[name]], x.drop_vars(name)]),
        lambda x: x.rename({name: "other"}),
        lambda x: x.assign(more=lambda d: d[name] + 1),
    ]
    return forms[random.integers(len(forms))]


def _saved(random: numpy.random.Generator, a: Any) -> Step | None:
    """Through a file, whose arrays are in memory again, or ours."""
    if isinstance(a, xarray.DataArray):
        if a.name is None or a.name in a.coords:
            return None
    elif any(v.dtype == bool for v in a.data_vars.values()):
        return None
    form = int(random.integers(3))

    def through(x: Any) -> Any:
        one = isinstance(x, xarray.DataArray)
        plain = x.reset_coords(drop=True).to_dataset(name="kept") if one else x.reset_coords(drop=True)
        plain = plain.drop_vars([n for n in plain.coords if plain[n].dtype.kind == "O"]).drop_encoding()
        with tempfile.TemporaryDirectory() as folder:
            if form == 0:
                to_netcdf(plain, f"{folder}/made.nc", engine="scipy", format="NETCDF3_64BIT")
                with xarray.open_dataset(f"{folder}/made.nc", engine="scipy") as found:
                    read = found.load()
            elif form == 1:
                to_zarr(plain, f"{folder}/made", consolidated=False)
                read = xarray.open_zarr(f"{folder}/made", consolidated=False, chunks=None).load()
            else:
                plain.to_zarr(f"{folder}/made", consolidated=False)
                found = xarray.open_zarr(
                    f"{folder}/made", consolidated=False, chunked_array_type=ChunkManager()
                )
                read = found.load()
        return read["kept"] if one else read

    return through


STEPS: dict[str, Draw] = {
    f.__name__[1:]: f
    for f in (
        _index, _points, _nearest, _reduce, _group, _bins, _resample, _roll, _coarsen, _interp, _where, _fill,
        _weigh, _scan, _stack, _concat, _apply, _fit, _arithmetic, _choose, _saved,
    )
}  # fmt: skip
