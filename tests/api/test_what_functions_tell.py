"""Functions of what has yet to be computed have NumPy's values, warnings and errors, of odd numbers, too."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

NAN, INF = numpy.nan, numpy.inf
_THINGS = numpy.array([(2, 1.5, "b"), (1, 2.5, "a"), (2, 0.5, "c")], [("k", "i4"), ("v", "f8"), ("s", "U2")])
OPERANDS: dict[str, Any] = {
    "doubles": numpy.array([3.0, 0.0, -0.0, 1.5, 7.0]),
    "both infinities": numpy.array([3.0, -INF, -0.0, 1.0, INF, 2.0]),
    "one infinity": numpy.array([3.0, INF, 0.0, 1.0, INF, 2.0]),
    "infinity first": numpy.array([INF, 1.0, 2.0]),
    "nan and infinities": numpy.array([NAN, INF, 1.0, -INF, NAN, 0.0]),
    "nan": numpy.array([1.0, NAN, -2.0, NAN]),
    "all nan": numpy.full(4, NAN),
    "halves": numpy.array([1, 0.5, 65504, -2, 60000, -65504], "f2"),
    "singles": numpy.array([1, INF, 3e38, 3e38], "f4"),
    "bytes turned": numpy.array([2.0, -1, NAN, 5, INF]).astype(">f8"),
    "complex": numpy.array([1 + 2j, 0j, complex(NAN, 1), complex(1, INF)]),
    "integers": numpy.array([5, 0, -3, 2]),
    "truths": numpy.array([True, False, True]),
    "dates": numpy.array(["2020-02-01", "NaT", "2019-01-05"], "M8[D]"),
    "durations": numpy.array([5, -3, "NaT", 7], "m8[s]"),
    "texts": numpy.array(["pear", "apple", ""]),
    "things": _THINGS,
    "nothing": numpy.zeros((0, 3)),
    "lines": numpy.array([[1.0, NAN, 3.0], [NAN, NAN, NAN], [INF, 2.0, 1.0]]),
    "one": numpy.array([[5.0]]),
    "a number": numpy.array(3.5),
}
CALLS = [
    *(f"np.{name}(x)" for name in ("mean", "std", "var", "median", "ptp", "sum", "max", "argmin", "cumsum")),
    *(
        f"np.nan{name}(x)"
        for name in ("mean", "std", "var", "median", "max", "min", "argmax", "sum", "cumprod")
    ),
    *(f"np.{name}(x, axis=0)" for name in ("nanmean", "nanstd", "nanmax", "nanmedian", "mean", "var")),
    *(f"np.{name}(x, where=x != x[:1])" for name in ("mean", "std", "var", "nanmean", "nanvar")),
    *(f"np.{name}(x, axis=-1, where=x == x, ddof=2)" for name in ("std", "var", "nanstd")),
    "np.std(x, ddof=1)",
    "np.var(x, ddof=99)",
    "np.nanvar(x, ddof=2)",
    "np.cov(x)",
    "np.corrcoef(x)",
    "np.nanpercentile(x, [5, 60])",
    "np.nanquantile(x, 0.5, axis=-1)",
    "np.nanquantile(x, [0.2, 0.9], method='nearest')",
    "np.quantile(x, [0.2, 0.9], method='lower')",
    "np.allclose(x, x)",
    "np.isclose(x, x[::-1])",
    "np.isclose(x, x[:1], equal_nan=True)",
    "np.count_nonzero(x)",
    "np.count_nonzero(x, axis=0)",
    "np.count_nonzero(x, keepdims=True)",
    *(f"np.{name}(x, x[:2])" for name in ("convolve", "correlate")),
    *(f"np.{name}(x, x, 'same')" for name in ("convolve", "correlate")),
    *(f"np.{name}(x, x)" for name in ("vecdot", "matvec", "vecmat", "inner", "vdot", "outer")),
    "np.matvec(x, x[0])",
    "np.interp(x, np.arange(5.0), x[:5], period=3)",
    "np.interp([1.5, 2.5], x, np.arange(x.size), period=3)",
    "np.histogram(x, 3)",
    "np.histogram_bin_edges(x, 'sturges')",
    "np.digitize(x, [1, 2])",
    "np.digitize([1, 2], x)",
    "np.busday_count(x, x[::-1])",
    "np.busday_offset(x, 1)",
    "np.cross(x[..., :2], x[..., :2])",
    "np.cross(x[..., :3], x[..., :3])",
    "np.ediff1d(x, to_end=x[:1])",
    *("x // 0", "x / 0", "x % 0", "x > 1", "np.sqrt(x - 2)", "np.exp(x * 1000)", "x.astype('f2')"),
]
NAMED_OTHERWISE = re.compile(r"( encountered in .*|\.)$")
"""What a text says of which function of NumPy's has told: one result may be made by other ones here."""
NUMPYS_OWN = {
    ("halves", "np.var(x, ddof=99)"),
    *((operand, f"np.{name}(x, x)") for operand in ("complex", "lines") for name in ("vecdot", "vecmat")),
}
"""Variances of halves are counted in another precision (docs/differences.md), and BLAS tells of infinities in
products as its loops have it."""


def told(xp: Any, text: str, operand: Any) -> tuple[Any, set[tuple[str, str]]]:
    """What a call gives, or its error, and what is warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found: Any = numpy.array(eval(text, {"np": xp, "x": xp.array(operand)}))
        except Exception as error:  # noqa: BLE001 - whatever NumPy raises
            found = error
    said = {(w.category.__name__, NAMED_OTHERWISE.sub("", str(w.message))) for w in seen}
    return found, {s for s in said if s[0] not in ("FallbackWarning", "PerformanceWarning")}


def is_same(found: Any, wanted: Any) -> bool:
    """An error of a class of NumPy's, or its value."""
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        return isinstance(found, type(wanted))
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return False
    if found.dtype.kind in "fc":
        return numpy.allclose(found, wanted, 2e-3 if found.dtype.char == "e" else 1e-6, equal_nan=True)
    return bool(numpy.array_equal(found, wanted, equal_nan=found.dtype.kind in "mM"))


@pytest.mark.some(250)
@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("operand", OPERANDS)
def test_values_warnings_and_errors_are_numpys(operand: str, text: str) -> None:
    wanted, said = told(numpy, text, OPERANDS[operand])
    with config.override(small_bytes=0):
        found, heard = told(np, text, OPERANDS[operand])
    assert is_same(found, wanted), (found, wanted)
    if not isinstance(wanted, Exception) and (operand, text) not in NUMPYS_OWN:
        assert heard == said
