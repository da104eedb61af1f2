"""NumPy's error state: errors at the statement, silence where it was asked for."""

from __future__ import annotations

import warnings

import numpy
import pytest

import spartan_ng as np
from spartan_ng import config

LARGE = 300_000


@pytest.fixture(autouse=True, params=["eager", "lazy"])
def mode(request):
    with config.override(small_bytes=1 << 20 if request.param == "eager" else 0):
        yield request.param


RAISING = {
    "divide": lambda xp, a: 1 / a,
    "invalid": lambda xp, a: xp.sqrt(a - 5),
    "over": lambda xp, a: xp.exp(a),
    "sum": lambda xp, a: (a * 0 + 1e308).sum(),
    "cumsum": lambda xp, a: xp.cumsum(a * 0 + 1e308),
    "in place": lambda xp, a: a.__imul__(1e308).__imul__(10),
    "out": lambda xp, a: xp.divide(1, a, out=xp.empty_like(a)),
    "integers": lambda xp, a: a.astype(int) // a.astype(int),
    "cast": lambda xp, a: (a * 1e300).astype("f4"),
    "cast to integers": lambda xp, a: (a + xp.inf).astype("i4"),
    "assignment": lambda xp, a: xp.zeros(len(a), "f2").__setitem__(slice(None), a + 70000),
    "assignment by mask": lambda xp, a: xp.zeros(len(a), "f2").__setitem__(a > 2, (a + 70000)[3:]),
    "assignment by list": lambda xp, a: xp.zeros(len(a), "f2").__setitem__([0, 2], (a + 70000)[:2]),
    "copyto": lambda xp, a: xp.copyto(xp.zeros(len(a), "f2"), a + 70000),
    "copyto where": lambda xp, a: xp.copyto(xp.zeros(len(a), "f2"), a + 70000, where=a > 2),
    "flat": lambda xp, a: setattr(xp.zeros(len(a), "f2"), "flat", a + 70000),
}


@pytest.mark.parametrize("n", [7, LARGE])
@pytest.mark.parametrize("case", RAISING)
def test_errors_are_raised_at_the_statement(case, n):
    for xp in (numpy, np):
        a = xp.arange(float(n))
        if case == "over":
            a = a * 1000
        with xp.errstate(all="raise", under="ignore"), pytest.raises(FloatingPointError):
            RAISING[case](xp, a)


@pytest.mark.parametrize("n", [7, LARGE])
def test_a_callback_is_called_once_for_each_function_as_by_numpy(n):
    def told(xp):
        calls = []
        a = xp.arange(float(n))
        with xp.errstate(all="call", call=lambda kind, flag: calls.append((kind, flag))):
            xp.log(1 / a - xp.inf)
        return calls

    assert told(np) == told(numpy) != []


@pytest.mark.parametrize("n", [7, LARGE])
def test_what_is_built_in_silence_is_computed_in_silence(n):
    a = np.arange(float(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(divide="ignore", invalid="ignore"):
            b = a / a + np.log(a)
            least = b[1:].min()
        assert numpy.isnan(b.compute()[0])
        assert float(least) == 1.0


def test_silence_ends_with_the_block():
    a = np.arange(50.0)
    with np.errstate(divide="ignore"):
        quiet = 1 / a
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        float(quiet.sum())
        assert not seen
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        float(np.log(a * 2).sum())


def test_seterr_counts_as_a_block_without_an_end():
    before = np.seterr(divide="raise")
    try:
        with pytest.raises(FloatingPointError):
            1 / np.zeros(LARGE)
    finally:
        np.seterr(**before)
    # A kernel that others had compiled meanwhile would give no warning.
    with np.config.override(kernels="interpret"), pytest.warns(RuntimeWarning, match="divide by zero"):
        assert numpy.isinf(float((1 / np.zeros(LARGE)).max()))


FILTERED = {
    "entropy": lambda xp, p: -xp.sum(p[p > 0] * xp.log2(p[p > 0])),
    "quotients": lambda xp, p: (1 / p[p > 0])[:2],
    "mean": lambda xp, p: xp.sqrt(p[p >= 0]).mean(),
    "cast": lambda xp, p: xp.where(p > 0, p, xp.nan)[p > 0].astype("i4"),
    "extreme": lambda xp, p: xp.max(1 / p[p > 0]),
}


@pytest.mark.parametrize("n", [7, LARGE])
@pytest.mark.parametrize("case", FILTERED)
def test_elements_that_a_mask_leaves_out_raise_no_warnings(case, n):
    """They are computed beside the others, in one pass, and are none of NumPy's."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for xp in (numpy, np):
            p = xp.asarray(numpy.arange(n) % 5 - 1.0)
            found.append(numpy.asarray(FILTERED[case](xp, p)))
    numpy.testing.assert_allclose(found[1], found[0], rtol=1e-12)


CHOSEN = {
    "divide": lambda xp, x, y, chosen, **out: xp.divide(x, y, where=chosen, **out),
    "divide numbers": lambda xp, x, y, chosen, **out: xp.divide(1, y, where=chosen, **out),
    "sqrt": lambda xp, x, y, chosen, **out: xp.sqrt(y - 1, where=chosen, **out),
    "log": lambda xp, x, y, chosen, **out: xp.log(y, where=chosen, **out),
    "power": lambda xp, x, y, chosen, **out: xp.power(y, -1, where=chosen, **out),
    "rest": lambda xp, x, y, chosen, **out: xp.remainder(x, y, where=chosen, **out),
    "rest of integers": lambda xp, x, y, chosen, **out: xp.remainder(7, y.astype(int), where=chosen, **out),
    "as f4": lambda xp, x, y, chosen, **out: xp.divide(x, y, where=chosen, dtype="f4", **out),
}


@pytest.mark.some(40)
@pytest.mark.parametrize("state", ["warn", "raise"])
@pytest.mark.parametrize("has_out", [True, False])
@pytest.mark.parametrize("n", [7, LARGE])
@pytest.mark.parametrize("case", CHOSEN)
def test_elements_that_where_leaves_out_are_not_computed(case, n, has_out, state):
    """Quotients where there is something to divide by: NumPy's own way to be safe."""
    found = []
    for xp in (numpy, np):
        x = xp.arange(float(n))
        y = xp.asarray(numpy.arange(n) % 5 * 1.0)
        out = {"out": xp.full(n, -7.0)} if has_out else {}
        with warnings.catch_warnings(), xp.errstate(all=state, under="ignore"):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "'where' used without 'out'")
            warnings.filterwarnings("ignore", ".*'where' used without 'out', expect zeros")
            given = numpy.asarray(CHOSEN[case](xp, x, y, y > 0, **out))
        found.append(given if has_out or not given.ndim else given[numpy.arange(n) % 5 > 0])
    numpy.testing.assert_allclose(found[1], found[0], rtol=1e-6)
