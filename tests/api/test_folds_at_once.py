"""Folds of small arrays along axes are done at once: as NumPy does them, to the bit."""

from __future__ import annotations

import itertools
import random
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from tests.api.test_shared_functions import elements, told

FOLDS = ("sum", "mean", "prod", "max", "min", "any", "all")
SHAPES = [(1,), (5,), (700,), (3, 4), (70, 65), (4, 75, 8), (2, 5, 5, 3, 7), (9, 1, 13), (1, 1), (6, 300)]
FEW = [(), (0,), (0, 3), (2, 0, 4), (2, 1, 2, 1, 2, 1, 2, 1)]
LAYOUTS = {
    "plain": lambda a: a,
    "inner": lambda a: a[..., 1:-1] if a.ndim and a.shape[-1] > 2 else a,
    "lower": lambda a: a[1:] if a.ndim and a.shape[0] > 1 else a,
    "every second": lambda a: a[..., ::2] if a.ndim else a,
    "backwards": lambda a: a[..., ::-1] if a.ndim else a,
    "turned": lambda a: a.T,
    "deeper": lambda a: a[:, None] if a.ndim else a,
    "across": lambda a: a[:, 0] if a.ndim > 1 and a.shape[1] else a,
}
AXES = [(0,), (-1,), (1,), None, 0.5, True, "x", (0, 0), (), 99, [0]]
"""What else may be given as an axis."""


def of(space, name, a, as_method, axis, keywords):
    """A fold as a function or as a method, the axis by its place or by its name."""
    function = getattr(a, name) if as_method else getattr(space, name)
    given = () if as_method else (a,)
    return function(*given, axis, **keywords) if axis != "none" else function(*given, **keywords)


def drawn_axis(draw, ndim):
    """An axis, some axes, or none; now and then another thing."""
    if draw.random() < 0.1:
        return draw.choice(AXES)
    some = draw.sample(range(-ndim, ndim), draw.randint(0, ndim)) if ndim else []
    if draw.random() < 0.4 and some:
        return some[0]
    return tuple(some) if some else draw.choice([None, "none"])


