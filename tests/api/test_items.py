"""Loops over elements: values as NumPy's, and what else an item write must not change."""

from __future__ import annotations

import copy
import datetime
import fractions
import itertools
import math
import numbers
import operator
import pickle
import statistics
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np


def test_loop_as_numpys(mode):
    a, b = np.zeros((4, 4)), numpy.zeros((4, 4))
    for m in (a, b):
        for i in range(4):
            for j in range(1, 4):
                m[i, j] = m[i, j - 1] * 2 + i - 1.5
                m[i, j] /= 2
    numpy.testing.assert_array_equal(a, b)


def test_a_write_leaves_captured_values_alone(mode):
    a = np.arange(4.0)
    b = np.asarray(a) + 1
    c = a.copy()
    lazy = np.config
    with lazy.override(small_bytes=0):
        d = a * 2
    a[1] = 9
    assert (b.tolist(), c.tolist(), d.tolist()) == ([1, 2, 3, 4], [0, 1, 2, 3], [0, 2, 4, 6])


def test_a_write_leaves_a_numpy_source_alone(mode):
    source = numpy.arange(3.0)
    a = np.array(source)
    a[0] = 5
    assert source[0] == 0


@pytest.mark.parametrize(("key", "error"), [(9, IndexError), ((0, 0), IndexError), ("x", IndexError)])
def test_bad_items(mode, key, error):
    with pytest.raises(error):
        np.arange(4.0)[key] = 1


def test_values_are_cast_as_numpys(mode):
    a = np.arange(3)
    a[0] = 2.7
    assert a.tolist() == [2, 1, 2]
    with pytest.raises(TypeError):
        a[0] = 1j
    with pytest.raises(OverflowError):
        np.zeros(2, "i1")[0] = 300


OPERATORS = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, lambda x, y: x // y,
    lambda x, y: x % y, lambda x, y: x**y, lambda x, y: x < y, lambda x, y: x >= y, lambda x, y: x == y,
    lambda x, y: x != y, lambda x, y: 2 + x, lambda x, y: 1.5 - x, lambda x, y: 3 / y, lambda x, y: 7 // y,
    lambda x, y: -x, lambda x, y: abs(x), lambda x, y: x - [1, 2], lambda x, y: y - numpy.ones(2),
    lambda x, y: divmod(x, y), lambda x, y: x == "a", lambda x, y: (float(x), int(y), bool(x), hash(x)),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.some(40)
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
@pytest.mark.parametrize("operator", range(len(OPERATORS)))
def test_numbers_compute_as_numpys_scalars(mode, operator, dtype):
    values = numpy.array([5, 3], dtype)
    ours, theirs = np.array(values), values
    found = OPERATORS[operator](ours[0], ours[1])
    expected = OPERATORS[operator](theirs[0], theirs[1])
    numpy.testing.assert_array_equal(found, expected)
    if not isinstance(expected, tuple | bool):
        assert numpy.asarray(found).dtype == expected.dtype
    assert type(found) is type(expected)


SIGNS = ["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="]
OTHERS = [3, 2.5, True, 1j, numpy.float32(2), numpy.uint8(200), numpy.array([1, 2]), numpy.array([[0.5]])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(12)
@pytest.mark.parametrize("sign", SIGNS)
def test_numbers_meet_others_as_numpys_scalars(mode, sign):
    """Every operator on an element of every dtype, to the left and to the right of what there is."""
    for dtype in ("?", "u1", "i4", "i8", "f2", "f4", "f8", "c16"):
        theirs = numpy.array([1, 7], dtype)
        ours = np.array(theirs)
        for other in [*OTHERS, theirs[0], theirs]:
            for text in (f"x {sign} y", f"y {sign} x"):
                expected = outcome(text, theirs[1], other)
                agree(outcome(text, ours[1], other), expected, (text, dtype, other))
                if isinstance(other, numpy.ndarray | numpy.generic):
                    mine = np.array(other)
                    mine = mine if mine.ndim else mine[()]
                    agree(outcome(text, ours[1], mine), expected, (text, dtype, "our", other))


def outcome(text: str, x: Any, y: Any) -> Any:
    """What an expression gives, or the kind of its error."""
    try:
        return numpy.asarray(eval(text, {"x": x, "y": y}))
    except (TypeError, ValueError, OverflowError) as error:
        return {TypeError, ValueError, OverflowError}.intersection(type(error).__mro__)


def agree(found: Any, expected: Any, case: Any) -> None:
    """Errors of a kind, or dtype, shape and elements; powers of arrays round as the machine has them."""
    if isinstance(expected, set):
        assert found == expected, case
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), case
        rtol = 1e-14 if expected.dtype in (float, complex) else 1e-3
        numpy.testing.assert_allclose(found, expected, rtol=rtol, err_msg=str(case))


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f4", "f8", "c8", "c16", "g"])
def test_elements_are_numpys_numbers(mode, dtype):
    """However they are picked, of an array that is here."""
    theirs = numpy.arange(1, 7).astype(dtype).reshape(2, 3)
    ours = np.array(theirs)
    picks = [
        lambda a: a[0, 1],
        lambda a: a[-1][2],
        lambda a: a.T[1, 0],
        lambda a: a[numpy.int32(1), numpy.int64(0)],
        lambda a: a[0, 1:][0],
        lambda a: next(iter(a[1])),
        lambda a: list(a.ravel())[3],
        lambda a: a[numpy.array(1), 1],
        lambda a: a[0][numpy.array(1)],
    ]
    for pick in picks:
        wanted, found = pick(theirs), pick(ours)
        assert type(found) is type(wanted)
        assert found == wanted


