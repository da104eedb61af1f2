"""The tables: what is done with an array that memory has no room for, as a function of NumPy's names, the
array (rows of 100 columns) and its line; and with that line and as many places, which lie in a file, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

ROWS, COLUMNS = 200_000, 100
VALUES = 10_007
"""Different values of the array: these are the multiples of `1 / VALUES` from 0 on."""


def box(at: Any) -> Any:
    """The array's values in a box."""
    i, j = (numpy.arange(*ends) for ends in at)
    return numpy.add.outer(i * 7919, j * 104_729) % VALUES / VALUES


GROUPS = 1000
"""Different places."""


def places(at: Any) -> Any:
    """The places in a box."""
    (i,) = (numpy.arange(*ends) for ends in at)
    return i * 7919 % 10_007 % GROUPS


_FEW = numpy.arange(0, VALUES, 3) / VALUES
_W = numpy.cos(numpy.arange(COLUMNS * 30.0)).reshape(COLUMNS, 30)


def _int(line: Any) -> Any:
    return (line * VALUES + 0.5).astype(int)


def _shuffled(x: Any) -> Any:
    return numpy.random.default_rng(0).permutation(len(x))


def _written(x: Any, write: Callable[[Any], Any]) -> Any:
    """A copy that something is written to."""
    y = x.copy()
    write(y)
    return y


def _planes(x: Any) -> Any:
    """Rows in ten parts: folds over a short axis have large results."""
    return x.reshape(10, -1, x.shape[1])


def _squares(x: Any) -> Any:
    """A matrix of ten by ten in each row."""
    return x.reshape(-1, 10, 10)


def _weighing(m: Any, x: Any) -> Any:
    return m.cos(m.arange(len(x)))


OPERATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    # folds
    "sum": lambda m, x, line: x.sum(axis=0),
    "sum of rows": lambda m, x, line: x.sum(axis=1),
    "std": lambda m, x, line: x.std(axis=0),
    "var of rows": lambda m, x, line: x.var(axis=1),
    "argmin": lambda m, x, line: x.argmin(axis=1),
    "ptp": lambda m, x, line: m.ptp(x, axis=0),
    "nanmean": lambda m, x, line: m.nanmean(m.where(x > 0.5, x, m.nan), axis=0),
    "average": lambda m, x, line: m.average(x, axis=0, weights=_weighing(m, x) + 2),
    "count_nonzero": lambda m, x, line: m.count_nonzero(x > 0.25, axis=1),
    "cov": lambda m, x, line: m.cov(x, rowvar=False),
    "corrcoef": lambda m, x, line: m.corrcoef(x[:, :20], rowvar=False),
    "allclose": lambda m, x, line: m.asarray(m.allclose(x, x[::-1][::-1])),
    "norm": lambda m, x, line: m.linalg.norm(x, axis=1),
    "argmax of columns": lambda m, x, line: m.argmax(x.T),
    "nanmean of planes": lambda m, x, line: m.nanmean(_planes(x), axis=0),
    "std of planes": lambda m, x, line: m.std(_planes(x), axis=0),
    "var of middles": lambda m, x, line: m.var(_planes(x), axis=1),
    "trapezoid": lambda m, x, line: m.trapezoid(x, axis=0),
    # order
    "sort": lambda m, x, line: m.sort(line),
    "sort of columns": lambda m, x, line: m.sort(x, axis=0),
    "sort of rows": lambda m, x, line: m.sort(x, axis=1),
    "argsort": lambda m, x, line: m.argsort(line, kind="stable"),
    "argsort of columns": lambda m, x, line: m.argsort(x, axis=0, kind="stable"),
    "partition": lambda m, x, line: m.partition(line, 1000)[1000:1001],
    "partition of columns": lambda m, x, line: m.partition(x, 50, axis=0)[50],
    "argpartition": lambda m, x, line: line[m.argpartition(line, 1000)[1000:1001]],
    "lexsort": lambda m, x, line: m.lexsort((x[:, 0], x[:, 1])),
    "median": lambda m, x, line: m.median(x),
    "median of columns": lambda m, x, line: m.median(x, axis=0),
    "median of rows": lambda m, x, line: m.median(x, axis=1),
    "quantiles": lambda m, x, line: m.quantile(x, [0.1, 0.5, 0.9]),
    "percentile of columns": lambda m, x, line: m.percentile(x, 30, axis=0),
    "nanmedian": lambda m, x, line: m.nanmedian(x),
    "unique": lambda m, x, line: m.unique(line),
    "unique counts": lambda m, x, line: m.unique(line, return_counts=True),
    "unique inverse": lambda m, x, line: m.unique(line, return_inverse=True),
    "unique index": lambda m, x, line: m.unique(line, return_index=True),
    # sets
    "isin": lambda m, x, line: m.isin(x, _FEW),
    "isin of integers": lambda m, x, line: m.isin(_int(line), numpy.arange(0, VALUES, 5)),
    "intersect1d": lambda m, x, line: m.intersect1d(line, _FEW),
    "union1d": lambda m, x, line: m.union1d(line, _FEW),
    "setdiff1d": lambda m, x, line: m.setdiff1d(line, _FEW),
    # lookups, counts
    "searchsorted": lambda m, x, line: m.searchsorted(m.asarray(_FEW), line),
    "bincount of searchsorted": lambda m, x, line: m.bincount(m.searchsorted(m.asarray(_FEW), line)),
    "digitize": lambda m, x, line: m.digitize(x, _FEW[::40]),
    "bincount": lambda m, x, line: m.bincount(_int(line)),
    "weighted bincount": lambda m, x, line: m.bincount(_int(line), weights=line),
    "histogram": lambda m, x, line: m.histogram(x, bins=50),
    "histogram of a line": lambda m, x, line: m.histogram(line, bins=50),
    "histogram auto": lambda m, x, line: m.histogram(line, bins="sturges"),
    "histogram2d": lambda m, x, line: m.histogram2d(x[:, 0], x[:, 1], bins=10),
    "histogramdd": lambda m, x, line: m.histogramdd(x[:, :3], bins=4)[0],
    "interp": lambda m, x, line: m.interp(line, _FEW, numpy.sqrt(_FEW)),
    "take": lambda m, x, line: m.take(x, numpy.arange(0, len(x), 7), axis=0),
    "permutation": lambda m, x, line: m.random.default_rng(0).permutation(line),
    "permutation of rows": lambda m, x, line: m.random.RandomState(0).permutation(x),
    "permuted": lambda m, x, line: m.random.default_rng(0).permuted(line),
    "columns permuted": lambda m, x, line: m.random.default_rng(0).permuted(x, axis=0),
    "rows permuted": lambda m, x, line: m.random.default_rng(0).permuted(x, axis=1),
    "chosen": lambda m, x, line: m.random.default_rng(0).choice(line, len(line) // 2, replace=False),
    "columns picked": lambda m, x, line: x[:, [3, 1, 99, 50, 7, *range(20, 35)]],
    "rows picked": lambda m, x, line: x[m.asarray(_shuffled(x))],
    "lookup": lambda m, x, line: m.asarray(_FEW)[_int(line) % len(_FEW)],
    "take_along_axis": lambda m, x, line: m.take_along_axis(x, m.argmax(x, axis=1)[:, None], axis=1),
    "mask": lambda m, x, line: x[x > 0.25],
    "rows by mask": lambda m, x, line: x[x[:, 0] > 0.25],
    "nonzero": lambda m, x, line: m.flatnonzero(line > 0.5),
    "nonzero of columns": lambda m, x, line: m.nonzero(x.T > 0.9),
    "mask of columns": lambda m, x, line: x.T[x.T > 0.9],
    "argwhere": lambda m, x, line: m.argwhere(x > 0.75),
    "compress": lambda m, x, line: m.compress(numpy.arange(len(x)) % 3 == 0, x, axis=0),
    # elementwise
    "arithmetic": lambda m, x, line: m.sqrt(x) * 2 + 1,
    "where": lambda m, x, line: m.where(x > 0.5, x, -x),
    "select": lambda m, x, line: m.select([x < 0.25, x < 0.5], [x, 2 * x], -1.0),
    "piecewise": lambda m, x, line: m.piecewise(x, [x < 0.5, x >= 0.5], [-1, 1]),
    "clip": lambda m, x, line: m.clip(x, 0.25, 0.75),
    "nan_to_num": lambda m, x, line: m.nan_to_num(x),
    "modf": lambda m, x, line: m.modf(x * 10),
    "complex": lambda m, x, line: m.abs(x + 1j * x),
    "float32": lambda m, x, line: x.astype(m.float32),
    "polyval": lambda m, x, line: m.polyval([1.0, 2.0, 3.0], x),
    # neighbours and scans
    "diff": lambda m, x, line: m.diff(x, axis=0),
    "diff of a line": lambda m, x, line: m.diff(line),
    "gradient": lambda m, x, line: m.gradient(x, axis=0),
    "cumsum": lambda m, x, line: m.cumsum(x, axis=0),
    "cumsum of a line": lambda m, x, line: m.cumsum(line),
    "cumprod of rows": lambda m, x, line: m.cumprod(x + 0.5, axis=1),
    "maximum.accumulate": lambda m, x, line: m.maximum.accumulate(x, axis=0),
    "convolve": lambda m, x, line: m.convolve(line, numpy.ones(5), "same"),
    "correlate": lambda m, x, line: m.correlate(line, numpy.arange(5.0), "valid"),
    "windows": lambda m, x, line: m.lib.stride_tricks.sliding_window_view(line, 4).sum(axis=1),
    "unwrap": lambda m, x, line: m.unwrap(x * 10, axis=1),
    # shapes
    "transpose": lambda m, x, line: x.T + 0,
    "transpose folded": lambda m, x, line: m.cumsum(x.T.reshape(-1))[::1000],
    "transpose reshaped": lambda m, x, line: x.T.reshape(-1) + 0,
    "reshape": lambda m, x, line: x.reshape(-1, 1000) + 0,
    "flip": lambda m, x, line: m.flip(x, 0) + 0,
    "rot90": lambda m, x, line: m.rot90(x) + 0,
    "roll": lambda m, x, line: m.roll(x, 1000, axis=0),
    "roll of a line": lambda m, x, line: m.roll(line, 7),
    "concatenate": lambda m, x, line: m.concatenate([x, x * 2]),
    "hstack": lambda m, x, line: m.hstack([x, x]),
    "stack": lambda m, x, line: m.stack([x, x + 1], axis=1),
    "rows joined": lambda m, x, line: m.concatenate(x),
    "rows as columns": lambda m, x, line: m.column_stack(x),
    "progressions": lambda m, x, line: m.geomspace(x + 1, 3, 2),
    "filled with rows": lambda m, x, line: m.full_like(x, x),
    "repeat": lambda m, x, line: m.repeat(line, 3),
    "repeat folded": lambda m, x, line: m.repeat(line, 2).mean(),
    "repeat of rows": lambda m, x, line: m.repeat(x, 2, axis=0),
    "repeat by counts": lambda m, x, line: m.repeat(x, numpy.arange(len(x)) % 3, axis=0),
    "tile": lambda m, x, line: m.tile(x, (2, 1)),
    "tile folded": lambda m, x, line: m.tile(line, 3).max(),
    "pad": lambda m, x, line: m.pad(x, 2),
    "pad of edges": lambda m, x, line: m.pad(x, ((3, 3), (0, 0)), "edge"),
    "pad of mirrors": lambda m, x, line: m.pad(x, 3, "reflect"),
    "pad of columns": lambda m, x, line: m.pad(x, ((0, 0), (3, 3)), "symmetric"),
    "pad around": lambda m, x, line: m.pad(x, 3, "wrap"),
    "pad of ramps": lambda m, x, line: m.pad(x, 3, "linear_ramp"),
    "pad of means": lambda m, x, line: m.pad(x, ((0, 0), (3, 3)), "mean"),
    "columns by places": lambda m, x, line: x[:, m.asarray(numpy.arange(90) % 50)],
    "delete": lambda m, x, line: m.delete(x, numpy.arange(0, len(x), 100), axis=0),
    "insert": lambda m, x, line: m.insert(x, 5, 0.5, axis=0),
    "append": lambda m, x, line: m.append(x, x[:10], axis=0),
    "resize": lambda m, x, line: m.resize(x, (len(x), 120)),
    "split": lambda m, x, line: m.split(x, 2)[1] + 1,
    "every other": lambda m, x, line: x[::2, ::3] + 1,
    "tril": lambda m, x, line: m.tril(x),
    "swap": lambda m, x, line: x.reshape(-1, 1000, 100).swapaxes(0, 1) * 2,
    # algebra
    "x.T @ x": lambda m, x, line: x.T @ x,
    "x @ W": lambda m, x, line: x @ m.asarray(_W),
    "x @ v": lambda m, x, line: x @ m.asarray(_W[:, 0]),
    "v @ x": lambda m, x, line: _weighing(m, x) @ x,
    "einsum": lambda m, x, line: m.einsum("ij,jk->ik", x, _W),
    "tensordot": lambda m, x, line: m.tensordot(x, x, axes=([0], [0])),
    "inner": lambda m, x, line: m.inner(x, _W.T),
    "vdot": lambda m, x, line: m.asarray(m.vdot(line, line)),
    "outer": lambda m, x, line: m.outer(line[:200_000], _FEW[:100]),
    # stacks of small matrices
    "stack of products": lambda m, x, line: _squares(x) @ _squares(x),
    "stack of products, turned": lambda m, x, line: _squares(x).transpose(0, 2, 1) @ _squares(x),
    "stack by vectors": lambda m, x, line: m.einsum("nij,nj->ni", _squares(x), x[:, :10]),
    "stack of products, summed": lambda m, x, line: (_squares(x) @ _squares(x) * 2 + 1).sum(axis=1),
    "stack of large products": lambda m, x, line: x.reshape(-1, 100, 100) @ x.reshape(-1, 100, 100),
    "stack of inverses": lambda m, x, line: m.linalg.inv(_squares(x) + 5 * numpy.eye(10)),
    "stack of solutions": lambda m, x, line: m.linalg.solve(_squares(x) + 5 * numpy.eye(10), x[:, :10, None]),
    "stack of determinants": lambda m, x, line: m.linalg.det(_squares(x) + 5 * numpy.eye(10)),
    "lstsq": lambda m, x, line: m.linalg.lstsq(x, _weighing(m, x), rcond=None)[0],
    "qr": lambda m, x, line: m.abs(m.linalg.qr(x)[1]),
    "q of qr": lambda m, x, line: m.abs(m.linalg.qr(x)[0]),
    "svdvals": lambda m, x, line: m.linalg.svdvals(x),
    "svd": lambda m, x, line: m.abs(m.linalg.svd(x, full_matrices=False)[0][:, :5]),
    "pinv": lambda m, x, line: m.linalg.pinv(x),
    "matrix_rank": lambda m, x, line: m.asarray(m.linalg.matrix_rank(x)),
    "polyfit": lambda m, x, line: m.polyfit(m.arange(len(x)) / len(x), x[:, 0], 2),
    "fft of a line": lambda m, x, line: m.abs(m.fft.fft(line)),
    "rfft of a line": lambda m, x, line: m.abs(m.fft.rfft(line)).max(),
    "irfft of a line": lambda m, x, line: m.fft.irfft(line[:10_000_001]),
    "fft of rows": lambda m, x, line: m.abs(m.fft.fft(x, axis=1)),
    # written to
    "element written": lambda m, x, line: _written(x, lambda y: y.__setitem__((3, 4), 7.0)),
    "rows written": lambda m, x, line: _written(x, lambda y: y.__setitem__(slice(0, None, 3), 7.0)),
    "written by mask": lambda m, x, line: _written(x, lambda y: y.__setitem__(y > 0.5, 0.5)),
    "added to": lambda m, x, line: _written(x, lambda y: y.__iadd__(1)),
    "diagonal filled": lambda m, x, line: _written(x, lambda y: m.fill_diagonal(y, 7)),
    "put": lambda m, x, line: _written(x, lambda y: m.put(y, [5, 70], 7)),
    "row written": lambda m, x, line: _written(x, lambda y: y.__setitem__(0, 7.0)),
    "rows by places written": lambda m, x, line: _written(x, lambda y: y.__setitem__([3, 700, 3], 7.0)),
    "column written": lambda m, x, line: _written(x, lambda y: y.__setitem__((slice(None), 0), y[:, 1])),
    "few rows by a function": lambda m, x, line: m.apply_along_axis(numpy.cumsum, -1, x[:20]),
    "segments of integers": lambda m, x, line: m.add.reduceat(
        _int(line).astype("i4"), [0, 5, 100, len(line) // 2]
    ),
    "segments in single precision": lambda m, x, line: m.maximum.reduceat(x, [0, 9, len(x) // 2], dtype="f4"),
    "gram of longer rows": lambda m, x, line: x.reshape(-1, 2 * x.shape[1]).T @ x.reshape(-1, 2 * x.shape[1]),
    "products of planes": lambda m, x, line: m.tensordot(_planes(x), _planes(x), ([0, 1], [0, 1])),
    "memory lent": lambda m, x, line: m.frombuffer(x.copy()),
    # with functions of one's own
    "apply_along_axis": lambda m, x, line: m.apply_along_axis(numpy.sum, 1, x),
    "vectorize": lambda m, x, line: m.vectorize(abs, otypes=[float])(x[:2000]),
}

_TABLE = numpy.cos(numpy.arange(4.0 * GROUPS))


def _within(m: Any, line: Any, p: Any) -> Any:
    """The variance within groups."""
    means = m.bincount(p, weights=line) / m.bincount(p)
    return ((line - means[p]) ** 2).mean()


def _many(m: Any, line: Any, p: Any) -> Any:
    """Places of which there are as many as of a fifth of a budget's numbers."""
    return p * 1000 + m.arange(len(p)) % 1000


def _means(m: Any, line: Any, p: Any) -> Any:
    """The mean of each of many groups."""
    places = _many(m, line, p)
    return m.bincount(places, weights=line) / m.maximum(m.bincount(places), 1)


def _at(ufunc: str, shape: Any, dtype: Any = float) -> Callable[[Any, Any, Any], Any]:
    """What a universal function's `at` leaves in an array of zeros."""

    def work(m: Any, places: Any, values: Any) -> Any:
        out = m.zeros(shape, dtype)
        getattr(m, ufunc).at(out, places, values)
        return out

    return work


BY_PLACES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "places looked up": lambda m, line, p: m.asarray(_TABLE)[p].sum(),
    "places from the end": lambda m, line, p: m.asarray(_TABLE)[p - GROUPS].sum(),
    "places of rows": lambda m, line, p: m.asarray(_TABLE).reshape(-1, 4)[p].sum(axis=0),
    "places in a plane": lambda m, line, p: m.asarray(_TABLE).reshape(-1, 10)[p // 10, p % 10] * line,
    "places taken": lambda m, line, p: m.take(m.asarray(_TABLE), p, mode="clip") + line,
    "places of flags": lambda m, line, p: line[(m.arange(GROUPS) % 3 == 0)[p]].sum(),
    "within groups": _within,
    # sums by place
    "add.at": lambda m, line, p: _at("add", GROUPS)(m, p, line),
    "add.at of ones": lambda m, line, p: _at("add", GROUPS, int)(m, p, 1),
    "add.at computed": lambda m, line, p: _at("add", GROUPS)(m, p // 2, line * 2),
    "add.at of integers": lambda m, line, p: _at("add", GROUPS, int)(m, p, p * 2),
    "add.at in a plane": lambda m, line, p: _at("add", (100, 10))(m, (p // 10, p % 10), line),
    "subtract.at": lambda m, line, p: _at("subtract", GROUPS)(m, p, line * 2),
    "add.at in many groups": lambda m, line, p: _at("add", GROUPS * 1000)(m, _many(m, line, p), line),
    "counts of many groups": lambda m, line, p: m.bincount(_many(m, line, p)),
    "sums of many groups": lambda m, line, p: m.bincount(_many(m, line, p), weights=line),
    "means of many groups": _means,
    "maximum.at": lambda m, line, p: _at("maximum", GROUPS)(m, p, line + 1),
}
"""What is done with the line and places in it, in files or computed both."""

OVER: set[str] = set()
"""What takes more than half as much again as the budget in one process."""
