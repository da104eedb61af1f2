"""Numbers and elements are written where a mask is true, as NumPy writes them, whatever the mask is like."""

from __future__ import annotations

import random
from functools import partial

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from tests.api.test_shared_functions import elements, told

SIZES = [(5000,), (60, 70), (4, 5, 300), (4096,), (4095,), (70_001,), (40_000, 8), (3,), (0,), (16_384,)]
MASKS = {
    "random": lambda rng, n: rng.random(n) < 0.5,
    "few": lambda rng, n: rng.random(n) < 0.01,
    "most": lambda rng, n: rng.random(n) < 0.99,
    "blocks": lambda rng, n: numpy.arange(n) // 77 % 2 == 0,
    "all": lambda rng, n: numpy.ones(n, bool),
    "none": lambda rng, n: numpy.zeros(n, bool),
    "odd": lambda rng, n: rng.integers(0, 3, n).astype("u1").view(bool),
}
"""Truths of a number of elements; odd ones are neither 0 nor 1, as other arrays' memory may be seen."""
NUMBERS = [2, -1, 2.5, 1e300, 300, 1j, True, float("nan"), 1 << 40, numpy.float32(3), numpy.int8(-3)]


def write(space, a, m, v, way):
    """The array after a write by a mask."""
    a, m = space.array(a), space.array(m)
    if way == "in place":
        a[m] += v
    elif way == "of its own":
        a[m] = a[~m][: int(m.sum())] if a.ndim else a
    elif way == "pending":
        lazy = a * 2
        a[m] = v
        a = a + lazy
    elif way == "part":
        a.reshape(-1)[2:-3][m.reshape(-1)[1:-4]] = v
    else:
        a[m] = v
    return a


def is_same(found, expected):
    """The same answer, or an error of ours that is one of NumPy's."""
    if isinstance(expected[0], type) and isinstance(found[0], type):
        return issubclass(found[0], expected[0])
    return found[0] == expected[0]  # sums and products elsewhere warn in their own way


@pytest.mark.slow
def test_answers_are_numpys_to_the_bit(request):
    """Values of any dtype, as many as there are truths or another number of them."""
    draw = random.Random(request.config.option.seed)
    for _ in range(250):
        shape = draw.choice(SIZES)
        rng = numpy.random.default_rng(draw.randrange(1000))
        a = elements(shape, draw.choice("fdFDilB?"), draw.randrange(1000))
        m = MASKS[draw.choice([*MASKS])](rng, a.size).reshape(shape)
        v = draw.choice(NUMBERS)
        if draw.random() < 0.5:
            count = int(numpy.count_nonzero(m)) + (draw.choice([0, 1, -1]) if draw.random() < 0.1 else 0)
            dtype = a.dtype.char if draw.random() < 0.8 else draw.choice("fdl")
            v = elements(max(count, 0), dtype, draw.randrange(1000))
        way = draw.choice(["", "", "", "in place", "of its own", "pending", "part"])
        ours = v if not isinstance(v, numpy.ndarray) or draw.random() < 0.2 else np.array(v)
        expected, found = (told(partial(write, s, a, m, x, way)) for s, x in ((numpy, v), (np, ours)))
        assert is_same(found, expected), (a.shape, a.dtype, way, v)


@pytest.mark.parametrize("dtype", "dB?")
def test_memory_that_is_read_and_written(dtype):
    """What is written, or where it goes, is a part of the array itself."""
    base = elements((6000,), dtype, 2)
    for n in (0, 1, 1000, 3000):

        def shifted(space, n=n):
            a = space.array(base)
            m = space.arange(a.size) >= n
            a[m] = a[: a.size - n]
            return a

        assert told(lambda: shifted(np)) == told(lambda: shifted(numpy))
    flags = elements((6000,), "?", 5)

    def own(space):
        a = space.array(flags)
        a[a] = False
        a[~a] = True
        a[1:][a[:-1]] = False
        return a

    assert told(lambda: own(np)) == told(lambda: own(numpy))


def test_what_must_not_be_written_to():
    a = np.arange(6000.0)
    m = np.arange(6000) % 3 == 0
    a.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        a[m] = 1
    b = np.arange(6000.0)
    before, _ = b.copy(), b[5:]
    lazy = np.where(m, b, 0.0)
    b[m] = -1
    assert numpy.array_equal(lazy, numpy.where(numpy.asarray(m), numpy.asarray(before), 0))


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
def test_threads_share_large_masks():
    """Whichever thread has which piece; and values that are too few are left to NumPy."""
    rng = numpy.random.default_rng(3)
    a, m = rng.random(2_000_000), rng.random(2_000_000) < 0.3
    for v in (7.5, rng.random(int(m.sum()))):
        expected, found = a.copy(), a.copy()
        expected[m] = v
        quick.put(found, m, v)
        assert numpy.array_equal(found, expected)
    with pytest.raises(ValueError, match="cannot assign"):
        quick.put(a, m, numpy.zeros(5))
    with pytest.raises(TypeError):
        quick.put([1], m, 2)
