"""Folds of sliding windows make no windows."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.config import config
from spartan_ng.costs.choices import WINDOW_ELEMENTS
from spartan_ng.graph.node import Op, topological
from spartan_ng.optimizer.passes import run_passes
from spartan_ng.optimizer.pipeline import PASSES
from tests.sampling import examples

FOLDS = ("sum", "prod", "min", "max", "any", "all", "mean", "std", "argmax")
DTYPES = ("f8", "f4", "f2", "c16", "i4", "u1", "?")
DRAWN = numpy.random.default_rng(0)


def values(shape, dtype):
    x = DRAWN.integers(-3, 4, shape) / 2
    if numpy.dtype(dtype).kind == "f" and x.size:
        x.flat[DRAWN.integers(x.size)] = numpy.nan
    return x.astype(dtype) if numpy.dtype(dtype).kind != "u" else abs(x).astype(dtype)


def windows_made(x):
    roots = run_passes(PASSES, [x._node()], ())
    return sum(n.op is Op.JOIN_UPDATE and n.fn == "take" for n in topological(roots))


@examples(150)
@given(st.data())
def test_folds_of_windows_are_numpys(data):
    shape = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    length = data.draw(st.integers(1, shape[axis]))
    fold = data.draw(st.sampled_from(FOLDS))
    dtype = data.draw(st.sampled_from([d for d in DTYPES if fold != "argmax" or d != "c16"]))
    x = values(shape, dtype)
    along = data.draw(st.sampled_from([-1, len(shape), (-1, 0), 0]))
    along = along if fold != "argmax" or isinstance(along, int) else -1
    step = data.draw(st.sampled_from([1, 2]))

    def program(xp, x):
        seen = xp.lib.stride_tricks.sliding_window_view(x * 1 if dtype != "?" else x, length, axis)
        return getattr(seen[::step], fold)(axis=along) if fold != "mean" else seen[::step].mean(along)

    with config.override(small_bytes=0), numpy.errstate(all="ignore"):
        found, wanted = program(np, np.asarray(x)), program(numpy, x)
        numpy.testing.assert_allclose(found, wanted, rtol=3e-3 if dtype == "f2" else 1e-6, atol=1e-6)
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("fold", ["sum", "prod", "min", "max", "any", "all", "mean"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_window_is_made(fold, axis):
    with config.override(small_bytes=0):
        x = np.asarray(DRAWN.random((500, 400)))
        seen = np.lib.stride_tricks.sliding_window_view(x, 7, axis)
        assert windows_made(getattr(seen, fold)(axis=-1)) == 0
        assert windows_made(getattr(seen, fold)(axis=0)) == 1, "not the windows are folded"
        long = np.lib.stride_tricks.sliding_window_view(x, WINDOW_ELEMENTS + 1, axis)
        assert windows_made(getattr(long, fold)(axis=-1)) == 1


def test_last_bits_are_kept_where_they_are_to_be():
    x = DRAWN.random(1000).astype("f4")
    with config.override(small_bytes=0, reproducible=True):
        found = np.lib.stride_tricks.sliding_window_view(np.asarray(x), 9).sum(-1)
        again = np.lib.stride_tricks.sliding_window_view(np.asarray(x), 9)
        numpy.testing.assert_array_equal(found, np.asarray(numpy.asarray(again)).sum(-1))