def test_a_number_is_an_array_that_cannot_be_written_to():
    x = np.arange(3.0).max()
    assert (x.shape, x.ndim, x.dtype, x.compute()) == ((), 0, numpy.dtype(float), 2.0)
    assert pickle.loads(pickle.dumps(x)) == 2.0
    assert np.sqrt(x * 2).item() == 2.0
    with pytest.raises(TypeError, match="assignment"):
        x[...] = 2
    y = np.array(x)
    y[...] = 7
    assert (float(x), float(y)) == (2.0, 7.0)
    assert not isinstance(x.copy(), np.ndarray)


def test_rows_are_views(mode):
    a, b = np.zeros((3, 4)), numpy.zeros((3, 4))
    for m in (a, b):
        for i, row in enumerate(m):
            row[1] = i
            row += m[0] + 1
            m[i][3] = row[1] * 2
    numpy.testing.assert_array_equal(a, b)


def test_rows_follow_what_a_loop_over_them_writes(mode):
    """Also where the loop replaces what it goes over, and the rows outlive it."""
    found = []
    for xp in (numpy, np):
        a = xp.arange(12.0).reshape(2, 3, 2)
        lines = xp.arange(24.0).reshape(4, 6)[1:, ::2]
        kept = []
        for row, line in zip(a, lines, strict=False):
            a += 1
            lines[...] = lines * 2
            row[0] *= -1
            kept += [row, line, *row, *line]
        kept[0][...] = 7
        found.append([numpy.array(k).tolist() for k in (*kept, a, lines)])
    assert found[0] == found[1]


ROWS = {
    "for": lambda a: [row.sum() for row in a],
    "index": lambda a: [a[i].max() for i in range(len(a))],
    "columns": lambda a: [a[:, j].min() for j in range(a.shape[1])],
    "rows from the end": lambda a: [a[-i, :].sum() for i in range(1, len(a))],
    "rows of a part": lambda a: [row.sum() for row in a[3:, ::2]],
    "elements": lambda a: [row[i % 9] for i, row in enumerate(a)],
}


