"""`out` of every dtype for every fold, scan and statistic: what NumPy writes, gives back or refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.config import config

_KINDS = ["?", "i1", "u1", "i2", "u2", "i4", "u8", "i8", "f2", "f4", "f8", "g", "F", "D"]
_PLAIN = [
    *("max", "min", "mean", "std", "var", "any", "all", "argmin", "argmax", "nansum", "nanmax", "nanmin"),
    *(
        "nanmean",
        "nanstd",
        "nanvar",
        "nanargmin",
        "nanprod",
        "nanargmax",
        "median",
        "nanmedian",
        "ptp",
        "sum",
    ),
    *("prod", "cumsum", "cumprod", "nancumsum", "cumulative_sum", "cumulative_prod"),
]
_UFUNCS = [
    *(
        "add",
        "subtract",
        "multiply",
        "minimum",
        "fmax",
        "logical_and",
        "bitwise_or",
        "hypot",
        "arctan2",
        "power",
    ),
    *("floor_divide", "logaddexp", "maximum", "copysign"),
]
_rng = numpy.random.default_rng(0)
Call = Callable[[Any, Any, Any], Any]


def _value(kind: str) -> Any:
    dtype, shape = numpy.dtype(kind), (4, 5)
    if dtype.kind == "b":
        return _rng.random(shape) > 0.5
    if dtype.kind in "iu":
        return _rng.integers(0 if dtype.kind == "u" else -100, 120, shape).astype(dtype)
    real = _rng.standard_normal(shape) * 3
    return (
        (real + 1j * _rng.standard_normal(shape)).astype(dtype) if dtype.kind == "c" else real.astype(dtype)
    )


def _calls() -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for name in _PLAIN:
        calls[name] = lambda m, a, out, name=name: getattr(m, name)(a, axis=0, out=out)  # type: ignore[misc]
    for name in ("quantile", "nanpercentile"):
        for how in ("linear", "lower"):
            calls[f"{name} {how}"] = lambda m, a, out, name=name, how=how: getattr(m, name)(  # type: ignore[misc]
                a, 0.5, axis=0, out=out, method=how
            )
    for name in _UFUNCS:
        for method in ("reduce", "accumulate"):
            calls[f"{name}.{method}"] = lambda m, a, out, name=name, method=method: getattr(  # type: ignore[misc]
                getattr(m, name), method
            )(a, axis=0, out=out)
        calls[f"{name}.reduceat"] = lambda m, a, out, name=name: getattr(m, name).reduceat(  # type: ignore[misc]
            a, [0, 2, 1], axis=0, out=out
        )
    calls["cumulative_sum from 0"] = lambda m, a, out: m.cumulative_sum(
        a, axis=0, out=out, include_initial=True
    )
    calls["round"] = lambda m, a, out: m.round(a, 1, out=out)
    calls["einsum"] = lambda m, a, out: m.einsum("ij->j", a, out=out)
    return calls


CALLS = _calls()


def _answer(call: Call, m: Any, value: Any, shape: tuple[int, ...], kind: str | None) -> Any:
    """What is given and what is written, or the error."""
    out = None if kind is None else m.asarray(numpy.ones(shape, kind))
    try:
        found = call(m, m.asarray(value.copy())[::1], out)
        return numpy.asarray(found), None if out is None else numpy.asarray(out)
    except (TypeError, ValueError) as error:
        return error


def _agree(a: Any, b: Any) -> bool:
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    rough = 1e-2 if a.dtype.char == "e" else 1e-5
    return bool(
        numpy.allclose(a, b, rtol=rough, atol=1e-6, equal_nan=True)
        if a.dtype.kind in "fc"
        else (a == b).all()
    )


def _variances_of_half(name: str, kind: str, out: str | None) -> bool:
    """Of which docs/differences.md says that they are counted in single precision."""
    return name.endswith(("std", "var")) and kind == "f2" and out not in (None, "f2")


@pytest.mark.some(25)
@pytest.mark.parametrize("is_planned", [True, False])
@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_out_of_any_dtype(name: str, kind: str, is_planned: bool) -> None:
    call, value = CALLS[name], _value(kind)
    with warnings.catch_warnings(), config.override(small_bytes=0 if is_planned else config.small_bytes):
        warnings.simplefilter("ignore")
        plain = _answer(call, numpy, value, (), None)
        shape = (5,) if isinstance(plain, Exception) else plain[0].shape
        for out in (None, *_KINDS):
            if _variances_of_half(name, kind, out):
                continue
            expected, found = (_answer(call, m, value, shape, out) for m in (numpy, np))
            case = (out, expected, found)
            if isinstance(expected, Exception):
                assert isinstance(found, (TypeError, ValueError)), case
            else:
                assert not isinstance(found, Exception), case
                assert all(map(_agree, expected, found)), case


SEGMENTED = [n for n in dir(numpy) if isinstance(getattr(numpy, n), numpy.ufunc)]


@pytest.mark.filterwarnings("ignore:.*is not distributed")
@pytest.mark.parametrize("name", SEGMENTED)
def test_segments_begin_with_their_first_element(name: str) -> None:
    ufunc = getattr(numpy, name)
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature:
        return
    with config.override(small_bytes=0), numpy.errstate(all="ignore"):
        for kind in ("f8", "i4", "?"):
            value = _value(kind)
            for at in ([0], [1, 0, 3], [0, 1, 2, 3], [3, 3]):
                try:
                    expected = ufunc.reduceat(value, at)
                except TypeError:
                    continue
                except ValueError:  # integers to negative powers
                    continue
                found = numpy.asarray(getattr(np, name).reduceat(np.asarray(value) + np.zeros(5, kind), at))
                assert found.dtype == expected.dtype
                numpy.testing.assert_allclose(found, expected, rtol=1e-9, equal_nan=True)
