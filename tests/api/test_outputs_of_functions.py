"""`out=` of every function that has one: NumPy's values, dtypes and kinds of errors, whatever it is like."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

import spartan_ng as np
from spartan_ng.api.core import quick
from spartan_ng.api.core.dispatch import FUNCTIONS
from tests.test_calls import calls

ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "concatenate": lambda x: ([x, x, x[:1]],),
    "stack": lambda x: ([x, x],),
    "dot": lambda x: (x, x.T),
    "outer": lambda x: (x[0], x[1]),
    "einsum": lambda x: ("ij->j", x),
    "multi_dot": lambda x: ([x, x.T, x],),
    "clip": lambda x: (x, 1, 3),
    "take": lambda x: (x, [3, 0, 7]),
    "compress": lambda x: ([True, False, True], x),
    "choose": lambda x: ([1, 0, 3, 2, 0], x),
    "cumulative_sum": lambda x: (x[0],),
    "cumulative_prod": lambda x: (x[0],),
    **dict.fromkeys(("quantile", "nanquantile"), lambda x: (x, [0.3, 0.5])),
    **dict.fromkeys(("percentile", "nanpercentile"), lambda x: (x, 30)),
}
OF_DATES = {"is_busday", "busday_offset", "busday_count"}
NAMED = {
    function.__name__: function
    for function in FUNCTIONS
    if not isinstance(function, numpy.ufunc)
    and function is not numpy.fromstring
    and "out" in inspect.signature(function).parameters
    and function.__name__ not in OF_DATES
}
OPERANDS = {
    "doubles": numpy.arange(20.0).reshape(4, 5) % 7,
    "integers": numpy.arange(20, dtype="i2").reshape(4, 5) % 5,
    "complex": numpy.arange(20).reshape(4, 5) * (1 + 2j),
    "with nan": numpy.where(numpy.arange(20) == 7, numpy.nan, numpy.arange(20.0)).reshape(4, 5),
}
PLACES = ("alike", "f4", "f8", "c16", "i8", "i2", "strided", "turned", "read-only", "long", "wide", "over")
BESIDE: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 1}, {"dtype": "f4"}, {"axis": 0, "keepdims": True}]
NUMPYS_OWN = {
    **dict.fromkeys(("cumsum", "cumprod", "cumulative_sum", "cumulative_prod"), ("long",)),
    **dict.fromkeys(("nancumsum", "nancumprod"), ("long",)),
    **dict.fromkeys(("ptp", "quantile", "nanquantile"), ("over",)),
    **dict.fromkeys(("hfft", "ifft2", "irfft2"), PLACES),
    "multi_dot": ("f4", "f8", "c16", "i8", "i2", "strided", "turned"),
}
"""What NumPy does not say of itself: scans into more axes than they have, extremes of what one of them has
been written over; transforms that forget `out`, which is written; and what no product by BLAS takes."""
MEANS = ("mean", "std", "var", "nanmean", "nanstd", "nanvar")
KINDS = (TypeError, IndexError, ValueError)


def place(xp: Any, kind: str, like: Any, x: Any) -> Any:
    """An output for what is like an array, over the operand or elsewhere."""
    shape, dtype = numpy.shape(like), numpy.asarray(like).dtype
    if kind == "strided":
        return xp.full((*shape[:-1], 2 * shape[-1]), 9, dtype)[..., ::2] if shape else xp.full((), 9, dtype)
    if kind == "turned":
        return xp.full(shape[::-1], 9, dtype).T
    if kind == "read-only":
        out = xp.full(shape, 9, dtype)
        out.flags.writeable = False
        return out
    if kind == "long":
        return xp.full((*shape, 2), 9, dtype)
    if kind == "wide":
        return xp.full((*shape[:-1], 77), 9, dtype)
    if kind == "over":
        return x[tuple(slice(n) for n in shape)] if len(shape) == 2 else x[0] if shape == (5,) else x[:, 0]
    return xp.full(shape, 9, dtype if kind == "alike" else kind)


def kind_of(error: Exception) -> type[Exception]:
    """Which of the kinds that a caller may tell apart an error is of."""
    return next(k for k in KINDS if isinstance(error, k))


def outcome(xp: Any, name: str, operand: str, kind: str, keywords: dict[str, Any]) -> Any:
    function = getattr(xp, name, None) or getattr(xp.fft, name, None) or getattr(xp.linalg, name)
    given = ARGUMENTS.get(name, lambda x: (x,))
    x = xp.array(OPERANDS[operand])
    like = NAMED[name](*given(OPERANDS[operand]), **keywords)
    out = place(xp, kind, like, x)
    try:
        found = function(*given(x), out=out, **keywords)
    except KINDS as error:
        return error
    return found, out, x, found is out


@pytest.mark.some(120)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("keywords", BESIDE, ids=str)
@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("name", NAMED)
def test_outputs_have_numpys_values(mode: Any, name: str, operand: str, keywords: dict[str, Any]) -> None:
    if not set(keywords) <= set(inspect.signature(NAMED[name]).parameters):
        pytest.skip("it has no such keyword")
    if "dtype" in keywords and name in MEANS:
        pytest.skip("what is added in which dtype is asked elsewhere")
    try:
        NAMED[name](*ARGUMENTS.get(name, lambda x: (x,))(OPERANDS[operand]), **keywords)
    except KINDS:
        pytest.skip("NumPy refuses it without an output")
    for kind in PLACES:
        if kind in NUMPYS_OWN.get(name, ()):
            continue
        wanted, ours = (outcome(xp, name, operand, kind, keywords) for xp in (numpy, np))
        assert isinstance(ours, tuple) == isinstance(wanted, tuple), (kind, ours, wanted)
        if not isinstance(wanted, tuple):
            assert kind_of(ours) == kind_of(wanted), (kind, ours, wanted)
            continue
        assert ours[-1] == wanted[-1], "whether it is given back"
        for mine, theirs in zip(ours[:-1], wanted[:-1], strict=True):
            assert mine.dtype == theirs.dtype
            numpy.testing.assert_allclose(mine, theirs, 1e-6, 1e-6, err_msg=kind)


@pytest.mark.parametrize("name", ["concatenate", "stack"])
def test_small_outputs_are_no_detour(name: str) -> None:
    x, out = np.ones(9), np.zeros(27 if name == "concatenate" else (3, 9))
    function = getattr(np, name)
    function([x, x, x], out=out)
    kept = out._cell.value
    assert sum(calls(lambda: function([x, x, x], out=out)).values()) < 25
    assert out._cell.value is kept


BOTH = (
    "sum",
    "prod",
    "max",
    "min",
    "mean",
    "var",
    "std",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
)
CALLED = [(name, is_method) for name in BOTH for is_method in (False, True)]
ALONE = ("ptp", "median", "nansum", "nanprod", "nanmin", "nanmax", "nanmean", "nanstd", "nancumsum")
CALLED += [(name, False) for name in ALONE]


def called_of(xp: Any, name: str, is_method: bool, x: Any) -> Callable[..., Any]:
    return getattr(x, name) if is_method else functools.partial(getattr(xp, name), x)


def functions_of_ours(call: Callable[[], Any]) -> list[str]:
    """Which of the package's functions in Python a call takes."""
    room, called = str(Path(np.__file__).parent), list[str]()
    sys.setprofile(
        lambda frame, event, _: (
            called.append(frame.f_code.co_name)
            if event == "call" and frame.f_code.co_filename.startswith(room)
            else None
        )
    )
    try:
        call()
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "is_method"), CALLED)
def test_small_outputs_of_folds_and_scans_are_numpys(name: str, is_method: bool) -> None:
    """Functions and methods, whatever the output is like, also over the operand, and none."""
    for keywords in ({}, {"axis": 0}, {"axis": -1}):
        for operand, values in OPERANDS.items():
            try:
                like = called_of(numpy, name, is_method, values)(**keywords)
            except TypeError:
                continue
            for kind in sorted({*PLACES, "none"}.difference(NUMPYS_OWN.get(name, ()))):
                found: list[Any] = []
                for xp in (numpy, np):
                    x = xp.array(values)
                    out = None if kind == "none" else place(xp, kind, like, x)
                    try:
                        given = called_of(xp, name, is_method, x)(out=out, **keywords)
                    except KINDS as error:
                        found.append(kind_of(error))
                    else:
                        shown = given if out is None else out
                        found.append((given is out, shown.dtype, numpy.asarray(shown), numpy.asarray(x)))
                if isinstance(found[0], type):
                    assert found[1] == found[0], (keywords, operand, kind)
                    continue
                assert found[1][:2] == found[0][:2], (keywords, operand, kind)
                for mine, theirs in zip(found[1][2:], found[0][2:], strict=True):
                    numpy.testing.assert_allclose(
                        mine, theirs, 1e-6, 1e-6, err_msg=f"{keywords} {operand} {kind}"
                    )


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that calls")
@pytest.mark.parametrize(("name", "is_method"), CALLED)
def test_small_outputs_of_folds_and_scans_take_no_function_of_ours(name: str, is_method: bool) -> None:
    x, reverse = np.array(OPERANDS["doubles"]), np.array(OPERANDS["doubles"])[::-1]
    for a in (x, reverse, x[:, 1:]):
        for kind in ("alike", "strided", "turned"):
            out = place(np, kind, called_of(numpy, name, is_method, numpy.asarray(a))(axis=0), a)
            called = called_of(np, name, is_method, a)
            called(axis=0, out=out)
            assert functions_of_ours(lambda c=called, o=out: c(axis=0, out=o)) == [], kind  # type: ignore[misc]
            assert functions_of_ours(lambda c=called: c(axis=0, out=None)) == []  # type: ignore[misc]


@pytest.mark.skipif(not quick.IS_COMPILED, reason="it is Python that calls")
@pytest.mark.parametrize("name", ["add", "fmax", "logical_or"])
def test_methods_of_functions_with_keywords_take_no_function_of_ours(name: str) -> None:
    x, function = np.array(OPERANDS["doubles"]), getattr(np, name)
    like, scanned = getattr(numpy, name).reduce(OPERANDS["doubles"]), x > 1 if name == "logical_or" else x + 1
    calls_of = {
        "reduce": lambda: function.reduce(x, axis=0, out=place(np, "alike", like, x)),
        "accumulate": lambda: function.accumulate(x, axis=0),
        "accumulate into": lambda: function.accumulate(x, axis=1, out=scanned),
        "reduceat": lambda: function.reduceat(x, [0, 2], axis=1, out=scanned[:, :2]),
    }
    for call in calls_of.values():
        call()
        assert set(functions_of_ours(call)) <= {"place"}
