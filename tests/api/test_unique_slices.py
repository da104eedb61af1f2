"""Distinct slices along an axis are NumPy's, however many elements they have."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.session import Session

rng = numpy.random.default_rng(0)
DTYPES = ["i8", "f8", "f4", "c16", "u1", "?", "U2", "M8[s]"]
SHAPES = [(0, 3), (3, 0), (1, 1), (7, 1), (7, 5), (6, 3, 2), (2, 5, 4)]


def drawn(shape, dtype, of):
    """Few values, so that slices are equal, some of them NaN."""
    numbers = rng.integers(0, of, shape)
    if dtype == "U2":
        return numbers.astype(str)
    found = numbers.astype(dtype)
    if found.dtype.kind in "fc":
        found[numbers == of - 1] = numpy.nan
    return found


@pytest.mark.some(8)
@pytest.mark.parametrize("of", [2, 3, 50])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_slices_are_numpys(dtype, shape, of):
    x = drawn(shape, dtype, of)
    for axis in range(len(shape)):
        wanted = _all(numpy, x, axis)
        with config.override(small_bytes=0):
            found = _all(np, np.array(x), axis)
        if isinstance(wanted, type):
            assert found is wanted
        else:
            for w, f in zip(wanted, found, strict=True):
                numpy.testing.assert_array_equal(numpy.asarray(f), w)


def _all(xp, x, axis):
    try:
        return xp.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    except ValueError:
        return ValueError


@pytest.mark.slow
def test_wide_slices_are_ranked_in_few_steps(monkeypatch):
    """Slices that come twice are compared to their end: the steps grow with the logarithm of it, squared."""
    x = numpy.repeat(rng.integers(0, 2, (10, 256)), 2, axis=0)
    plans = []
    run = Session._plan_and_run

    def counted(*arguments, **keywords):
        plans.append(arguments)
        return run(*arguments, **keywords)

    monkeypatch.setattr(Session, "_plan_and_run", counted)
    with config.override(small_bytes=0):
        numpy.testing.assert_array_equal(np.unique(np.array(x), axis=0), numpy.unique(x, axis=0))
    assert len(plans) < 100
