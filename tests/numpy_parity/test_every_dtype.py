"""Calls over every dtype, and shapes with no axes, one, two, and no elements: NumPy's values, dtypes, errors.

A call is a row; what it is given is drawn from all kinds of elements, also those it refuses.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy
import pytest

import spartan_ng as np

DTYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    "c8",
    "c16",
    "m8[s]",
    "M8[D]",
    "O",
]
WITH_HOLES = ["f2", "f4", "f8", "g", "c8", "c16", "m8[s]", "M8[D]"]
"""Dtypes with an element that is no number."""
SHAPES = [(), (5,), (0,), (3, 4), (4, 4), (2, 0)]

Case = tuple[str, tuple[int, ...], bool]
"""A dtype, a shape, and whether some elements are no numbers."""
DRAWN = 24
"""Cases of each call that a run of the tests draws."""
TIMES = ["m8[s]", "M8[D]"]
PRODUCTS = ["convolve", "correlate", "dot", "inner", "matvec", "matvec of matrices", "polymul", "vdot"]
WITHOUT = {
    **dict.fromkeys([*PRODUCTS, "vecdot", "vecmat", "vecmat of vectors"], TIMES),
    **dict.fromkeys(["digitize", "geomspace", "histogram2d", "poly", "roots"], TIMES),
    "full text": ["M8[D]"],
    "pad maximum": ["m8[s]"],
    "pad mean": ["m8[s]"],
}
"""Dtypes that NumPy takes or refuses by accident: no times among floats, the mean of some, sums of
products of durations; and which of two errors comes first."""
WITHOUT_HOLES = {
    **dict.fromkeys(["convolve", "correlate", "polymul", "tensordot"], ("c8", "c16")),
    **dict.fromkeys(["poly", "roots"], ("f2", "g")),
    "quantile": ("f2",),
}
"""BLAS has its own infinite complex numbers; which of two errors comes first; NumPy's dtype depends on
whether there is a NaN."""

UFUNCS: dict[int, list[str]] = {
    n: sorted(
        name
        for name, f in vars(numpy).items()
        if name in numpy.__all__ and isinstance(f, numpy.ufunc) and f.nin == n and f.signature is None
    )
    for n in (1, 2)
}


def _norm(p: Any) -> Callable[[Any, Any], Any]:
    return lambda np, x: np.linalg.norm(x, p)


def _of_one(name: str) -> Callable[[Any, Any], Any]:
    return lambda np, x: getattr(np, name)(x)


def _of_two(name: str) -> Callable[[Any, Any], Any]:
    return lambda np, x: getattr(np, name)(x, x[::-1] if x.ndim else x)


def _with_number(name: str) -> Callable[[Any, Any], Any]:
    return lambda np, x: getattr(np, name)(x, 2)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "angle": lambda np, x: np.angle(x),
    "angle degrees": lambda np, x: np.angle(x, deg=True),
    "argmin": lambda np, x: np.argmin(x),
    "argpartition": lambda np, x: np.sort(x.ravel()[np.argpartition(x.ravel(), 1)[:2]]),
    "argsort": lambda np, x: np.argsort(x, axis=0, kind="stable"),
    "array of objects": lambda np, x: np.array(x, dtype=object, ndmax=0),
    "argmax": lambda np, x: np.argmax(x, axis=0),
    "asfortranarray": lambda np, x: np.asfortranarray(x),
    "ascontiguousarray": lambda np, x: np.ascontiguousarray(x),
    "average": lambda np, x: np.average(x, axis=0),
    "array_equal": lambda np, x: np.array_equal(x, x),
    "array_equal nan": lambda np, x: np.array_equal(x, x, equal_nan=True),
    "allclose": lambda np, x: np.allclose(x, x, equal_nan=True),
    "astype M8": lambda np, x: x.astype("M8[h]"),
    "astype f4": lambda np, x: x.astype("f4"),
    "bincount": lambda np, x: np.bincount(numpy.arange(5), weights=x),
    "choose": lambda np, x: np.choose([0, 1, 1], [x[..., :3], 7]),
    "choose floats": lambda np, x: np.choose([0, 1, 1], [x[..., :3], 7.5]),
    "choose out": lambda np, x: np.choose([0, 1, 1], [x[..., :3], 7], out=np.zeros(3)),
    "clip": lambda np, x: np.clip(x, 1, 3),
    "copyto": lambda np, x: _after(np.zeros(5, int), lambda a: np.copyto(a, x)),
    "copyto number": lambda np, x: _after(x, lambda a: np.copyto(a, 1.5)),
    "corrcoef": lambda np, x: np.corrcoef(x),
    "count_nonzero": lambda np, x: np.count_nonzero(x, axis=0),
    "cumprod": lambda np, x: np.cumprod(x, axis=0),
    "cumsum": lambda np, x: np.cumsum(x, axis=-1),
    "diff": lambda np, x: np.diff(x),
    "digitize": lambda np, x: np.digitize(x, numpy.arange(3.0)),
    "ediff1d": lambda np, x: np.ediff1d(x),
    "einsum f4": lambda np, x: np.einsum("...i->...", x, dtype="f4"),
    "einsum view f4": lambda np, x: np.einsum("ij->ji", x, dtype="f4"),
    "einsum unsafe": lambda np, x: np.einsum("...i,...i->...", x, x, dtype="f4", casting="unsafe"),
    "einsum sum": lambda np, x: np.einsum("...->", x),
    "einsum trace": lambda np, x: np.einsum("ii", x),
    "einsum diagonal": lambda np, x: np.einsum("ii->i", x),
    "einsum turned": lambda np, x: np.einsum("ij->ji", x),
    "einsum rows": lambda np, x: np.einsum("ij->i", x),
    "fft out floats": lambda np, x: np.fft.fft(x, out=np.zeros(x.shape)),
    "fft out complex": lambda np, x: np.fft.fft(x, out=np.zeros(x.shape, "c16")),
    "fill_diagonal": lambda np, x: _after(x, lambda a: np.fill_diagonal(a, 3)),
    "fill_diagonal empty": lambda np, x: _after(x, lambda a: np.fill_diagonal(a, numpy.array([]), True)),
    "fmax reduce": lambda np, x: np.fmax.reduce(x, axis=None),
    "fmin": lambda np, x: np.fmin(x, x[::-1] if x.ndim else x),
    "flip": lambda np, x: np.flip(x),
    "full": lambda np, x: np.full(3, 300, x.dtype),
    "full of": lambda np, x: np.full((2, 5), x, "f4"),
    "full text": lambda np, x: np.full((2, 5), x, "U3"),
    "gradient": lambda np, x: np.gradient(x, axis=-1),
    "gradient steps": lambda np, x: np.gradient(x, numpy.array([0.0, 1, 3, 4, 9])[: x.shape[-1]], axis=-1),
    "gradient edges": lambda np, x: np.gradient(x, 2, axis=-1, edge_order=2),
    "histogram": lambda np, x: np.histogram(x, 4),
    "imag": lambda np, x: np.imag(x),
    "insert": lambda np, x: np.insert(x, 1, 1, axis=-1),
    "insert two": lambda np, x: np.insert(x, numpy.array([[1, 2]]), 1, axis=-1),
    "interp": lambda np, x: np.interp(x, [1, 2, 3], [4, 5, 7]),
    "isclose": lambda np, x: np.isclose(x, x),
    "isfinite": lambda np, x: np.isfinite(x),
    "isin": lambda np, x: np.isin(x, x.ravel()[:3]),
    "isnan": lambda np, x: np.isnan(x),
    "iscomplex": lambda np, x: np.iscomplex(x),
    "isneginf": lambda np, x: np.isneginf(x),
    "kron": lambda np, x: np.kron(x, x),
    "kron number": lambda np, x: np.kron(x, 2),
    "linspace": lambda np, x: np.linspace(x, 7, 5),
    "logspace": lambda np, x: np.logspace(0, 2, 3, base=x),
    "lexsort": lambda np, x: np.lexsort((x, x)),
    "max": lambda np, x: np.max(x, axis=0),
    "maximum accumulate": lambda np, x: np.maximum.accumulate(x),
    "max initial out": lambda np, x: np.max(x, axis=0, initial=0.5, out=np.zeros(x.shape[1:])),
    "max initial": lambda np, x: np.max(x, axis=0, initial=2),
    "max out": lambda np, x: np.max(x, axis=0, out=np.zeros(x.shape[1:])),
    "min where": lambda np, x: np.min(x, axis=0, where=x == x, initial=x.ravel()[0]),
    "mean": lambda np, x: np.mean(x, axis=0),
    "mean O": lambda np, x: np.mean(x, axis=0, dtype=object),
    "mean f4": lambda np, x: np.mean(x, axis=-1, dtype="f4"),
    "median": lambda np, x: np.median(x),
    "median keep": lambda np, x: np.median(x, axis=0, keepdims=True),
    "nan_to_num": lambda np, x: np.nan_to_num(x),
    "nan_to_num wide": lambda np, x: np.nan_to_num(x, nan=numpy.zeros((2, 5))),
    "nanmax": lambda np, x: np.nanmax(x),
    "nanargmax": lambda np, x: np.nanargmax(x),
    "nanargmin": lambda np, x: np.nanargmin(x, axis=0),
    "nancumprod": lambda np, x: np.nancumprod(x),
    "nancumsum": lambda np, x: np.nancumsum(x, axis=0),
    "nanmean": lambda np, x: np.nanmean(x, axis=0),
    "nanmedian": lambda np, x: np.nanmedian(x),
    "nanmedian rows": lambda np, x: np.nanmedian(x, axis=-1),
    "nanmin": lambda np, x: np.nanmin(x, axis=0),
    "nanpercentile": lambda np, x: np.nanpercentile(x, 30, axis=0),
    "nanprod": lambda np, x: np.nanprod(x),
    "nanquantile": lambda np, x: np.nanquantile(x, 0.3),
    "nanstd": lambda np, x: np.nanstd(x, axis=0),
    "nanvar": lambda np, x: np.nanvar(x),
    "nansum": lambda np, x: np.nansum(x),
    "negative": lambda np, x: -x,
    "pad": lambda np, x: np.pad(x, 2),
    "pad mean": lambda np, x: np.pad(x, 2, mode="mean"),
    "pad maximum": lambda np, x: np.pad(x, 1, mode="maximum"),
    "pad minimum large": lambda np, x: np.pad(~np.abs(x) << 40 | 1, 1, mode="minimum"),
    "histogramdd": lambda np, x: np.histogramdd([x, x], (2, 3), [[-4, 4], [-5, 5]])[0],
    "histogramdd points": lambda np, x: np.histogramdd(x, 3)[0],
    "partition": lambda np, x: np.partition(x, 1),
    "percentile": lambda np, x: np.percentile(x, [20, 60]),
    "prod": lambda np, x: np.prod(x),
    "prod none": lambda np, x: np.prod(x, axis=()),
    "ptp": lambda np, x: np.ptp(x, axis=0),
    "putmask": lambda np, x: _after(x, lambda a: np.putmask(a, a == a, [1, 2])),
    "put_along_axis": lambda np, x: _after(np.zeros(9), lambda a: np.put_along_axis(a, x, 5, None)),
    "put_along_axis turned": lambda np, x: _after(
        x, lambda a: np.put_along_axis(a.T, np.array([1]), 5, None)
    ),
    "quantile": lambda np, x: np.quantile(x, numpy.float32(0.3)),
    "quantile many": lambda np, x: np.quantile(x, numpy.array([0.3, 0.5], "f4")),
    "ravel_multi_index": lambda np, x: np.ravel_multi_index((x, x), (9, 9)),
    "real": lambda np, x: np.real(x),
    "repeat": lambda np, x: np.repeat(x, 2),
    "roll": lambda np, x: np.roll(x, 1, axis=0),
    "roll two": lambda np, x: np.roll(x, [[1, 2]], axis=0),
    "round": lambda np, x: np.round(x, 1),
    "searchsorted": lambda np, x: np.searchsorted(np.sort(x.ravel()), x),
    "select": lambda np, x: np.select([x == 1, x == 2], [x, 2 * x], default=9),
    "sign": lambda np, x: np.sign(x),
    "sinc": lambda np, x: np.sinc(x),
    "sort": lambda np, x: np.sort(x, axis=0),
    "sort_complex": lambda np, x: np.sort_complex(x),
    "setdiff1d": lambda np, x: np.setdiff1d(x, x.ravel()[:2]),
    "subtract": lambda np, x: x - x[..., ::-1],
    "square": lambda np, x: np.square(x),
    "std": lambda np, x: np.std(x),
    "std O": lambda np, x: np.std(x, axis=0, dtype=object),
    "std i8": lambda np, x: np.std(x, dtype="i8"),
    "std f4": lambda np, x: np.std(x, axis=0, dtype="f4"),
    "sum": lambda np, x: np.sum(x, axis=0),
    "sum f4": lambda np, x: np.sum(x, dtype="f4"),
    "sum initial": lambda np, x: np.sum(x, initial=[2, 3]),
    "sum initial out": lambda np, x: np.sum(x, axis=0, initial=0.5, out=np.zeros(x.shape[1:])),
    "take": lambda np, x: np.take(x, [0, 0]),
    "take at": lambda np, x: np.take([4, 5, 6, 7, 8, 9], x, mode="clip"),
    "take_along_axis": lambda np, x: np.take_along_axis(x, np.zeros((1, 2), int), 0),
    "take_along_axis line": lambda np, x: np.take_along_axis(np.arange(9), x, None),
    "tensordot": lambda np, x: np.tensordot(x, x, 0),
    "trace": lambda np, x: np.trace(x),
    "trapezoid": lambda np, x: np.trapezoid(x),
    "trunc": lambda np, x: np.trunc(x),
    "union1d": lambda np, x: np.union1d(x, x),
    "unique": lambda np, x: np.unique(x),
    "unique counts": lambda np, x: np.unique(x, return_counts=True, return_inverse=True, return_index=True),
    "unravel_index": lambda np, x: np.unravel_index(x, (9, 9)),
    "unwrap": lambda np, x: np.unwrap(x),
    "var": lambda np, x: np.var(x, axis=0, ddof=1),
    "var O": lambda np, x: np.var(x, axis=0, dtype=object),
    "where": lambda np, x: np.where(x == 1, x, 2.5),
}

CALLS |= {
    "append": lambda np, x: np.append(x, x),
    "argwhere": lambda np, x: np.argwhere(x),
    "array_split": lambda np, x: np.array_split(x, 2, axis=-1),
    "block": lambda np, x: np.block([[x, x], [x, x]]),
    "column_stack": lambda np, x: np.column_stack([x, x]),
    "compress": lambda np, x: np.compress([True, False, True], x),
    "convolve": lambda np, x: np.convolve(x, x[:2]),
    "correlate": lambda np, x: np.correlate(x, x[:2]),
    "cov": lambda np, x: np.cov(x),
    "cross": lambda np, x: np.cross(x[..., :3], x[..., :3]),
    "cumulative_prod": lambda np, x: np.cumulative_prod(x, axis=0),
    "cumulative_sum": lambda np, x: np.cumulative_sum(x, axis=0, include_initial=True),
    "delete": lambda np, x: np.delete(x, [0, 2], axis=-1),
    "det": lambda np, x: np.linalg.det(x),
    "diag": lambda np, x: np.diag(x),
    "diagonal": lambda np, x: np.diagonal(x, 1),
    "dot": lambda np, x: np.dot(x, x.T),
    "eigvalsh": lambda np, x: np.linalg.eigvalsh(x + x.T),
    "extract": lambda np, x: np.extract(x == x, x),
    "flatnonzero": lambda np, x: np.flatnonzero(x),
    "full_like": lambda np, x: np.full_like(x, 3),
    "geomspace": lambda np, x: np.geomspace(x, 7, 5),
    "histogram2d": lambda np, x: np.histogram2d(x, x, 3),
    "i0": lambda np, x: np.i0(x),
    "inner": lambda np, x: np.inner(x, x),
    "intersect1d": lambda np, x: np.intersect1d(x, x[1:]),
    "inv": lambda np, x: np.linalg.inv(x + 20 * np.eye(4)),
    "isreal": lambda np, x: np.isreal(x),
    "matrix_power": lambda np, x: np.linalg.matrix_power(x, 3),
    "matrix_rank": lambda np, x: np.linalg.matrix_rank(x),
    "meshgrid": lambda np, x: np.meshgrid(x, x),
    "nonzero": lambda np, x: np.nonzero(x),
    "norm": lambda np, x: np.linalg.norm(x),
    "norm columns": lambda np, x: np.linalg.norm(x, axis=0),
    "outer": lambda np, x: np.outer(x, x),
    "packbits": lambda np, x: np.packbits(x),
    "piecewise": lambda np, x: np.piecewise(x, [x == 1], [7, lambda v: v]),
    "place": lambda np, x: _after(x, lambda a: np.place(a, a == a, [1, 2])),
    "matvec": lambda np, x: np.matvec(x, x[..., 0, :] if x.ndim > 1 else x),
    "matvec of matrices": lambda np, x: np.matvec(x, x),
    "poly": lambda np, x: np.poly(np.atleast_1d(x)),
    "polyadd": lambda np, x: np.polyadd(x, x[1:]),
    "polyder": lambda np, x: np.polyder(x),
    "polydiv": lambda np, x: np.polydiv(x.ravel(), x.ravel()[:2]),
    "polyint": lambda np, x: np.polyint(x),
    "polymul": lambda np, x: np.polymul(x, x[1:]),
    "polyval": lambda np, x: np.polyval(x, 2),
    "put": lambda np, x: _after(x, lambda a: np.put(a, [0, 1], [1, 2])),
    "real_if_close": lambda np, x: np.real_if_close(x),
    "resize": lambda np, x: np.resize(x, (3, 2)),
    "roots": lambda np, x: np.sort_complex(np.roots(np.atleast_1d(x))),
    "setxor1d": lambda np, x: np.setxor1d(x, x[1:]),
    "slogdet": lambda np, x: np.linalg.slogdet(x),
    "solve": lambda np, x: np.linalg.solve(x + 20 * np.eye(4), x),
    "svdvals": lambda np, x: np.linalg.svdvals(x),
    "tile": lambda np, x: np.tile(x, (2, 2)),
    "triu": lambda np, x: np.triu(x, 1),
    "trim_zeros": lambda np, x: np.trim_zeros(x),
    "unique_all": lambda np, x: np.unique_all(x),
    "unique axis": lambda np, x: np.unique(x, axis=0),
    "unique axes": lambda np, x: np.unique(x, axis=(0, 1)),
    "unpackbits": lambda np, x: np.unpackbits(x, axis=0),
    "vander": lambda np, x: np.vander(x),
    "vdot": lambda np, x: np.vdot(x, x),
    "vecdot": lambda np, x: np.vecdot(x, x),
    "vecmat": lambda np, x: np.vecmat(x[..., 0] if x.ndim > 1 else x, x),
    "vecmat of vectors": lambda np, x: np.vecmat(x, x),
    **{f"norm {p}": _norm(p) for p in (0, 1, -1, 3, numpy.inf, "fro")},
    **{f"ufunc {n}": _of_one(n) for n in UFUNCS[1]},
    **{f"ufunc {n}": _of_two(n) for n in UFUNCS[2]},
    **{f"ufunc {n} number": _with_number(n) for n in UFUNCS[2]},
}


def _after(a: Any, change: Callable[[Any], Any]) -> Any:
    """An array after a change in place."""
    change(a)
    return a


def _values(dtype: str, shape: tuple[int, ...], has_holes: bool) -> Any:
    """Elements in no order; some of them no numbers, and infinite ones among floats."""
    count = int(numpy.prod(shape))
    found = (numpy.arange(count) * 3 % 7).astype(dtype)
    if numpy.dtype(dtype).kind in "ifcg":
        found[1::3] = -found[1::3]
    if numpy.dtype(dtype).kind == "c":
        found[::2] += 2j
    if has_holes:
        found[1::4] = "NaT" if found.dtype.kind in "mM" else numpy.nan
        found[2::5] = found[2::5] if found.dtype.kind in "mM" else numpy.inf
    return found.reshape(shape)


FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "array": lambda np, x: np.array(x),
    "list": lambda np, x: x.tolist(),
    "NumPy's array": lambda np, x: numpy.asfortranarray(x),
}
"""As what the elements are given."""
NOT_AS_LISTS = {"array_split", "trim_zeros", "unravel_index"}
"""For which NumPy takes a list's length as that of every axis, or ends in an error of its own."""


