"""`np.array` of lists of numbers, and of small arrays: NumPy's arrays, dtypes, layouts and errors."""

from __future__ import annotations

import functools
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy
import pytest
from hypothesis import strategies as st

import spartan_ng as np
from spartan_ng.api.core.quick import IS_COMPILED, are_of
from tests.api.memory_asked import SLACK, asked_for
from tests.sampling import examples
from tests.test_calls import calls

NUMBERS = [
    0,
    -3,
    1.5,
    True,
    2 + 1j,
    1 << 40,
    1 << 63,
    1 << 70,
    float("nan"),
    numpy.float64(2.5),
    numpy.float32(0.1),
    numpy.int8(5),
    numpy.uint64(7),
    numpy.bool_(True),
    numpy.complex64(1j),
    numpy.longdouble(3),
]
OTHERS = ["a", None, b"b", numpy.datetime64("2020-01-01"), object, [1], numpy.arange(2), 1 << 2000]


class Listed(list):
    """Another class of lists."""


def lists(draw, deep):
    """A list of numbers, or of such lists, of one length or not; now and then with something else in it."""
    if deep and draw.random() < 0.8:
        n = draw.randrange(4)
        made = [lists(draw, deep - 1) for _ in range(draw.randrange(4))]
        if draw.random() < 0.7:
            made = [(row * 4)[: n + 1] for row in made if row]
    else:
        few = draw.sample(NUMBERS, draw.choice([1, 1, 2, 3]))
        made = [draw.choice(few) for _ in range(draw.randrange(6))]
    if draw.random() < 0.1:
        made.insert(draw.randrange(len(made) + 1), draw.choice(OTHERS))
    return draw.choice([list, list, list, tuple, Listed])(made)


def told(call):
    """What there is to see of an array, or of an error."""
    try:
        found = call()
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)
    a = numpy.asarray(found)
    elements = repr(a.tolist()) if a.dtype.char in "OgGT" else a.tobytes()  # some have holes
    return a.dtype, a.shape, a.strides, elements, found.flags.writeable, found.flags.owndata


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arrays_of_lists_are_numpys(request):
    draw = random.Random(request.config.option.seed)
    for _ in range(1_500):
        given = lists(draw, draw.randrange(3))
        assert told(lambda g=given: np.array(g)) == told(lambda g=given: numpy.array(g)), given


@pytest.mark.parametrize("dtype", [None, str, "U2", "S", object, float, "M8[D]", np.dtypes.StringDType()])
@pytest.mark.parametrize("small", [0, 1 << 25])
def test_lists_of_texts(dtype, small):
    lists = (
        ["the", "cat"],
        ("a",),
        [b"on", b""],
        ["a", b"b"],
        ["1", "2.5"],
        ["2020-01-01"],
        ["é", "\0"],
        ["a\0"],
    )
    for given in lists:
        for more in ({}, {"ndmin": 2}, {"order": "F"}, {"copy": None}):
            with np.config.override(small_bytes=small):
                ours = told(lambda g=given, m=more: np.array(g, dtype, **m))
            assert ours == told(lambda g=given, m=more: numpy.array(g, dtype, **m)), (given, more)


def test_lists_of_our_numbers():
    """Sums that are known are numbers of ours, those that are not are computed."""
    x = np.arange(6.0)
    given = [x.sum(), x[1], x.mean(), 2]
    assert type(np.array(given)) is np.ndarray
    numpy.testing.assert_array_equal(np.array(given), [15.0, 1.0, 2.5, 2.0])
    numpy.testing.assert_array_equal(np.array([given[:2], given[2:]]), [[15.0, 1.0], [2.5, 2.0]])
    with np.config.override(small_bytes=0):
        y = np.arange(6.0) + 1
        numpy.testing.assert_array_equal(np.array([y.sum(), 1.0]), [21.0, 1.0])


@pytest.mark.parametrize("small", [0, 1 << 25])
def test_an_array_of_an_array_is_its_own(small):
    for lay in (lambda a: a, lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a[1:, 1]):
        theirs = lay(numpy.arange(20.0).reshape(4, 5))
        with np.config.override(small_bytes=small):
            ours = lay(np.array(numpy.arange(20.0).reshape(4, 5)))
            copy = np.array(ours)
            numpy.testing.assert_array_equal(copy, theirs)
            assert copy.strides == numpy.array(theirs).strides
            copy[...] = 0
            numpy.testing.assert_array_equal(ours, theirs)


SINGLE = [{"k": 1}, None, {1}, frozenset([2]), "text", b"bytes", 1, 2.5, 1j, True, numpy.float32(1.5), {}]


@pytest.mark.parametrize("dtype", [None, object, "f8", "U5", "i4", "?", "c16"])
@pytest.mark.parametrize("n", [1, 2, 3, 100])
@pytest.mark.parametrize("first", range(len(SINGLE)))
@pytest.mark.filterwarnings("ignore")
def test_lists_of_single_elements_are_numpys(first, n, dtype):
    for step in (0, 1, 5):
        given = [SINGLE[(first + step * i) % len(SINGLE)] for i in range(n)]
        said: list[object] = []
        for xp in (numpy, np):
            try:
                found = xp.array(given, dtype)
            except (TypeError, ValueError) as error:
                said.append(type(error))
            else:
                said.append((found.dtype, found.shape, repr(found.tolist())))
        assert said[1] == said[0]


