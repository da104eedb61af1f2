"""Calls with the options of NumPy's functions, over operands that lie with the workers.

Each says what is called and with which option; NumPy is asked what it should give, and none may gather.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.numpy_parity.operands import SIDE, Call, changed

METHODS = [
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    "interpolated_inverted_cdf",
    "hazen",
    "weibull",
    "linear",
    "median_unbiased",
    "normal_unbiased",
    "lower",
    "higher",
    "midpoint",
    "nearest",
]


def _quantiles(method: str) -> dict[str, Call]:
    return {
        f"quantile {method}": lambda np, o: np.quantile(o.v, [0.0, 0.31, 1.0], method=method),
        f"percentile {method}": lambda np, o: np.percentile(o.a, 31, axis=0, method=method, keepdims=True),
        f"nanquantile {method}": lambda np, o: np.nanquantile(o.nan, [0.2, 0.9], axis=1, method=method),
    }


def _padded(mode: str, **keywords: Any) -> dict[str, Call]:
    return {
        f"pad {mode} {keywords}": lambda np, o: (
            np.pad(o.v, (3, 70), mode, **keywords),
            np.pad(o.a, ((1, 2), (70, 0)), mode, **keywords),
            np.pad(o.m, 2, mode, **keywords),
        )
    }


def _binned(name: str) -> Call:
    return lambda np, o: (np.histogram(o.v, name), np.histogram_bin_edges(o.v, name, range=(0.2, 0.9)))


def _sorted(kind: str) -> Call:
    return lambda np, o: [np.sort(o.v, kind=kind), *(np.sort(o.a, axis=k, kind=kind) for k in (0, None))]


def _fill(line: Any, width: Any, axis: int, keywords: Any) -> None:
    line[: width[0]] = keywords.get("by", 1)
    line[len(line) - width[1] :] = axis


QUANTILES: dict[str, Call] = {k: c for m in METHODS for k, c in _quantiles(m).items()} | {
    "quantile f4": lambda np, o: np.quantile(o.v.astype("f4"), 0.3),
    "quantile f4 strong": lambda np, o: np.quantile(o.v.astype("f4"), numpy.float64(0.3)),
    "quantile integers": lambda np, o: np.quantile(o.i, [0.25, 0.5], method="lower"),
    "quantile bool": lambda np, o: np.quantile(o.flags, 0.3, method="nearest"),
    "quantile dates": lambda np, o: np.quantile(o.dates, 0.3, method="higher"),
    "quantile axes": lambda np, o: np.quantile(o.cube, 0.4, axis=(0, 2), keepdims=True),
    "quantile weights": lambda np, o: np.quantile(o.v, [0.0, 0.3, 1.0], method="inverted_cdf", weights=o.w),
    "quantile weights axis": lambda np, o: np.quantile(
        o.a, [0.1, 0.7], axis=1, method="inverted_cdf", weights=o.s[0]
    ),
    "percentile weights": lambda np, o: np.percentile(
        o.a, 40, axis=0, method="inverted_cdf", weights=o.m * 1.0
    ),
    "nanquantile weights": lambda np, o: np.nanquantile(
        o.nan, [0.1, 0.7], axis=0, method="inverted_cdf", weights=o.a
    ),
    "nanpercentile": lambda np, o: np.nanpercentile(o.nan, 35, method="weibull", keepdims=True),
    "median axes": lambda np, o: np.median(o.cube, axis=(0, 1), keepdims=True),
    "median overwrite": lambda np, o: np.median(o.v, overwrite_input=False),
    "nanmedian keepdims": lambda np, o: np.nanmedian(o.nan, axis=(0, 1), keepdims=True),
}

PADS: dict[str, Call] = {
    **_padded("constant", constant_values=((1, 2),)),
    **_padded("edge"),
    **_padded("wrap"),
    **_padded("linear_ramp", end_values=(3, -4)),
    **_padded("maximum"),
    **_padded("maximum", stat_length=5),
    **_padded("mean", stat_length=((3, 7),)),
    **_padded("median"),
    **_padded("minimum", stat_length=2),
    **_padded("reflect"),
    **_padded("reflect", reflect_type="odd"),
    **_padded("symmetric"),
    **_padded("symmetric", reflect_type="odd"),
    "pad empty": lambda np, o: np.pad(o.v, 3, "empty")[3:-3],
    "pad function": lambda np, o: np.pad(o.a, ((1, 2), (3, 0)), _fill, by=9),
    "pad dict": lambda np, o: np.pad(o.a, {1: (2, 3)}, "edge"),
}

STATISTICS: dict[str, Call] = {
    "cov fweights": lambda np, o: np.cov(o.a, fweights=o.m[0] + 1),
    "cov aweights": lambda np, o: np.cov(o.a, o.s, aweights=o.w[:SIDE], rowvar=False),
    "cov both": lambda np, o: np.cov(o.a, fweights=o.m[0] + 1, aweights=o.w[:SIDE], bias=True),
    "cov ddof": lambda np, o: np.cov(o.z, ddof=2, aweights=o.w[:SIDE]),
    "cov dtype": lambda np, o: np.cov(o.a.astype("f4"), dtype="f4"),
    "corrcoef": lambda np, o: np.corrcoef(o.a, o.s, rowvar=False),
    "average": lambda np, o: np.average(o.a, axis=1, weights=o.w[:SIDE], returned=True, keepdims=True),
    "average axes": lambda np, o: np.average(o.cube, axis=(0, 1), weights=o.cube[:, :, 0]),
    "mean": lambda np, o: np.mean(o.cube, axis=(0, 2), dtype="f4", keepdims=True),
    "std": lambda np, o: np.std(o.a, axis=0, ddof=1, where=o.mask, mean=np.mean(o.a, 0, where=o.mask)),
    "var": lambda np, o: np.var(o.a, axis=(0, 1), correction=1, keepdims=True),
    "nanvar": lambda np, o: np.nanvar(o.nan, axis=0, ddof=1, where=o.mask, keepdims=True),
    "nanmean": lambda np, o: np.nanmean(o.nan, axis=1, dtype="f4", where=o.mask),
    "nanstd": lambda np, o: np.nanstd(o.nan, axis=1, correction=1),
    "nanmin": lambda np, o: np.nanmin(o.nan, axis=0, initial=0.5, where=o.mask, keepdims=True),
    "nansum": lambda np, o: np.nansum(o.nan, axis=(0, 1), dtype="f4", initial=2),
    "nanargmin": lambda np, o: np.nanargmin(o.nan, axis=1, keepdims=True),
    "sum": lambda np, o: np.sum(o.a, axis=0, dtype="c16", initial=2, where=o.mask, keepdims=True),
    "prod": lambda np, o: np.prod(o.a, axis=(0, 1), where=o.mask),
    "max": lambda np, o: np.max(o.a, axis=1, initial=0.2, where=o.mask),
    "max dates": lambda np, o: (o.dates.max(), np.min(o.dates), np.ptp(o.dates)),
    "argmax dates": lambda np, o: (np.argmax(o.dates), o.dates.argmin()),
    "sum times": lambda np, o: (np.sum(o.dates - o.dates[0]), (o.dates - o.dates[0]).reshape(64, -1).max(0)),
    "all": lambda np, o: np.all(o.mask, axis=1, where=o.a > 0.5, keepdims=True),
    "argmax": lambda np, o: np.argmax(o.a, axis=1, keepdims=True),
    "count_nonzero": lambda np, o: np.count_nonzero(o.m, axis=(0, 1), keepdims=True),
    "ptp": lambda np, o: np.ptp(o.cube, axis=(0, 1), keepdims=True),
    "cumsum": lambda np, o: np.cumsum(o.a, axis=1, dtype="f4"),
    "cumulative_prod": lambda np, o: np.cumulative_prod(o.v, dtype="f4", include_initial=True),
    "nancumsum": lambda np, o: np.nancumsum(o.nan, dtype="f4"),
    "histogram range": lambda np, o: np.histogram(o.v, 7, range=(0.3, 0.8), density=True),
    "histogram weights": lambda np, o: np.histogram(o.v, [0.1, 0.5, 0.6, 1.2], weights=o.w),
    "histogram complex": lambda np, o: np.histogram(o.v, 7, weights=o.zv),
    "histogram2d": lambda np, o: np.histogram2d(
        o.v, o.w, [5, [0.1, 0.5, 1.0]], range=[[0, 1], [0, 1]], weights=o.v
    ),
    "histogramdd": lambda np, o: np.histogramdd(
        (o.v, o.w), (3, 4), density=True, range=[(0.2, 1), (0.1, 0.7)]
    ),
    **{
        f"histogram {name}": _binned(name)
        for name in ("auto", "doane", "fd", "rice", "scott", "sqrt", "sturges")
    },
    "histogram kinds": lambda np, o: [np.histogram(o.v, 7, weights=w) for w in (o.i, o.w.astype("f4"))],
    "histogram integers": lambda np, o: np.histogram(o.i, "auto"),
    "bincount": lambda np, o: (np.bincount(o.i, minlength=90), np.bincount(o.i, weights=o.j)),
    "digitize": lambda np, o: (np.digitize(o.v, o.line), np.digitize(o.v, o.line[::-1], right=True)),
    "gradient": lambda np, o: np.gradient(o.a, 0.5, numpy.arange(SIDE) ** 1.5, edge_order=2),
    "gradient points": lambda np, o: np.gradient(o.v, o.line, edge_order=2),
    "gradient axis": lambda np, o: np.gradient(o.cube, 2.0, axis=(0, 2)),
    "diff": lambda np, o: np.diff(o.a, 2, axis=0, prepend=o.a[:1], append=1.0),
    "trapezoid": lambda np, o: np.trapezoid(o.a, x=o.w[:SIDE], axis=0),
    "interp": lambda np, o: np.interp(o.v, [0.2, 0.5, 0.9], [1.0, 3.0, 2.0], left=-1, right=7),
    "interp period": lambda np, o: np.interp(o.v * 9, [0.2, 0.5, 0.9], [1.0, 3.0, 2.0], period=1.5),
    "unwrap": lambda np, o: np.unwrap(o.angles, discont=4.0, period=6.0),
    "convolve": lambda np, o: [np.convolve(o.v, o.w[:6], m) for m in ("full", "same", "valid")],
    "convolve long": lambda np, o: [np.convolve(o.v[:900], o.w, m) for m in ("full", "same", "valid")],
    "correlate": lambda np, o: [np.correlate(o.zv, o.zv[:6], m) for m in ("full", "same", "valid")],
    "correlate long": lambda np, o: [np.correlate(o.v[:6], o.zv, m) for m in ("full", "same", "valid")],
    "correlate longer": lambda np, o: [np.correlate(o.v[:7], o.w, m) for m in ("full", "same", "valid")],
    "polyfit full": lambda np, o: np.polyfit(o.v, o.w, 2, full=True),
    "polyfit cov": lambda np, o: np.polyfit(o.v, o.w, 2, cov=True),
    "polyfit unscaled": lambda np, o: np.polyfit(o.v, o.w, 2, cov="unscaled", w=o.w),
    "polyfit many": lambda np, o: np.polyfit(o.v[:SIDE], o.a, 2, cov=True, w=o.w[:SIDE]),
    "nan_to_num": lambda np, o: np.nan_to_num(o.nan, nan=3.0, posinf=1, neginf=2, copy=True),
    "clip": lambda np, o: (np.clip(o.v, o.w, None), np.clip(o.v, min=0.3, max=0.6)),
    "round": lambda np, o: np.round(o.i * 11, -1),
    "isclose": lambda np, o: np.isclose(o.nan, o.nan, rtol=0.1, equal_nan=True),
    "array_equal": lambda np, o: np.array_equal(o.nan, o.nan, equal_nan=True),
}

SORTING: dict[str, Call] = {
    **{f"sort {kind}": _sorted(kind) for kind in ("quicksort", "heapsort", "stable", "mergesort")},
    "sort stable": lambda np, o: (np.sort(o.i, stable=True), np.argsort(o.i, stable=True)),
    "sort dates": lambda np, o: (np.sort(o.dates), np.argsort(o.dates, kind="stable")),
    "argsort axis": lambda np, o: (np.argsort(o.a, axis=0), np.argsort(o.a, axis=None)),
    "partition kth": lambda np, o: np.partition(o.v, [3, 4000])[[3, 4000]],
    "partition axis": lambda np, o: np.partition(o.a, 5, axis=0)[5],
    "lexsort lines": lambda np, o: (np.lexsort((o.m, o.columns)), np.lexsort((o.m, o.columns), axis=0)),
    "searchsorted": lambda np, o: (
        np.searchsorted(o.line, o.a, "right"),
        np.searchsorted(o.v, o.w, sorter=np.argsort(o.v)),
    ),
    "unique rows": lambda np, o: np.unique(
        o.m[:, :3], axis=0, return_index=True, return_inverse=True, return_counts=True
    ),
    "unique columns": lambda np, o: np.unique(o.columns, axis=1),
    "unique slices": lambda np, o: np.unique(np.floor(o.cube[:, :2, :2] * 2), axis=0, return_counts=True),
    "unique nan": lambda np, o: (
        np.unique(o.nan, equal_nan=False, return_counts=True),
        np.unique(np.round(o.nan, 1), return_inverse=True),
        np.unique(np.round(o.nan[:, :2], 0), axis=0, return_index=True),
    ),
    "unique dates": lambda np, o: np.unique(o.dates, return_counts=True),
    "unique complex": lambda np, o: np.unique(np.round(o.z, 1), return_index=True),
    "intersect1d": lambda np, o: np.intersect1d(o.places, o.i, return_indices=True),
    "intersect1d unique": lambda np, o: np.intersect1d(
        o.line, o.line[::2].copy(), assume_unique=True, return_indices=True
    ),
    "isin": lambda np, o: (np.isin(o.i, o.j[:9], invert=True), np.isin(o.a, o.a[0], kind="sort")),
    "setdiff1d": lambda np, o: np.setdiff1d(o.places, o.i, assume_unique=True),
}

MANIPULATION: dict[str, Call] = {
    "concatenate": lambda np, o: (
        np.concatenate([o.a, o.s], axis=None),
        np.concatenate([o.i, o.j], dtype="f4", casting="same_kind"),
    ),
    "stack": lambda np, o: np.stack([o.a, o.s], axis=-1, dtype="c16"),
    "hstack": lambda np, o: np.hstack([o.i, o.j], dtype="f8"),
    "repeat": lambda np, o: (np.repeat(o.v, o.i % 3), np.repeat(o.a, o.m[0], axis=1)),
    "roll": lambda np, o: np.roll(o.a, (3, -5), axis=(0, 1)),
    "flip": lambda np, o: np.flip(o.cube, axis=(0, 2)) + 0,
    "rot90": lambda np, o: np.rot90(o.cube, 3, axes=(1, 2)) + 0,
    "insert": lambda np, o: (np.insert(o.v, [5, 9, 5], [1.0, 2, 3]), np.insert(o.a, 1, o.w[:SIDE], axis=1)),
    "delete": lambda np, o: (np.delete(o.a, slice(3, 50, 2), axis=1), np.delete(o.v, o.flags)),
    "take": lambda np, o: (
        np.take(o.a, o.m * 40, axis=1, mode="wrap"),
        np.take(o.v, o.i * 900, mode="clip"),
        np.take(o.v, o.places, out=np.zeros(SIDE * SIDE)),
    ),
    "choose": lambda np, o: np.choose(o.i, [o.v, o.w], mode="wrap"),
    "put": lambda np, o: changed(o.v, lambda x: np.put(x, o.i * 900, o.w, mode="clip")),
    "compress": lambda np, o: np.compress(o.flags[:SIDE], o.a, axis=1),
    "copyto": lambda np, o: changed(o.i, lambda x: np.copyto(x, o.v, casting="unsafe", where=o.flags)),
    "ravel": lambda np, o: (np.ravel(o.a, "F") + 0, np.reshape(o.a, (-1, 8), order="F") + 0),
    "squeeze": lambda np, o: np.squeeze(o.a[None, :, None], axis=(0, 2)) + 0,
    "packbits": lambda np, o: np.packbits(o.ones.reshape(64, -1), axis=1, bitorder="little"),
    "unpackbits": lambda np, o: np.unpackbits(o.bits.reshape(64, -1), axis=1, count=90, bitorder="little"),
    "tri": lambda np, o: (np.tril(o.cube, 3), np.triu(o.a, -4)),
    "trace": lambda np, o: np.trace(o.cube, 1, 0, 2, dtype="f4"),
    "diagonal": lambda np, o: np.diagonal(o.cube, -2, 0, 2) + 0,
    "linspace": lambda np, o: np.linspace(o.v, o.w, 4, axis=1, endpoint=False),
    "linspace step": lambda np, o: np.linspace(o.a, 9.0, 3, retstep=True, dtype="f4"),
    "vander": lambda np, o: np.vander(o.v, 3, increasing=True),
    "meshgrid": lambda np, o: np.meshgrid(o.v[:70], o.w[:80], indexing="ij"),
    "trim_zeros": lambda np, o: (np.trim_zeros(o.edged, "f"), np.trim_zeros(o.edged, "b")),
    "unravel_index": lambda np, o: np.unravel_index(o.places, (SIDE, SIDE), order="F"),
    "ravel_multi_index": lambda np, o: np.ravel_multi_index(
        (o.i, o.j), (40, 30), mode=("wrap", "clip"), order="F"
    ),
    "apply_along_axis": lambda np, o: np.apply_along_axis(numpy.quantile, 0, o.a, 0.3, keepdims=True),
    "select": lambda np, o: np.select([o.v < 0.3], [o.v]),
    "where": lambda np, o: np.where(o.mask),
}

UFUNCS: dict[str, Call] = {
    "where": lambda np, o: np.add(o.a, o.s, where=o.mask, out=np.zeros((SIDE, SIDE))),
    "dtype": lambda np, o: np.multiply(o.i, o.j, dtype="f4", casting="unsafe"),
    "out": lambda np, o: np.divmod(o.i, 7, out=(np.zeros(SIDE * SIDE, int), np.zeros(SIDE * SIDE, int))),
    "reduce": lambda np, o: np.hypot.reduce(o.a, axis=1, keepdims=True, initial=3.0),
    "reduce where": lambda np, o: np.add.reduce(o.a, axis=0, where=o.mask, dtype="f4"),
    "accumulate": lambda np, o: np.maximum.accumulate(o.a, axis=1),
    "reduceat": lambda np, o: np.add.reduceat(o.v, [0, 9, 5, 4000]),
    "reduceat axis": lambda np, o: np.multiply.reduceat(o.a, [0, 9, 30], axis=1, dtype="f4"),
    "outer": lambda np, o: np.subtract.outer(o.v[:70], o.w[:80]),
    "at": lambda np, o: changed(o.v, lambda x: np.add.at(x, o.i, o.w)),
    "matmul": lambda np, o: np.matmul(o.cube, o.stack, axes=[(1, 2), (0, 1), (0, 2)]),
    "dates": lambda np, o: (o.dates - o.dates[0], o.dates + numpy.timedelta64(3, "D"), o.dates > o.dates[7]),
    "minimum dates": lambda np, o: (np.minimum(o.dates, o.dates[7]), np.isnat(o.dates)),
}

LINALG: dict[str, Call] = {
    "pinv hermitian": lambda np, o: np.linalg.pinv(o.s, hermitian=True),
    "pinv rtol": lambda np, o: np.linalg.pinv(o.stack, rtol=numpy.full(16, 1e-9)),
    "svd hermitian": lambda np, o: [np.abs(x) for x in np.linalg.svd(o.s, hermitian=True)],
    "svd values": lambda np, o: (
        np.linalg.svd(o.stack, compute_uv=False),
        np.linalg.svd(o.s, compute_uv=False, hermitian=True),
    ),
    "matrix_rank": lambda np, o: (
        np.linalg.matrix_rank(o.stack, tol=3.0),
        np.linalg.matrix_rank(o.s, hermitian=True, rtol=1e-3),
    ),
    "cond": lambda np, o: [np.linalg.cond(o.stack, p) for p in (1, -1, numpy.inf, -2, "fro")],
    "norm": lambda np, o: [np.linalg.norm(o.a, p, axis=(0, 1), keepdims=True) for p in (1, "nuc", "fro", -2)],
    "norm lines": lambda np, o: [np.linalg.norm(o.a, p, axis=0) for p in (0, 1, 3, numpy.inf)],
    "vector_norm": lambda np, o: np.linalg.vector_norm(o.cube, axis=(0, 2), ord=3, keepdims=True),
    "qr r": lambda np, o: np.linalg.qr(o.stack, mode="r"),
    "cholesky": lambda np, o: np.linalg.cholesky(o.s, upper=True),
    "eigh": lambda np, o: np.linalg.eigvalsh(o.s, UPLO="U"),
    "lstsq": lambda np, o: np.linalg.lstsq(o.v.reshape(-1, 4), o.w.reshape(-1, 4), rcond=1e-3),
    "tensorinv": lambda np, o: np.linalg.tensorinv(o.s.reshape(64, 8, 8), ind=1),
    "cross": lambda np, o: np.linalg.cross(o.v[:4095].reshape(3, -1), o.w[:4095].reshape(3, -1), axis=0),
    "vecdot": lambda np, o: np.linalg.vecdot(o.z, o.z, axis=0),
    "einsum": lambda np, o: np.einsum("ij,kj->ki", o.a, o.s, optimize="greedy", dtype="f4"),
    "tensordot": lambda np, o: np.tensordot(o.cube, o.a[:16, :16], axes=(2, 0)),
    "fft": lambda np, o: [np.fft.fft(o.z, n=50, axis=0, norm=m) for m in ("ortho", "forward")],
    "fft2": lambda np, o: np.fft.fft2(o.cube, s=(8, 20), axes=(0, 2), norm="ortho"),
    "rfftn": lambda np, o: np.fft.irfftn(np.fft.rfftn(o.cube, axes=(0, 1)), s=(16, 16), axes=(0, 1)),
    "fftshift": lambda np, o: np.fft.fftshift(o.cube, axes=(0, 2)),
}

OPTIONS: dict[str, Call] = {
    f"{chapter}: {name}": call
    for chapter, table in {
        "quantiles": QUANTILES,
        "pads": PADS,
        "statistics": STATISTICS,
        "sorting": SORTING,
        "manipulation": MANIPULATION,
        "ufuncs": UFUNCS,
        "linear algebra": LINALG,
    }.items()
    for name, call in table.items()
}
"""Every call with options."""
