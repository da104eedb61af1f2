"""NumPy's functions of other libraries' arrays: those with a method of a function's name are asked by it."""

from __future__ import annotations

import operator
from itertools import product
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


PYTHONS: dict[str, Any] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "less": operator.lt,
    "equal": operator.eq,
    "divmod": divmod,
    "matmul": operator.matmul,
}


@pytest.mark.parametrize("name", [*OPERATORS, "divmod", "matmul"])
def test_dask_takes_arrays_from_the_left_and_the_right(name, mode):
    """As it takes NumPy's: what comes out is dask's, and lazy."""
    chunked = pytest.importorskip("dask.array")
    x = numpy.arange(1.0, 13.0).reshape(3, 4)
    theirs, ours = chunked.from_array(x, chunks=2), np.asarray(x.T.copy() if name == "matmul" else x + 1)
    functions = [getattr(numpy, name), *filter(None, [PYTHONS.get(name)])]
    for function, turned in product(functions, [False, True]):
        wanted = function(*((numpy.asarray(ours), x) if turned else (x, numpy.asarray(ours))))
        found = function(*((ours, theirs) if turned else (theirs, ours)))
        for one, other in zip(*((found, wanted) if name == "divmod" else ([found], [wanted])), strict=True):
            assert isinstance(one, chunked.Array)
            numpy.testing.assert_allclose(one.compute(), other)


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


class _Derived(numpy.ndarray):
    """A class with NumPy's rules."""


BRINGS = {
    "masked": lambda: numpy.ma.array([9.0, 8.0, 7.0], mask=[False, True, False]),
    "derived": lambda: numpy.array([9.0, 8.0, 7.0]).view(_Derived),
    "matrix": lambda: numpy.asmatrix([[9.0, 8.0, 7.0]]),
}
WRITERS = {
    "copyto": lambda xp, np, b, m: np.copyto(b, m if m.ndim == 1 else m[0]),
    "put": lambda xp, np, b, m: np.put(b, [0, 2], m),
    "place": lambda xp, np, b, m: np.place(b, numpy.array([True, False, True]), m),
    "putmask": lambda xp, np, b, m: np.putmask(b, numpy.array([True, False, True]), m),
    "fill_diagonal": lambda xp, np, b, m: xp.fill_diagonal(b.reshape(1, 3), m),
    "at": lambda xp, np, b, m: np.add.at(b, [0, 0], m.ravel()[:2]),
    "in place": lambda xp, np, b, m: xp.apply_along_axis(lambda r: r.__iadd__(1), 0, b),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(16)
@pytest.mark.parametrize("small", [0, 1 << 20], ids=["lazy", "eager"])
@pytest.mark.parametrize("brought", BRINGS)
@pytest.mark.parametrize("writer", WRITERS)
def test_a_write_reaches_one_array(writer, brought, small):
    """The one that is named, by NumPy's function and by ours; no copy of it, and nothing made before."""
    makes = [lambda a: a.copy(), lambda a: a[:], lambda a: a, lambda a: a + 0]
    for make, is_numpys in product(makes, (False, True)):
        seen: list[Any] = []
        for xp in (numpy, np):
            with np.config.override(small_bytes=small):
                a = xp.array([3.0, 1.0, 2.0])
                before, total = a + 0, a.sum()
                b = make(a)
                try:
                    WRITERS[writer](xp, numpy if is_numpys else xp, b, BRINGS[brought]())
                except (TypeError, ValueError) as error:
                    seen.append(isinstance(error, TypeError))
                seen.append([str(a), str(b), str(before), float(total)])
        assert seen[len(seen) // 2 :] == seen[: len(seen) // 2]
