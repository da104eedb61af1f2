"""NumPy's functions of other libraries' arrays: those with a method of a function's name are asked by it."""

from __future__ import annotations

import operator
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


OPERATORS = ("add", "subtract", "multiply", "divide", "power", "less", "equal", "maximum", "logaddexp")


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("name", OPERATORS)
def test_pandas_takes_arrays_from_the_left_and_the_right(name, small):
    """Of every shape that it takes of NumPy's, by the function and by the operator."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    operator_of = {"subtract": "sub", "multiply": "mul", "divide": "truediv", "power": "pow", "less": "lt"}
    ways = [lambda xp, a, b: getattr(xp, name)(a, b)]
    if name not in ("maximum", "logaddexp"):
        python = getattr(operator, {**operator_of, "equal": "eq"}.get(name, name))
        ways.append(lambda xp, a, b: python(a, b))
    with np.config.override(small_bytes=small):
        for theirs in (frame, frame["a"], pandas.Index([1.0, 2.0])):
            for value in (numpy.array([1.0, 2.0]), numpy.ones((2, 2)), numpy.array(3.0)):
                if value.ndim > 1 and theirs is not frame:
                    continue
                for k, way in enumerate(ways):
                    for a, b in ((value, theirs), (theirs, value)):
                        if k and a is frame and value.ndim != 1:
                            continue  # the operator is pandas' own, and tells NumPy's arrays by their class
                        wanted = way(numpy, a, b)
                        found = way(np, *(np.asarray(v) if v is value else v for v in (a, b)))
                        assert type(found) in (type(wanted), np.ndarray)
                        assert str(found) == str(wanted)


@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("copied", ["copy", "times one", "view"])
def test_what_pandas_brings_is_written_into_one_array(small, copied):
    """And not into the one that it is a copy of."""
    pandas = pytest.importorskip("pandas")
    makes = {"copy": lambda a: a.copy(), "times one": lambda a: a * 1, "view": lambda a: a[:]}
    writes = [
        lambda xp, b: xp.add.at(b, [0, 0], pandas.Series([1.0, 2.0])),
        lambda xp, b: xp.multiply.at(b, pandas.Series([1, 2]), 3.0),
        lambda xp, b: xp.add(b, pandas.Series([1.0, 2.0, 3.0]), out=b),
        lambda xp, b: xp.put(b, pandas.Series([1]), pandas.Series([9.0])),
        lambda xp, b: xp.copyto(b, pandas.Series([1.0, 2.0, 3.0])),
        lambda xp, b: xp.putmask(b, pandas.Series([True, False, True]), pandas.Series([4.0])),
        lambda xp, b: b.__setitem__(pandas.Series([0]), pandas.Series([5.0])),
    ]
    for write in writes:
        seen = []
        for xp in (numpy, np):
            with np.config.override(small_bytes=small):
                a = xp.array([3.0, 1.0, 2.0])
                b = makes[copied](a)
                write(xp, b)
                seen.append((str(a), str(b)))
        assert seen[1] == seen[0]