@pytest.mark.parametrize("way", ROWS)
def test_what_a_program_walks_over_row_by_row_is_computed_once(way):
    """Each row was a plan of its own, of an array that NumPy has had since it was written down."""
    theirs = numpy.random.default_rng(0).random((40, 30))
    with np.config.override(small_bytes=theirs.nbytes // 2):
        ours = np.array(theirs) * 2 - 1
        found = ROWS[way](ours)
        assert ours._cell.value is not None
        few = np.array(theirs) * 2
        assert [row + 1 for row in few[:3]]  # taken apart, as several results are
        assert few._cell.value is None
    numpy.testing.assert_allclose(found, ROWS[way](theirs * 2 - 1))


def test_elements_are_instances_of_numpys_scalars():
    """As `isinstance` sees them, and no arrays."""
    i, x, z, flag = np.arange(3)[1], np.array([1.5])[0], np.array([1j])[0], np.array([True])[0]
    wanted: list = [
        (i, (numpy.integer, numbers.Integral)),
        (x, (float, numpy.floating)),
        (z, (complex, numpy.complexfloating)),
        (flag, (numpy.bool_,)),
    ]
    for element, kinds in wanted:
        assert all(isinstance(element, kind) for kind in kinds)
    assert not isinstance(i, (float, int))
    assert not isinstance(flag, int)
    with np.config.override(small_bytes=0):
        total: Any = np.arange(3.0).sum()
        assert isinstance(total, numpy.float64)
        assert total.is_integer()
    for element in (i, x, z, flag, total, np.zeros(1, "i4,i4")[0]):
        assert not isinstance(element, np.ndarray)
        assert isinstance(np.asarray(element), np.ndarray)
    assert isinstance(x * 2 + i, numpy.float64)
    a = np.arange(4.0)
    a[i] = x
    assert a.tolist() == [0, 1.5, 2, 3]
    assert (a * x).dtype == (np.arange(4, dtype="f4") * x).dtype == float
    assert np.where(a > x, x, i).tolist() == [1, 1, 1.5, 1.5]
    assert copy.deepcopy(x) == pickle.loads(pickle.dumps(x)) == 1.5
    assert sorted(np.random.permutation(np.array([3])[0]).tolist()) == [0, 1, 2]


def test_items_of_a_lazy_array_do_not_grow_a_graph(mode):
    """After a few of them the array is evaluated, and elements are NumPy's."""
    a, b = np.ones(200_000) * 2, numpy.ones(200_000) * 2
    twice = a * 2
    for m in (a, b):
        for i in range(1, 30):
            m[i] = m[i - 1] + i
    assert (a._cell.value is not None) == (mode == "eager")
    numpy.testing.assert_array_equal(a, b)
    numpy.testing.assert_array_equal(twice, numpy.full(200_000, 4.0))


def test_large_zeros_are_written_in_place_and_captured_as_zeros(mode):
    a = np.zeros((400, 500))
    captured = a + 1
    view = a[1]
    for i in range(20):
        a[i, i] = i
        view[5] += 1
    between = a * 1
    a[0, 1] = 7
    wanted = numpy.zeros((400, 500))
    wanted[range(20), range(20)] = range(20)
    wanted[1, 5] += 20
    numpy.testing.assert_array_equal(captured, numpy.ones((400, 500)))
    numpy.testing.assert_array_equal(between, wanted)
    wanted[0, 1] = 7
    numpy.testing.assert_array_equal(a, wanted)
    assert np.empty((400, 500)).shape == (400, 500)


def test_index_arrays_as_numpys(mode):
    a, b = np.arange(12.0).reshape(3, 4), numpy.arange(12.0).reshape(3, 4)
    i, j = np.array([2, 0, 2]), numpy.array([2, 0, 2])
    taken, wanted = a[i], b[j]
    a[i] = a[i] + 1
    b[j] = b[j] + 1
    a[a > 9] = -1
    b[b > 9] = -1
    a[np.array([1])[0], :] = np.arange(4)
    b[numpy.array([1])[0], :] = numpy.arange(4)
    numpy.testing.assert_array_equal(taken, wanted)
    numpy.testing.assert_array_equal(a, b)
    for bad in (np.array([3]), np.array([1.5]), np.array([True, False])):
        with pytest.raises(IndexError):
            a[bad]
        with pytest.raises(IndexError):
            a[bad] = 0.0


def test_arrays_of_scalars_and_numbers(mode):
    x, y = np.arange(3.0), numpy.arange(3.0)
    for m, a in ((np, x), (numpy, y)):
        assert m.array([a[1], 2, a[2] > 1]).dtype == float
    numpy.testing.assert_array_equal(np.array([[x[1], 2], [3, x[2]]]), numpy.array([[y[1], 2], [3, y[2]]]))
    assert np.array([np.arange(3)[1], True]).dtype == numpy.array([numpy.arange(3)[1], True]).dtype


OF_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda x: round(x, 1),
    "mean": lambda x: statistics.fmean([x, x]),
    "median": lambda x: float(statistics.median([x, x + 1])),
    "exact mean": lambda x: float(statistics.mean([x, x])),
    "numerator": lambda x: x.numerator,
    "denominator": lambda x: x.denominator,
    "fraction": lambda x: fractions.Fraction(x),
    "fraction of two": lambda x: fractions.Fraction(x, x),
    "made again": lambda x: float(type(x)(2)),
    "made of a fraction": lambda x: float(type(x)(fractions.Fraction(4, 2))),
    "ratio": lambda x: x.as_integer_ratio(),
    "spread": lambda x: statistics.pstdev([x, x + 1]),
    "variance of both": lambda x: float(statistics.variance([x, x + 2])),
    "mode": lambda x: float(statistics.mode([x, x])),
    "harmonic": lambda x: float(statistics.harmonic_mean([x, x])),
    "geometric": lambda x: statistics.geometric_mean([x, x]),
    "quantiles": lambda x: [float(q) for q in statistics.quantiles([x, x + 1])],
    "exact mean of both": lambda x: float(statistics.mean([x, x + 1])),
    "made of text": lambda x: float(type(x)("2")),
    "name": lambda x: type(x).__name__,
    "fsum": lambda x: math.fsum([x, x]),
    "root": lambda x: math.isqrt(x),
    "integral": lambda x: x.is_integer(),
    "hash": lambda x: hash(x) == hash(3),
    "bytes": lambda x: struct.pack("d", x),
    "duration": lambda x: datetime.timedelta(seconds=float(x)),
    "format": lambda x: f"{x:.2e}",
    "range": lambda x: list(range(x)),
    "sum": lambda x: sum([x, x, x]),
    "hypot": lambda x: math.hypot(x, x),
    "isclose": lambda x: math.isclose(x, x),
    "pow": lambda x: pow(x, 2),
    "divmod": lambda x: divmod(x, 2),
    "sorted": lambda x: sorted([x + 1, x]),
}


