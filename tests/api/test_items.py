"""Loops over elements: values as NumPy's, and what else an item write must not change."""

from __future__ import annotations

import numpy
import pytest

import spartan_ng as np


def test_loop_as_numpys(mode):
    a, b = np.zeros((4, 4)), numpy.zeros((4, 4))
    for m in (a, b):
        for i in range(4):
            for j in range(1, 4):
                m[i, j] = m[i, j - 1] * 2 + i - 1.5
                m[i, j] /= 2
    numpy.testing.assert_array_equal(a, b)


def test_a_write_leaves_captured_values_alone(mode):
    a = np.arange(4.0)
    b = np.asarray(a) + 1
    c = a.copy()
    lazy = np.config
    with lazy.override(small_bytes=0):
        d = a * 2
    a[1] = 9
    assert (b.tolist(), c.tolist(), d.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 3], [0, 2, 4, 6])


def test_a_write_leaves_a_numpy_source_alone(mode):
    source = numpy.arange(3.0)
    a = np.array(source)
    a[0] = 5
    assert source[0] == 0


@pytest.mark.parametrize(("key", "error"), [(9, IndexError), ((0, 0), IndexError), ("x", IndexError)])
def test_bad_items(mode, key, error):
    with pytest.raises(error):
        np.arange(4.0)[key] = 1


def test_values_are_cast_as_numpys(mode):
    a = np.arange(3)
    a[0] = 2.7
    assert a.tolist() == [2, 1, 2]
    with pytest.raises(TypeError):
        a[0] = 1j
    with pytest.raises(OverflowError):
        np.zeros(2, "i1")[0] = 300
