"""What shows an array's memory, or tells its elements, as NumPy's does: a list that is generated.

Each of its methods, attributes and functions is asked of small arrays with some places, and is in it where
the result is a view of the array, the array itself, an element, or Python's own objects.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.api.core.dispatch import FUNCTIONS
from spartan_ng.api.core.lenses import learn_lenses
from tests.api.test_small_calls import calls_of_ours

ARGUMENTS = (
    *((), (0,), (1,), (-1,), (0, 1), (1, 0), (-1, 0), ((1, 0),), ((2, 6),), (2, 6), (4, 3), ((2, 3, 4),)),
    *((1, 0, 1), (0, -1, 0), ((0, 1), (1, 0)), ([1, 0],), (numpy.int64(1),), (True,), (1.0,), (99,)),
)
"""Places: axes, lengths, offsets; some that are none."""
CHANGING = {
    *("resize", "sort", "partition", "fill", "put", "setfield", "setflags", "byteswap", "dump", "dumps"),
    *(
        "tofile",
        "fill_diagonal",
        "place",
        "putmask",
        "copyto",
        "put_along_axis",
        "savetxt",
        "save",
        "shuffle",
        "empty",
    ),
}
"""What writes to the array, or to a file; and what gives whatever was there."""
ADDRESSES = {
    "ctypes",
    "data",
    "device",
    "to_device",
    "flags",
    "flat",
    "as_strided",
    "empty_like",
    "frombuffer",
}
"""What tells of memory, has a class of its own, or reaches beyond the array."""
ODD = {"einsum", "tile", "trim_zeros"}
"""Of texts, of nothing, and of arrays without axes, NumPy shows what it copies elsewhere."""
LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "rows": lambda np, dtype: np.array(numpy.arange(12).astype(dtype)).reshape(3, 4),
    "line": lambda np, dtype: np.array(numpy.arange(4).astype(dtype)),
    "columns": lambda np, dtype: np.array(numpy.arange(12).astype(dtype).reshape(4, 3)).T,
    "part": lambda np, dtype: np.array(numpy.arange(24).astype(dtype).reshape(4, 6))[::-2, 1::2],
    "one": lambda np, dtype: np.array(numpy.arange(3).astype(dtype)).reshape(1, 3, 1),
    "number": lambda np, dtype: np.array(numpy.arange(3).astype(dtype))[1:2].reshape(()),
    "nothing": lambda np, dtype: np.zeros((0, 3), dtype),
    "stretched": lambda np, dtype: np.broadcast_to(np.array(numpy.arange(4).astype(dtype)), (3, 4)),
    "to read": lambda np, dtype: _read_only(np.array(numpy.arange(12).astype(dtype)).reshape(3, 4)),
}


def _read_only(a: Any) -> Any:
    a.setflags(write=False)
    return a


Ask = Callable[[Any, Any], Any]


def _attribute(name: str) -> Ask:
    return lambda np, a: getattr(a, name)


def _method(name: str, args: tuple[Any, ...]) -> Ask:
    return lambda np, a: getattr(a, name)(*args)


def _function(numpys: Any, args: tuple[Any, ...]) -> Ask:
    return lambda np, a: (numpys if np is numpy else FUNCTIONS[numpys])(a, *args)


def asked() -> Iterator[tuple[str, Ask]]:
    """Each method, attribute and function, with each of the arguments: a title, and what asks NumPy or us."""
    for name in dir(numpy.ndarray):
        if name.startswith("_") or name in CHANGING | ADDRESSES:
            continue
        if not callable(getattr(numpy.ndarray, name)):
            yield f"a.{name}", _attribute(name)
            continue
        for args in ARGUMENTS:
            yield f"a.{name}{args}", _method(name, args)
    for function in dict.fromkeys(f for f in FUNCTIONS if callable(f)):
        if function.__name__ not in CHANGING | ADDRESSES | ODD:
            for args in ARGUMENTS:
                yield f"{function.__name__}(a, *{args})", _function(function, args)


def outcome(of: Any, ask: Ask, a: Any) -> Any:
    """What is found, or the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ask(of, a)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            return error


