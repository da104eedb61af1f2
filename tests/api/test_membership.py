"""What is in an array, of any kind in one of any other."""

from __future__ import annotations

from itertools import product

import numpy
import pytest

import spartan_ng as np

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
