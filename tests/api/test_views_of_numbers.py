"""Functions that make views, of numbers, which have no memory that others know; and places that are listed,
or NumPy's and our integers, as these functions, and those that ask for lengths, are given them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from tests.api.test_small_calls import calls_of_ours

Number = Callable[[Any], Any]
Call = Callable[[Any, Any], Any]


def _same(n: Any) -> Number:
    return lambda np: n


def _folded(dtype: str) -> Number:
    return lambda np: np.max(np.array(numpy.ones(2, dtype)))


def _asked(name: str, *args: Any, **keywords: Any) -> Call:
    return lambda np, x: getattr(np, name)(x, *args, **keywords)


NUMBERS: dict[str, Number] = {
    **{repr(n): _same(n) for n in (True, 3, -2.5, 1j, 2**70, "text", None)},
    **{
        f"numpy's {dtype}": _same(numpy.ones(1, dtype)[0])
        for dtype in ("?", "i1", "u8", "f4", "f8", "g", "c8", "c16")
    },
    **{f"a {dtype}": _folded(dtype) for dtype in ("?", "i4", "i8", "f4", "f8", "c16")},
}
SOME: dict[str, list[Any]] = {
    "expand_dims": [(0,), (-1,), ((0, 1),), ((0, 2),), (1,), ([0],), ((),), (numpy.int64(0),)],
    "reshape": [((),), (1,), ((1, 1),), (-1,), ((2,),), ([1, 1],), ((1, numpy.int64(1)),), ([],)],
    "squeeze": [(), ((),), (0,), (-1,), (1,), ([],)],
    "transpose": [(), ((),), ((0,),), ([],)],
    "swapaxes": [(0, 0), (0, 1)],
    "moveaxis": [(0, 0), ((), ())],
    "rollaxis": [(0,)],
    "diagonal": [()],
    "flip": [(), (0,), ((),)],
    "broadcast_to": [((3,),), ((),), ((2, 1),)],
    **{
        name: [()]
        for name in (
            *("ravel", "real", "imag", "atleast_1d", "atleast_2d", "atleast_3d", "ascontiguousarray"),
            *("asfortranarray", "shape", "ndim", "size", "matrix_transpose", "fliplr", "rot90"),
        )
    },
    "tile": [(3,), ((2, 2),), ((),), (0,), (numpy.int64(2),)],
    "resize": [(3,), ((2, 2),), ((),)],
    "repeat": [(3,), (numpy.int64(2),)],
}
"""Arguments besides the number."""
CALLS: dict[str, Call] = {
    **{f"{name}{args}": _asked(name, *args) for name, some in SOME.items() for args in some},
    **{
        f"{name}(axis={axis})": _asked(name, axis=axis)
        for name, axis in itertools.product(("expand_dims", "squeeze", "flip"), ((), 0, -1, (0,)))
    },
}


def _kind(error: Exception) -> type:
    kinds: tuple[type, ...] = (ValueError, TypeError, LookupError, Exception)
    return next(k for k in kinds if isinstance(error, k))


def told(found: Any, is_view: bool = False) -> Any:
    if type(found) in (np.ndarray, numpy.ndarray):
        flags = found.flags.writeable, is_view and (found.flags.owndata, found.base is None)
        return "array", found.dtype, found.shape, flags, repr(numpy.asarray(found).tolist())
    return (
        "number" if isinstance(found, numpy.generic) else type(found),
        getattr(found, "dtype", None),
        repr(found),
    )


COPIED = ("tile", "resize", "imag")
"""Whose results are arrays of their own here, where NumPy shows what it copies."""


def outcome(of: Any, name: str, number: Number) -> Any:
    x, call = number(of), CALLS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(of, x)
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            return _kind(error)
    said = [told(found, not name.startswith(COPIED))]
    if type(found) in (np.ndarray, numpy.ndarray) and found.flags.writeable and found.size:
        found[...] = numpy.zeros((), found.dtype)  # nobody else has its memory
    return [*said, told(found), told(call(of, x)), told(x)]


@pytest.mark.parametrize("name", CALLS)
def test_views_of_numbers_are_numpys(name: str) -> None:
    for title, number in NUMBERS.items():
        theirs, ours = (outcome(of, name, number) for of in (numpy, np))
        assert ours == theirs, title


PLACES: tuple[Any, ...] = (
    *((1, 0), [1, 0], [0, 1], numpy.array([1, 0]), (numpy.int64(1), 0), [numpy.int8(0), 1], (1.5,)),
    *(
        (6,),
        [6],
        [3, 2],
        (numpy.int32(3), numpy.uint8(2)),
        numpy.array([2, 3]),
        [],
        [[6]],
    ),
    *(numpy.int64(1), numpy.array([1.0, 0.0]), "1", None, [None], (None, 6), range(2)),
)
OfPlaces = Callable[[Any, Any, Any], Any]


def _at(name: str) -> OfPlaces:
    return lambda np, a, p: getattr(np, name)(a, p)


OF_PLACES: dict[str, OfPlaces] = {
    **{
        name: _at(name)
        for name in ("transpose", "reshape", "expand_dims", "squeeze", "flip", "broadcast_to", "tile", "sum")
    },
    "moveaxis": lambda np, a, p: np.moveaxis(a, p, (0, 1)),
    "swapaxes": lambda np, a, p: np.swapaxes(a, p, 0),
    "a.reshape": lambda np, a, p: a.reshape(p),
    "a.transpose": lambda np, a, p: a.transpose(p),
    "a.squeeze": lambda np, a, p: a.squeeze(p),
    "zeros": lambda np, a, p: np.zeros(p),
    "full": lambda np, a, p: np.full(p, 3),
    "eye": lambda np, a, p: np.eye(p),
    "identity": lambda np, a, p: np.identity(p),
    "linspace": lambda np, a, p: np.linspace(0, 1, p),
    "roll": lambda np, a, p: np.roll(a, p, p),
}


@pytest.mark.parametrize("name", OF_PLACES)
def test_places_may_be_listed(name: str) -> None:
    """In turns, as one may be taken for the last that was known."""
    for i, of_places in enumerate(PLACES * 2):
        said = []
        for of in (numpy, np):
            a = of.arange(6.0).reshape(2, 3)
            places = of.array(of_places) if isinstance(of_places, numpy.ndarray) and i % 2 else of_places
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    said.append(told(OF_PLACES[name](of, a, places)))
                except Exception as error:  # noqa: BLE001 - whatever NumPy raises
                    said.append(_kind(error))
        assert said[0] == said[1], of_places


OTHERS: tuple[Any, ...] = (
    *(
        "f8",
        "i8",
        numpy.int64,
        numpy.float64,
        float,
        numpy.dtype("c16"),
        "f4",
        "u1",
        ">i8",
        "S8",
        "O",
        "M8[ns]",
    ),
    *(numpy.ndarray, "f4,f4", "no dtype", None, int, bool, numpy.dtype("<f8")),
)
PARTS = ((), (slice(None), slice(None, None, 2)), (slice(None, None, -1),), 0, (..., None), (0, 0, None))


@pytest.mark.parametrize("part", PARTS)
def test_views_of_other_dtypes(part: Any) -> None:
    for other in OTHERS * 2:
        said = []
        for of in (numpy, np):
            a = of.array(numpy.arange(1.0, 9.0).reshape(2, 4))
            try:
                found = a[part].view(other)
            except Exception as error:  # noqa: BLE001 - whatever NumPy raises
                said.append([_kind(error)])
                continue
            said.append([told(found, is_view=True)])
            if found.dtype.kind in "iuf":
                found[...] = 1
                said[-1].append(told(a))
        assert said[0] == said[1], other


LISTED = """
np.einsum(a, [0, 1], b, [1], [0])|np.einsum(a, [0, 1])|np.einsum(a, [0, 1], [1, 0])|np.einsum(a, [0, 0])
np.einsum(a, range(2), a, range(2), [])|np.einsum(a, [0, 1], a, range(1, 2), [0])|np.einsum(q, [0, 0], [0])
np.einsum(a, (0, 1), b, (1,), [0], optimize=False)|np.einsum(a, [0, 1], b, [1], 2.5, [], [0])
np.einsum(a, [..., 1], b, [1])|np.einsum(a, [0, 52], b, [1])|np.einsum(a, [0], b, [1])|np.einsum(q, [0, 0])
np.einsum(a, [0, 1], b, [0], [1])|np.einsum("ii->i", q)|np.einsum("ij->ji", a)|np.einsum("...ii->...i", s)
np.einsum("ii", q)|np.einsum("...ii->...", s)|np.einsum("ijj->ij", s)|np.einsum("ijk->kij", s)
np.einsum("ij", a)|np.einsum("ji", a)|np.einsum("ij->", a)|np.einsum("ij,j->i", a, b, optimize=True)
np.einsum("ij,j->i", a, b, optimize="greedy")|np.einsum("ii->j", q)|np.einsum("ii->i", a)|np.einsum("->", 2.0)
np.einsum("i->ii", b)|np.einsum(2.0, [], [])
"""


@pytest.mark.parametrize("statement", LISTED.strip().replace("\n", "|").split("|"))
@pytest.mark.parametrize("dtype", ["f8", "i4", "c8", "?"])
def test_letters_may_be_listed_and_diagonals_are_views(statement: str, dtype: str) -> None:
    for _ in range(2):
        said = []
        for of in (numpy, np):
            made = (
                numpy.arange(n).astype(dtype).reshape(s)
                for n, s in ((6, (2, 3)), (3, 3), (9, (3, 3)), (8, (2, 2, 2)))
            )
            names = dict(zip("abqs", map(of.array, made), strict=True)) | {"np": of}
            try:
                found = eval(statement, names)
                said.append([told(found)])
            except Exception as error:  # noqa: BLE001 - whatever NumPy raises
                said.append([_kind(error)])
                continue
            if isinstance(found, of.ndarray) and found.flags.writeable:
                found[...] = 0
                said[-1] += [told(names[name]) for name in "abqs"]
        assert said[0] == said[1]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize(
    "statement",
    """np.expand_dims(True, -1)|np.expand_dims(f, axis=0)|np.reshape(t, ())|np.squeeze(t, axis=())