def shows(found: Any, a: Any) -> bool:
    """Whether NumPy's result is the array or a view of it."""
    return type(found) is numpy.ndarray and (found is a or found.base is (a if a.base is None else a.base))


PYTHONS = (bool, int, float, complex, str, bytes, list)


@functools.cache
def listed(layout: str, dtype: str) -> list[tuple[str, Ask]]:
    """Those that show the array's memory, or tell its elements."""
    found = []
    for title, ask in asked():
        a = LAYOUTS[layout](numpy, dtype)
        told = outcome(numpy, ask, a)
        if shows(told, a) or type(told) in PYTHONS:
            found.append((title, ask))
    return found


def alike(ours: Any, theirs: Any) -> bool:
    """Elements and dtype; of arrays also how they lie, and who may write."""
    if not isinstance(theirs, numpy.ndarray):
        return bool(type(ours) is type(theirs) and repr(ours) == repr(theirs))
    seen, flags = numpy.asarray(ours), ("writeable", "owndata", "c_contiguous", "f_contiguous")
    same = ours.dtype == theirs.dtype and ours.shape == theirs.shape and seen.tolist() == theirs.tolist()
    strides = ours.strides == theirs.strides or not theirs.size
    return bool(same and strides and all(getattr(ours.flags, f) == getattr(theirs.flags, f) for f in flags))


@pytest.mark.slow
@pytest.mark.some(12)
@pytest.mark.parametrize("dtype", ["f8", "c16", "i4", "U2", "M8[D]"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_views_and_elements_are_numpys(layout: str, dtype: str) -> None:
    """Also when they are asked for again, once it is known what they are to us."""
    for title, ask in listed(layout, dtype):
        a = LAYOUTS[layout](numpy, dtype)
        theirs = ask(numpy, a)
        for _ in range(2):
            mine = LAYOUTS[layout](np, dtype)
            ours = outcome(np, ask, mine)
            assert alike(ours, theirs), (title, ours, theirs)
            if isinstance(theirs, numpy.ndarray):
                assert (ours is mine) == (theirs is a), title
                assert (ours.base is None) == (theirs.base is None), title
                assert (ours.base is mine) == (theirs.base is a), title


@pytest.mark.slow
def test_a_call_that_was_learnt_of_other_lengths_is_what_graphs_see() -> None:
    """The same arguments, of one array after the other: as NumPy shows it, and as a step reads it."""
    shapes = [(3, 4), (5, 4), (4, 4), (4, 9), (2, 2), (1, 6), (7, 3), (3, 5), (3, 4), (12, 1)]
    for title, ask in listed("rows", "f8"):
        for shape in shapes:
            a = numpy.arange(float(numpy.prod(shape))).reshape(shape).copy()
            theirs, ours = outcome(numpy, ask, a), outcome(np, ask, np.array(a))
            if isinstance(theirs, Exception):
                assert isinstance(ours, Exception), (title, shape)
                continue
            assert alike(ours, theirs), (title, shape, ours, theirs)
            if isinstance(theirs, numpy.ndarray):
                with np.config.override(small_bytes=0):
                    read = (ours + 1).compute()
                assert read.tolist() == (theirs + 1).tolist(), (title, shape)


def changed(of: Any, layout: str, dtype: str, ask: Ask, lazily: bool) -> Any:
    """What a view and its array have after writes to either, and what was built on both before."""
    said = []
    with np.config.override(small_bytes=0 if lazily else np.config.small_bytes):
        a = LAYOUTS[layout](of, dtype)
        view = ask(of, a)
        before = (view + view, a + a)
        a[...] = 7
        said.append(view)
        if view.flags.writeable:
            view[...] = 3
            view[(slice(1),) * view.ndim] = 4
        again = ask(of, a)
        said += [view, a, again, *before]
        return [numpy.array(s).tolist() for s in said]


@pytest.mark.slow
@pytest.mark.some(5)
@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("stretched", "to read")])
def test_writes_go_both_ways_and_readers_keep_what_was(layout: str, lazily: bool) -> None:
    """The views that are known from elsewhere serve arrays whose elements wait, too."""
    for dtype in ("f8", "c16"):
        for title, ask in listed(layout, dtype):
            if not shows(ask(numpy, a := LAYOUTS[layout](numpy, dtype)), a):
                continue
            ask(np, LAYOUTS[layout](np, dtype))
            wanted = changed(numpy, layout, dtype, ask, False)
            assert changed(np, layout, dtype, ask, lazily) == wanted, title