def test_answers_are_numpys_to_the_bit(request):
    """Values, dtypes, layouts, errors and warnings, with special numbers and sums that overflow."""
    draw = random.Random(request.config.option.seed)
    for _ in range(600):
        shape = draw.choice(FEW if draw.random() < 0.1 else SHAPES)
        a = elements(shape, draw.choice("fdfdFilB?"), draw.randrange(1000))
        if draw.random() < 0.1 and a.dtype.char in "fd":
            with numpy.errstate(all="ignore"):
                a = a * numpy.finfo(a.dtype).max
        lay = LAYOUTS[draw.choice([*LAYOUTS] if draw.random() < 0.4 else ["plain"])]
        a, ours = lay(a), lay(np.array(a))
        name, as_method, axis = draw.choice(FOLDS), draw.random() < 0.5, drawn_axis(draw, a.ndim)
        keywords = draw.choice([{}, {}, {"keepdims": True}, {"keepdims": False}])
        if axis != "none" and draw.random() < 0.5:
            keywords, axis = {**keywords, "axis": axis}, "none"
        expected, found = (
            told(partial(of, space, name, x, as_method, axis, keywords))
            for space, x in ((numpy, a), (np, ours))
        )
        assert found == expected, (name, a.shape, a.dtype, a.strides, axis, keywords)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_long_lines_are_added_up_by_threads_to_the_bit(dtype):
    """As the halves of halves that NumPy adds; also where a part overflows, of which it tells."""
    for n in (1 << 14, (1 << 14) + 7, 30_011, 100_000, (1 << 19) + 131):
        a = (numpy.random.default_rng(n).normal(size=n) * 1e3).astype(dtype)
        ours = np.array(a)
        for part in (slice(None), slice(None, None, 2), slice(5, -3), slice(0, n // 2)):
            for name in ("sum", "mean"):
                expected = told(lambda name=name, part=part, a=a: getattr(a[part], name)())
                got = told(lambda name=name, part=part, ours=ours: getattr(ours[part], name)())
                assert got == expected, (n, part, name)
        if a.dtype.kind == "f":
            a[-9:] = numpy.finfo(a.dtype).max
            assert told(lambda a=a: numpy.asarray(np.array(a).sum())) == told(a.sum)
            a[:] = -0.0
            assert told(lambda a=a: numpy.asarray(np.array(a).sum())) == told(a.sum)


@pytest.mark.parametrize("name", FOLDS)
def test_every_set_of_axes(name):
    """Of an array of four axes and of a part of it, in which no two of them lie as one."""
    for a in (elements((3, 4, 5, 6), "d", 3), elements((5, 6, 7, 8), "f", 4)[1:, :-1, 1:-1, :3]):
        ours = np.array(numpy.pad(a, 1))[1:-1, 1:-1, 1:-1, 1:-1]
        for n in range(1, 5):
            for axes in itertools.combinations(range(4), n):
                expected = told(lambda at=axes, a=a: getattr(numpy, name)(a, axis=at))
                assert told(lambda at=axes, ours=ours: getattr(np, name)(ours, axis=at)) == expected, axes


def test_results_are_arrays_and_numbers_of_ours():
    a = np.arange(12.0).reshape(3, 4)
    for name in FOLDS[:5]:
        found = getattr(np, name)(a, axis=0)
        assert type(found) is np.ndarray
        found[0] = 7.0
        assert found[0] == 7.0
        assert a[0, 0] == 0.0
        assert type(getattr(a, name)()) is type(np.add.reduce(a, axis=None))
    assert isinstance(np.any(a), numpy.bool)


def test_errors_are_raised_where_they_are_asked_for():
    a = np.full((2, 3), 1e308)
    with np.errstate(over="raise"):
        for call in (lambda: a.sum(), lambda: np.sum(a, axis=0), lambda: a.mean(1), lambda: np.prod(a)):
            with pytest.raises(FloatingPointError):
                call()


@pytest.mark.skipif(not quick.IS_COMPILED, reason="nothing is compiled here")
def test_numpy_is_not_asked(monkeypatch):
    """What is plain is folded by loops alone: NumPy's function is another one, and is not called."""

    def never(*_, **__):
        raise AssertionError("called")

    monkeypatch.setitem(quick.FOLDED, never, (numpy.add, False))
    fold = quick.in_front(never, never, frozenset({"axis", "keepdims"}), 2, quick.AS_BROADCAST)
    assert fold(np.arange(6.0).reshape(2, 3), axis=(0, 1)) == 15
    assert fold(np.arange(6.0).reshape(2, 3), 1, keepdims=True).tolist() == [[3.0], [12.0]]


METHODS = ("reduce", "accumulate", "reduceat")
FUNCTIONS = ("add", "multiply", "maximum", "minimum", "logical_or", "subtract", "bitwise_xor", "hypot")
DTYPES = (None, float, int, bool, complex, "f4", numpy.int16, object)


def _method_drawn(seed: int):
    """A method of a universal function, an array and what else it is called with."""
    rng, numbers = random.Random(seed), numpy.random.default_rng(seed)
    shape = [rng.choice([1, 3, 40, 200]) for _ in range(rng.randint(1, 2))]
    a = numbers.integers(0, 4, shape).astype(rng.choice(["f8", "i8", "u1", "?", "f4", "c16"]))
    method = rng.choice(METHODS)
    keywords: dict[str, Any] = {"axis": rng.choice([0, -1])} if rng.random() < 0.5 else {}
    if rng.random() < 0.6:
        keywords["dtype"] = rng.choice(DTYPES)
    at = (numbers.integers(0, a.shape[keywords.get("axis", 0)], rng.choice([1, 5, 300])),)
    return rng.choice(FUNCTIONS), method, a, at if method == "reduceat" else (), keywords


@pytest.mark.filterwarnings("ignore")
def test_methods_of_functions_are_numpys(some):
    for seed in some(range(1500), 200):
        name, method, a, more, keywords = _method_drawn(seed)
        told_of = f"{seed}: {name}.{method} of {a.shape} {a.dtype}, {keywords}"
        try:
            wanted = getattr(getattr(numpy, name), method)(a, *more, **keywords)
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            with pytest.raises(type(error)):
                getattr(getattr(np, name), method)(np.array(a), *more, **keywords)
            continue
        for given in (more, tuple(map(np.array, more))):
            found = getattr(getattr(np, name), method)(np.array(a), *given, **keywords)
            if isinstance(wanted, numpy.ndarray | numpy.generic):
                assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), told_of
            exact = numpy.asarray(wanted).dtype.kind not in "fc"
            same = numpy.array_equal if exact else partial(numpy.allclose, rtol=1e-5, equal_nan=True)
            assert same(numpy.asarray(found), numpy.asarray(wanted)), told_of
            if isinstance(wanted, numpy.ndarray) and wanted.dtype != object:
                theirs, ours = (xp.zeros(wanted.shape, wanted.dtype) for xp in (numpy, np))
                getattr(getattr(numpy, name), method)(a, *more, **keywords, out=theirs)
                assert getattr(getattr(np, name), method)(np.array(a), *given, **keywords, out=ours) is ours
                assert same(numpy.asarray(ours), theirs), told_of


@pytest.mark.parametrize("name", ["add", "maximum", "logaddexp"])
def test_many_segments_of_what_is_still_to_be_computed_are_folded_where_it_has_room(name):
    """A scan that starts anew at each was seven times as dear."""
    theirs = numpy.random.default_rng(0).random(9000)
    starts = numpy.arange(0, 9000, 3)
    with np.config.override(small_bytes=20_000):
        ours = np.array(theirs) * 2
        assert ours._cell.value is None
        found = getattr(np, name).reduceat(ours, starts)
        assert found._cell.value is not None
        few = np.add.reduceat(np.array(theirs) * 2, [0, 10, 4000])
        assert few._cell.value is None
    numpy.testing.assert_array_equal(found, getattr(numpy, name).reduceat(theirs * 2, starts))
    numpy.testing.assert_allclose(few, numpy.add.reduceat(theirs * 2, [0, 10, 4000]))
