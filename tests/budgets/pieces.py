"""What whole programs over files are made of: pieces as their users write them, by name.

A piece is a function of NumPy's names, the files' arrays and a draw; its answers stay in variables while the
pieces behind it run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy

GROUPS = 100
"""Different keys."""


@dataclass(frozen=True)
class Files:
    """The arrays of a program."""

    x: Any
    """A matrix, of doubles or single precision, in either order."""
    w: Any
    """A line of doubles."""
    k: Any
    """As many keys, integers below `GROUPS`."""


Piece = Callable[[Any, Files, random.Random], list[Any]]


def _standardized(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = (f.x - f.x.mean(axis=0)) / f.x.std(axis=0)
    return [m.clip(y, -2, 2), m.abs(y).max(axis=0)]


def _filled(m: Any, f: Files, draw: random.Random) -> list[Any]:
    missing = f.x > draw.choice([0.9, 1.5])
    y = m.where(missing, f.x.mean(axis=0), f.x)
    return [missing.sum(axis=0), missing.any(axis=1).sum(), y, y.std(axis=0)]


def _complete_rows(m: Any, f: Files, draw: random.Random) -> list[Any]:
    good = (f.x[:, :3] > -1).all(axis=1)
    y = f.x[good]
    return [good.sum(), y.mean(axis=0), y[:5], y]


def _components(m: Any, f: Files, draw: random.Random) -> list[Any]:
    centred = f.x - f.x.mean(axis=0)
    w, v = m.linalg.eigh(centred.T @ centred / len(f.x))
    return [w, m.abs(centred @ v[:, ::-1][:, :5])]


def _percentiles(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.percentile(f.x, [5, 50, 95], axis=0), m.median(f.x[:, 1]), m.quantile(f.w, [0.01, 0.5])]


def _largest(m: Any, f: Files, draw: random.Random) -> list[Any]:
    places = m.sort(m.argpartition(f.w, -20)[-20:])
    return [places, f.w[places], m.sort(f.w)[-20:], f.w.argmax()]


def _grouped(m: Any, f: Files, draw: random.Random) -> list[Any]:
    counts, sums = m.bincount(f.k, minlength=GROUPS), m.bincount(f.k, weights=f.w, minlength=GROUPS)
    means = sums / counts
    return [means, m.bincount(f.k, weights=(f.w - means[f.k]) ** 2) / counts]


def _counted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [*m.unique(f.k, return_counts=True)]


def _firsts(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [*m.unique(f.k, return_index=True)]


def _at(m: Any, f: Files, draw: random.Random) -> list[Any]:
    sums, most = m.zeros(GROUPS), m.full(GROUPS, -m.inf)
    m.add.at(sums, f.k, f.w)
    m.maximum.at(most, f.k, f.w)
    return [sums, most]


def _group_sorted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    n = len(f.k) // draw.choice([1, 2, 4])
    order = m.argsort(f.k[:n], kind="stable")
    keys, w = f.k[:n][order], f.w[:n][order]
    first = m.flatnonzero(m.concatenate([[True], keys[1:] != keys[:-1]]))
    return [first, m.add.reduceat(w, first), m.maximum.reduceat(w, first), w[:10]]


def _averages(m: Any, f: Files, draw: random.Random) -> list[Any]:
    width = draw.choice([7, 1000])
    c = m.cumsum(f.w)
    y = (c[width:] - c[:-width]) / width
    return [y.max(), y.argmax(), y]


def _convolved(m: Any, f: Files, draw: random.Random) -> list[Any]:
    taps = numpy.exp(-numpy.arange(draw.choice([5.0, 20.0, 50.0])) / 10)
    y = m.convolve(f.w, taps, draw.choice(["same", "valid", "full"]))
    return draw.choice([[y.max()], [y.sum(), y], [m.abs(y).argmax()]])


def _windows(m: Any, f: Files, draw: random.Random) -> list[Any]:
    v = m.lib.stride_tricks.sliding_window_view(f.w, draw.choice([3, 7]))
    return [v.max(axis=1).mean(), v.mean(axis=1)[::100_000]]


def _joined(m: Any, f: Files, draw: random.Random) -> list[Any]:
    keys = m.arange(0, GROUPS, 3)
    places = m.minimum(m.searchsorted(keys, f.k), len(keys) - 1)
    hit = keys[places] == f.k
    y = m.where(hit, (keys * 1.5)[places], m.nan)
    return [hit.sum(), m.nansum(y), y * f.w]


def _split(m: Any, f: Files, draw: random.Random) -> list[Any]:
    order = numpy.random.default_rng(3).permutation(len(f.x))
    cut = len(f.x) * 4 // 5
    train, test = f.x[order[:cut]], f.x[order[cut:]]
    return [train.mean(axis=0), test, train]


def _permuted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.random.default_rng(3).permutation(f.w)[:1000], m.random.default_rng(4).permutation(f.x)]


def _one_hot(m: Any, f: Files, draw: random.Random) -> list[Any]:
    n, kinds = len(f.k) // 20, 40
    k = f.k[:n] % kinds
    h = m.eye(kinds)[k]
    marks = (k[:, None] == m.arange(kinds)).astype("f4")
    return [h.sum(axis=0), h.T @ f.w[:n], h.T @ h, marks]


def _channels(f: Files, draw: random.Random) -> Any:
    """The line as channels, one a row or one a column."""
    several = draw.choice([50, 400])
    channels = f.w[: len(f.w) // 10_000 * 10_000].reshape(several, -1)
    return channels if draw.random() < 0.7 else channels.T


def _spectra(m: Any, f: Files, draw: random.Random) -> list[Any]:
    s = _channels(f, draw)
    power = m.abs(m.fft.fft(s, axis=int(s.shape[0] > s.shape[1]) ^ 1)) ** 2
    return draw.choice([[power.mean(axis=0)], [power.argmax(axis=1)], [power.mean(axis=0), power]])


def _low_passed(m: Any, f: Files, draw: random.Random) -> list[Any]:
    s = _channels(f, draw)
    axis = int(s.shape[0] < s.shape[1])
    q = m.fft.rfft(s, axis=axis)
    ranks = m.arange(q.shape[axis])
    q = m.where((ranks if axis else ranks[:, None]) < 100, q, 0)
    low = m.fft.irfft(q, n=s.shape[axis], axis=axis)
    return draw.choice([[low.std(axis=axis)], [low]])


def _distances(m: Any, f: Files, draw: random.Random) -> list[Any]:
    d = m.stack([((f.x - f.x[i]) ** 2).sum(axis=1) for i in range(draw.choice([2, 4]))], axis=1)
    nearest = d.argmin(axis=1)
    return [m.bincount(nearest), nearest]


def _k_means(m: Any, f: Files, draw: random.Random) -> list[Any]:
    centers = m.array(f.x[:6])
    for _ in range(2):
        d = (f.x * f.x).sum(axis=1)[:, None] - 2 * f.x @ centers.T + (centers * centers).sum(axis=1)
        marks = (d.argmin(axis=1)[:, None] == m.arange(6)).astype(f.x.dtype)
        centers = marks.T @ f.x / m.maximum(marks.sum(axis=0), 1)[:, None]
    return [centers]


def _reset_sums(m: Any, f: Files, draw: random.Random) -> list[Any]:
    c = m.cumsum(f.w)
    last = m.maximum.accumulate(m.where(f.k == 7, m.arange(len(f.w)), 0))
    y = c - c[last]
    return [y.max(), y]


def _ranks(m: Any, f: Files, draw: random.Random) -> list[Any]:
    r = m.argsort(m.argsort(f.x[:, :8], axis=0, kind="stable"), axis=0)
    return [m.corrcoef(r.astype("f8"), rowvar=False), r[::1000]]


def _line_ranks(m: Any, f: Files, draw: random.Random) -> list[Any]:
    n = len(f.w) // draw.choice([2, 4])
    order = m.argsort(f.w[:n], kind="stable")
    ranks = m.empty(n, int)
    ranks[order] = m.arange(n)
    return [order[:100], ranks]


def _lags(m: Any, f: Files, draw: random.Random) -> list[Any]:
    w = f.w - f.w.mean()
    return [m.stack([(w[:-j] * w[j:]).mean() for j in (1, 2, 10)]), m.corrcoef(f.x[:, :5], rowvar=False)]


def _beside(m: Any, f: Files, draw: random.Random) -> list[Any]:
    half = f.x.shape[1] // 2
    y = m.concatenate([f.x[:, half:] * 2, f.x[:, :half]], axis=1)
    return [y, m.vstack([f.x[:1000], f.x]).mean(axis=0)]


def _histories(m: Any, f: Files, draw: random.Random) -> list[Any]:
    width, kept = max(f.x.shape[1] // 6, 1), []
    for j in range(3):
        kept.append(m.log1p(m.abs(f.x[:, j * width : (j + 1) * width])) * (j + 1))
        kept[-1][:3].sum().item()  # it is computed now, and kept
    return [sum(kept[1:], kept[0]).mean(axis=0), *[y.max(axis=0) for y in kept], kept[1]]


def _selected(m: Any, f: Files, draw: random.Random) -> list[Any]:
    places = m.argsort(f.x.sum(axis=1))[-100:]
    chosen = m.random.default_rng(4).choice(len(f.x), 1000, replace=False)
    return [f.x[places], f.x[chosen].mean(axis=0), m.compress(m.arange(len(f.x)) % 3 == 0, f.x, axis=0)]


def _counts(m: Any, f: Files, draw: random.Random) -> list[Any]:
    some = m.isin(f.k, [3, 5, 7, 90])
    both = m.histogram2d(f.k, f.w, bins=[20, 30], range=[[0, GROUPS], [-3, 3]])[0]
    return [f.w[some].mean(), some.sum(), both, f.w[some]]


def _looked_up(m: Any, f: Files, draw: random.Random) -> list[Any]:
    knots = numpy.linspace(-3, 3, 50)
    y = m.interp(f.w, knots, numpy.sin(knots))
    return [y.mean(), m.bincount(m.digitize(f.w, knots)), y]


def _turned(m: Any, f: Files, draw: random.Random) -> list[Any]:
    return [m.asfortranarray(f.x).T + 1, m.ascontiguousarray(f.x.T)]


def _bits(m: Any, f: Files, draw: random.Random) -> list[Any]:
    b = f.x > 0
    both = b[:, :10].astype("f4")
    return [m.packbits(b, axis=1), both.T @ both, m.flatnonzero(b[:, 0] & ~b[:, 1]), b.all(axis=0)]


def _neighbours(m: Any, f: Files, draw: random.Random) -> list[Any]:
    g = m.gradient(f.w)
    return [g.std(), m.abs(g).argmax(), m.pad(f.w, 25, mode="edge").sum(), m.roll(f.w, 5)]


def _fitted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    b = m.linalg.lstsq(f.x, f.w[: len(f.x)].astype(f.x.dtype), rcond=None)[0]
    return [(f.w[: len(f.x)] - f.x @ b).std(), m.linalg.svd(f.x, compute_uv=False)]


def _sorted(m: Any, f: Files, draw: random.Random) -> list[Any]:
    y = m.sort(f.w)
    return [y, m.diff(y).max(), m.sort(f.x, axis=draw.choice([0, 1]))]


def _wide_folds(m: Any, f: Files, draw: random.Random) -> list[Any]:
    x = f.x if f.x.flags.c_contiguous else f.x.T
    rows = draw.choice([3, 5, 12])
    y = x.reshape(-1)[: x.size // rows * rows].reshape(rows, -1)
    names = ["sum", "mean", "std", "var", "max", "argmax", "argmin", "nanmin", "nansum", "ptp", "any"]
    return [getattr(m, name)(y, axis=0) for name in draw.sample(names, 2)]


def _wide_counts(m: Any, f: Files, draw: random.Random) -> list[Any]:
    count = len(f.w) // draw.choice([1, 3, 5, 20])
    places = (m.abs(f.w) * draw.choice([1e3, 1e9])).astype("i8") % count
    weights = f.w.astype(draw.choice(["f8", "f4", "i2"]))
    return [
        m.bincount(places, minlength=count),
        m.bincount(places, weights=weights),
        m.histogram(f.w, bins=len(f.w) // 60, range=(-3, 3))[0],  # whose edges are the program's own
    ]


def _column_transforms(m: Any, f: Files, draw: random.Random) -> list[Any]:
    x = f.x[:, : draw.choice([1, 3, 5])].astype(f.x.dtype.newbyteorder(draw.choice("=>")))
    return [getattr(m.fft, draw.choice(["fft", "ifft", "rfft", "ihfft"]))(x, axis=0), m.sort(x, axis=0)]


def _made_products(m: Any, f: Files, draw: random.Random) -> list[Any]:
    side = isqrt(len(f.w) * draw.choice([2, 6]) // 10)
    a = f.w[: side * 300].reshape(side, 300)
    return [m.exp(a).astype("f4") @ (a * 2).astype("f4").T, (a + 1).T @ m.sin(a)]


PIECES: dict[str, Piece] = {
    "standardized": _standardized,
    "filled": _filled,
    "complete rows": _complete_rows,
    "components": _components,
    "percentiles": _percentiles,
    "largest": _largest,
    "grouped": _grouped,
    "counted": _counted,
    "firsts": _firsts,
    "sums at places": _at,
    "groups sorted": _group_sorted,
    "averages": _averages,
    "convolved": _convolved,
    "windows": _windows,
    "joined": _joined,
    "split": _split,
    "permuted": _permuted,
    "one-hot": _one_hot,
    "spectra": _spectra,
    "low-passed": _low_passed,
    "distances": _distances,
    "k-means": _k_means,
    "sums with resets": _reset_sums,
    "ranks": _ranks,
    "ranks of a line": _line_ranks,
    "lags": _lags,
    "beside": _beside,
    "histories": _histories,
    "selected": _selected,
    "counts": _counts,
    "looked up": _looked_up,
    "turned": _turned,
    "bits": _bits,
    "neighbours": _neighbours,
    "fitted": _fitted,
    "sorted": _sorted,
    "wide folds": _wide_folds,
    "wide counts": _wide_counts,
    "transforms of columns": _column_transforms,
    "products of what is made": _made_products,
}
