"""Universal functions that are asked for dtypes, and assignments to elements: as NumPy, or its error."""

from __future__ import annotations

import datetime
import decimal
import itertools
from contextlib import suppress
from typing import Any

import numpy
import pytest

from spartan_ng.api.elementwise.asked import harmless
from spartan_ng.ops.elementwise import ELEMENTWISE
from tests.api.answers import differences

pytestmark = pytest.mark.filterwarnings("ignore")

OF_ONE: list[Any] = [
    "d->d",
    "f->f",
    "d->?",
    "l->l",
    "d",
    "dd->d",
    (None, "f4"),
    ("f8", None),
    (None, None),
    ("f8",),
]
OF_TWO: list[Any] = [
    "dd->d",
    "ll->l",
    "bb->b",
    "dd->?",
    "ff->f",
    "i",
    "dd",
    "DD->D",
    "SS->?",
    "UU->?",
    "di->d",
    ("i4",),
]
OF_TWO += [(None, None, "f4"), ("f8", None, None), (None, "i2", None), ("e", "d", None), (None,) * 3]
ASKED: list[dict[str, Any]] = [
    {"signature": s, "casting": c} for c in ("same_kind", "unsafe", "no") for s in OF_TWO
]
ASKED += [
    {"dtype": d, "casting": c} for c in ("same_kind", "unsafe") for d in (bool, "f4", "i2", "c16", "O", "T")
]
ASKED_OF_ONE = [{"signature": s, "casting": c} for c in ("same_kind", "unsafe") for s in OF_ONE]
OPERANDS = [
    ("np.arange(4)", "np.arange(4)[::-1]"),
    ("np.arange(4)", "2.5"),
    ("np.arange(3.)/2", "-1"),
    ("np.array([1,3],'u1')", "np.array([2.,1.])"),
    ("np.array(['a','b'],'S')", "np.array(['a','c'],'U')"),
    ("np.float16(1)", "np.uint64(2)"),
    ("np.arange(3)>1", "True"),
]
PAIRS = [
    "add",
    "less",
    "equal",
    "maximum",
    "power",
    "logical_and",
    "ldexp",
    "divmod",
    "arctan2",
    "left_shift",
]
SINGLES = ["sqrt", "isnan", "negative", "logical_not", "modf", "square"]


def asked(name, operands, keywords):
    def run(np):
        operand_values = [eval(o, {"np": np}) for o in operands]
        return getattr(np, name)(*operand_values, **keywords)

    return f"{name}{operands} {keywords}", run


def test_loops_of_two_operands(mode, some):
    calls = some(itertools.product(PAIRS, OPERANDS, ASKED), 300)
    assert not differences(itertools.starmap(asked, calls))


def test_loops_of_one_operand(mode, some):
    calls = some(itertools.product(SINGLES, [o[:1] for o in OPERANDS], ASKED_OF_ONE), 100)
    assert not differences(itertools.starmap(asked, calls))


VALUES = [
    "a", "1.5", "15", b"15", b"ab", "2020-01-01", None, object(), True, 7, -1, 10**30, 2.5, 1 + 2j, numpy.nan,
    numpy.datetime64(123, "s"), numpy.timedelta64(123, "s"), numpy.datetime64("nat"), numpy.float32(2.5),
    numpy.str_("7"), numpy.bytes_(b"7"), datetime.date(2020, 1, 2), decimal.Decimal("1.5"), {1, 2}, range(2),
    (1, 2.5), [1, 2], [[1], [2]], [1], (1,), [], bytearray(b"ab"), numpy.array([3, 4]),
    numpy.array("5"), "", b"", numpy.str_(""), numpy.bytes_(b""), numpy.void(b""), numpy.void(b"ab"),
    numpy.ma.masked, numpy.ma.array(5, mask=True), numpy.ma.array(5), numpy.ma.array([5], mask=[True]),
]  # fmt: skip
TARGETS = ["f8", "f4", "i8", "u1", "?", "c16", "S2", "U4", "M8[D]", "m8[s]", "O", "i4,f4"]
PLACES = ["0", "...", "1:3", "[0,1]", "()", "np.intp(0)"]


def assigned(target, place, value):
    def run(np):
        x = np.zeros(() if place == "()" else 3, target)
        kept = x.copy()
        exec(f"x[{place}] = value", {"x": x, "value": value, "np": np})
        return [x.dtype.str, str(numpy.asarray(x)), str(numpy.asarray(kept))]

    return f"{target}[{place}] = {value!r}", run


@pytest.mark.slow
def test_elements_are_set_as_numpy_sets_them(mode, some):
    places = some(itertools.product(TARGETS, PLACES, VALUES), 300)
    assert not differences(itertools.starmap(assigned, places))


ELEMENTS = [
    "np.array(['ab'])[0]", "np.array(['12'])[0]", "np.array([b'ab'])[0]", "np.array([3], 'M8[ms]')[0]",
    "np.array([3], 'm8[ms]')[0]", "np.array([1 + 2j])[0]", "np.array([True])[0]", "np.array([1.5], 'f4')[0]",
    "np.str_('ab')", "np.bytes_(b'ab')",
    "np.array([(1, 2)], 'i4,i4')[0]", "np.array([7], 'u1')[0]", "np.array([b'ab'], 'V2')[0]",
]  # fmt: skip
USES = [
    "np.array(x, d)", "np.asarray(x, d)", "np.array([x], d)", "np.array(np.array(x), d)", "np.full(2, x, d)",
    "np.asarray(np.array(x)[()], d)", "np.array(x, d, ndmin=1)", "put(np.zeros((), d), (), x)",
    "filled(np.zeros(2, d), x)",
    "put(np.zeros(2, d), 0, x)", "put(np.zeros(2, d), slice(None), x)", "put(np.zeros(2, d), [0], x)",
]  # fmt: skip


def put(a, key, value):
    a[key] = value
    return a


def filled(a, value):
    a.fill(value)
    return a


def converted(use, element, dtype):
    def run(np):
        found = eval(
            use, {"x": eval(element, {"np": np}), "d": dtype, "np": np, "put": put, "filled": filled}
        )
        return [found.dtype.str, str(numpy.asarray(found))]

    return f"{use}, x = {element}, d = {dtype}", run


@pytest.mark.slow
def test_elements_become_arrays_as_numpys_scalars_do(mode, some):
    cases = some(itertools.product(USES, ELEMENTS, [*TARGETS, "S", "U"]), 300)
    assert not differences(itertools.starmap(converted, cases))


@pytest.mark.parametrize(
    "name", sorted(n for n, row in ELEMENTWISE.items() if row.is_ufunc and hasattr(numpy, n))
)
def test_an_element_stands_in_for_arrays_where_one_raises_nothing(name):
    """Of the operands' own dtypes: what they have no loop for has no such element."""
    kinds = [numpy.dtype(c) for c in ("i1", "u8", "f2", "f8", "c16")] + [int, float]
    for operands in itertools.product(kinds, repeat=ELEMENTWISE[name].nin):
        found = harmless(name, operands)
        fine = []
        for one in (1, 0, 2):
            with numpy.errstate(all="raise"), suppress(FloatingPointError, TypeError):
                getattr(numpy, name)(
                    *(one if isinstance(k, type) else numpy.array(one).astype(k) for k in operands)
                )
                fine.append(one)
        assert found == (fine[0] if fine else None)
