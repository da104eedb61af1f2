"""Every public function, and a write to all that it was given before anybody looks at what it gives.

A result that NumPy computes at the call is what it was; one that is a view shows what was written.
"""

from __future__ import annotations

import copy
import warnings
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.numpy_parity import calls, spaces
from tests.numpy_parity.operands import Call, changed, operands

BESIDE: dict[str, Call] = {
    "apply_along_axis": lambda np, o: np.apply_along_axis(lambda x, y: x + y, 0, o.v, o.w),
    "bincount": lambda np, o: np.bincount(o.i, weights=o.w),
    "choose": lambda np, o: np.choose(o.flags.astype(int), [o.v, o.w]),
    "clip": lambda np, o: np.clip(o.v, o.w, o.w + 1),
    "convolve": lambda np, o: np.convolve(o.v, o.line[:5]),
    "delete": lambda np, o: np.delete(o.v, o.places),
    "digitize": lambda np, o: np.digitize(o.v, o.line),
    "frompyfunc": lambda np, o: np.frompyfunc(lambda x, y: x + y, 2, 1)(o.v, o.w).astype(float),
    "gradient": lambda np, o: np.gradient(o.v, o.line),
    "histogram": lambda np, o: np.histogram(o.v, o.line[::9], weights=o.w)[0],
    "histogram2d": lambda np, o: np.histogram2d(o.v, o.w, [o.line[::9], o.line[::99]])[0],
    "histogramdd": lambda np, o: np.histogramdd(o.v[:, None], [o.line[::9]])[0],
    "insert": lambda np, o: np.insert(o.v, o.places, o.w),
    "interp": lambda np, o: np.interp(o.v, o.line, o.w),
    "isin": lambda np, o: np.isin(o.i, o.j[:7]),
    "map": lambda np, o: np.vectorize(lambda x, y: x * y)(o.v, o.w),
    "percentile": lambda np, o: np.percentile(o.v, o.line[:5] * 100),
    "piecewise": lambda np, o: np.piecewise(o.v, [o.flags], [lambda x: -x, 3]),
    "polyval": lambda np, o: np.polyval(o.line[:4], o.v),
    "repeat": lambda np, o: np.repeat(o.v, o.i),
    "searchsorted": lambda np, o: np.searchsorted(o.line, o.v, sorter=np.argsort(o.line)),
    "select": lambda np, o: np.select([o.flags, o.v > 1], [o.v, o.w], o.line),
    "set": lambda np, o: changed(o.v, lambda a: a.__setitem__(o.places, o.w)),
    "set by mask": lambda np, o: changed(o.v, lambda a: a.__setitem__(o.flags, o.w[o.flags])),
    "take": lambda np, o: o.v[o.places] + np.take(o.w, o.places),
    "trapezoid": lambda np, o: np.trapezoid(o.v, o.line),
    "weighted quantile": lambda np, o: np.quantile(o.v, o.line[:3], weights=o.w, method="inverted_cdf"),
}
"""Calls that take arrays for what is often a number, a list or a few."""
CALLS = {
    f"{space}.{name}": call
    for space, table in (
        ("beside", BESIDE),
        ("numpy", calls.NUMPY),
        ("linalg", spaces.LINALG),
        ("fft", spaces.FFT),
    )
    for name, call in table.items()
}
VIEWS = {"numpy.asarray_chkfinite", "numpy.trim_zeros"}
"""Functions that give views of NumPy's arrays with NumPy, and copies here (docs/differences.md, Memory)."""
GIVEN = {
    "numpys": lambda x: x.copy(),
    "ours": lambda x: np.array(x),
    "ours, yet to be computed": lambda x: np.where(numpy.ones(x.shape, bool), x, x),
}


def _later(xp: Any, call: Call, make: Any) -> list[Any]:
    """What a call gives, looked at after zeros were written to all of its operands."""
    o = SimpleNamespace(**{name: make(v) for name, v in vars(operands()).items()})
    found = call(xp, o)
    for a in vars(o).values():
        a[...] = numpy.zeros((), a.dtype)
    return [numpy.asarray(f) for f in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.some(120)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_results_are_those_of_the_call(name, given, mode):
    if given == "numpys" and name in VIEWS:
        pytest.skip("a view of NumPy's array")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = _later(numpy, CALLS[name], copy.copy)
        found = _later(np, CALLS[name], GIVEN[given])
    for f, w in zip(found, wanted, strict=True):
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        if w.dtype.kind in "fc":
            numpy.testing.assert_allclose(f, w, rtol=1e-6, atol=1e-9)
        else:
            numpy.testing.assert_array_equal(f, w)
