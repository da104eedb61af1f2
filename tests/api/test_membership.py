"""What is in an array, of any kind in one of any other."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np
from spartan_ng.graph.node import topological

KINDS = {
    "integers": numpy.array([1, 3, 0]),
    "floats": numpy.array([1.0, 2.5]),
    "truths": numpy.array([True, False]),
    "texts": numpy.array(["1", "3", "x"]),
    "bytes": numpy.array([b"1", b"x"]),
    "dates": numpy.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "durations": numpy.array([1, 3], "m8[s]"),
    "objects": numpy.array([1, "x", None], object),
    "half": numpy.array([1, 3], "f2"),
    "complex": numpy.array([1, 2j]),
}


def _outcome(call):
    try:
        found = call()
    except TypeError:
        return "TypeError"
    return numpy.asarray(found).tolist()


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize(("one", "other"), list(product(KINDS, KINDS)))
@pytest.mark.some(60)
@pytest.mark.filterwarnings("ignore")
def test_membership_is_numpys(one, other, small):
    a, b = KINDS[one], KINDS[other]
    with np.config.override(small_bytes=small):
        x, y = np.array(a), np.array(b)
        for invert in (False, True):
            wanted = _outcome(lambda invert=invert: numpy.isin(a, b, invert=invert))
            assert _outcome(lambda invert=invert: np.isin(x, y, invert=invert)) == wanted
        assert _outcome(lambda: np.isin(x[0], y)) == _outcome(lambda: numpy.isin(a[0], b))
        wanted = _outcome(lambda: b[0] in a)
        if {one, other} == {"bytes", "texts"}:
            wanted = False  # NumPy (2.4) has none any more once np.equal was asked for them with a dtype
        assert _outcome(lambda: b[0] in x) == wanted
        assert _outcome(lambda: y[0] in x) == wanted


LIMITS = {code: numpy.iinfo(code) for code in ("i1", "u1", "i8", "u8", "i4")}


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize(("one", "other"), list(product(["i1", "u1", "i4", "i8", "u8", "?"], repeat=2)))
@pytest.mark.some(20)
def test_whole_numbers_near_each_other_and_far(one, other, invert):
    rng = numpy.random.default_rng(0)
    for spread in (3, 100, 1 << 62):
        a, b = (_numbers(rng, code, spread) for code in (one, other))
        for few in (b, b[:1], b[b > b.min()]):
            wanted = numpy.isin(a, few, invert=invert)
            with np.config.override(small_bytes=0):
                found = np.isin(np.array(a), np.array(few), invert=invert)
            assert found.dtype == bool
            numpy.testing.assert_array_equal(found, wanted)


def _numbers(rng, code, spread):
    """Numbers of a dtype, its ends among them where they are far apart."""
    if code == "?":
        return rng.integers(0, 2, (5, 60)).astype(bool)
    ends = LIMITS[code].min, LIMITS[code].max
    low, high = max(ends[0], -spread), min(ends[1], spread)
    found = rng.integers(low, high, (5, 60), code, endpoint=True)
    if spread > 1 << 60:
        found[0, :2] = ends
    return found


def test_whole_numbers_near_each_other_are_not_sorted():
    a, b = (np.array(numpy.random.default_rng(k).integers(-500, 500, 300)) for k in (0, 1))
    with np.config.override(small_bytes=0):
        near, far = np.isin(a, b), np.isin(a, b * 10**9)
        functions = [{n.fn for n in topological([x._node()])} for x in (near, far)]
    assert "along_axis" not in functions[0]
    assert "along_axis" in functions[1]
