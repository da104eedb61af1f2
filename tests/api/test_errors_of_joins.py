"""Functions of two arrays along an axis, which may not fit: NumPy's kind of error, or NumPy's answer."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np

SHAPES = [(), (2,), (2, 1), (1, 2), (2, 2), (2, 3, 1), (0,), (0, 2)]
CALLS = {
    "concatenate": lambda xp, a, b, axis: xp.concatenate([a, b], axis=axis),
    "stack": lambda xp, a, b, axis: xp.stack([a, b], axis=axis),
    "append": lambda xp, a, b, axis: xp.append(a, b, axis=axis),
    "insert": lambda xp, a, b, axis: xp.insert(a, 1, b, axis=axis),
    "cross": lambda xp, a, b, axis: xp.cross(a, b, axis=axis),
    "vecdot": lambda xp, a, b, axis: xp.vecdot(a, b, axis=axis),
    "take_along_axis": lambda xp, a, b, axis: xp.take_along_axis(a, b.astype(int), axis),
    "digitize": lambda xp, a, b, axis: xp.digitize(a, b),
    "searchsorted": lambda xp, a, b, axis: xp.searchsorted(a, b),
    "trapezoid": lambda xp, a, b, axis: xp.trapezoid(a, b, axis=axis or 0),
    "gradient": lambda xp, a, b, axis: xp.gradient(a, axis=axis),
    "average": lambda xp, a, b, axis: xp.average(a, weights=b + 1, axis=axis),
    "tensordot": lambda xp, a, b, axis: xp.tensordot(a, b, axes=axis),
    "hstack": lambda xp, a, b, axis: xp.hstack([a, b]),
    "vstack": lambda xp, a, b, axis: xp.vstack([a, b]),
    "dstack": lambda xp, a, b, axis: xp.dstack([a, b]),
    "column_stack": lambda xp, a, b, axis: xp.column_stack([a, b]),
    "block": lambda xp, a, b, axis: xp.block([[a, b], [b, a]]),
    "compress": lambda xp, a, b, axis: xp.compress(b, a, axis=axis),
    "delete": lambda xp, a, b, axis: xp.delete(a, b.astype(bool), axis=axis),
    "array_split": lambda xp, a, b, axis: xp.array_split(a, b.astype(int), axis=axis),
    "repeat": lambda xp, a, b, axis: xp.repeat(a, b.astype(int), axis=axis),
}
AXES = (None, -3, -2, -1, 0, 1, 2, 3)
CASES = [(a, b, axis) for a, b in product(SHAPES, SHAPES) for axis in AXES]
KINDS = (numpy.exceptions.AxisError, IndexError, TypeError, ValueError, ZeroDivisionError)


def _outcome(xp, call, case):
    a, b, axis = case
    try:
        found = call(xp, xp.array(numpy.zeros(a)), xp.array(numpy.zeros(b)), axis)
    except KINDS as error:
        return next(kind.__name__ for kind in KINDS if isinstance(error, kind))
    several = isinstance(found, list | tuple)
    return [numpy.shape(x) for x in found] if several else (numpy.shape(found), numpy.asarray(found).dtype)


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_what_may_not_fit_is_refused_as_numpy_refuses_it(name, small, some):
    with np.config.override(small_bytes=small):
        for case in some(CASES, 60):
            wanted, found = (_outcome(xp, CALLS[name], case) for xp in (numpy, np))
            named = found == "AxisError" and wanted in ("ValueError", "IndexError")  # it is both
            assert found == wanted or named, case
