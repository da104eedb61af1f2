"""NumPy's functions of other libraries' arrays: those with a method of a function's name are asked by it."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import spartan_ng as np

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("sum", "prod", "max", "min", "any", "all", "mean", "std", "var", "ptp"), ()),
    **dict.fromkeys(("cumsum", "cumprod", "round", "argmax", "argmin", "argsort", "sort", "median"), ()),
    **dict.fromkeys(("ravel", "squeeze", "transpose", "diagonal", "trace", "nonzero", "copy"), ()),
    "take": ([1, 0],),
    "clip": (1, 3),
    "reshape": ((4,),),
    "swapaxes": (0, 1),
    "repeat": (2,),
    "choose": ([numpy.zeros((2, 2)), numpy.ones((2, 2)), numpy.ones((2, 2)), numpy.ones((2, 2))],),
    "partition": (1,),
    "argpartition": (1,),
    "dot": (numpy.ones((2, 2)),),
}


@pytest.mark.some(50)
@pytest.mark.parametrize("has_method", [True, False])
@pytest.mark.parametrize("name", ARGUMENTS)
def test_methods_are_asked_where_numpy_asks_them(name, has_method, mode):
    class Theirs:
        def __array__(self, dtype=None, copy=None):
            return numpy.array([[0, 1], [3, 2]], dtype)

    if has_method:
        setattr(Theirs, name, lambda self, *args, **keywords: "theirs")
    wanted = getattr(numpy, name)(Theirs(), *ARGUMENTS[name])
    found = getattr(np, name)(Theirs(), *ARGUMENTS[name])
    if isinstance(wanted, str):
        assert found == wanted
    else:
        numpy.testing.assert_array_equal(numpy.asarray(found), wanted)
