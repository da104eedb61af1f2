"""What is sorted, folded, scanned and searched has NumPy's dtypes and values for the other byte order, too:
whether memory has room for it or not, and whether few of its elements are distinct or many."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.files.sources import over
from spartan_ng.config import config
from tests.api.test_tall_matrices import little_memory
from tests.sources.recorder import Recorder

LENGTH = 20_000
DTYPES = [">f8", ">f4", ">i4", ">u2", ">i8", ">f2", ">c16", ">M8[s]", ">m8[s]", ">U3", "<f4", "<f8"]
_SETS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")
_SCANS = ("cumsum", "cumprod", "nancumsum", "nancumprod", "diff", "ediff1d")
_FOLDS = (
    *("sum", "prod", "min", "max", "mean", "std", "var", "median", "ptp", "nansum", "nanmax", "nanmin"),
    *("nanmean", "nanmedian", "argmin", "argmax", "count_nonzero", "any", "all"),
)
_SORTS = ("sort", "argsort", "sort_complex", "unique_all", "unique_counts", "unique_inverse")
_OTHERS = ("flip", "trim_zeros", "flatnonzero", "copy", "sign", "nan_to_num")

Call = Callable[[Any, Any], Any]


def _of(name: str, *args: Any, **keywords: Any) -> Call:
    return lambda m, x: getattr(m, name)(x, *args, **keywords)


def _of_two(name: str, turned: bool = False) -> Call:
    return lambda m, x: getattr(m, name)(*((x, x[100:300])[:: -1 if turned else 1]))


def _by_columns(name: str) -> Call:
    return lambda m, x: getattr(m, name)(x.reshape(-1, 4), axis=0)


def _accumulated(name: str) -> Call:
    return lambda m, x: getattr(m, name).accumulate(x)


CALLS: dict[str, Call] = {
    **{name: _of(name) for name in _SCANS + _FOLDS + _SORTS + _OTHERS},
    **{name: _of_two(name) for name in _SETS},
    **{f"{name}, the second first": _of_two(name, True) for name in _SETS},
    **{f"{name} by columns": _by_columns(name) for name in _FOLDS},
    **{f"accumulated {name}": _accumulated(name) for name in ("add", "maximum")},
    "unique": _of("unique"),
    "unique_values": lambda m, x: m.sort(m.unique_values(x)),  # in any order
    "unique, all": _of("unique", return_index=True, return_inverse=True, return_counts=True),
    "unique, counts": _of("unique", return_counts=True),
    "unique, inverse": _of("unique", return_inverse=True),
    "unique, index": _of("unique", return_index=True),
    "unique rows": lambda m, x: m.unique(x.reshape(-1, 4), axis=0),
    "isin": lambda m, x: m.isin(x, x[:50]),
    "partition": lambda m, x: m.partition(x, 50)[50],
    "argpartition": lambda m, x: x[m.argpartition(x, 50)[:51]].max(),
    "sorted rows": lambda m, x: m.sort(x.reshape(4, -1), axis=1),
    "sorted columns": lambda m, x: m.sort(x.reshape(-1, 4), axis=0),
    "least": lambda m, x: m.sort(x)[:10],
    "greatest": lambda m, x: m.sort(x)[-10:],
    "descending": lambda m, x: m.sort(x)[::-1],
    "searchsorted": lambda m, x: m.searchsorted(m.sort(x), x[:50]),
    "lexsort": lambda m, x: m.lexsort((x, x[::-1])),
    "quantiles": lambda m, x: m.quantile(x, [0.1, 0.9]),
    "histogram": lambda m, x: m.histogram(x, 7)[1],
    "bincount": lambda m, x: m.bincount(x[:100]),
    "kept": lambda m, x: x[x > x[3]],
    "compress": lambda m, x: m.compress(x == x[3], x),
    "delete": lambda m, x: m.delete(x, [1, 5]),
    "insert": lambda m, x: m.insert(x, 3, x[1]),
    "reduceat": lambda m, x: m.add.reduceat(x, [0, 500, 700]),
    "add at": lambda m, x: m.maximum.reduce(x, keepdims=True),
    "taken": lambda m, x: m.take(x, [3, 1]),
    "sorted method": lambda m, x: _sorted(m.array(x)),
}


def _sorted(x: Any) -> Any:
    x.sort()
    return x


def elements(dtype: str, distinct: int) -> Any:
    return numpy.random.default_rng(5).integers(0, distinct, LENGTH).astype(dtype)


def parts(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple) else (found,)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.some(60)
@pytest.mark.parametrize("distinct", [9, 3000])
@pytest.mark.parametrize("budget", [None, 0, 60_000, 1 << 20])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_values_are_numpys(name: str, dtype: str, budget: int | None, distinct: int) -> None:
    a = elements(dtype, distinct)
    try:
        expected = parts(CALLS[name](numpy, a))
    except (TypeError, ValueError):
        return
    room = little_memory(0, budget) if budget else config.override(small_bytes=0)
    with nullcontext() if budget is None else room:
        found = parts(CALLS[name](np, over(Recorder(a)) if budget else np.array(a)))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert numpy.asarray(other).dtype.str == one.dtype.str
            computed = numpy.asarray(one)
            assert computed.dtype.str == numpy.asarray(other).dtype.str
            if computed.dtype.kind in "fc":
                if not numpy.isfinite(other).all():
                    continue  # half precision overflows, in another order of sums or not
                rtol = 0.15 if dtype == ">f2" else 1e-4  # NumPy adds columns of it up in half precision
                numpy.testing.assert_allclose(computed, other, rtol=rtol)
            elif not name.startswith("lexsort") and name != "argsort":
                numpy.testing.assert_array_equal(computed, other)
