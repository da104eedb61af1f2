"""Results of all kinds that a program may ask for together, over the same files: functions as pieces are, but
that none works on what another has made.

What is drawn of them (`together`) is what one plan has beside each other: lines beside folds, counts beside
transforms, and what is asked of narrow, of complex and of missing numbers, and of dates.
"""

from __future__ import annotations

import random
from typing import Any

import numpy

from tests.budgets.pieces import GROUPS, Files, Piece

KNOTS = numpy.linspace(-3, 3, 50)
_AXES = (None, 0, 1)
_FOLDS = (
    "sum",
    "mean",
    "std",
    "var",
    "max",
    "min",
    "ptp",
    "any",
    "count_nonzero",
    "argmax",
    "argmin",
    "prod",
)
_NAN_FOLDS = ("nansum", "nanmean", "nanstd", "nanvar", "nanmin", "nanmax", "nanmedian", "nanargmax")
_SCANS = ("cumsum", "cumprod", "nancumsum")
_SMALLER = 20
"""So many parts has a line of which one alone is worked on in ways that take long."""


def _real(f: Files) -> Any:
    return f.x.real if f.x.dtype.kind == "c" else f.x


def _missing(m: Any, f: Files) -> Any:
    x = _real(f).astype("f8", copy=False) if f.x.dtype.kind == "i" else _real(f)
    return m.where(x > 1, m.nan, x)