def _said(np: Any, call: Callable[[Any, Any], Any], case: Case, form: str) -> Any:
    """What a call gives, as NumPy's arrays; or the class of its exception, as NumPy's users know it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            given = call(np, FORMS[form](np, _values(*case)))
            many = given if isinstance(given, tuple | list) else [given]
            return [(numpy.asarray(g), isinstance(g, numpy.generic)) for g in many]
        except Exception as error:  # noqa: BLE001 (its class is the answer)
            return type(error)


def _is_a(got: type, wanted: type) -> bool:
    """Whether whoever catches NumPy's exception catches ours; NumPy's own subclasses are not promised."""
    return issubclass(
        got, next(t for t in wanted.__mro__ if t.__module__ in ("builtins", "numpy.exceptions"))
    )


def _differs(got: Any, wanted: Any) -> Iterator[str]:
    if isinstance(got, type) or isinstance(wanted, type):
        if not (isinstance(got, type) and isinstance(wanted, type) and _is_a(got, wanted)):
            yield f"{got} for {wanted}"
        return
    if len(got) != len(wanted):
        yield f"{len(got)} results for {len(wanted)}"
        return
    for (g, is_scalar), (w, is_numpys) in zip(got, wanted, strict=True):
        if is_scalar != is_numpys and w.dtype.kind in "biufc":
            yield f"{'a scalar' if is_scalar else 'an array'} of {g.dtype} {g.shape}"
        if (g.dtype, g.shape) != (w.dtype, w.shape):
            yield f"{g.dtype} {g.shape} for {w.dtype} {w.shape}"
        elif g.dtype.kind in "fc":
            rough = 1e-2 if g.dtype.itemsize < 4 else 1e-5
            if not numpy.allclose(g, w, rtol=rough, atol=rough, equal_nan=True):
                yield f"{g} for {w}"
        elif g.dtype.hasobject:
            if repr(g.tolist()) != repr(w.tolist()):
                yield f"{g} for {w}"
        elif not ((g == w) | ((g != g) & (w != w))).all():
            yield f"{g} for {w}"


@pytest.mark.some(60)
@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(name, mode):
    """A part of the cases, another one each time; `python -m tests.numpy_parity.test_every_dtype` is all."""
    form = random.choice(["array", *FORMS])
    asked = cases(name, form)
    found = differences(name, random.sample(asked, min(DRAWN, len(asked))), form)
    assert not found, "\n".join(found)


def cases(name: str, form: str) -> list[Case]:
    """All that a call is asked for; a list has axes, and no elements that Python has other numbers for."""
    every = [(*c, False) for c in product(DTYPES, SHAPES)] + [(*c, True) for c in product(WITH_HOLES, SHAPES)]
    without = {(d, has) for d in WITHOUT.get(name, ()) for has in (False, True)}
    without |= {(d, True) for d in WITHOUT_HOLES.get(name, ())}
    if form == "list":
        without |= {(d, has) for d in ("g", "O", *TIMES) for has in (False, True)}
        every = [c for c in every if c[1] and name not in NOT_AS_LISTS]
    return [c for c in every if (c[0], c[2]) not in without]


def differences(name, cases, form):
    """Where a call differs from NumPy's."""
    call = CALLS[name]
    found = []
    for case in cases:
        wanted = _said(numpy, call, case, form)
        if form == "list" and wanted is AttributeError:  # a list is not what the call is for
            continue
        found += [f"{name} {case} {form}: {d}" for d in _differs(_said(np, call, case, form), wanted)]
    return found


if __name__ == "__main__":
    for small_bytes in (np.config.small_bytes, 0):
        with np.config.override(small_bytes=small_bytes):
            for name, form in product(sys.argv[1:] or CALLS, FORMS):
                for line in differences(name, cases(name, form), form):
                    print("lazy:" if not small_bytes else "eager:", line)
