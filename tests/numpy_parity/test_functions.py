"""Functions of NumPy's chapters, as one expression each, against NumPy: values, dtypes and shapes."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.numbers import NUMERIC

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS = {
    "f8": numpy.array([[3.0, -1.5, 2.0, 7.0], [0.0, 5.5, -4.0, 1.0], [2.0, 2.0, 8.0, -3.0]]),
    "i8": numpy.array([[3, 1, 2, 7], [0, 5, 4, 1], [2, 2, 8, 3]]),
    "f4": numpy.array([[3.0, -1.5, 2.0, 7.0], [0.0, 5.5, -4.0, 1.0]], "f4"),
    "?": numpy.array([[True, False, True], [False, False, True]]),
    "nan": numpy.array([[3.0, numpy.nan, 2.0, 7.0], [0.0, 5.5, numpy.nan, 1.0]]),
    "c16": numpy.array([[1 + 2j, -1j, 3.0], [0, 2.5, 1 - 1j]]),
    "cube": numpy.arange(24.0).reshape(2, 3, 4),
    "1d": numpy.array([5.0, 1.0, 4.0, 1.0, 3.0]),
    "empty": numpy.zeros((0, 3)),
}

FOLDS = {
    "sum": lambda np, x: np.sum(x),
    "sum0": lambda np, x: x.sum(axis=0),
    "sum-1 keep": lambda np, x: x.sum(axis=-1, keepdims=True),
    "sum axes": lambda np, x: np.sum(x, axis=(0, -1)) if x.ndim > 1 else np.sum(x, axis=(0,)),
    "sum f4": lambda np, x: np.sum(x, dtype=np.complex64),
    "sum initial": lambda np, x: np.sum(x, initial=5),
    "sum where": lambda np, x: np.sum(x, axis=0, where=x != 2),
    "sum no axes": lambda np, x: np.sum(x, axis=()),
    "prod": lambda np, x: np.prod(x, axis=0),
    "max": lambda np, x: x.max(),
    "max1": lambda np, x: np.max(x, axis=-1),
    "min initial": lambda np, x: np.min(x, initial=-100.0, axis=0),
    "min where": lambda np, x: np.min(x, initial=9, where=x != 0),
    "any": lambda np, x: np.any(x, axis=0),
    "all": lambda np, x: np.all(x),
    "argmax": lambda np, x: np.argmax(x),
    "argmin": lambda np, x: np.argmin(x, axis=-1),
    "argmax keep": lambda np, x: np.argmax(x, axis=0, keepdims=True),
    "mean": lambda np, x: np.mean(x),
    "mean0": lambda np, x: x.mean(0),
    "mean where": lambda np, x: np.mean(x, where=x != 2),
    "mean keep": lambda np, x: x.mean(-1, keepdims=True),
    "var": lambda np, x: np.var(x, axis=0, ddof=1),
    "var where": lambda np, x: np.var(x, axis=0, where=x != 2),
    "std": lambda np, x: x.std(),
    "ptp": lambda np, x: np.ptp(x, axis=0),
    "count_nonzero": lambda np, x: np.asarray(np.count_nonzero(x, axis=0)),
    "nansum": lambda np, x: np.nansum(x, axis=0),
    "nanmin": lambda np, x: np.nanmin(x),
    "nanmax": lambda np, x: np.nanmax(x, axis=0),
    "nanmean": lambda np, x: np.nanmean(x, axis=0),
    "nanvar": lambda np, x: np.nanvar(x, axis=-1),
    "nanstd": lambda np, x: np.nanstd(x),
    "nanprod": lambda np, x: np.nanprod(x),
    "cumsum": lambda np, x: np.cumsum(x),
    "cumsum0": lambda np, x: np.cumsum(x, axis=0),
    "cumprod": lambda np, x: x.cumprod(-1),
    "cumulative_sum": lambda np, x: np.cumulative_sum(x, axis=0, include_initial=True),
    "nancumsum": lambda np, x: np.nancumsum(x, axis=-1),
    "average": lambda np, x: np.average(x, axis=0, weights=np.arange(1, x.shape[0] + 1)),
    "median": lambda np, x: np.median(x),
    "median0": lambda np, x: np.median(x, axis=0, keepdims=True),
    "percentile": lambda np, x: np.percentile(x, [10, 50, 99]),
    "quantile": lambda np, x: np.quantile(x, 0.3, axis=0),
    "diff": lambda np, x: np.diff(x),
    "diff2": lambda np, x: np.diff(x, 2, axis=0) if x.shape[0] > 2 else np.diff(x, axis=0),
    "diff prepend": lambda np, x: np.diff(x, axis=0, prepend=0),
    "norm": lambda np, x: np.linalg.norm(x),
    "trapezoid": lambda np, x: np.trapezoid(x),
    "cov": lambda np, x: np.cov(x) if x.ndim < 3 else np.cov(x[0]),
    "corrcoef": lambda np, x: np.corrcoef(x) if x.ndim == 2 else np.corrcoef(x.reshape(-1)),
}

SHAPES = {
    "T": lambda np, x: x.T,
    "reshape": lambda np, x: x.reshape(-1),
    "reshape F": lambda np, x: np.reshape(x, (x.size,), order="F"),
    "ravel": lambda np, x: np.ravel(x.T),
    "swapaxes": lambda np, x: np.swapaxes(x, 0, -1),
    "moveaxis": lambda np, x: np.moveaxis(x, 0, -1),
    "expand_dims": lambda np, x: np.expand_dims(x, (0, -1)),
    "squeeze": lambda np, x: np.squeeze(x[None]),
    "concatenate": lambda np, x: np.concatenate([x, x * 2], axis=0),
    "concatenate -1": lambda np, x: np.concatenate([x, np.ones(x.shape, int)], axis=-1),
    "concatenate None": lambda np, x: np.concatenate([x, x], axis=None),
    "stack": lambda np, x: np.stack([x, x], axis=-1),
    "vstack": lambda np, x: np.vstack([x, x]),
    "hstack": lambda np, x: np.hstack([x, x]),
    "dstack": lambda np, x: np.dstack([x, x]),
    "column_stack": lambda np, x: np.column_stack([x, x]),
    "block": lambda np, x: np.block([[x, x], [x, x]]),
    "split": lambda np, x: np.split(x, x.shape[-1], axis=-1)[0],
    "array_split": lambda np, x: np.array_split(x, 2)[1],
    "repeat": lambda np, x: np.repeat(x, 3),
    "repeat axis": lambda np, x: np.repeat(x, 2, axis=-1),
    "repeat counts": lambda np, x: np.repeat(x, numpy.arange(x.shape[0]), axis=0),
    "tile": lambda np, x: np.tile(x, (2, 1, 3)),
    "flip": lambda np, x: np.flip(x),
    "flip0": lambda np, x: np.flip(x, 0),
    "rot90": lambda np, x: np.rot90(x) if x.ndim > 1 else x,
    "roll": lambda np, x: np.roll(x, 2),
    "roll axes": lambda np, x: np.roll(x, (1, -1), axis=(0, -1)),
    "pad": lambda np, x: np.pad(x, 1),
    "pad values": lambda np, x: np.pad(x, (1, 2), constant_values=3),
    "pad edge": lambda np, x: np.pad(x, 1, mode="edge") if x.size else x,
    "broadcast_to": lambda np, x: np.broadcast_to(x, (2, *x.shape)),
    "atleast_3d": lambda np, x: np.atleast_3d(x),
    "take": lambda np, x: np.take(x, [0, -1, 1]) if x.size else x,
    "take axis": lambda np, x: np.take(x, [[0, -1]], axis=-1),
    "take wrap": lambda np, x: np.take(x, [7, -9], axis=-1, mode="wrap"),
    "take clip": lambda np, x: np.take(x, [7, -9], axis=-1, mode="clip"),
    "delete": lambda np, x: np.delete(x, 1, axis=-1),
    "insert": lambda np, x: np.insert(x, 1, 9, axis=-1),
    "insert two": lambda np, x: np.insert(x, [0, 2], 9, axis=-1),
    "append": lambda np, x: np.append(x, [1, 2]),
    "compress": lambda np, x: np.compress([False, True], x, axis=-1),
    "tril": lambda np, x: np.tril(x),
    "triu": lambda np, x: np.triu(x, 1),
    "diagonal": lambda np, x: np.diagonal(x, 1) if x.ndim > 1 else x,
    "diag": lambda np, x: np.diag(x.ravel(), -1),
    "trace": lambda np, x: np.trace(x) if x.ndim > 1 else x,
    "resize": lambda np, x: np.resize(x, (5, 3)),
    "unstack": lambda np, x: np.unstack(x, axis=-1)[0],
    "newaxis": lambda np, x: x[:, None],
    "step": lambda np, x: x[::-2],
}

SORTS = {
    "sort": lambda np, x: np.sort(x),
    "sort0": lambda np, x: np.sort(x, axis=0),
    "sort None": lambda np, x: np.sort(x, axis=None),
    "argsort": lambda np, x: np.argsort(x, kind="stable"),
    "argsort0": lambda np, x: np.argsort(x, axis=0, kind="stable"),
    "partition": lambda np, x: np.sort(np.partition(x, 1, axis=-1)[..., :2]),
    "unique": lambda np, x: np.unique(x),
    "unique counts": lambda np, x: np.unique(x, return_counts=True)[1],
    "unique index": lambda np, x: np.unique(x, return_index=True)[1],
    "unique inverse": lambda np, x: np.unique(x, return_inverse=True)[1],
    "nonzero": lambda np, x: np.nonzero(x)[-1],
    "flatnonzero": lambda np, x: np.flatnonzero(x),
    "argwhere": lambda np, x: np.argwhere(x),
    "where": lambda np, x: np.where(x > 1, x, -1),
    "where2": lambda np, x: np.where(x, 1.5, x),
    "mask": lambda np, x: x[x > 1],
    "mask rows": lambda np, x: x[x.reshape(x.shape[0], -1).sum(1) > 3] if x.size else x,
    "searchsorted": lambda np, x: np.searchsorted(np.sort(x, axis=None), x),
    "searchsorted r": lambda np, x: np.searchsorted(np.sort(x, axis=None), x, side="right"),
    "digitize": lambda np, x: np.digitize(x, [0, 2, 4]) if x.dtype.kind != "c" else x,
    "histogram": lambda np, x: np.histogram(x, 5, range=(-3, 9))[0] if x.dtype.kind in "if" else x,
    "histogram edges": lambda np, x: (
        np.histogram(x[~np.isnan(x)])[1] if x.dtype.kind in "if" and x.size else x
    ),
    "isin": lambda np, x: np.isin(x, [2, 3, 9]),
    "union1d": lambda np, x: np.union1d(x, [2, 100]),
    "intersect1d": lambda np, x: np.intersect1d(x, [2, 3, 100]),
    "setdiff1d": lambda np, x: np.setdiff1d(x, [2, 3]),
    "clip": lambda np, x: np.clip(x, 1, 3),
    "clip min": lambda np, x: x.clip(min=1),
    "round": lambda np, x: np.round(x / 3, 2) if x.dtype.kind != "?" else x,
    "round -1": lambda np, x: np.round(x * 7, -1) if x.dtype.kind != "b" else x,
    "isclose": lambda np, x: np.isclose(x, x + 1e-9),
    "nan_to_num": lambda np, x: np.nan_to_num(x),
    "select": lambda np, x: np.select([x > 3, x > 1], [x, x * 10], -1),
    "choose": lambda np, x: np.choose((x > 1) * 1, [x, x * 2]),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.argsort(x, axis=-1, kind="stable"), axis=-1),
    "real": lambda np, x: np.real(x) + np.imag(x),
    "angle": lambda np, x: np.angle(x),
    "astype": lambda np, x: x.astype(np.complex64),
    "interp": lambda np, x: np.interp(x, [0, 1, 5], [3, 4, 1]) if x.dtype.kind != "c" else x,
}


def check(function, x):
    try:
        wanted = function(numpy, x.copy())
    except (ValueError, TypeError, IndexError, ZeroDivisionError) as error:
        bases = tuple(
            c for c in (ValueError, TypeError, IndexError, ZeroDivisionError) if isinstance(error, c)
        )
        with pytest.raises(bases):
            function(np, np.array(x)).compute()
        return
    got = function(np, np.array(x))
    assert issubclass(type(got), Handle) or type(got) in NUMERIC
    assert got.shape == numpy.shape(wanted)
    assert got.dtype == wanted.dtype
    tolerance = 1e-5 if wanted.dtype in ("f4", "c8") else 1e-12
    if wanted.dtype.kind in "fc":
        numpy.testing.assert_allclose(numpy.asarray(got), wanted, rtol=tolerance, atol=tolerance)
    else:
        numpy.testing.assert_array_equal(numpy.asarray(got), wanted)


@pytest.mark.some(90)
@pytest.mark.parametrize("name", [*FOLDS, *SHAPES, *SORTS])
def test_function(mode, name):
    function = {**FOLDS, **SHAPES, **SORTS}[name]
    for kind, x in INPUTS.items():
        try:
            check(function, x)
        except AssertionError as error:
            raise AssertionError(f"{name} of {kind}: {error}") from error
