"""Arrays of classes that are derived from NumPy's beside small ones of ours: their classes say what
NumPy's functions, operators and writes give, as beside NumPy's own, and no program's code runs twice."""

from __future__ import annotations

import operator
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from tests.api.test_small_calls import calls_of_ours


class Labelled(numpy.ndarray):
    """An array with a label, which results have of it."""

    label = "none"

    def __array_finalize__(self, other: Any) -> None:
        self.label = getattr(other, "label", "none")


class Asked(numpy.ndarray):
    """An array that says itself what functions give, and keeps how often it was asked."""

    times = 0

    def __array_ufunc__(self, ufunc: Any, method: Any, *inputs: Any, **kwargs: Any) -> Any:
        Asked.times += 1
        if ufunc is numpy.subtract:
            raise ValueError("no differences")
        plain = [i.view(numpy.ndarray) if isinstance(i, Asked) else i for i in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        Asked.times += 1
        if function is numpy.inner:
            raise LookupError("no products")
        return super().__array_function__(function, types, args, keywords)


def _masked(x: Any) -> Any:
    return numpy.ma.array(x, mask=numpy.arange(x.size).reshape(x.shape) % 3 == 1)


def _labelled(x: Any) -> Any:
    found = x.view(Labelled)
    found.label = "metres"
    return found


CLASSES: dict[str, Callable[[Any], Any]] = {
    "masked": _masked,
    "masked nowhere": lambda x: numpy.ma.array(x),
    "all masked": lambda x: numpy.ma.array(x, mask=True),
    "matrix": lambda x: numpy.matrix(x) if x.ndim < 3 else x.view(Labelled),
    "labelled": _labelled,
    "asked": lambda x: x.view(Asked),
}
DTYPES = ("f8", "f8", "i8", "c16", "f4", "?", "u1", ">f8", "M8[D]")
SHAPES = ((2, 2), (2,), (1, 2), (2, 1), (), (0,), (3,), (1, 2, 2))
Call = Callable[[Any, Any, Any], Any]


def _operator(name: str, right: bool = False) -> Call:
    return lambda np, a, m: getattr(operator, name)(*((m, a) if right else (a, m)))


def _of_both(name: str) -> Call:
    return lambda np, a, m: getattr(np, name)(a, m)


def _of_it(name: str) -> Call:
    return lambda np, a, m: getattr(np, name)(m)


CALLS: dict[str, Call] = {
    **{
        name: _operator(name)
        for name in ("add", "sub", "mul", "truediv", "mod", "matmul", "lt", "eq", "ne", "ge", "and_")
    },
    **{
        f"{name} from the right": _operator(name, right=True)
        for name in ("add", "sub", "mul", "truediv", "lt", "eq")
    },
    **{
        f"np.{name}": _of_both(name)
        for name in ("add", "subtract", "maximum", "dot", "where", "outer", "inner", "allclose", "copysign")
    },
    **{
        f"np.{name} of it": _of_it(name)
        for name in (
            *(
                "sin",
                "sum",
                "mean",
                "max",
                "any",
                "std",
                "sort",
                "argmax",
                "cumsum",
                "diff",
                "copy",
                "unique",
            ),
            *(
                "zeros_like",
                "isnan",
                "nonzero",
                "shape",
                "ndim",
                "size",
                "transpose",
                "squeeze",
                "ravel",
                "real",
            ),
            *("atleast_2d", "asanyarray", "asarray", "array", "median", "isscalar", "count_nonzero"),
        )
    },
    "sum of lines": lambda np, a, m: np.sum(m, axis=0),
    "kept axes": lambda np, a, m: np.max(m, axis=-1, keepdims=True),
    "reshape": lambda np, a, m: np.reshape(m, (-1, 1)),
    "expand": lambda np, a, m: np.expand_dims(m, 0),
    "broadcast": lambda np, a, m: np.broadcast_to(m, (2, *m.shape)),
    "clip": lambda np, a, m: np.clip(m, 0, a),
    "where": lambda np, a, m: np.where(a == a, a, m),
    "solve": lambda np, a, m: np.linalg.solve(a, m),
    "norm": lambda np, a, m: np.linalg.norm(m),
    "method": lambda np, a, m: a.dot(m),
    "out": lambda np, a, m: np.add(a, m, out=np.zeros((2, 2))),
    "dtype": lambda np, a, m: np.add(a, m, dtype="c16"),
    "joined": lambda np, a, m: np.concatenate([a, m]),
    "stacked": lambda np, a, m: np.vstack([a, m]),
    "take": lambda np, a, m: np.take(m, [0, 0]),
}


def _written(key: Any) -> Call:
    def write(np: Any, a: Any, m: Any) -> Any:
        a[key] = m
        return a

    return write


KEYS = (0, -1, (0, 0), ..., slice(None), (slice(None), 0), (None, 0), [0], [True, False], (0, slice(0)))
CALLS |= {f"a[{key}] = m": _written(key) for key in KEYS}
CALLS |= {name: _operator(name) for name in ("iadd", "imul", "isub")}


def told(found: Any) -> Any:
    """What a result is; ours as NumPy's own."""
    if isinstance(found, tuple | list):
        return type(found).__name__, [told(f) for f in found]
    if isinstance(found, np.ndarray):
        found = numpy.asarray(found)
    if isinstance(found, numpy.ndarray):
        beside: Any = found.label if isinstance(found, Labelled) else None
        if isinstance(found, numpy.ma.MaskedArray):
            beside = numpy.ma.getmaskarray(found).tolist(), found is numpy.ma.masked
        return type(found), found.dtype, found.shape, beside, repr(found.tolist())
    return getattr(found, "__class__", None), repr(found)


def outcome(of: Any, call: Call, kind: str, dtype: str, shapes: Any) -> Any:
    a, x = (
        numpy.arange(1, 1 + numpy.prod(s, dtype=int)).reshape(s).astype("i8").astype(dtype) for s in shapes
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, m = of.array(a), CLASSES[kind](x)
        try:
            found = told(call(of, a, m))
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            found = TypeError if isinstance(error, TypeError) else Exception
    return found, told(a), told(m)


@pytest.mark.parametrize("name", CALLS)
def test_their_classes_say_what_is_given(name: str) -> None:
    draw = random.Random(name)
    for kind in CLASSES:
        if kind == "asked" and name in ("iadd", "imul", "isub"):
            continue  # ours are not what its `__array_ufunc__` is given to write into
        for _ in range(6):
            dtype, shapes = draw.choice(DTYPES), (draw.choice(SHAPES[:3]), draw.choice(SHAPES))
            theirs, ours = (outcome(of, CALLS[name], kind, dtype, shapes) for of in (numpy, np))
            assert ours == theirs, (kind, dtype, shapes)


@pytest.mark.skipif(not quick.IS_COMPILED, reason="in Python, ours are asked first, and then NumPy's")
@pytest.mark.parametrize("call", [lambda np, a, m: np.subtract(a, m), lambda np, a, m: np.inner(a, m)])
def test_their_errors_are_told_and_their_code_runs_once(call: Any) -> None:
    said = []
    for of in (numpy, np):
        a, m = of.ones(2), numpy.ones(2).view(Asked)
        Asked.times = 0
        with pytest.raises((ValueError, LookupError), match=r"^'?no ") as caught:
            call(of, a, m)
        said.append((caught.type, str(caught.value), Asked.times))
    assert said[0] == said[1]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize(
    "statement",
    (
        "np.dot(a, m)|a + m|m - a|a < m|np.sum(m, axis=0)|np.solve(a, m)|a.dot(m)|a[0] = m|a[:, 1] = m"
        "|np.add(a, m)|np.sin(m)|np.mean(m)|np.where(a, a, m)|np.reshape(m, (2, 1))|np.transpose(m)"
        "|np.shape(m)|np.asanyarray(m)|operator.iadd(a, m)"
    )
    .replace("np.solve", "np.linalg.solve")
    .split("|"),
)
def test_no_python_of_ours_stands_in_between(statement: str) -> None:
    assert (
        calls_of_ours(
            statement, {"np": np, "operator": operator, "a": np.eye(2), "m": numpy.ma.array([1.0, 2.0])}
        )
        == []
    )