@pytest.mark.some(60)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_python_takes_elements_as_numpys(mode, name, dtype):
    """What the standard library asks of numbers."""
    found = []
    for xp in (numpy, np):
        try:
            found.append(OF_NUMBERS[name](xp.array([1, 3], dtype)[1]))
        except (TypeError, AttributeError, OverflowError) as error:
            found.append(type(error))
    assert found[0] == found[1]


@pytest.mark.some(80)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "u1"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_python_takes_what_is_to_be_computed_as_numpys(name, dtype):
    """The same of extremes that nobody has asked for yet."""
    found = []
    for xp in (numpy, np):
        try:
            with np.config.override(small_bytes=0):
                found.append(OF_NUMBERS[name](xp.array([1, 3], dtype).max()))
        except (TypeError, AttributeError, OverflowError) as error:
            found.append(type(error))
    assert found[0] == found[1]


ASKED_OTHERWISE = {
    "__array_interface__",
    "__array_struct__",
    "__setstate__",
    "__getnewargs__",
    "__getformat__",
}
"""What numbers without an address lack; they are pickled in another way."""
ASKED_OTHERWISE |= {"__floor__", "__ceil__"}
"""Where Python asks for a `float`."""


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1", "c16", "?"])
def test_numbers_to_be_computed_have_what_numpys_have(dtype):
    kind = numpy.dtype(dtype).type
    with np.config.override(small_bytes=0):
        number = np.array([1, 0], dtype).max()
        assert number._cell.value is None
        assert {name for name in dir(kind) if not hasattr(number, name)} <= ASKED_OTHERWISE


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_what_wants_pythons_float_says_how_it_is_made(dtype):
    with np.config.override(small_bytes=0):
        number = np.array([1, 0], dtype).max()
        asking: tuple[Callable[[Any], Any], ...]
        asking = (time.sleep, datetime.datetime.fromtimestamp, range, operator.index)
        for asks in asking:
            with pytest.raises(TypeError, match=r"float\(a\)"):
                asks(number)


PARTS = {
    "integer": lambda xp, at: 1,
    "element": lambda xp, at: at[2],
    "negative element": lambda xp, at: -at[1],
    "truth": lambda xp, at: at[1] < 5,
    "broken number": lambda xp, at: at[1] * 0.5,
    "slice": lambda xp, at: slice(1, None),
    "slice to an element": lambda xp, at: slice(at[0], at[2]),
    "new axis": lambda xp, at: None,
    "rest": lambda xp, at: ...,
    "list": lambda xp, at: [1, 0],
    "indices": lambda xp, at: at[1:],
    "indices to be computed": lambda xp, at: xp.tril_indices(2)[0],
    "mask": lambda xp, at: at < 1,
    "number without axes": lambda xp, at: xp.array(1),
}
"""Parts of keys for axes of three elements, by a namespace and its array of 0, 1 and 2."""


def items(xp, first, second, writes, computed):
    a = xp.array(numpy.arange(27.0).reshape(3, 3, 3))
    a = a * 2 if computed else a
    at = xp.arange(3)
    key = PARTS[first](xp, at)
    key = key if second is None else (key, PARTS[second](xp, at))
    try:
        found = a[key]
        if writes:
            a[key] = 5.0
            a[key] = xp.array(found) + 1
    except (IndexError, TypeError) as error:
        return type(error)
    return numpy.asarray(found).tolist(), numpy.asarray(a).tolist()


@pytest.mark.some(100)
@pytest.mark.parametrize("second", [None, *PARTS])
@pytest.mark.parametrize("first", PARTS)
def test_keys_of_any_two_parts_as_numpys(mode, first, second):
    for case in itertools.product((False, True), repeat=2):
        assert items(np, first, second, *case) == items(numpy, first, second, *case), case
