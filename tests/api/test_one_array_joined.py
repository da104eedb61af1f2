"""One array given as a sequence of its rows: joined without thousands of arrays, as NumPy joins the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

SHAPES = [(0,), (3,), (2, 3), (1, 3), (3, 1), (0, 3), (2, 3, 4), (3, 0, 2), (2, 3, 2, 2), ()]
TURNS: dict[str, Any] = {
    "c": lambda a: a,
    "fortran": numpy.asfortranarray,
    "turned": lambda a: a.T,
    "backwards": lambda a: a[::-1] if a.ndim else a,
}


def _in_out(m: Any, a: Any) -> Any:
    out = m.zeros((a.size // a.shape[-1], a.shape[-1]) if a.ndim > 2 and a.size else a.size, a.dtype)
    m.concatenate(a, out=out)
    return out


def _own(m: Any, a: Any) -> Any:
    m.concatenate(a)[...] = 7
    return a.copy()


CALLS: dict[str, Any] = {
    **{f"concatenate {n}": lambda m, a, n=n: m.concatenate(a, n) for n in (None, 0, 1, 2, -1, -2, 3)},
    **{f"stack {n}": lambda m, a, n=n: m.stack(a, n) for n in (0, 1, 2, -1, -2, 3)},
    **{
        name: lambda m, a, name=name: getattr(m, name)(a)
        for name in ("vstack", "hstack", "dstack", "column_stack")
    },
    "as doubles": lambda m, a: m.concatenate(a, dtype="f8"),
    "as what cannot be": lambda m, a: m.concatenate(a, dtype="i2"),
    "as what has to be": lambda m, a: m.stack(a, dtype="i2", casting="unsafe"),
    "in an output": _in_out,
    "written to": _own,
}


def _found(call: Any, m: Any, a: Any) -> Any:
    try:
        return call(m, a)
    except Exception as error:  # noqa: BLE001 - NumPy's errors, whatever they are
        return error


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_joined_as_numpy_joins_them(shape: Any, turn: str) -> None:
    x = TURNS[turn](numpy.arange(math.prod(shape), dtype="i4").reshape(shape))
    for name, call in CALLS.items():
        expected = _found(call, numpy, x)
        with config.override(small_bytes=0):
            found = _found(call, np, np.asarray(x.copy("K")))
            if isinstance(expected, Exception):
                assert isinstance(found, type(expected)), name
                continue
            seen = numpy.asarray(found)
        assert seen.dtype == expected.dtype, name
        numpy.testing.assert_array_equal(seen, expected, name)
        assert found.flags.f_contiguous == expected.flags.f_contiguous, name
        assert found.flags.c_contiguous == expected.flags.c_contiguous, name


@pytest.mark.slow
def test_no_row_becomes_an_array(monkeypatch: pytest.MonkeyPatch) -> None:
    def iterated(self: Any) -> Any:
        raise AssertionError("row by row")

    monkeypatch.setattr(np.ndarray, "__iter__", iterated)
    x = np.from_function(lambda at: numpy.ones([b - a for a, b in at]), (10**6, 10), numpy.float64)
    assert np.concatenate(x).shape == (10**7,)
    assert np.stack(x, 1).shape == (10, 10**6)
    assert np.hstack(x).shape == (10**7,)
    assert np.column_stack(x).shape == (10, 10**6)
    assert np.vstack(x).shape == (10**6, 10)
    assert np.dstack(x).shape == (1, 10, 10**6)
    assert float(np.concatenate(x).sum()) == 10**7
