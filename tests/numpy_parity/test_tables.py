"""Every row of the tables × dtypes × shapes × tilings, on three workers, against NumPy.

Values, dtypes and shapes; and where NumPy raises, the same exception at the same call, naming the shapes. The
tilings take turns from one case to the next, so that each meets every row, dtype and shape somewhere.
"""

from __future__ import annotations

import itertools
import random
from functools import partial
from typing import Any

import numpy
import pytest

import spartan_ng as np
from benchmarks.simulated import SimulatedBackend
from spartan_ng import session
from spartan_ng.api.core.handle import Handle
from spartan_ng.api.core.numbers import NUMERIC
from spartan_ng.api.elementwise import ufuncs
from spartan_ng.config import TILINGS, config
from spartan_ng.ops.by_ufunc import Fold
from spartan_ng.ops.elementwise import ELEMENTWISE
from spartan_ng.ops.folds import FOLDS, ArgFold
from spartan_ng.ops.scans import SCANS
from tests.numpy_parity import test_functions as functions

pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
SHAPES = [(), (7,), (5, 3), (1, 4), (0, 3), (2, 3, 4)]
PARTNERS = {(5, 3): (3,), (2, 3, 4): (3, 1), (7,): ()}
ERRORS = (ValueError, TypeError, IndexError, ZeroDivisionError)
LAYOUTS = [None, *TILINGS]
ROWS = [r for r in ELEMENTWISE.values() if r.is_ufunc]
REDUCTIONS = [r for r in FOLDS.values() if isinstance(r, Fold)]


@pytest.fixture(autouse=True)
def _on_three_workers():
    """Nothing small, three workers inside this process."""
    before = session.current().backend
    backend = SimulatedBackend(3)
    session.use(backend)
    with config.override(small_bytes=0):
        yield
    session.use(before)
    backend.close()


def _ours(row) -> Any:
    return ufuncs.of_name(row.name)


def sample(dtype, shape, turn=0):
    """Small numbers with a few special ones among them."""
    n = int(numpy.prod(shape))
    values = numpy.resize(numpy.roll([0, 1, 2, 3, 5, 7, 1, 0, 4, 6, 2, 1, 9], turn), n).astype(dtype)
    if values.dtype.kind in "ifc":
        values[::3] = -values[::3]
    if values.dtype.kind == "f" and n > 6:
        values[[1, 4]] = [numpy.nan, numpy.inf]
    if values.dtype.kind == "c" and n:
        values[0] = 1 + 2j
    return values.reshape(shape)


def compare(got, wanted, what):
    for g, w in zip(*((x if isinstance(x, tuple) else (x,)) for x in (got, wanted)), strict=True):
        w = numpy.asarray(w)
        if type(g) in NUMERIC or isinstance(g, numpy.datetime64 | numpy.timedelta64):  # NumPy's
            g = np.asarray(g)
        assert issubclass(type(g), Handle), what
        assert (g.shape, g.dtype) == (w.shape, w.dtype), what
        digits = {"e": 3e-3, "f": 4e-5, "F": 4e-5, "d": 1e-12, "D": 1e-12}.get(w.dtype.char)
        if digits is None:
            numpy.testing.assert_array_equal(g.compute(), w, err_msg=what)
        else:
            numpy.testing.assert_allclose(g.compute(), w, digits, digits, err_msg=what)


def check(ours, theirs, operands, what, late=False):
    """One call against NumPy's: both raise, or both give the same.

    What depends on values (`late`) raises when it is evaluated.
    """
    failed: tuple = ()
    wanted = None
    try:
        wanted = theirs(*(x.copy() for x in operands))
    except ERRORS as error:
        failed = tuple(c for c in ERRORS if isinstance(error, c))
    if not failed:
        compare(ours(*map(np.array, operands)), wanted, what)
    elif late:
        with pytest.raises(failed):
            ours(*map(np.array, operands)).compute()
    else:
        with pytest.raises(failed):
            ours(*map(np.array, operands))


def cases(*axes):
    """The product of the axes, with the tilings in turn, beginning anywhere."""
    turns = itertools.islice(itertools.cycle(LAYOUTS), random.randrange(len(LAYOUTS)), None)
    return zip(itertools.product(*axes), turns, strict=False)


@pytest.mark.some(40)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_elementwise(row, some):
    ufunc = _ours(row)
    for (dtype, shape), tiling in some(cases(DTYPES, SHAPES), 12):
        operands = [sample(dtype, PARTNERS.get(shape, shape) if i else shape, i) for i in range(row.nin)]
        if row.name == "ldexp":
            operands[1] = numpy.array(3)
        with config.override(tiling=tiling):
            what = f"{row.name} of {dtype} {[o.shape for o in operands]}, {tiling}"
            check(ufunc, row.function, operands, what, late=row.name == "power")


OTHERS = {
    "M8[D]": numpy.array(
        ["2024-02-28", "NaT", "1970-01-01", "2024-02-29", "1969-12-31", "2030-01-01"], "M8[D]"
    ),
    "M8[s]": numpy.array(["2024-02-28T01:02:03", "1970-01-01", "NaT", "2024-03-01"], "M8[s]"),
    "m8[D]": numpy.array([3, -1, 0, "NaT", 7, 100], "m8[D]"),
    "m8[ms]": numpy.array([30_000, -1, "NaT", 86_400_000], "m8[ms]"),
    "U": numpy.array(["b", "a", "", "abc", "ab"]),
    "S": numpy.array([b"b", b"a", b"", b"abc", b"ab"]),
    "?": numpy.array([True, False, True, True]),
    "i8": numpy.array([1, 2, 3, 4, 7]),
    "f8": numpy.array([1.5, -2.0, 0.5]),
}
"""Values of other dtypes than numbers, and numbers to go with them."""


