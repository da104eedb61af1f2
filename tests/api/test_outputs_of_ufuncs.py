"""`out=` with all that NumPy takes beside it: what is small is written where the elements lie, at once.

One that went through the optimizer left its output behind as a graph, and all that came after it followed.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy
import pytest

import spartan_ng as np
from tests.test_calls import calls

FUNCTIONS = ("add", "divide", "hypot", "maximum", "power", "sqrt", "exp", "absolute", "greater", "copysign")
SHAPES: dict[str, list[tuple[int, ...]]] = {
    "alike": [(40, 300), (40, 300)],
    "a column": [(700, 300), (700, 1)],
    "a row": [(300,), (700, 300)],
    "outer": [(400, 1), (1, 300)],
    "stacked": [(200, 200, 2), (200, 200, 1)],
    "a number": [(500, 300), ()],
}
BESIDE: dict[str, dict[str, Any]] = {
    "nothing": {},
    "where": {"where": ...},
    "casting": {"casting": "unsafe"},
    "dtype": {"dtype": "f8", "casting": "same_kind"},
    "where and dtype": {"where": ..., "dtype": "f4", "casting": "same_kind"},
    "order": {"order": "F"},
}


@pytest.mark.some(40)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("into", ["an operand", "an array", "a view"])
def test_an_output_is_written_where_it_lies(name: str, shapes: str, beside: str, into: str) -> None:
    rng = numpy.random.default_rng(0)
    nin = getattr(numpy, name).nin
    operands = [rng.random(shape) + 0.5 for shape in SHAPES[shapes]][:nin]
    shape = numpy.broadcast_shapes(*(o.shape for o in operands))
    mask = rng.random((*shape[:-1], 1)) > 0.5

    def run(xp: Any) -> tuple[Any, Any]:
        given: list[Any] = [xp.asarray(o.copy()) if o.ndim else o[()] for o in operands]
        whole = xp.zeros((2, *shape), "?" if name == "greater" else "f8")
        out: Any = {"an array": whole[0].copy(), "a view": whole[1]}.get(into)
        if out is None:
            out = next((g for g in given if g.shape == shape and g.dtype == whole.dtype), whole[0].copy())
        keywords = dict(BESIDE[beside])
        if name == "greater":
            keywords.pop("dtype", None)
        if "where" in keywords:
            keywords["where"] = xp.asarray(mask)
        before = None if xp is numpy else whole._cell.value, out if xp is numpy else out._cell.value
        assert getattr(xp, name)(*given, out=out, **keywords) is out
        if xp is np:
            assert out._cell._node is None, "nothing is left to be done"
            assert whole._cell.value is before[0]
            assert out._cell.value is before[1] or into == "an operand", "NumPy's own array is not written to"
        return out, whole

    with np.config.override(small_bytes=1 << 25):
        wanted, found = run(numpy), run(np)
    for ours, theirs in zip(found, wanted, strict=True):
        numpy.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


PAIRS = ("modf", "frexp", "divmod")
PLACES = ("arrays", "views", "one over the operand", "overlapping", "NumPy's", "one only", "in a tuple")


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("beside", ["nothing", "where", "casting", "order"])
@pytest.mark.parametrize("n", [0, 1, 50, 5000])
@pytest.mark.parametrize("name", PAIRS)
def test_two_outputs_are_written_where_they_lie(name: str, n: int, beside: str, places: str) -> None:
    if places == "overlapping" and name == "frexp":
        pytest.skip("its outputs are of two dtypes")
    rng = numpy.random.default_rng(n)
    first, second = rng.normal(0, 9, n), rng.random(n) + 0.1
    kind = "i4" if name == "frexp" else "f8"

    def run(xp: Any) -> tuple[Any, ...]:
        x = xp.asarray(first.copy())
        whole, more = xp.zeros((2, n)), xp.zeros((2, n), kind)
        if places == "arrays":
            outs: tuple[Any, ...] = (whole[0].copy(), more[0].copy())
        elif places == "one over the operand":
            outs = (x, more[1])
        elif places == "overlapping":
            outs = (whole[0], whole[0])
        elif places == "NumPy's":
            outs = (numpy.zeros(n), numpy.zeros(n, kind))
        elif places == "one only":
            outs = (whole[1], None)
        else:
            outs = (whole[1], more[1])
        keywords = dict(BESIDE[beside])
        if "where" in keywords:
            keywords["where"] = xp.asarray(first > 0)
        operands = (x,) if name != "divmod" else (x, xp.asarray(second.copy()))
        before = [o._cell.value for o in outs if xp is np and type(o) is np.ndarray]
        given = operands if places != "in a tuple" else (*operands, *outs)
        out = {} if places == "in a tuple" else {"out": outs}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = getattr(xp, name)(*given, **out, **keywords)
        assert all(f is o for f, o in zip(found, outs, strict=True) if o is not None)
        if xp is np and places in ("arrays", "views", "in a tuple"):
            assert all(o._cell.value is b for o, b in zip(outs, before, strict=True))
        return (*(f for f, o in zip(found, outs, strict=True) if o is not None or beside != "where"), x)

    for ours, theirs in zip(run(np), run(numpy), strict=True):
        numpy.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


@pytest.mark.parametrize("name", PAIRS)
def test_two_outputs_are_no_detour(name: str) -> None:
    x, a, b = np.asarray([1.5, 2.5]), np.zeros(2), np.zeros(2, "i4" if name == "frexp" else "f8")
    operands = (x,) if name != "divmod" else (x, 0.3)
    getattr(np, name)(*operands, out=(a, b))
    assert sum(calls(lambda: getattr(np, name)(*operands, out=(a, b))).values()) < 25


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::spartan_ng.FallbackWarning")
@pytest.mark.parametrize("where", [True, False, None, "array"])
@pytest.mark.parametrize(
    "call",
    [
        "np.exp(np.array([1.0, 2]).sum(), where=m)",
        "np.log2(2.5, where=m)",
        "np.add(1, 2, where=m)",
        "np.modf(2.5, where=m)",
        "np.negative(np.array(5.0), where=m)",
        "np.abs(np.array([1, -2], object), where=m)",
        "np.absolute(-2, where=m, dtype=object)",
        "np.greater(np.array([1.0, 2]), 1, where=m, dtype=object)",
        "np.multiply(np.array([1, None], object), 2, where=[True, False])",
    ],
)
def test_results_without_axes_under_masks_are_numbers(mode, call, where):
    """What no mask chooses is anything, but for objects it is None."""
    found = []
    for xp in (numpy, np):
        mask = xp.array(True) if where == "array" else where
        result = eval(call, {"np": xp, "m": mask})
        each = result if isinstance(result, tuple) else (result,)
        is_shown = where in (True, "array") or "object" in call
        found.append(
            [
                (
                    isinstance(r, numpy.generic),
                    numpy.asarray(r).dtype,
                    numpy.asarray(r).tolist() if is_shown else 0,
                )
                for r in each
            ]
        )
    assert found[0] == found[1]