def test_lists_of_single_elements_are_no_detour():
    given = [{"k": i} for i in range(10)]
    assert sum(calls(lambda: np.array(given, dtype=object)).values()) < 12


def _shapes_of_lists():
    """Nested lists of shapes, each for an array, and numbers."""
    shape = st.lists(st.integers(0, 2), max_size=2).map(tuple)
    return st.lists(st.recursive(shape | st.just(7), lambda below: st.lists(below, max_size=3), max_leaves=5))


def _of_arrays(xp, shapes):
    if isinstance(shapes, list):
        return [_of_arrays(xp, each) for each in shapes]
    return xp.ones(shapes) + xp.zeros(shapes) if isinstance(shapes, tuple) else shapes


@examples(150)
@hypothesis.given(
    _shapes_of_lists(),
    st.sampled_from(["array", "asarray", "asanyarray", "sum"]),
    st.sampled_from([0, 1 << 25]),
)
def test_ragged_lists_of_arrays_are_refused_in_numpys_words(shapes, name, small):
    said: list[object] = []
    for xp in (numpy, np):
        with np.config.override(small_bytes=small):
            try:
                found = numpy.asarray(getattr(xp, name)(_of_arrays(xp, shapes)))
            except ValueError as error:
                said.append((str(error), error.__context__))
            else:
                said.append((found.shape, found.tolist()))
    assert said[1] == said[0]


class _Grows(type):
    """A class of classes that asks for hashes of its own, and shortens a list meanwhile."""

    left: list[object] = []

    def __hash__(cls):
        _Grows.left.clear()
        return type.__hash__(cls)


@pytest.mark.parametrize("kind", [list, tuple, Listed])
def test_classes_of_items_are_asked_as_sets_ask(kind):
    classes = frozenset({int, float, str})
    for given in (
        [],
        [1],
        [1, 2.0, "a"],
        [1, True],
        [True, 1],
        [1, None],
        [1.0] * 5000 + [b"a"],
        [numpy.int8(1)],
    ):
        assert are_of(kind(given), classes) == classes.issuperset(map(type, given)), given
        within = [[[*given], *given], (*given,), *given]
        assert are_of(within, classes, True) == classes.issuperset(map(type, given)), given
        assert not are_of(within, classes)


def test_a_list_that_is_changed_while_it_is_looked_through():
    thing = _Grows("thing", (), {})
    _Grows.left = [1, thing(), 2, 3]
    assert not are_of(_Grows.left, frozenset({int}))


@pytest.mark.skipif(not IS_COMPILED, reason="rows are looked through by Python")
def test_long_lists_are_looked_through_once():
    given = [float(i) for i in range(5000)]
    asks: list[Callable[[Any], Any]] = [
        np.array,
        np.asarray,
        np.mean,
        np.random.choice,
        np.random.default_rng(0).choice,
    ]
    for ask in asks:
        assert sum(calls(functools.partial(ask, given)).values()) < 80, ask
    assert sum(calls(lambda: np.array([given[:10]] * 200)).values()) < 80


LAID = {
    "lines": lambda m: [m.arange(4.0), m.arange(4.0) * 2],
    "steps": lambda m: [m.arange(9.0)[::2], m.arange(5.0)[::-1]],
    "planes": lambda m: [m.arange(6).reshape(2, 3), m.arange(6, 12).reshape(2, 3)],
    "turned": lambda m: [m.arange(6).reshape(2, 3), m.arange(6, 12).reshape(3, 2).T],
    "elements": lambda m: [m.array(1.5), m.array(2.5)],
    "lists of them": lambda m: [[m.arange(3), m.arange(3)], (m.ones(3, int), m.zeros(3, int))],
    "nothing": lambda m: [m.zeros((0, 2)), m.zeros((0, 2))],
    "other types": lambda m: [m.arange(3), m.arange(3.0)],
    "other lengths": lambda m: [m.arange(3), m.arange(4)],
    "beside numbers": lambda m: [m.array(1.5), 2.5],
    "deep and flat": lambda m: [m.arange(2), [3, 4]],
}


def by_name(m, name, laid, **keywords):
    return m.array(getattr(m, name)(LAID[laid](m), **keywords))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("laid", LAID)
@pytest.mark.parametrize("name", ["array", "asarray", "mean", "sum", "prod", "max", "any"])
def test_arrays_lie_one_after_the_other(name, laid):
    """Also for folds of them."""
    makes = name in ("array", "asarray")
    keyword, said = (
        ("dtype", (None, "f8", "i8", "f4", ">f8")) if makes else ("axis", (None, 0, -1, (0, 1), 5))
    )
    for value in said:
        seen, wanted = (
            told(functools.partial(by_name, m, name, laid, **{keyword: value})) for m in (np, numpy)
        )
        assert seen == wanted, value


@pytest.mark.skipif(not IS_COMPILED, reason="NumPy makes them")
def test_nothing_is_made_beside_what_lists_become():
    x = np.arange(3.0)
    lists = [
        *([x[0], x[1]], [1.5, 2], [[x[0], x[1]]], ((1, 2), (3, 4)), [1, 2j], [True, False]),
        *([x, x], [[x, x], [x, x]], [x.sum(), 1], [numpy.float32(1), numpy.int64(2)]),
    ]
    tracemalloc.start()
    try:
        least = asked_for(lambda: x + x)
        more = [asked_for(functools.partial(np.array, given)) - least for given in lists]
    finally:
        tracemalloc.stop()
    assert max(more) <= SLACK