def other(kind, shape, turn=0):
    n = int(numpy.prod(shape))
    return numpy.resize(numpy.roll(OTHERS[kind], turn), n).astype(OTHERS[kind].dtype).reshape(shape)


@pytest.mark.some(40)
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_dates_durations_and_strings(row, some):
    """Every pair of dtypes of which one is no number."""
    kinds = [k for k in itertools.product(OTHERS, repeat=row.nin) if any(x[0] in "MmUS" for x in k)]
    shapes = [(7,), (5, 3), (), (0, 3)] if row.nin == 1 else [(5, 3)]
    for (dtypes, shape), tiling in some(cases(kinds, shapes), 12):
        operands = [other(k, PARTNERS.get(shape, shape) if i else shape, i) for i, k in enumerate(dtypes)]
        with config.override(tiling=tiling):
            check(_ours(row), row.function, operands, f"{row.name} of {dtypes} {shape}, {tiling}")


TIMES = ["M8[D]", "M8[s]", "m8[D]", "m8[ms]"]


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda r: r.name)
def test_folds_of_dates_and_durations(row, some):
    every = cases(TIMES, SHAPES, [None, 0, (0, -1)], [False, True])
    for (kind, shape, axis, keepdims), tiling in some(every, 20):
        x = other(kind, shape)
        with config.override(tiling=tiling):
            ours, theirs = (partial(u.reduce, axis=axis, keepdims=keepdims) for u in (_ours(row), row.ufunc))
            check(ours, theirs, [x], f"{row.name} of {kind} {shape} along {axis}, {tiling}")


OF_TIMES = ["argmax", "argmin", "sort", "argsort", "max", "min", "ptp", "unique", "median", "mean", "sum"]


@pytest.mark.parametrize("name", OF_TIMES)
def test_functions_of_dates_and_durations(name, some):
    for (kind, shape, axis), tiling in some(cases(TIMES, [(7,), (5, 3), (2, 3, 4)], [None, 0, -1]), 10):
        if name == "unique" and axis is not None:
            continue
        x = other(kind, shape)
        keywords = {"kind": "stable"} if name == "argsort" else {}
        with config.override(tiling=tiling):
            ours, theirs = (partial(getattr(n, name), axis=axis, **keywords) for n in (np, numpy))
            check(ours, theirs, [x], f"{name} of {kind} {shape} along {axis}, {tiling}")


@pytest.mark.parametrize("row", [r for r in ROWS if r.nin == 2], ids=lambda r: r.name)
def test_shapes_that_do_not_fit(row):
    a, b = (np.array(sample("i4", shape)) for shape in ((5, 3), (4,)))
    with pytest.raises(ValueError, match=r"\(5, 3\) and \(4,\)"):
        _ours(row)(a, b)


@pytest.mark.parametrize("row", REDUCTIONS, ids=lambda r: r.name)
def test_folds(row, some):
    every = cases(DTYPES, SHAPES, [None, 0, (0, -1), 2], [False, True])
    for (dtype, shape, axis, keepdims), tiling in some(every, 60):
        x = sample(dtype, shape)
        with config.override(tiling=tiling):
            ours, theirs = (partial(u.reduce, axis=axis, keepdims=keepdims) for u in (_ours(row), row.ufunc))
            check(ours, theirs, [x], f"{row.name} of {dtype} {shape} along {axis}, {tiling}")


@pytest.mark.parametrize("name", [r.name for r in FOLDS.values() if isinstance(r, ArgFold)])
def test_positions_of_extremes(name, some):
    for (dtype, shape, axis), tiling in some(cases(DTYPES, SHAPES, [None, 0, -1, 2]), 40):
        x = sample(dtype, shape)
        with config.override(tiling=tiling):
            ours, theirs = (partial(getattr(n, name), axis=axis) for n in (np, numpy))
            check(ours, theirs, [x], f"{name} of {dtype} {shape} along {axis}, {tiling}")


@pytest.mark.parametrize("row", SCANS.values(), ids=lambda r: r.name)
def test_scans(row, some):
    for (dtype, shape, axis), tiling in some(cases(DTYPES, SHAPES, [0, -1, 2]), 40):
        x = sample(dtype, shape)
        with config.override(tiling=tiling):
            ours, theirs = (partial(u.accumulate, axis=axis) for u in (_ours(row), row.ufunc))
            check(ours, theirs, [x], f"{row.name} of {dtype} {shape} along {axis}, {tiling}")


@pytest.mark.some(50)
@pytest.mark.parametrize("name", [*functions.FOLDS, *functions.SHAPES, *functions.SORTS])
def test_functions_in_tilings(name, some):
    function = {**functions.FOLDS, **functions.SHAPES, **functions.SORTS}[name]
    for ((kind, x), _), tiling in some(cases(functions.INPUTS.items(), range(2)), 5):
        try:
            with config.override(tiling=tiling):
                functions.check(function, x)
        except AssertionError as error:
            raise AssertionError(f"{name} of {kind}, {tiling}: {error}") from error


@pytest.mark.parametrize("axis", [0, -1, None, 1])
def test_numbers_have_an_axis_for_cumulative_sums(axis):
    check(partial(np.cumsum, axis=axis), partial(numpy.cumsum, axis=axis), [numpy.array(3.0)], f"{axis}")