SHOWN = """
a.reshape(2, 6)|a.reshape((2, 6))|a.reshape(-1)|np.reshape(a, (6, 2))|a.ravel()|np.ravel(a)|a.T|a.mT
a.transpose()|a.transpose(1, 0)|np.transpose(a)|np.transpose(a, (1, 0))|np.permute_dims(a, (1, 0))
a.view()|np.matrix_transpose(a)|a.swapaxes(0, 1)|np.swapaxes(a, 0, 1)|np.moveaxis(a, 0, 1)
np.rollaxis(a, 1)|a.real|np.expand_dims(a, 0)|np.expand_dims(a, axis=1)|a.squeeze()|np.squeeze(a)
np.squeeze(o, axis=0)|o.squeeze(0)|np.atleast_1d(a)|np.atleast_2d(v)|np.atleast_3d(a)
np.broadcast_to(v, (3, 4))|a.diagonal()|np.diagonal(a, 1)|np.diagonal(a, axis1=1, axis2=0)
np.flip(a)|np.flip(a, 0)|np.fliplr(a)|np.flipud(a)|np.rot90(a)|np.rot90(a, 2)|c.real|c.imag
np.real(c)|np.real(a)|np.asanyarray(a)|np.ascontiguousarray(a)|a.conj()|a.T.ravel()
a.T.reshape(4, 3)|a.flatten()|a.item(0)|a.item(1, 2)|a.item((1, 2))|a.tolist()|a.tobytes()|a.take(1)
a.take(1, 0)|np.take(a, [0], 1)|a.nbytes|a.itemsize|a[1:].reshape(8)|a[0].reshape(2, 2)
a.reshape(3, 2, 2).swapaxes(0, 2)
"""


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
@pytest.mark.parametrize("statement", SHOWN.strip().replace("\n", "|").split("|"))
def test_no_python_stands_in_between(statement: str) -> None:
    a = np.array(numpy.arange(12.0).reshape(3, 4))
    names = {"np": np, "a": a, "v": np.arange(4.0), "o": np.ones((1, 3, 1)), "c": a[0] * 1j}
    for _ in range(64):  # of calls that keep changing, as tests' are, one in 40 is learnt (`plain/shown.h`)
        eval(statement, names)
    assert calls_of_ours(statement, names) == []


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
def test_what_numpy_makes_otherwise_is_ours() -> None:
    """A view that our function would not make of the array is not taken for one."""
    a = np.arange(6.0)
    call = (1, 6, None, (2, 3))
    view = numpy.arange(6.0).reshape(2, 3)
    assert learn_lenses(np.reshape, a._peek(), view, call) is None
    assert learn_lenses(np.copy, a._peek(), a._peek(), (1, 6, None)) is None
    assert learn_lenses(np.reshape, a._peek(), a._peek().reshape(2, 3), call) is not None


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
def test_few_views_are_kept_in_mind() -> None:
    """A program of ever new shapes fills no memory, and finds its views."""
    for n in range(1, 3000):
        a = np.zeros(n)
        assert a.reshape(n, 1).shape == (n, 1)