def _folds(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis, x = draw.choice(_AXES), _real(f)
    return [getattr(m, name)(x, axis=axis) for name in draw.sample(_FOLDS, 3)]


def _nan_folds(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis, x = draw.choice(_AXES), _missing(m, f)
    return [getattr(m, name)(x, axis=axis) for name in draw.sample(_NAN_FOLDS, 3)]


def _all_nan_folds(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis, x = draw.choice([0, 1]), _missing(m, f)
    return [getattr(m, name)(x, axis=axis) for name in _NAN_FOLDS[1:7]]


def _percentiles(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis = draw.choice(_AXES)
    return [
        m.percentile(_real(f), [5, 50, 95], axis=axis),
        m.quantile(f.w, 0.3),
        m.median(_real(f), axis=axis),
    ]


def _nan_percentiles(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.nanpercentile(_missing(m, f), [10, 90], axis=draw.choice(_AXES))]


def _averages(m: Any, f: Files, draw: random.Random) -> list[Any]:
    weights = m.abs(f.w[: len(f.x)])
    return [m.average(f.x, axis=0, weights=weights), m.average(_real(f), axis=1)]


def _histograms(m: Any, f: Files, draw: random.Random) -> list[Any]:
    bins = draw.choice([50, "auto", "fd", KNOTS])
    weights = draw.choice([None, f.k, f.w])
    line = f.w if isinstance(bins, str) else draw.choice([f.w, _real(f)])
    weights = None if isinstance(bins, str) or line is not f.w else weights
    return [m.histogram(line, bins, weights=weights)[0], m.histogram(f.k, 20, (0, GROUPS), density=True)[0]]


def _planes(m: Any, f: Files, draw: random.Random) -> list[Any]:
    x = _real(f)
    weights = draw.choice([None, f.w])
    return [
        m.histogram2d(x[:, 0], x[:, 1], bins=20)[0],
        m.histogram2d(f.w, f.k, bins=[9, KNOTS], weights=weights)[0],
    ]


def _grids(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.histogramdd(_real(f)[:, :3], bins=draw.choice([4, 9]))[0]]


def _counts(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.bincount(f.k), m.bincount(f.k, weights=f.w), m.bincount(f.k % 7, minlength=50)]


def _binned(m: Any, f: Files, draw: random.Random) -> list[Any]:
    places = m.digitize(f.w, draw.choice([KNOTS, KNOTS[::-1]]))
    return draw.choice([[m.bincount(places)], [places.max(), places], [f.w[places == 20]]])


def _looked_up(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = m.interp(f.w, KNOTS, numpy.sin(KNOTS))
    return draw.choice([[y.mean(), y.max()], [y]])


def _searched(m: Any, f: Files, draw: random.Random) -> list[Any]:
    places = m.searchsorted(KNOTS, _real(f), draw.choice(["left", "right"]))
    return draw.choice([[places.sum(axis=0)], [places]])


def _distinct(m: Any, f: Files, draw: random.Random) -> list[Any]:
    keywords: dict[str, bool] = draw.choice([{}, {"return_counts": True}, {"return_inverse": True}])
    found = m.unique(draw.choice([f.k, f.k[::3], f.k.astype("i1")]), **keywords)
    return [*found] if keywords else [found]


def _members(m: Any, f: Files, draw: random.Random) -> list[Any]:
    some = m.isin(f.k, [3, 5, 7, 90])
    return [some.sum(), f.w[some].mean(), m.intersect1d(f.k, numpy.arange(50, 150)), m.setdiff1d(f.k, [3, 5])]


def _covariances(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = f.x[:, :8]
    return [m.cov(y, rowvar=False), m.corrcoef(y, rowvar=False), m.cov(_real(f)[:, 0], f.w[: len(f.x)])]


def _rolled(m: Any, f: Files, draw: random.Random) -> list[Any]:
    taps = numpy.hanning(draw.choice([5, 25]))
    y = draw.choice([m.convolve, m.correlate])(f.w, taps, draw.choice(["same", "valid", "full"]))
    return draw.choice([[y.max(), m.abs(y).mean()], [y]])


def _spectra(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis = draw.choice([0, 1])
    q = m.abs(m.fft.fft(f.x[:, :10], axis=axis))
    return draw.choice([[q.mean(axis=0)], [q.argmax(axis=axis)], [q]])


def _there_and_back(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis, x = draw.choice([0, 1]), _real(f)[:, : draw.choice([1, 10])]
    q = m.fft.rfft(x, axis=axis)
    q = m.where(m.abs(q) > 1, q, 0)
    return [m.fft.irfft(q, n=x.shape[axis], axis=axis).std(axis=0)]


def _scans(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = getattr(m, draw.choice(_SCANS))(_real(f) / 8, axis=draw.choice([0, 1]))
    z = m.maximum.accumulate(f.w)
    return draw.choice([[y.max(axis=0), z[-1]], [y], [z, (f.w - z).min()]])


def _picked(m: Any, f: Files, draw: random.Random) -> list[Any]:
    rows = f.x[_real(f)[:, 0] > draw.choice([-1, 0, 1.5])]
    line = f.w[f.k < draw.choice([5, 50, 95])]
    return draw.choice(
        [[rows.mean(axis=0), line.std()], [rows], [line, line.max()], [m.flatnonzero(f.k == 7)]]
    )


def _matrices(m: Any, f: Files, draw: random.Random) -> list[Any]:
    n = len(f.w) // 9 // draw.choice([1, 4]) * 9
    a = f.w[:n].reshape(-1, 3, 3)
    s = a @ m.swapaxes(a, 1, 2) + m.eye(3)
    return draw.choice(
        [
            [s.mean(axis=0), m.linalg.det(s)],
            [m.linalg.inv(s)],
            [m.linalg.eigvalsh(s).max(axis=0)],
            [m.linalg.solve(s, a[:, :, :1])[:, 0, 0]],
            [m.linalg.norm(a, axis=(1, 2)).max(), m.trace(a, axis1=1, axis2=2)],
        ]
    )


def _drawn(m: Any, f: Files, draw: random.Random) -> list[Any]:
    n, some = len(f.x), m.random.default_rng(5)
    how = draw.choice(["integers", "choice", "permutation", "permuted", "weights", "shuffled"])
    if how == "integers":
        return [f.x[some.integers(0, n, n)].mean(axis=0), f.w[some.integers(0, len(f.w), 1000)]]
    if how == "choice":
        return [f.x[some.choice(n, n // 3, replace=False)].sum(axis=0), some.choice(f.w, 500)]
    if how == "weights":
        p = numpy.arange(1.0, 11.0) / 55
        return [m.bincount(some.choice(10, len(f.w), p=p)), some.standard_normal(len(f.w)).std()]
    if how == "permutation":
        return [f.x[some.permutation(n)][:: max(n // 100, 1)], some.permutation(f.w)[:1000]]
    if how == "permuted":
        return [some.permuted(f.x, axis=0)[:5]]
    y = m.array(f.w[: len(f.w) // _SMALLER])
    some.shuffle(y)
    return [y]


def _dates(m: Any, f: Files, draw: random.Random) -> list[Any]:
    t = (f.k * 86_400 + (m.abs(f.w) * 1000).astype("i8")).astype("M8[s]")
    days = t.astype("M8[D]")
    return draw.choice(
        [
            [t.min(), t.max(), m.diff(t).max()],
            [m.unique(days), (t - days).max()],
            [m.bincount(days.astype("i8"))],
            [m.sort(t)[:: max(len(f.k) // 100, 1)]],
            [(t > numpy.datetime64("1970-02-01")).sum(), t + numpy.timedelta64(1, "h")],
        ]
    )


def _narrow(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = m.clip(_real(f), -2, 2).astype(draw.choice(["i1", "u1", "i2", "f2", "?"]))
    axis = draw.choice([0, 1])
    return draw.choice(
        [
            [y.sum(axis=axis), m.sort(y, axis=axis)[:3], y.mean(axis=axis, dtype="f8")],
            [m.argsort(y, axis=axis, kind="stable")],
            [m.bincount(y.astype("i8").ravel() + 2)],
            [m.packbits(y > 0, axis=axis), y.max(axis=axis)],
            [m.repeat(y, 2, axis=0), m.cumsum(y, axis=axis, dtype="i8").max()],
        ]
    )


def _complex(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = f.x + 1j * f.x[::-1]
    return draw.choice(
        [
            [m.abs(y).max(axis=0), y.mean(axis=0), m.angle(y).std()],
            [y.conj() * y],
            [(y.conj().T @ y)[:5]],
            [m.cumsum(y, axis=0)[-1], y.real.sum(axis=1)],
        ]
    )


def _sorted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    axis = draw.choice([0, 1])
    return draw.choice(
        [
            [m.sort(_real(f), axis=axis)],
            [m.argsort(_real(f), axis=axis, kind="stable")[:10]],
            [m.sort(f.w)[::1000], m.partition(f.w, 10)[10]],
            [m.lexsort((f.w[::7], f.k[::7]))],
            [m.argmax(m.sort(f.w)), m.sort(f.k)],
        ]
    )


def _stencils(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = f.w[2:] - 2 * f.w[1:-1] + f.w[:-2]
    return draw.choice(
        [
            [m.abs(y).max(), m.gradient(f.w).std()],
            [m.diff(_real(f), axis=draw.choice([0, 1])).max(axis=0), m.trapezoid(f.w)],
            [m.roll(f.x, 3, axis=0), m.pad(f.w, 5).sum()],
            [m.lib.stride_tricks.sliding_window_view(f.w, 7).max(axis=1).mean()],
        ]
    )


def _products(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = f.x[:, :12]
    return draw.choice(
        [
            [y.T @ y, f.x @ numpy.ones(f.x.shape[1])],
            [m.einsum("ij,ij->i", f.x, f.x), m.einsum("ij->j", f.x)],
            [m.linalg.norm(f.x, axis=1), m.linalg.norm(f.w)],
            [m.tensordot(y, y, axes=(0, 0)), m.dot(f.w, f.w)],
            [f.x - f.x.mean(axis=0), (f.x**2).sum(axis=1)],
        ]
    )


def _put_together(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return draw.choice(
        [
            [m.concatenate([f.x, f.x[:1000]]), m.stack([f.w, f.w * 2]).sum()],
            [m.flip(f.x, axis=0)[:: max(len(f.x) // 50, 1)], m.tile(f.w[:1000], 5)],
            [f.x.T.copy(), m.ravel(f.x)[::3].sum()],
            [m.take(f.x, [0, 5, 7], axis=0), m.where(f.k > 50, f.w, 0.0)],
            [f.x.reshape(-1)[::1000], m.column_stack([f.w, f.k])[-5:]],
        ]
    )


RESULTS: dict[str, Piece] = {
    "folds": _folds,
    "nan folds": _nan_folds,
    "all nan folds": _all_nan_folds,
    "percentiles of all": _percentiles,
    "nan percentiles": _nan_percentiles,
    "weighted": _averages,
    "histograms": _histograms,
    "planes": _planes,
    "grids": _grids,
    "bin counts": _counts,
    "binned": _binned,
    "interpolated": _looked_up,
    "searched": _searched,
    "distinct": _distinct,
    "members": _members,
    "covariances": _covariances,
    "rolled": _rolled,
    "spectra of columns": _spectra,
    "there and back": _there_and_back,
    "scans": _scans,
    "picked": _picked,
    "stacked": _matrices,
    "drawn": _drawn,
    "dates": _dates,
    "narrow": _narrow,
    "complex": _complex,
    "in order": _sorted,
    "stencils": _stencils,
    "products": _products,
    "put together": _put_together,
}
