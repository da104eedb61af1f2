"""Windows that slide over an array: read-only views of it, as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import spartan_ng as np

X = numpy.arange(60.0).reshape(3, 4, 5)


@pytest.mark.parametrize("small_bytes", [0, 1 << 20])
@given(st.data())
def test_any_windows(small_bytes, data):
    ndim = data.draw(st.integers(1, 3))
    x = X[(0,) * (3 - ndim)]
    axes = data.draw(st.one_of(st.none(), st.lists(st.integers(-ndim, ndim - 1), min_size=1, max_size=3)))
    count = ndim if axes is None else len(axes)
    shape = data.draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    with np.config.override(small_bytes=small_bytes):
        a = np.array(x)
        try:
            wanted = sliding_window_view(x.copy(), tuple(shape), axes)
        except ValueError:
            with pytest.raises(ValueError, match=r"window|axes"):
                sliding_window_view(a, tuple(shape), axes)
            return
        got = sliding_window_view(a, tuple(shape), axes)
        assert got.shape == wanted.shape
        numpy.testing.assert_array_equal(numpy.asarray(got), wanted)
        a[...] = -a
        numpy.testing.assert_array_equal(numpy.asarray(got), -wanted)
        assert not got.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            got[...] = 1


def test_they_are_used_where_they_lie(mode):
    a = np.array(X) * 2
    w: Any = sliding_window_view(a, 3, axis=2)
    assert isinstance(w, np.ndarray)
    numpy.testing.assert_allclose(numpy.asarray(w.mean(-1)), sliding_window_view(X * 2, 3, axis=2).mean(-1))
    numpy.testing.assert_array_equal(
        numpy.asarray(w[1, :, 2]), sliding_window_view(X * 2, 3, axis=2)[1, :, 2]
    )


@pytest.mark.parametrize("xp", [np, numpy], ids=["ours", "numpy"])
def test_windows_to_write_to_write_to_the_array(xp):
    a = xp.arange(4)
    later = a * 2
    windows = sliding_window_view(a, 2, writeable=True)
    windows[1, 1] = 9
    numpy.testing.assert_array_equal(a, [0, 1, 9, 3])
    numpy.testing.assert_array_equal(windows, [[0, 1], [1, 9], [9, 3]])
    numpy.testing.assert_array_equal(later, [0, 2, 4, 6])
