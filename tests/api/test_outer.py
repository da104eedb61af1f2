"""`outer` of every universal function, on every kind of pair, is NumPy's."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np

OPERANDS: dict[str, Any] = {
    "line": numpy.array([1.5, -2.0, 3.0]),
    "plane": numpy.array([[1, 7], [3, 4]]),
    "turned": numpy.arange(12.0).reshape(3, 4)[::-1, 1:3].T,
    "bytes": numpy.array([200, 7], "u1"),
    "flags": numpy.array([True, False]),
    "point": numpy.array(5.0),
    "nothing": numpy.zeros((0, 2)),
    "number": numpy.float32(2.5),
    "list": [1, 2],
    "Python's": 3,
}
NAMES = sorted(n for n in np.__all__ if isinstance(getattr(numpy, n, None), numpy.ufunc))


def outcome(function: Any, a: Any, b: Any, **keywords: Any) -> Any:
    """An array, or the kind of the error."""
    try:
        return numpy.asarray(function.outer(a, b, **keywords))
    except (TypeError, ValueError, RuntimeError) as error:
        return {TypeError, ValueError, RuntimeError}.intersection(type(error).__mro__)


def ours(a: Any) -> Any:
    """NumPy's arrays and numbers as ours."""
    if isinstance(a, numpy.generic):
        return np.array([a])[0]
    return np.array(a) if isinstance(a, numpy.ndarray) else a


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(60)
@pytest.mark.parametrize("name", NAMES)
def test_outer_is_numpys(mode: str, name: str, some: Any) -> None:
    theirs, mine = getattr(numpy, name), getattr(np, name)
    for a, b in some([(a, b) for a in OPERANDS for b in OPERANDS], 6):
        expected = outcome(theirs, OPERANDS[a], OPERANDS[b])
        found = outcome(mine, ours(OPERANDS[a]), ours(OPERANDS[b]))
        if isinstance(expected, set):
            assert found == expected, (a, b)
        else:
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (a, b)
            rtol = 1e-3 if expected.dtype == "f2" else 1e-6
            numpy.testing.assert_allclose(found, expected, rtol=rtol, err_msg=f"{a}, {b}")


def test_outer_takes_keywords(mode: str) -> None:
    x, out = np.arange(3.0), np.zeros((3, 3), "f4")
    assert np.add.outer(x, x, dtype="f4").dtype == "f4"
    assert np.multiply.outer(x, x, out=out) is out
    assert out.tolist() == [[0, 0, 0], [0, 1, 2], [0, 2, 4]]