np.shape([1, 2])|np.transpose(a, np.array([1, 0]))|np.transpose(a, [1, 0])|np.reshape(a, [3, n])
a.reshape(n, 3)|np.tile(f, (n, 2))|np.identity(n)|np.zeros((n, 2))|np.array(())|np.shape(numpy.ones(3))
np.asarray(a, dtype=None, order=None)|np.asarray(a, "f8")|np.asarray(o)|np.einsum("ij->ji", a)
np.einsum(a, [0, 1], a, range(2), [0])|np.einsum("...ii->...i", q)|np.transpose(a, axes=i)|a.view("i8")
a.view(numpy.int64)|np.asarray(a, order="C")|numpy.arange(3)[i]|a[range(2), i]
np.pad(a, 1, constant_values=2)|np.einsum("i...,i...", a, a)|np.einsum("...i,...i->...", q, q)
np.einsum("i...,ij...->j...", a, q[:2])""".replace("\n", "|").split("|"),
)
def test_no_python_of_ours_stands_in_between(statement: str) -> None:
    names = {
        "np": np,
        "numpy": numpy,
        "f": 2.5,
        "t": numpy.True_,
        "n": np.prod((1, 2)),
        "o": np.array([None]),
    }
    names |= {"a": np.array(numpy.arange(6.0).reshape(2, 3)), "q": np.eye(2)}
    names |= {"i": np.array([1, 0])}
    for _ in range(64):  # of calls that keep changing, as tests' are, one in 40 is learnt (`plain/shown.h`)
        eval(statement, names)
    assert calls_of_ours(statement, names) == []
